"""The architecture as a test: what the documents and docstrings claim about the source, proved by reading the source.

One test for each rule; each names every place that breaks it.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from partita.broker.options import MEANINGS

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
FILES = sorted(p for p in SRC.rglob("*.py") if "egg-info" not in str(p))
GENERATED = SRC / "partita" / "protocol" / "messages"
WRITTEN = [path for path in FILES if path.parent != GENERATED]

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 18
ACCENT_PER_10_000_WORDS = 2
PROCESS_LIMIT_S = 10
ONE_FILE_FOR_EACH_API = frozenset({"handlers", "messages", "schema"})

PEOPLE, SHELLS, RULES, ASSIGNORS, RECORDS, PROTOCOL, GROUND = range(6, -1, -1)
LAYERS = {
    "cli": PEOPLE, "demo": PEOPLE, "designs": PEOPLE, "spark": PEOPLE, "testing": PEOPLE,
    "dashboard": PEOPLE, "migrate": PEOPLE, "pyspark_partita": PEOPLE, "pictures": PEOPLE, "play": PEOPLE,
    "broker": SHELLS, "net": SHELLS, "sim": SHELLS, "admin": SHELLS, "registry": SHELLS, "telemetry": SHELLS,
    "http": SHELLS, "observe": SHELLS,
    "explain": RULES, "group": RULES, "transactions": RULES, "share": RULES,
    "consumer": RULES, "producer": RULES, "log": RULES,
    "assignors": ASSIGNORS, "records": RECORDS, "protocol": PROTOCOL,
    "now": GROUND, "metrics": GROUND, "options": GROUND, "client_options": GROUND, "option_types": GROUND,
    "system_clock": GROUND, "compiled": GROUND, "expressions": GROUND, "secret": GROUND, "security": GROUND,
    "wording": GROUND, "offsets": GROUND, "properties": GROUND, "references": GROUND, "java": GROUND,
    "cached_programs": GROUND, "lazy": GROUND,
    "errors": PROTOCOL, "error_kinds": PROTOCOL,
}  # fmt: skip
CLIENT_SHELL = "shell"
"""The folder of each client, and of the simulator, that holds its outer side; everything else of them is a rule."""
PURE = (
    "explain",
    "expressions",
    "metrics",
    "observe.kept",
    "observe.log_facts",
    "observe.note_facts",
    "protocol",
    "records",
    "group",
    "transactions",
    "share",
    "assignors",
    "log",
    "consumer",
    "producer",
    "security",
    "sim",
    "offsets",
    "pictures",
    "migrate.reading",
    "migrate.settings",
    "play.player",
    "play.stage",
    "play.text",
    "play.words",
    "spark.planning",
    "spark.settings",
    "designs.rules",
    "designs.journal",
    "designs.measure",
)
IMPURE = frozenset({"asyncio", "socket", "threading", "time", "random", "os", "logging", "selectors", "mmap"})
HEAVY = ("pyarrow", "numpy", "kio", "pyspark", "pandas", "rich")
UNUSED_IN_PLAIN_TEXT = (
    "partita.net.secured.login", "partita.net.secured.tls", "partita.security.settings", "partita.security.jaas",
    "datetime", "difflib", "hashlib", "ipaddress", "pathlib", "platform", "tempfile", "urllib.parse", "uuid",
)  # fmt: skip
SHELF = (
    "dashboard", "demo", "designs", "migrate", "play", "registry", "telemetry",
    "broker.storage.backup", "cli.records.mirror", "cli.records.perf", "cli.service.backup", "spark.pipeline",
    "testing.report",
)  # fmt: skip
"""What the core never imports. New features that the groups can do without enter here."""
DOORS = {
    "cli": "the command line opens both shelves, each module for the command that needs it",
    "spark.reading.typed_columns": "the option `registry` of a read, which needs the extra of that name",
    "testing.plugin": "`--partita-reports` writes a page of the dashboard",
}
"""What may import the shelf without being on it."""
BORROWED = frozenset(
    {
        "load",
        "from_json",
        "from_avro",
        "cython.compiled",
        "__consumer_offsets",
        "__transaction_state",
        "getErrorResponse",
        "org.apache.kafka.common.protocol.Errors",
    }
)
"""Names in docstrings that belong to PySpark, Cython or Kafka."""
MAY_LACK = "the package may be missing, and the file does without it or says what to install"
INSIDE_FUNCTIONS = {
    "broker/launch.py": (1, MAY_LACK),
    "broker/security/ready_made.py": (1, MAY_LACK),
    "broker/security/server_tls.py": (1, MAY_LACK),
    "broker/security/tokens.py": (1, MAY_LACK),
    "broker/storage/open_files.py": (1, "Windows has no module resource"),
    "broker/wire/server.py": (1, "Windows has no module resource"),
    "consumer/shell/io_thread.py": (1, MAY_LACK),
    "expressions.py": (1, MAY_LACK),
    "java.py": (1, MAY_LACK),
    "net/refusals.py": (1, MAY_LACK),
    "net/secured/tls.py": (1, MAY_LACK),
    "pyspark_partita/__init__.py": (1, "Spark imports it in every session, and most of them need no more of it"),
    "records/checksum.py": (1, MAY_LACK),
    "records/compression.py": (2, MAY_LACK),
    "spark/executor_probe.py": (4, "the function travels to executors that may lack partita"),
    "spark/reading/prefetching.py": (1, "a private class of PySpark, which another release may lack"),
}  # fmt: skip
"""The files with imports inside functions: how many, and why. Elsewhere `later` names at the head what waits."""


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def at(path: Path, line: int = 1) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def report(offenders: Iterable[str]) -> str:
    """Empty if there are none; else one line for each."""
    return "\n".join(["", *offenders]) if offenders else ""


# Layers


def part_of(module: str) -> str:
    """`partita.group.join` -> `group`; `pyspark_partita` -> itself; the package root -> ``."""
    names = module.split(".")
    return names[0] if names[0] != "partita" else names[1] if len(names) > 1 else ""


def is_client_shell(module: str) -> bool:
    return module.split(".")[2:3] == [CLIENT_SHELL]


def layer_of(module: str) -> int | None:
    return SHELLS if is_client_shell(module) else LAYERS.get(part_of(module))


def is_pure(module: str) -> bool:
    inside = any(f"{module}.".startswith(f"partita.{part}.") for part in PURE)
    return inside and not is_client_shell(module) and module != "partita.protocol.generate"


def only_for_checkers(tree: ast.Module) -> set[int]:
    """The ids of the nodes that stand below `if TYPE_CHECKING`."""
    return {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }


@cache
def imports(path: Path, *, for_checkers: bool = False) -> tuple[tuple[int, str], ...]:
    """(line, name) of every import that can run, also by `later`; on request also of those for type checkers."""
    return tuple(found_imports(path, for_checkers=for_checkers))


def found_imports(path: Path, *, for_checkers: bool) -> Iterator[tuple[int, str]]:
    tree = tree_of(path)
    left_out = set() if for_checkers else only_for_checkers(tree)
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call):
            match node:
                case ast.Call(func=ast.Name(id="later"), args=[ast.Constant(value=str(name))]):
                    yield node.lineno, name


def module_behind(name: str) -> str | None:
    """The module that an imported name is, or lies in."""
    return name if name in MODULES else owner if (owner := name.rpartition(".")[0]) in MODULES else None


def test_every_part_has_a_layer_and_every_layer_a_part() -> None:
    parts = {part_of(module) for module in MODULES} - {""}
    assert parts == set(LAYERS)


def test_imports_point_down() -> None:
    offenders = []
    for module, path in MODULES.items():
        layer = layer_of(module)
        for line, target in imports(path) if layer is not None else ():
            below = layer_of(target) if target.startswith(("partita.", "pyspark_partita")) else None
            if layer is None or below is None:
                continue
            if below > layer:
                offenders.append(f"{at(path, line)} imports {target}, which lies above it")
            elif layer == RULES == below and part_of(module) != part_of(target):
                offenders.append(f"{at(path, line)} imports {target}: rules do not import one another")
    assert not offenders, report(offenders)


def lies_in(module: str, parts: Iterable[str]) -> bool:
    return any(f"{module}.".startswith(f"partita.{part}.") for part in parts)


def test_the_core_never_imports_the_shelf() -> None:
    """Issue 27: the core can be read, and loved, without the shelf."""
    offenders = [
        f"{at(path, line)} imports {name}, which is on the shelf"
        for module, path in MODULES.items()
        if not lies_in(module, SHELF) and not lies_in(module, DOORS)
        for line, name in imports(path, for_checkers=True)
        if lies_in(name, SHELF)
    ]
    assert not offenders, report(offenders)


def test_the_architecture_names_the_shelf() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## The two shelves\n")[2].partition("\n## ")[0]
    drawn = {name for line in text.splitlines() if line.startswith("shelf") for name in line.split()[1:]}
    assert drawn == set(SHELF)
    assert all(any(lies_in(module, [part]) for module in MODULES) for part in (*SHELF, *DOORS))


def test_the_architecture_leads_to_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Find it by your task\n")[2].partition("\n## ")[0]
    named = {name for row in text.splitlines() for name in re.findall(r"`([\w/]+(?:\.py|/))`", row)}
    assert len(named) > 20
    gone = [name for name in sorted(named) if not (SRC / "partita" / name).exists() and not (ROOT / name).exists()]
    assert not gone, report(gone)


def test_pure_code_reads_no_clock_chance_or_device() -> None:
    offenders = [
        f"{at(path, line)} imports {name}"
        for module, path in MODULES.items()
        if is_pure(module)
        for line, name in imports(path)
        if name.split(".")[0] in IMPURE or "uuid4" in name
    ]
    assert not offenders, report(offenders)


def test_imports_make_no_circle() -> None:
    """Imports for type checkers count too: who needs another's type depends on it."""
    targets = {
        module: {found for _, name in imports(path, for_checkers=True) if (found := module_behind(name))} - {module}
        for module, path in MODULES.items()
    }
    assert not (circles := list(circles_in(targets))), report(" <-> ".join(circle) for circle in circles)


