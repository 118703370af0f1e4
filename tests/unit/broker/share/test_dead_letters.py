"""Dead letters of a share group: what is given up is written to the group's topic, then archived. As Kafka 4.4.0."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from partita.records.batch import iter_records
from partita.records.builder import build_batch
from partita.records.header import iter_batches
from partita.share.partition.model import StateBatch
from support.share.plane import ACCEPT, GAP, REJECT, RELEASE, ShareMember, SharePlane, acquired, share_plane

REJECTED, TOO_OFTEN = b"Offset rejected by client.", b"Offset delivery count exceeded the threshold."
TOPIC = "dlq.letters"


@pytest.fixture
def m(plane: SharePlane) -> ShareMember:
    """A member that holds six records of t-1; the group gives each twice, and has a topic of two partitions."""
    plane.setting("share.delivery.count.limit", 2)
    plane.setting("errors.deadletterqueue.topic.name", TOPIC)
    plane.run(lambda: plane.cluster.create_topic(TOPIC, 2, 1, {"errors.deadletterqueue.group.enable": True}))
    return holding(plane)


def holding(plane: SharePlane) -> ShareMember:
    for number in range(6):
        batch = build_batch([(7, b"k%d" % number, b"v%d" % number, [("h", b"x")])])
        assert plane.produce(batch, partition=1).error_code == 0
    m = plane.member()
    assert acquired(m.open(1), 1) == [(0, 5, 1)]
    return m


def letters(plane: SharePlane, name: str = TOPIC, partition: int = 1) -> list[Any]:
    """The records of a topic's partition."""
    topic = plane.cluster.catalogue.by_name.get(name)
    if topic is None:
        return []
    view = topic.partitions[partition].log.read(0, 1 << 20)
    return [record for _, batch in iter_batches(view) for record in iter_records(batch)]


def told(record: Any) -> dict[str, bytes]:
    return {name.removeprefix("__dlq.errors."): bytes(value) for name, value in record.headers}


def states(plane: SharePlane) -> list[list[StateBatch]]:
    """The rows of each write about t-1."""
    return [rows for _, _, rows in plane.persister.of(("g", plane.t, 1)).writes]


def settle(plane: SharePlane) -> None:
    for _ in range(5):
        plane.settle()


def test_what_is_rejected_or_given_too_often_becomes_a_letter(plane: SharePlane, m: ShareMember) -> None:
    assert m.ack((0, 0, REJECT), (1, 1, GAP), (2, 2, ACCEPT), (3, 5, RELEASE), partition=1) == 0
    settle(plane)
    assert acquired(m.fetch(), 1) == [(3, 5, 2)]
    assert m.ack((3, 3, RELEASE), partition=1) == 0
    settle(plane)
    first, second = letters(plane)
    assert told(first) == {
        "topic": b"t",
        "partition": b"1",
        "offset": b"0",
        "group": b"g",
        "delivery.count": b"1",
        "message": REJECTED,
    }
    assert (told(second)["offset"], told(second)["delivery.count"], told(second)["message"]) == (b"3", b"2", TOO_OFTEN)
    assert (first.key, first.value, len(first.headers)) == (None, None, 6)
    assert states(plane) == [
        [(0, 0, 3, 1), (1, 1, 4, 1), (2, 2, 2, 1), (3, 5, 0, 1)],
        [(0, 0, 4, 1)],
        [(3, 3, 3, 2)],
        [(3, 3, 4, 2)],
    ]
    assert plane.persister.of(("g", plane.t, 1)).start == 3


def test_a_letter_holds_key_and_value_if_the_group_says_so_and_no_headers_of_the_record(plane: SharePlane) -> None:
    plane.setting("errors.deadletterqueue.topic.name", TOPIC)
    plane.setting("errors.deadletterqueue.copy.record.enable", True)
    plane.run(lambda: plane.cluster.create_topic(TOPIC, 2, 1, {"errors.deadletterqueue.group.enable": True}))
    m = holding(plane)
    assert m.ack((4, 5, REJECT), partition=1) == 0
    settle(plane)
    assert [(bytes(each.key), bytes(each.value)) for each in letters(plane)] == [(b"k4", b"v4"), (b"k5", b"v5")]
    assert "h" not in told(letters(plane)[0])


def test_a_lock_that_ends_for_the_last_time_is_a_letter(plane: SharePlane, m: ShareMember) -> None:
    assert m.ack((0, 5, RELEASE), partition=1) == 0
    assert acquired(m.fetch(), 1) == [(0, 5, 2)]
    assert m.ack((1, 5, ACCEPT), partition=1) == 0
    plane.advance(30_000)
    settle(plane)
    assert [told(each)["offset"] for each in letters(plane)] == [b"0"]
    assert states(plane)[2:] == [[(0, 0, 3, 2)], [(0, 0, 4, 2)]]


def test_a_letter_that_a_crash_left_behind_is_written_at_the_next_load(plane: SharePlane) -> None:
    plane.setting("errors.deadletterqueue.topic.name", TOPIC)
    plane.run(lambda: plane.cluster.create_topic(TOPIC, 2, 1, {"errors.deadletterqueue.group.enable": True}))
    stored = plane.persister.of(("g", plane.t, 1))
    stored.start, stored.batches = 0, (StateBatch(0, 1, 3, 5), StateBatch(2, 5, 0, 1))
    plane.put(6, partition=1)
    m = plane.member()
    assert acquired(m.open(1), 1) == [(2, 5, 2)]
    settle(plane)
    assert [told(each)["message"] for each in letters(plane)] == [TOO_OFTEN, TOO_OFTEN]
    assert states(plane) == [[(0, 1, 4, 5)]]


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("other", {"errors.deadletterqueue.group.enable": True}, "has to begin with 'dlq.'"),
        (TOPIC, {}, "takes none"),
        ("dlq.absent", None, "does not exist"),
    ],
)
def test_a_letter_that_cannot_be_written_is_said_and_its_record_archived(
    plane: SharePlane, caplog: pytest.LogCaptureFixture, name: str, settings: dict[str, Any] | None, reason: str
) -> None:
    plane.setting("errors.deadletterqueue.topic.name", name)
    if settings is not None:
        plane.run(lambda: plane.cluster.create_topic(name, 2, 1, settings))
    m = holding(plane)
    with caplog.at_level(logging.ERROR, "partita.broker"):
        assert m.ack((0, 0, REJECT), partition=1) == 0
        settle(plane)
    assert reason in caplog.text
    assert not letters(plane, name)
    assert states(plane) == [[(0, 0, 3, 1)], [(0, 0, 4, 1)]]


@pytest.mark.parametrize(("version", "expected"), [(1, [4]), (2, [3, 4])])
def test_letters_need_share_version_2_and_the_topic_can_be_created(version: int, expected: list[int]) -> None:
    with share_plane(
        partita_share_version=version, errors_deadletterqueue_auto_create_topics_enable=True, num_partitions=3
    ) as plane:
        plane.setting("errors.deadletterqueue.topic.name", TOPIC)
        m = holding(plane)
        assert m.ack((0, 0, REJECT), partition=1) == 0
        settle(plane)
        assert [rows[0].state for rows in states(plane)] == expected
        assert [told(each)["offset"] for each in letters(plane)] == ([b"0"] if version > 1 else [])
        topic = plane.cluster.catalogue.by_name.get(TOPIC)
        assert (topic is not None and len(topic.partitions)) == (version > 1 and 3)
