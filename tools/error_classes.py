"""Write src/partita/errors.pyi, which shows type checkers the classes of `partita.errors`. `--check` only compares."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from partita import errors

SOURCE = Path(errors.__file__)
FILE = SOURCE.with_suffix(".pyi")


def text() -> str:
    """The whole file: the imports and the function of the module, and each class with its meaning, for editors."""
    head, _, _ = SOURCE.read_text().partition("from partita.error_kinds import class_of")
    imports = head[head.index("from __future__") :]
    signature, _, _ = inspect.getsource(errors.error_for).partition('"""')
    classes = [kind for kind in vars(errors).values() if inspect.isclass(kind) and kind.__module__ == errors.__name__]
    lines = [
        f'class {kind.__name__}({kind.__bases__[0].__name__}):\n    """{inspect.cleandoc(kind.__doc__ or "")}"""\n'
        for kind in classes
    ]
    note = "# Written by tools/error_classes.py; do not edit."
    return "\n".join([note, imports, f"{signature.rstrip()} ...", "", *lines])


def main(argv: list[str]) -> int:
    """Write the file, or compare it; return the exit code."""
    if "--check" in argv:
        is_current = FILE.exists() and FILE.read_text() == text()
        print("src/partita/errors.pyi is current" if is_current else "stale: run python tools/error_classes.py")
        return 0 if is_current else 1
    FILE.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