def circles_in(targets: dict[str, set[str]]) -> Iterator[list[str]]:
    """Each group of modules that reach one another. (Tarjan's strongly connected components)"""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(targets[module]):
            if target not in index:
                yield from visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            start = stack.index(module)
            found = stack[start:]
            del stack[start:]
            if len(found) > 1:
                yield sorted(found)

    for module in sorted(targets):
        if module not in index:
            yield from visit(module)


def test_a_circle_of_imports_would_be_found() -> None:
    assert list(circles_in({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()})) == [["a", "b", "c"]]
    assert list(circles_in({"a": {"b", "c"}, "b": {"c"}, "c": set()})) == []


def test_imports_stand_at_the_head() -> None:
    """Issue 27: what a file depends on is read there; an import inside a function hides it."""
    found: dict[str, int] = {}
    for path in WRITTEN:
        functions = [
            node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        inside = {id(node) for f in functions for node in ast.walk(f) if isinstance(node, ast.Import | ast.ImportFrom)}
        if inside:
            found[str(path.relative_to(SRC)).removeprefix("partita/")] = len(inside)
    assert found == {name: count for name, (count, _) in INSIDE_FUNCTIONS.items()}


# Rooms

MARGIN = 12
"""The column at which the pictures of ARCHITECTURE.md begin."""


@cache
def rooms() -> dict[str, dict[str, set[str]]]:
    """For each part, and for the whole as `partita`: which room imports which others.

    A room is a folder of the part, or a module that lies alone in it.
    """
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, path in MODULES.items():
        _, part, room, *_ = [*module.split("."), "", ""]
        for _, name in imports(path, for_checkers=True):
            _, other, target, *_ = [*(module_behind(name) or "").split("."), "", ""]
            if part == other and room and target and room != target:
                found[part][room].add(target)
                found[part].setdefault(target, set())
            elif part in LAYERS and other in LAYERS and part != other:
                found["partita"][part].add(other)
                found["partita"].setdefault(other, set())
    return found


def floors() -> dict[str, dict[str, int]]:
    """The picture of ARCHITECTURE.md: for each part its rooms, and the floor of each, counted from above."""
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## The rooms\n")[2]
    drawn: dict[str, dict[str, int]] = defaultdict(dict)
    part = ""
    for line in text.split("```")[1].splitlines():
        part = line[:MARGIN].strip() or part
        picture = re.split(r"\s{2,}", line[MARGIN:])[0]
        for floor in filter(str.strip, picture.split(">")):
            number = 1 + max(drawn[part].values(), default=0)
            drawn[part] |= {name.strip(): number for name in floor.split(",")}
    return drawn


def test_rooms_import_one_way() -> None:
    offenders = [f"{part}: {' <-> '.join(circle)}" for part, edges in rooms().items() for circle in circles_in(edges)]
    assert not offenders, report(offenders)


def test_the_arrows_of_the_architecture_are_the_code_s() -> None:
    """Each folder of a drawn part is in the picture, and no import leads up or along a floor."""
    offenders = []
    for part, floor in floors().items():
        folders = {path.parent.name for path in (SRC / "partita" / part).glob("*/*.py")}
        offenders += [f"{part}: {name} is not drawn" for name in sorted(folders - floor.keys())]
        gone = [name for name in floor if name not in folders and f"partita.{part}.{name}" not in MODULES]
        offenders += [f"{part}: {name} is drawn and does not exist" for name in gone]
        offenders += [
            f"{part}: {room} imports {target}, which is drawn above it or beside it"
            for room, targets in rooms()[part].items()
            for target in sorted(targets)
            if floor.get(room, 0) >= floor.get(target, 99)
        ]
    assert not offenders, report(offenders)
    assert {"broker", "group", "consumer", "spark", "sim"} <= floors().keys()


# Sizes


def test_no_file_and_no_function_is_too_long() -> None:
    offenders = []
    for path in WRITTEN:
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES_MAX:
            offenders.append(f"{at(path)} has {lines} lines; at most {FILE_LINES_MAX}")
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES_MAX:
                    offenders.append(f"{at(path, node.lineno)} {node.name} has {length} lines")
    assert not offenders, report(offenders)


def test_no_folder_is_too_full() -> None:
    held: dict[Path, int] = defaultdict(int)
    for path in FILES:
        held[path.parent] += path.parent.name not in ONE_FILE_FOR_EACH_API
    offenders = [f"{at(folder)} holds {count} files" for folder, count in held.items() if count > FOLDER_FILES_MAX]
    assert not offenders, report(offenders)


# Words


def documented(tree: ast.Module) -> Iterator[tuple[ast.Module | ast.ClassDef | ast.FunctionDef, str]]:
    """What must say what it promises: the module, and its public classes and functions."""
    yield tree, "the module"
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node, node.name  # type: ignore[misc]  # a coroutine function has a docstring like any function


def test_public_names_have_docstrings() -> None:
    offenders = [
        f"{at(path, getattr(node, 'lineno', 1))} {name}"
        for path in WRITTEN
        if path.read_text().strip()
        for node, name in documented(tree_of(path))
        if not ast.get_docstring(node)
    ]
    assert not offenders, report(offenders)


def vocabulary(path: Path) -> set[str]:
    """Every name that the code of a module says: defined, imported, used, or spelled as a string."""
    found = {path.stem}
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found |= {*name.split("."), other or name}
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+", text):
                found.add(text)
    return found


class Words:
    """The words of the source. Reading them takes seconds, and every worker of a run collects this file."""

    def __init__(self) -> None:
        self.modules = {module: vocabulary(path) for module, path in MODULES.items()}
        self.all = set().union(*self.modules.values())
        ground = set().union(
            *(self.modules[module] for module, path in MODULES.items() if path.parent.name == "partita")
        )
        self.parts: dict[str, set[str]] = defaultdict(lambda: {*dir(builtins), *keyword.kwlist, *BORROWED, *ground})
        self.classes: dict[str, list[str]] = defaultdict(list)
        for module, path in MODULES.items():
            self.parts[part_of(module)] |= self.modules[module]
            for node in tree_of(path).body:
                if isinstance(node, ast.ClassDef):
                    self.classes[node.name].append(module)


words = cache(Words)
FILE_NAMES = {path.name for path in ROOT.glob("*.py")} | {path.name for path in SRC.rglob("*.p*")}
BACK_TICKED = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")


def exists(name: str, part: str) -> bool:
    """Whether a docstring of `part` may speak of `name`: a word of that part, a module, a class, a file.

    The name of an option is in the broker's table, or has underscores in the code where Kafka writes dots.
    """
    if name in words().parts[part] or name in FILE_NAMES | MEANINGS.keys():
        return True
    if "." in name and name.replace(".", "_") in words().all:
        return True
    names = name.split(".")
    for cut in range(len(names), 0, -1):
        stem, rest = ".".join(names[:cut]), set(names[cut:])
        modules = [module for module in MODULES if module == stem or module.endswith(f".{stem}")]
        if modules:
            return any(rest <= words_in(module) for module in modules)
    if names[0] in sys.stdlib_module_names:
        return True
    return len(names) > 1 and any(
        set(names[1:]) <= words().modules[module] for module in words().classes.get(names[0], ())
    )


@cache
def words_in(module: str) -> set[str]:
    """The words of a module, or of all modules of a package."""
    return set().union(*(said for name, said in words().modules.items() if f"{name}.".startswith(f"{module}.")))


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def test_docstrings_are_plain_english() -> None:
    """A translation is known by its words; a docstring that opens with "What" makes the reader build the noun."""
    accent = re.compile(r"\b(?:told|tells?|nobody|somebody|whoever)\b", re.IGNORECASE)
    texts = [(at(path, line), text) for path in WRITTEN for line, text in docstrings(path)]
    offenders = [f"{where} begins with What" for where, text in texts if text.startswith("What ")]
    offenders += [f"{where} says {found[0]}" for where, text in texts if (found := accent.search(text))]
    words = sum(len(text.split()) for _, text in texts)
    assert len(offenders) <= ACCENT_PER_10_000_WORDS * words / 10_000, report(offenders)


def test_names_in_docstrings_exist() -> None:
    offenders = [
        f"{at(path, line)} speaks of `{name}`, which does not exist"
        for module, path in MODULES.items()
        if path in WRITTEN
        for line, text in docstrings(path)
        for name in BACK_TICKED.findall(text)
        if not exists(name, part_of(module))
    ]
    assert not offenders, report(offenders)


def test_no_docstring_claims_what_nothing_proves() -> None:
    """What a module does not know is said by the layers and the rule on pure code, which are proved above."""
    offenders = [
        f"{at(path, line)} says what it must not know"
        for path in WRITTEN
        for line, text in docstrings(path)
        if re.search(r"must\s+not\s+know", text, re.IGNORECASE)
    ]
    assert not offenders, report(offenders)


def test_a_name_that_does_not_exist_would_be_found() -> None:
    assert exists("rebalance.move", "group")
    assert not exists("rebalance.restore_it_all", "group")
    assert not exists("no_such_name", "group")


# The whole


def test_no_module_hides_what_its_package_defines() -> None:
    """Importing `package.name` replaces a function of that name in the package by the module."""
    offenders = []
    for path in FILES:
        if path.name == "__init__.py":
            names = {getattr(node, "name", "") for node in ast.parse(path.read_text()).body}
            offenders += [
                f"{at(path, 1)}: {found.name} hides it" for found in path.parent.glob("*.py") if found.stem in names
            ]
    assert not offenders, report(offenders)


@pytest.mark.parametrize("tool", ["option_types.py", "error_classes.py", "decisions.py"])
def test_what_a_tool_writes_is_fresh(tool: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_broker_imports_nothing_heavy() -> None:
    code = (
        f"import sys, partita.cli.broker, partita.broker.wire.server; print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_client_in_plain_text_loads_nothing_of_tls_and_logins() -> None:
    """Finding 6 of an audit of the clients: the start of one of them costs three times that of confluent-kafka."""
    code = (
        "import sys; from partita import AsyncConsumer, Consumer, Producer; "
        f"print([m for m in {UNUSED_IN_PLAIN_TEXT!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def only_asks_for_a_port(body: list[ast.stmt]) -> bool:
    """Whether a block binds a socket, notes its port and ends."""
    notes = [line for line in body if isinstance(line, ast.Assign | ast.AnnAssign)]
    binds = [line for line in body if isinstance(line, ast.Expr) and ".bind(" in ast.unparse(line)]
    return len(notes) + len(binds) == len(body) and any("getsockname" in ast.unparse(line) for line in notes)


def tries_one_s_luck(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where code breaks a rule of decision 330 that can be read off the text: the line, and what is wrong."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and only_asks_for_a_port(node.body):
            yield node.lineno, "gives a port up and uses its number; take one of free_ports, or keep it bound"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func).rpartition(".")[2]
        given = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
        if called in ("settings", "register_profile") and given.get("deadline") is not None:
            yield node.lineno, "gives an example a deadline"
        is_short = isinstance(limit := given.get("timeout"), int | float) and limit < PROCESS_LIMIT_S
        if called in ("run", "run_tool", "communicate", "check_output", "check_call") and is_short:
            yield node.lineno, f"gives a process less than {PROCESS_LIMIT_S} s"


def test_nothing_tries_its_luck() -> None:
    """Decision 330."""
    texts = {path: path.read_text() for folder in ("tests", "tools", "bench") for path in (ROOT / folder).rglob("*.py")}
    for page in (ROOT / "docs").rglob("*.md"):
        found = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
        texts |= {page / str(number): block for number, block in enumerate(found) if "socket" in block}
    suspects = [path for path, text in texts.items() if re.search(r"getsockname|deadline=|timeout=\d", text)]
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {wrong}" for path in suspects
        for line, wrong in tries_one_s_luck(ast.parse(texts[path]))
    ]  # fmt: skip
    assert not offenders, report(offenders)


def test_luck_would_be_found() -> None:
    port = "with socket.socket() as s:\n    s.bind((HOST, 0))\n    port = s.getsockname()[1]\n"
    for code in (port, "settings(deadline=200)", "subprocess.run(['x'], timeout=5)"):
        assert len(list(tries_one_s_luck(ast.parse(code)))) == 1
    for code in (f"{port}    ask(port)\n", "settings(deadline=None)", "subprocess.run(['x'], timeout=60)"):
        assert list(tries_one_s_luck(ast.parse(code))) == []


def test_nothing_speaks_of_the_workplace() -> None:
    marks = re.compile(r"/(?:work|farm)/|\bTODO\b(?!.*#\d)|FIXME|pytest\.mark\.(?:skip|xfail)\b")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        return
    offenders = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".yaml"} and path != Path(__file__):
            found = marks.search(path.read_text())
            offenders += [f"{name}: {found[0]}"] if found else []
    assert not offenders, report(offenders)
