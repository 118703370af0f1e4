"""DescribeLogDirs: where partitions are kept and how large they are, as each node tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.broker.api import context
from partita.broker.storage.data_dir import DiskStore
from partita.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from support.broker.data_plane import DataPlane, data_plane
from support.log.logs import batch


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as made:
        made.topic(partitions=2)
        yield made


def describe(plane: DataPlane, version: int = 5, **asked: list[int]) -> Any:
    topics = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in asked.items()] or None
    (result,) = plane.ask("describe_log_dirs", version, DescribeLogDirsRequest(topics=topics)).results
    return result


def sizes(result: Any) -> dict[str, dict[int, int]]:
    return {topic.name: {p.partition_index: p.partition_size for p in topic.partitions} for topic in result.topics}


def test_partitions_are_as_large_as_their_batches(plane: DataPlane) -> None:
    first, second = batch("x"), batch("longer", "records")
    plane.produce(first)
    assert sizes(describe(plane)) == {"t": {0: len(first), 1: 0}}
    plane.produce(second)
    assert sizes(describe(plane)) == {"t": {0: len(first) + len(second), 1: 0}}
    assert not any(p.offset_lag or p.is_future_key for topic in describe(plane).topics for p in topic.partitions)


def test_what_was_not_asked_for_or_is_not_there_is_left_out(plane: DataPlane) -> None:
    plane.topic("other")
    assert sizes(describe(plane, t=[1, 0, 1, 2, -1])) == {"t": {1: 0, 0: 0}}
    assert sizes(describe(plane, t=[], none=[0])) == {}
    nothing = plane.ask("describe_log_dirs", 5, DescribeLogDirsRequest(topics=[]))
    assert [result.topics for result in nothing.results] == [[]]


def test_a_node_tells_of_the_partitions_it_is_a_replica_of() -> None:
    with data_plane(nodes=3) as plane:
        plane.cluster.catalogue.create("t", [[1, 2], [2, 3], [3, 1]])
        request = DescribeLogDirsRequest(topics=None)
        told = [plane.ask("describe_log_dirs", 5, request, node) for node in plane.cluster.nodes.values()]
        assert [list(sizes(answer.results[0])["t"]) for answer in told] == [[0, 2], [0, 1], [1, 2]]


def test_in_memory_there_is_no_directory_and_no_volume(plane: DataPlane) -> None:
    result = describe(plane)
    assert (result.log_dir, result.total_bytes, result.usable_bytes) == ("memory", -1, -1)


def test_on_disk_the_directory_and_its_volume_are_told(tmp_path: Path) -> None:
    with data_plane(DiskStore(str(tmp_path / "data"))) as plane:
        result = describe(plane)
    assert result.log_dir == str(tmp_path / "data")
    assert 0 < result.usable_bytes < result.total_bytes


def test_others_have_their_turn_while_many_partitions_are_looked_at(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All partitions that a broker can have held the loop for 213 ms; a topic that goes meanwhile is left out."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    plane.topic("wide", 3)
    goes = plane.topic("zone", 1)
    turns: list[Callable[[], None]] = []
    wait = plane.services.turns.wait

    def go_on_after_a_deletion(go_on: Callable[[], None]) -> None:
        turns.append(go_on)
        if not goes.deleted:
            plane.cluster.catalogue.delete([goes])
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "wait", go_on_after_a_deletion)
    assert {name: len(found) for name, found in sizes(describe(plane)).items()} == {"t": 2, "wide": 3}
    assert turns
