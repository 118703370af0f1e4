"""Which options the code reads: what stands for an option's name in a syntax tree, outside the tables of options.

An option of the broker or of a topic is read where its name is a string of its own, or where the field of
`GroupConfig` that holds it is used, or where it bounds a setting of groups; a topic option that is read makes its
broker option one that is read. An option of a client is read where its name is a string of its own or an attribute.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from partita.broker import options as broker_options
from partita.broker.groups.settings import BOUNDS, OPTIONS
from partita.net.config import ClientConfig
from partita.producer.config import OPTIONS as PRODUCER_OPTIONS

SOURCE = Path(__file__).resolve().parent.parent / "src" / "partita"
BROKER_FOLDERS = ("broker", "group")
GROUP_CONFIG = SOURCE / "group" / "config.py"
BROKER_TABLES = {SOURCE / "broker" / name for name in ("options.py", "config.py")}


def broker_options_read() -> set[str]:
    """Names of broker and topic options whose value something depends on."""
    names: set[str] = set()
    attributes: set[str] = set()
    for path in _files(BROKER_FOLDERS):
        if path not in BROKER_TABLES | {GROUP_CONFIG}:
            names |= _strings(path)
            attributes |= _attributes(path)
    names |= {name.replace("_", ".") for name in attributes | _behind_properties(attributes)}
    names |= {name for bounds in BOUNDS.values() for name in bounds if name}
    names |= {option.synonym for option in OPTIONS.values() if option.name in names and option.synonym}
    topic = [option for option in broker_options.TOPIC if option.name in names]
    names |= {option.synonym for option in topic if option.synonym}
    units = {"log.retention.ms": ("log.retention.minutes", "log.retention.hours"), "log.roll.ms": ("log.roll.hours",)}
    names |= {other for name, others in units.items() if name in names for other in others}
    return names & {option.name for option in (*broker_options.BROKER, *broker_options.TOPIC)}


def client_options_read(folder: str) -> set[str]:
    """What is read by the client in `folder`, itself or through the connections all clients share."""
    names: set[str] = set()
    for path in _files((folder,)):
        names |= _strings(path) | _attributes(path)
    for path in _files(("net", "security")):
        names |= _strings(path) | (_attributes(path) & ClientConfig.__dataclass_fields__.keys())
    return names


def _files(folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((SOURCE / folder).rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _strings(path: Path) -> set[str]:
    """Strings that are looked up or compared: an argument of a call, an index, or one side of a comparison."""
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "Option"):
            used: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Subscript):
            used = [node.slice]
        elif isinstance(node, ast.Compare):
            used = [node.left, *node.comparators]
        elif isinstance(node, ast.Assign):
            used = [node.value]
        else:
            continue
        for each in used:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                found.add(each.value)
            elif isinstance(each, ast.JoinedStr):
                found |= _spelled(each)
    return found


def _spelled(text: ast.JoinedStr) -> set[str]:
    """The names of options that a string with parts filled in can be."""
    parts = [re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z0-9]+" for p in text.values]
    if max(map(len, parts), default=0) < 10:
        return set()
    pattern = re.compile("".join(parts))
    known = {option.name for option in PRODUCER_OPTIONS}
    known |= {option.name for option in (*broker_options.BROKER, *broker_options.TOPIC)}
    return {name for name in known if pattern.fullmatch(name)}


def _attributes(path: Path) -> set[str]:
    return {
        node.attr
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def _behind_properties(used: set[str]) -> set[str]:
    """Fields of GroupConfig that its properties read, for the properties in `used`."""
    return {
        inner.attr
        for node in ast.walk(_tree(GROUP_CONFIG))
        if isinstance(node, ast.FunctionDef) and node.name in used
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute)
    }
