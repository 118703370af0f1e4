"""DeleteTopics in portions: others have their turn, each topic is answered for itself. (Issue 26.3)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita.broker.api import context
from partita.broker.handlers.delete_topics import TOPICS_AT_ONCE
from partita.broker.storage.memory_store import MemoryStore
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from support.broker.data_plane import DataPlane, data_plane

MANY = 3 * TOPICS_AT_ONCE


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as made:
        for number in range(MANY):
            made.topic(f"t{number}")
        yield made


def delete(plane: DataPlane) -> dict[str, int]:
    request = DeleteTopicsRequest(topic_names=[f"t{number}" for number in range(MANY)], timeout_ms=1000)
    return {result.name: result.error_code for result in plane.ask("delete_topics", 5, request).responses}


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lines each write to the catalogue has; the third one fails."""
    counts: list[int] = []
    append = MemoryStore.append_catalogue

    def counted(self: MemoryStore, *lines: bytes, **more: bool) -> None:
        if b"deleted" in lines[0]:
            counts.append(len(lines))
            if len(counts) == 3:
                raise StorageError("no more")
        append(self, *lines, **more)

    monkeypatch.setattr(MemoryStore, "append_catalogue", counted)
    return counts


def test_a_refused_portion_leaves_its_topics_and_the_others_are_gone(plane: DataPlane, writes: list[int]) -> None:
    """Each topic succeeds or fails alone."""
    codes = delete(plane)
    assert writes == [TOPICS_AT_ONCE] * 3
    left = [f"t{number}" for number in range(2 * TOPICS_AT_ONCE, MANY)]
    assert list(plane.cluster.catalogue.by_name) == left
    assert {name for name, code in codes.items() if code == ErrorCode.KAFKA_STORAGE_ERROR} == set(left)
    assert all(code == ErrorCode.NONE for name, code in codes.items() if name not in left)


def test_a_topic_deleted_by_another_request_meanwhile_is_deleted(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    catalogue = plane.cluster.catalogue
    last = catalogue.by_name[f"t{MANY - 1}"]
    wait = plane.services.turns.wait

    def after_another(go_on: Any) -> None:
        if len(catalogue.by_name) == MANY - TOPICS_AT_ONCE:
            catalogue.delete([last])
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "wait", after_another)
    assert set(delete(plane).values()) == {ErrorCode.NONE}
    assert not catalogue.by_name


def test_the_data_of_a_wide_topic_goes_in_steps_and_before_the_broker_does(plane: DataPlane) -> None:
    """A stop in between leaves nothing that no start would find."""
    wide = plane.topic("wide", 5)
    logs = {partition.log.directory for partition in wide.partitions}
    deleting = plane.cluster.catalogue.deleting([wide])
    next(deleting)
    assert wide.deleted
    assert len(logs & plane.store.logs.keys()) == 4
    plane.cluster.catalogue.close()
    assert not logs & plane.store.logs.keys()
