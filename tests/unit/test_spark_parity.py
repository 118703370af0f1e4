"""What the comparison with Spark's own connector calls equal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql.types import IntegerType, StringType, StructField, StructType

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import spark_parity


def table(*names: str, slices: int = 1, **row: Any) -> spark_parity.Table:
    kinds = {"partition": IntegerType()}
    schema = StructType([StructField(name, kinds.get(name, StringType())) for name in names])
    return spark_parity.Table(schema, [row], partitions=2, slices=slices, in_stream=False, names_topic=True)


def equal(written: spark_parity.Table, one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> bool:
    return spark_parity.comparable(written, one) == spark_parity.comparable(written, other)


def test_rows_without_a_key_may_be_in_any_partition() -> None:
    plain = table("value", value="v")
    assert equal(plain, [(0, None, b"v", None)], [(1, None, b"v", None)])
    assert not equal(plain, [(0, None, b"v", None)], [(0, None, b"v", None)] * 2)
    assert not equal(plain, [(0, None, b"v", None)], [])


def test_a_key_and_a_partition_decide_where_a_row_is() -> None:
    keyed = table("key", "value", key="k", value="v")
    assert not equal(keyed, [(0, b"k", b"v", None)], [(1, b"k", b"v", None)])
    placed = table("value", "partition", value="v", partition=1)
    assert not equal(placed, [(1, None, b"v", None)], [(0, None, b"v", None)])


def test_one_task_keeps_the_order_of_rows_with_keys() -> None:
    one, other = [(0, b"a", b"v", None), (0, b"b", b"v", None)], [(0, b"b", b"v", None), (0, b"a", b"v", None)]
    assert not equal(table("key", "value", key="a", value="v"), one, other)
    assert equal(table("key", "value", slices=3, key="a", value="v"), one, other)
