"""Write src/partita/option_types.pyi: the keyword arguments that consumer, producer, admin and broker take.

One TypedDict per client, made from its table of options, so that a type checker refuses a misspelt name or a value of
the wrong type. Run `python tools/option_types.py` after changing a table; `--check` only tells whether the checked-in
file is fresh (exit code 1 when not).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from partita.admin.config import OPTIONS as ADMIN
from partita.broker import options as broker
from partita.client_options import CLIENT_OPTIONS
from partita.consumer.config import OPTIONS as CONSUMER
from partita.consumer.sharing.settings import OPTIONS as SHARE
from partita.options import Option
from partita.producer.config import OPTIONS as PRODUCER

SOURCE = Path(__file__).resolve().parent.parent / "src" / "partita"
FILE = SOURCE / "option_types.pyi"
HEAD = """# Written by tools/option_types.py; do not edit.
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from partita.assignors.interface import Assignor
from partita.producer.serializing import Serializer
"""
ANY_OBJECT = "Any"
"""The type of an option that takes an object of the user's own: a class, a function, a name."""

_TYPES = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "list": "str | Iterable[Any]",
    "secret": "str",
    "any": ANY_OBJECT,
}
_PRECISE = {
    "key_serializer": "Serializer | str | None",
    "value_serializer": "Serializer | str | None",
}
_BROKER_TYPES = {
    broker.BOOLEAN: "bool", broker.STRING: "str", broker.INT: "int", broker.SHORT: "int", broker.LONG: "int",
    broker.DOUBLE: "float", broker.LIST: "str | Iterable[str]", broker.PASSWORD: "str",
}  # fmt: skip
_BROKER_SETTINGS = {
    "host": "str", "port": "int", "data_dir": "str | None", "durability": "str | None", "nodes": "int",
    "kafka_defaults": "bool", "notes_file": "str | None", "admin_port": "int | None", "admin_token": "str | None",
    "tls": "bool", "mtls": "bool", "users": "Mapping[str, str]", "acls": "Sequence[str]",
    "assignors": "Sequence[Assignor | str]",
}  # fmt: skip
_NAMED_BY_THE_CALL = {"key_deserializer", "value_deserializer"}
"""Parameters of their own in `Consumer`, as they decide the types of its records."""


def main(argv: list[str]) -> int:
    """Write the stub if it is stale, or only say so with `--check`; return the exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(FILE), "-"],
        input=text(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    is_stale = not FILE.exists() or FILE.read_text() != done.stdout
    if is_stale and "--check" not in argv:
        FILE.write_text(done.stdout)
    print("option types are fresh" if not is_stale or "--check" not in argv else "stale: run tools/option_types.py")
    return 1 if is_stale and "--check" in argv else 0


def text() -> str:
    """The stub, with every class; not formatted yet."""
    shared = {option.name: option for option in CLIENT_OPTIONS}
    own = {
        f"{part}Options": _lines(option for option in table if shared.get(option.name) != option)
        for part, table in (("Consumer", CONSUMER), ("Share", SHARE), ("Producer", PRODUCER), ("Admin", ADMIN))
    }
    return "\n\n".join(
        [
            HEAD,
            _class("ClientOptions", "TypedDict", _lines(CLIENT_OPTIONS)),
            *(_class(name, "ClientOptions", lines) for name, lines in own.items()),
            _class("BrokerOptions", "TypedDict", _broker_lines()),
        ]
    )


def _class(name: str, base: str, lines: Iterable[str]) -> str:
    return "\n".join([f"class {name}({base}, total=False):", *(f"    {line}" for line in lines)])


def _lines(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        if option.name not in _NAMED_BY_THE_CALL:
            for name in (option.name, *option.aliases):
                yield f"{name}: {_annotation(option)}"


def _annotation(option: Option) -> str:
    if option.name in _PRECISE:
        return _PRECISE[option.name]
    kind = _TYPES[option.kind]
    if any(choice.isdigit() for choice in option.choices):
        kind += " | int"
    may_be_none = option.nullable or option.default is None
    return f"{kind} | None" if may_be_none and kind != ANY_OBJECT else kind


def _broker_lines() -> Iterator[str]:
    for name, kind in _BROKER_SETTINGS.items():
        yield f"{name}: {kind}"
    for option in broker.BROKER:
        null = " | None" if option.default is None else ""
        yield f"{option.name.replace('.', '_')}: {_BROKER_TYPES[option.kind]}{null}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
