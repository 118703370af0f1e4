"""The Python and SQL of the pages on Spark runs, one block after another; the table of options is held to the code."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.producer.transaction_stories import await_markers

if TYPE_CHECKING:
    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```(python|sql)\n(.*?)```", re.S)
PLACES = re.compile(r"\"(out|checkpoint)((?:-\w+)?[\"/])")


def run_page(page: str, world: SparkWorld, tmp_path: Path) -> None:
    """Run the blocks of a page in one namespace, with its folders in the test's."""
    text, namespace = (DOCS / page).read_text(), dict[str, Any]()
    for block in BLOCK.finditer(text):
        here = PLACES.sub(rf'"{tmp_path}/\1\2', block[3].replace("localhost:9092", world.bootstrap))
        if block[2] == "sql":
            for statement in filter(str.strip, here.split(";")):
                world.spark.sql(statement).collect()
            continue
        code = compile("\n" * text[: block.start(3)].count("\n") + here, f"docs/{page}", "exec")
        if not block[1]:
            exec(code, namespace)


def fill(world: SparkWorld) -> None:
    rows = "select string(id) key, concat('{\"dep_delay\":', id, '}') value from range(60)"
    world.write(world.spark.sql(rows), topic="flights")


def test_the_pages_on_spark_run(world: SparkWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world.create(2, topic="flights")
    for topic in ("late", "copy", "delays", "exact"):
        world.create(topic=topic)
    fill(world)
    for page in ("spark.md", "spark-streams.md", "spark-reading.md", "spark-writing.md"):
        run_page(page, world, tmp_path)
    assert world.read(subscribe="late").count() == 29
    assert world.read(subscribe="copy").count() == 60
    await_markers(world.bootstrap)
    assert world.read(subscribe="exact", **{"kafka.isolation.level": "read_committed"}).count() == 60
    run_page("spark-guarantees.md", world, tmp_path)
    assert world.spark.read.parquet(str(tmp_path / "out-batches")).count() == 60
    run_page("spark-migration.md", world, tmp_path)
    assert world.read(subscribe="delays").count() == 60
    run_page("spark-clusters.md", world, tmp_path)
    assert "pyspark_partita/__init__.py" in zipfile.ZipFile(tmp_path / "partita.zip").namelist()
    run_page("spark-sql.md", world, tmp_path)
    after = world.read(subscribe="flights").count()
    assert after > 61, "the page inserts one row and copies a partition"
