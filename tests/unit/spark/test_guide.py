"""The user guide names every option as the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.options import Option
from partita.spark.settings import table

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = "".join(
    (DOCS / f"{page}.md").read_text() for page in ("spark", "spark-reading", "spark-streams", "spark-writing")
)


@pytest.mark.parametrize(
    "options",
    [table.TOPICS, table.POSITIONS, table.READING, table.TYPED, table.LIMITS, table.GROUP, table.MEMBER, table.SINK],
)
def test_the_lists_are_those_of_the_code(options: tuple[Option, ...]) -> None:
    defaults = (f" ({str(option.default).lower()})" if option.default not in (None, "") else "" for option in options)
    rows = [f"- `{option.name}`{default}: {option.help}" for option, default in zip(options, defaults, strict=True)]
    assert "\n".join(rows) in GUIDE


SIDES = {
    "": "Both sides",
    "source: ": "Source",
    "source: groupMode=member: ": "Source with groupMode=member",
    "sink: ": "Sink",
}


def test_so_are_those_of_client_options_by_the_side_that_takes_them() -> None:
    listed: dict[str, list[str]] = {start: [] for start in SIDES}
    for name, text in table.CLIENT.items():
        start = max((start for start in SIDES if text.startswith(start)), key=len)
        remark = text.removeprefix(start)
        listed[start].append(f"`{name}`" + (f" ({remark})" if remark else ""))
    assert "\n".join(f"- {SIDES[start]}: {', '.join(names)}" for start, names in listed.items()) in GUIDE
