"""Write the `option_types.py` of consumer, producer, admin and broker: the keyword arguments that each class takes.

One TypedDict per client, made from its table of options, so that a type checker refuses a misspelt name or a value of
the wrong type. Run `python tools/option_types.py` after changing a table; `--check` only tells whether the checked-in
files are fresh (exit code 1 when not).
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
from partita.options import Option
from partita.producer.config import OPTIONS as PRODUCER

SOURCE = Path(__file__).resolve().parent.parent / "src" / "partita"
NOTE = "Written by tools/option_types.py; do not edit."
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
    """Write the stale files, or only name them with `--check`; return the exit code."""
    stale = []
    for path, code in sources().items():
        done = subprocess.run(
            [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(SOURCE / path), "-"],
            input=code, capture_output=True, text=True, check=True,
        )  # fmt: skip
        target = SOURCE / path
        if not target.exists() or target.read_text() != done.stdout:
            stale.append(path)
            if "--check" not in argv:
                target.write_text(done.stdout)
    verb = "stale, run python tools/option_types.py" if "--check" in argv else "written"
    print(f"{verb}: {', '.join(stale)}" if stale else "option types are fresh")
    return 1 if stale and "--check" in argv else 0


def sources() -> dict[str, str]:
    """The code of every generated file, by its path below the package; not formatted yet."""
    shared = {option.name: option for option in CLIENT_OPTIONS}
    return {
        "client_option_types.py": _module("ClientOptions", "what every client takes", _lines(CLIENT_OPTIONS)),
        **{
            f"{part}/option_types.py": _module(
                f"{part.capitalize()}Options",
                f"options of the {part} alone",
                _lines(option for option in table if shared.get(option.name) != option),
                base="ClientOptions",
            )
            for part, table in (("consumer", CONSUMER), ("producer", PRODUCER), ("admin", ADMIN))
        },
        "broker/option_types.py": _module("BrokerOptions", "what an embedded broker takes", _broker_lines()),
    }


def _module(name: str, what: str, lines: Iterable[str], base: str = "") -> str:
    body = "\n".join(f"    {line}" for line in lines)
    head = [
        f'"""Keyword arguments: {what}. {NOTE}"""',
        "",
        "from __future__ import annotations",
        "",
        *(
            [
                "from collections.abc import "
                + ", ".join(n for n in ("Callable", "Iterable", "Mapping", "Sequence") if f"{n}[" in body)
            ]
        ),
        *_typing_names(body, base),
        "",
        *(["from partita.assignors.interface import Assignor"] if "Assignor |" in body else []),
        *(["from partita.client_option_types import ClientOptions"] if base else []),
        *(["from partita.producer.serializing import Serializer"] if "Serializer" in body else []),
    ]
    doc = f'    """Every option by its name, in Kafka\'s spelling with underscores: {what}."""'
    return "\n".join([*head, "", "", f"class {name}({base or 'TypedDict'}, total=False):", doc, "", body, ""])


def _typing_names(body: str, base: str) -> list[str]:
    """The import from typing, if there is any need of it."""
    names = [name for name, is_used in (("Any", "Any" in body), ("TypedDict", not base)) if is_used]
    return [f"from typing import {', '.join(names)}"] if names else []


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
