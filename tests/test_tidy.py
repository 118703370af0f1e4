"""The architecture as a test: imports point down, pure stays pure, sizes, generated files and README tables current."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
FILES = sorted(p for p in SRC.rglob("*.py") if "egg-info" not in str(p))
GENERATED = SRC / "partita" / "protocol" / "messages"

PEOPLE, SHELLS, RULES, ASSIGNORS, RECORDS, PROTOCOL, GROUND = range(6, -1, -1)
LAYERS = {
    "cli": PEOPLE, "demo": PEOPLE, "dashboard": PEOPLE, "spark": PEOPLE, "testing": PEOPLE, "pyspark_partita": PEOPLE,
    "broker": SHELLS, "net": SHELLS, "sim": SHELLS, "admin": SHELLS,
    "group": RULES, "consumer": RULES, "producer": RULES, "log": RULES,
    "assignors": ASSIGNORS, "records": RECORDS, "protocol": PROTOCOL,
    "now": GROUND, "options": GROUND, "security_options": GROUND, "client_options": GROUND,
    "system_clock": GROUND, "compiled": GROUND,
    "errors": PROTOCOL,
}  # fmt: skip
CLIENT_SHELL = "shell"
"""The folder of each client that holds its outer side; everything else of consumer and producer is a rule."""
IMPURE = frozenset({"asyncio", "socket", "threading", "time", "random", "os", "logging", "selectors", "mmap"})
HEAVY = ("pyarrow", "numpy", "kio", "pyspark", "pandas", "rich")
ALLOWED_TWICE = 70


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """`partita.group.join` -> `group`; `pyspark_partita` -> itself; the package root -> ``."""
    names = module.split(".")
    return names[0] if names[0] != "partita" else names[1] if len(names) > 1 else ""


def is_client_shell(module: str) -> bool:
    return module.split(".")[2:3] == [CLIENT_SHELL]


def layer_of(module: str) -> int | None:
    return SHELLS if is_client_shell(module) else LAYERS.get(part_of(module))


def is_pure(module: str) -> bool:
    return part_of(module) in {"protocol", "records", "group", "assignors", "log", "consumer", "producer"} and not (
        is_client_shell(module) or module == "partita.protocol.generate"
    )


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import that can run; those for type checkers only are left out."""
    tree = ast.parse(path.read_text())
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    module = module_name(path)
    layer = layer_of(module)
    if part_of(module) == "" or layer is None:
        assert module in {"partita"}, f"{module} has no layer; give it one in this test"
        return
    for line, target in imports(path):
        if not target.startswith(("partita.", "pyspark_partita")):
            continue
        below = layer_of(target)
        if below is None:
            continue
        where = f"{path.relative_to(ROOT)}:{line} imports {target}"
        assert below <= layer, f"{where}, which lies above it"
        if layer == RULES == below:
            assert part_of(module) == part_of(target), f"{where}: rules do not import one another"


@pytest.mark.parametrize("path", [p for p in FILES if is_pure(module_name(p))], ids=lambda p: str(p.relative_to(SRC)))
def test_pure_code_is_pure(path: Path) -> None:
    found = [f"{line}: {name}" for line, name in imports(path) if name.split(".")[0] in IMPURE or "uuid4" in name]
    assert not found, f"{path.relative_to(ROOT)} imports what a rule must not know: {found}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_sizes_and_docstrings(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    if text.strip():
        assert ast.get_docstring(tree), f"{path.relative_to(ROOT)} does not say what it is for"
    if path.parent == GENERATED:
        return
    assert len(text.splitlines()) <= 600, f"{path.relative_to(ROOT)} has outgrown one idea"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= ALLOWED_TWICE, f"{path.relative_to(ROOT)}: {node.name} has {length} lines"


def test_generated_messages_are_fresh() -> None:
    pytest.importorskip("ruff", reason="the generator formats with ruff; make check installs it")
    done = subprocess.run(
        [sys.executable, "-m", "partita.protocol.generate", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_broker_imports_nothing_heavy() -> None:
    code = (
        f"import sys, partita.cli.broker, partita.broker.wire.server; print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_speaks_of_the_workplace() -> None:
    marks = re.compile(r"/(?:work|farm)/|\bTODO\b(?!.*#\d)|FIXME|pytest\.mark\.(?:skip|xfail)\b")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        return
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt"} and path != Path(__file__):
            found = marks.search(path.read_text())
            assert not found, f"{name}: {found[0] if found else ''}"
