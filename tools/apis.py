"""Print what the handlers declare: the index of what is served, and docs/rights.md. `--check` only compares."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import starmap
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from partita.broker import handlers
from partita.broker.api.served import Served

KIND = re.compile(r"\b(?:TOPIC|GROUP|CLUSTER|TRANSACTIONAL_ID)\b")
EACH = re.compile(r"\bon each\b")
ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / "src" / "partita" / "broker" / "api" / "index.py"
RIGHTS = ROOT / "docs" / "rights.md"
INDEX_HEAD = '''"""Every API we serve. Printed from the declarations of the handlers by tools/apis.py; do not edit."""

INDEX: tuple[tuple[int, str, tuple[int, int], int], ...] = (
    # key, module of the handler, versions, the first one that ApiVersions names
'''
RIGHTS_HEAD = """# Which rights each API needs

Printed from the declarations in `partita.broker.handlers` by `tools/apis.py`; do not edit. How to grant rights:
[security](security.md#rights-on-our-broker). Checks stand in Apache Kafka's order, before every other check, so a
refusal does not reveal whether the thing exists. Unless brackets say otherwise it is the kind's
`..._AUTHORIZATION_FAILED`, and concerns, where each of several is checked, that one alone. CLUSTER is the resource
`kafka-cluster`.

"""


def declared() -> list[tuple[str, Served]]:
    """The name of each handler's module, with its declaration; by API key."""
    names = (found.name for found in iter_modules(handlers.__path__) if not found.name.startswith("_"))
    modules: Iterable[ModuleType] = (import_module(f"{handlers.__name__}.{name}") for name in names)
    found = [(module.__name__.rpartition(".")[2], module.API) for module in modules]
    return sorted(found, key=lambda pair: int(pair[1].request.API_KEY))


def index_row(module: str, api: Served) -> tuple[int, str, tuple[int, int], int]:
    """The row of one API."""
    request = api.request
    last = request.MAX_VERSION if api.last is None else api.last
    advertised = request.MIN_VERSION if api.advertised_min is None else api.advertised_min
    return request.API_KEY, module, (request.MIN_VERSION, last), advertised


def index_page() -> str:
    """The module that holds the index."""
    rows = (str(index_row(module, api)).replace("'", '"') for module, api in declared())
    return INDEX_HEAD + "".join(f"    {row},\n" for row in rows) + ")\n"


def rights_rows(apis: Iterable[Served]) -> Iterator[str]:
    """The list of rights; APIs that need the same share a row."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for api in apis:
        needs = tuple((need.needed, need.outcome) for need in api.rights)
        alike.setdefault(needs, []).append(api.request.__name__.removesuffix("Request"))
    for needs, names in alike.items():
        yield f"- **{', '.join(names)}**: {'; '.join(starmap(right, needs)) or 'nothing'}"


def right(needed: str, outcome: str) -> str:
    """One right, with the form of a refusal where that is not what the head of the page says."""
    kind = KIND.findall(needed)[-1:]
    usual = f"{''.join(kind)}_AUTHORIZATION_FAILED{' for it' if EACH.search(needed) else ''}"
    return needed if outcome == usual else f"{needed} ({outcome})"


def rights_page() -> str:
    """The page docs/rights.md."""
    return RIGHTS_HEAD + "".join(f"{row}\n" for row in rights_rows(api for _, api in declared()))


def main(argv: list[str]) -> int:
    """Write the stale files, or only name them with `--check`; return the exit code."""
    wanted = {INDEX: index_page(), RIGHTS: rights_page()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale" + (", run python tools/apis.py" if "--check" in argv else ""))
        if "--check" not in argv:
            path.write_text(wanted[path])
    return int(bool(stale) and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
