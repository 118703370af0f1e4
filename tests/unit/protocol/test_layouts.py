"""docs/layouts.md shows what the schemas say, with each byte of its dumps accounted for. (Issue 30, item 7)"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path


def test_the_page_of_layouts_is_what_the_schemas_give() -> None:
    root = Path(__file__).parents[3]
    printed = run_path(str(root / "tools" / "layouts.py"))["text"]()
    assert (root / "docs" / "layouts.md").read_text() == printed, "run: python tools/layouts.py > docs/layouts.md"
