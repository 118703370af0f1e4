"""groupMembers=auto: one member for each core of the session. Issue 13, item 1."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from partita.options import ConfigError
from partita.spark.cores import cores_asked_for
from partita.spark.source import GroupSource, StreamReader, source_for

OPTIONS = {
    "kafka.bootstrap.servers": "h:1", "subscribe": "t", "group": "g", "groupMode": "member", "groupMembers": "auto",
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        ({}, 0),
        ({"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12),
        ({"spark.executor.instances": "3"}, 3),
        ({"spark.executor.cores": "4"}, 0),
        ({"spark.executor.cores": "4", "spark.cores.max": "6"}, 6),
        ({"spark.executor.instances": "3", "spark.executor.cores": "4", "spark.cores.max": "6"}, 6),
        (
            {"spark.executor.instances": "2", "spark.dynamicAllocation.maxExecutors": "5", "spark.executor.cores": "2"},
            10,
        ),
        ({"spark.dynamicAllocation.maxExecutors": "infinity", "spark.executor.cores": "2"}, 0),
    ],
)
def test_what_the_settings_ask_for(settings: dict[str, str], cores: int) -> None:
    assert cores_asked_for(settings) == cores


def reader_of(source: type[GroupSource]) -> StreamReader:
    made = source(OPTIONS)
    reader = made.streamReader(made.schema())
    assert isinstance(reader, StreamReader)
    return reader


def travelled(thing: Any) -> Any:
    """The same on an executor, as Spark sends it."""
    return pickle.loads(cloudpickle.dumps(thing))  # type: ignore[no-untyped-call]  # pyspark does not say its types


def test_the_cores_travel_with_the_source_that_a_session_registers() -> None:
    source = travelled(source_for(5))
    assert (source.name(), source.cores, GroupSource.cores) == ("partita", 5, None)
    reader = travelled(reader_of(source))
    assert reader._cores == 5


def test_where_the_cores_are_not_known_the_word_auto_is_refused_when_it_is_planned() -> None:
    assert isinstance(GroupSource(OPTIONS).schema(), StructType)
    with pytest.raises(ConfigError, match=r"groupMembers=auto needs session\(\) or register\(spark\)"):
        reader_of(GroupSource)
