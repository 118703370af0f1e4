"""The user guide names every option as the code does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partita.spark.settings import table

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = "".join(
    (DOCS / f"{page}.md").read_text() for page in ("spark", "spark-reading", "spark-streams", "spark-writing")
)


@pytest.mark.parametrize(
    "options", [table.TOPICS, table.POSITIONS, table.READING, table.LIMITS, table.GROUP, table.MEMBER, table.SINK]
)
def test_the_tables_are_those_of_the_code(options: tuple[Any, ...]) -> None:
    assert table.as_markdown(options) in GUIDE


def test_so_is_the_table_of_client_options() -> None:
    assert table.client_as_markdown() in GUIDE
