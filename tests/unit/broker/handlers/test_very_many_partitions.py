"""Issue 18: one request about very many partitions is answered, in slices, and does not cost its connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita import Broker
from partita.broker.api.apis import SERVED
from partita.broker.api.context import AT_ONCE
from partita.broker.beside import OneAtATime
from partita.broker.storage.log_store import LogStore
from partita.group.offsets.commit import stored_offsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from partita.protocol.primitives import Message
from support.broker.raw import Raw

WIDTH = 3 * AT_ONCE
LOOK_UP, COMMIT, FETCH = 2, 8, 9


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """Its limits are a fortieth of the real ones: more than 1,250 elements are served alone, more than 10,000 never."""
    for api_key in (LOOK_UP, COMMIT, FETCH):
        monkeypatch.setattr(SERVED[api_key], "elements_max", SERVED[api_key].elements_max // 40)
        monkeypatch.setattr(SERVED[api_key], "alone_max", SERVED[api_key].alone_max // 40)
    with Broker() as running:
        running.run(lambda: running.cluster.create_topic("wide", WIDTH, 1))
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.port) as raw:
        raw.find("g")
        yield raw


def look_up(partitions: int) -> ListOffsetsRequest:
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="wide", partitions=asked)])


def commit(partitions: int, **fields: object) -> OffsetCommitRequest:
    given = [OffsetCommitRequestPartition(partition_index=i, committed_offset=100 + i) for i in range(partitions)]
    topics = [OffsetCommitRequestTopic(name="wide", partitions=given)]
    return OffsetCommitRequest(group_id="g", topics=topics, **fields)  # type: ignore[arg-type]  # fields by name


def fetch(partitions: int | None) -> OffsetFetchRequest:
    topics = None
    if partitions is not None:
        topics = [OffsetFetchRequestTopics(name="wide", partition_indexes=list(range(partitions)))]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])


def errors(topics: list[object]) -> list[list[int]]:
    return [[part.error_code for part in topic.partitions] for topic in topics]  # type: ignore[attr-defined]  # of several APIs


@pytest.mark.parametrize("asked", [WIDTH, 2 * WIDTH], ids=["in slices", "alone"])
def test_every_partition_of_a_large_request_is_answered(raw: Raw, asked: int) -> None:
    missing = [int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] * (asked - WIDTH)
    assert errors(raw.ask(look_up(asked), 7).topics) == [[0] * WIDTH + missing]
    committed = raw.ask(commit(asked), 8)
    assert {p.partition_index: p.error_code for p in committed.topics[0].partitions} == dict(
        enumerate([0] * WIDTH + missing)
    )
    for answer in (raw.ask(fetch(asked), 8).groups[0], raw.ask(fetch(None), 8).groups[0]):
        (topic,) = answer.topics
        offsets = {p.partition_index: p.committed_offset for p in topic.partitions if p.committed_offset >= 0}
        assert offsets == {index: 100 + index for index in range(WIDTH)}
    old = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="wide", partition_indexes=list(range(asked)))]
    )
    offsets_of_old = [p.committed_offset for p in raw.ask(old, 5).topics[0].partitions]
    assert offsets_of_old == [100 + index for index in range(WIDTH)] + [-1] * (asked - WIDTH)


@pytest.mark.parametrize(("request_", "version"), [(look_up(10_000), 7), (commit(10_000), 8), (fetch(10_000), 8)])
def test_more_than_a_broker_can_have_closes_the_connection(raw: Raw, request_: Message, version: int) -> None:
    """H6: it is refused before its elements are made."""
    raw.send(request_, version)
    assert raw.is_closed()


def test_a_large_commit_is_refused_as_a_small_one_is(raw: Raw) -> None:
    joined = raw.stable("g")
    stranger = commit(WIDTH, member_id="nobody", generation_id_or_member_epoch=joined.generation_id)
    assert errors(raw.ask(stranger, 8).topics) == [[ErrorCode.UNKNOWN_MEMBER_ID] * WIDTH]
    mine = commit(WIDTH, member_id=joined.member_id, generation_id_or_member_epoch=joined.generation_id)
    mine.topics[0].partitions[7].committed_metadata = "x" * 5000
    (told,) = errors(raw.ask(mine, 8).topics)
    assert told == [ErrorCode.OFFSET_METADATA_TOO_LARGE if index == 7 else 0 for index in range(WIDTH)]
    for part in mine.topics[0].partitions:
        part.committed_metadata = "x" * 4000
    assert errors(raw.ask(mine, 8).topics) == [[ErrorCode.UNKNOWN_SERVER_ERROR] * WIDTH], "more than a batch may hold"
    assert raw.committed("g", "wide", 3) == 103


def test_a_commit_for_a_topic_that_goes_meanwhile_is_refused(
    broker: Broker, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S25: nothing would forget its offsets."""

    def deleting(*asked: object) -> object:
        broker.cluster.catalogue.delete([broker.cluster.catalogue.by_name["wide"]])
        return stored_offsets(*asked)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr("partita.broker.handlers.offset_commit.stored_offsets", deleting)
    assert errors(raw.ask(commit(WIDTH), 8).topics) == [[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * WIDTH]


def test_very_large_requests_are_served_one_after_the_other() -> None:
    line = OneAtATime()
    begun: list[str] = []
    ends: list[Callable[[], None]] = []

    def request(name: str) -> None:
        def begin(ended: Callable[[], None]) -> None:
            begun.append(name)
            ends.append(ended)

        line.run(begin)

    for name in "abc":
        request(name)
    assert begun == ["a"]
    ends.pop()()
    assert begun == ["a", "b"]
    ends.pop()()
    ends.pop()()
    request("d")
    assert begun == ["a", "b", "c", "d"]


def test_a_very_large_request_ends_its_turn_whatever_becomes_of_it(broker: Broker) -> None:
    """One that is malformed at its end, one whose sender is gone, and one that is answered."""
    with Raw(broker.port) as bad, Raw(broker.port) as gone, Raw(broker.port) as good:
        frame = bad.frame(look_up(2 * WIDTH), 7)
        bad.socket.sendall((len(frame) - 4 - 1).to_bytes(4, "big") + frame[4:-1])
        gone.send(look_up(2 * WIDTH), 7)
        gone.socket.close()
        assert bad.is_closed()
        assert len(good.ask(look_up(2 * WIDTH), 7).topics[0].partitions) == 2 * WIDTH
        assert len(good.ask(look_up(2 * WIDTH), 7).topics[0].partitions) == 2 * WIDTH


def test_the_disk_is_asked_once_whether_a_partition_has_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each commit of 5,000 offsets asked it 5,000 times, which held the loop for 37 ms."""
    asked: list[tuple[bytes, int]] = []
    has_log = LogStore.has_log

    def noted(self: LogStore, topic_id: bytes, partition: int) -> bool:
        asked.append((topic_id, partition))
        return has_log(self, topic_id, partition)

    with Broker(data_dir=str(tmp_path), auto_create_topics_enable=False) as broker, Raw(broker.port) as raw:
        topic_id = broker.run(lambda: broker.cluster.create_topic("wide", WIDTH, 1)).topic_id
        raw.find("g")
        monkeypatch.setattr(LogStore, "has_log", noted)
        for _ in range(2):
            assert errors(raw.ask(commit(WIDTH), 8).topics) == [[0] * WIDTH]
    assert sorted(index for asked_id, index in asked if asked_id == topic_id) == list(range(WIDTH))
