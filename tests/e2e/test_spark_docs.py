"""The Python and SQL of docs/spark.md runs, one block after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.spark.world import SparkWorld

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```(python|sql)\n(.*?)```", re.S)
PLACES = re.compile(r"\"(out|checkpoint)((?:-\w+)?[\"/])")


def test_the_page_on_spark_runs(world: SparkWorld, tmp_path: Path) -> None:
    text = PAGE.read_text()
    world.create(2, topic="flights")
    for topic in ("late", "copy"):
        world.create(topic=topic)
    rows = "select string(id) key, concat('{\"dep_delay\":', id, '}') value from range(60)"
    world.write(world.spark.sql(rows), topic="flights")
    namespace: dict[str, Any] = {}
    for block in BLOCK.finditer(text):
        here = PLACES.sub(rf'"{tmp_path}/\1\2', block[3].replace("localhost:9092", world.bootstrap))
        if block[2] == "sql":
            for statement in filter(str.strip, here.split(";")):
                world.spark.sql(statement).collect()
            continue
        code = compile("\n" * text[: block.start(3)].count("\n") + here, "docs/spark.md", "exec")
        if not block[1]:
            exec(code, namespace)
    world.spark.sql("DROP TABLE flights")
    assert world.read(subscribe="late").count() == 29
    assert world.read(subscribe="copy").count() == 60
    assert world.spark.read.parquet(str(tmp_path / "out-batches")).count() == 61
