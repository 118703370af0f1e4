"""The share coordinator behind the wire: its topic, where it is found, the five state APIs, timers, restarts."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.topics.catalogue import SHARE_STATE_TOPIC
from partita.broker.wire import turns
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStatePartition,
    InitializeStateTopic,
)
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Message
from partita.records.builder import build_batch
from partita.share.coordinator.log_records import read_record
from partita.share.coordinator.model import ShareKey, ShareState, StateBatch
from support.broker.raw import Raw
from support.share.states import delete, find_share, initialize, read, stored, summary, write

OTHER = b"\x01" * 16


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.port) as found:
        yield found


@pytest.fixture
def topic_id(broker: Broker) -> bytes:
    return broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)


@pytest.fixture
def key(raw: Raw, topic_id: bytes) -> ShareKey:
    key = ShareKey("g", topic_id, 0)
    assert find_share(raw, text(key)) == 0
    return key


def text(key: ShareKey) -> str:
    return f"{key.group_id}:{urlsafe_b64encode(key.topic_id).decode().rstrip('=')}:{key.partition}"


def asked(raw: Raw, message: Message, version: int = 0) -> Any:
    """The result of the one partition."""
    return raw.ask(message, version).results[0].partitions[0]


def code(raw: Raw, message: Message) -> ErrorCode:
    return ErrorCode(asked(raw, message).error_code)


@pytest.mark.case("SG-A03", "SG-A07")
def test_the_topic_is_internal_and_keeps_everything(broker: Broker, raw: Raw, key: ShareKey) -> None:
    topic = broker.run(lambda: broker.cluster.catalogue.by_name[SHARE_STATE_TOPIC])
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    assert [topic.config.get(name) for name in ("cleanup.policy", "compression.type", "retention.ms")] == [
        ("delete",), "producer", -1,
    ]  # fmt: skip
    assert topic.config.get("segment.bytes") == 104857600
    data = PartitionProduceData(index=0, records=build_batch([(0, None, b"v", ())]))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=SHARE_STATE_TOPIC, partition_data=[data])])
    answer = raw.ask(request, 9).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.case("SG-A04", "SG-A05")
def test_only_the_key_of_a_share_partition_has_a_share_coordinator(raw: Raw, key: ShareKey) -> None:
    good = urlsafe_b64encode(key.topic_id).decode().rstrip("=")
    for refused in ("", "g", "g:0", f"g:{good}:x", f":{good}:0", "g:short:0", f"g:{good}:", f"g:{good}:99999999999"):
        assert find_share(raw, refused) == ErrorCode.INVALID_REQUEST, refused
    for found in (f"g:{good}:0", f"a:b:c:{good}:7", f"g:{good}:-1"):
        assert find_share(raw, found) == 0, found
    assert [find_share(raw, text(key), version) for version in (4, 5)] == [ErrorCode.INVALID_REQUEST] * 2
    assert raw.ask(FindCoordinatorRequest(key=text(key), key_type=2), 3).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.case("SG-A06", "SG-G01")
def test_an_initialization_is_a_snapshot_in_the_partition_of_its_key(broker: Broker, raw: Raw, topic_id: bytes) -> None:
    for group, partition in (("g", 0), ("g", 1), ("a:b:c", 0)):
        key = ShareKey(group, topic_id, partition)
        find_share(raw, text(key))
        assert code(raw, initialize(key, 3, 5)) == 0
        loaded = [found for found in map(read_record, stored(broker, text(key))) if found and found[0] == key]
        state = loaded[-1][1]
        assert isinstance(state, ShareState)
        assert state[:6] == (0, 3, 0, 5, 0, ())
        assert state.created_ms == state.written_ms > 0


@pytest.mark.case("SG-G02", "SG-G04", "SG-G06")
def test_state_is_written_read_and_summarized(raw: Raw, key: ShareKey) -> None:
    assert code(raw, read(key)) == ErrorCode.INVALID_REQUEST
    nothing = asked(raw, summary(key), 1)
    assert (nothing.error_code, nothing.state_epoch, nothing.leader_epoch) == (0, 0, 0)
    assert (nothing.start_offset, nothing.delivery_complete_count) == (-1, -1)
    code(raw, initialize(key))
    assert asked(raw, write(key, StateBatch(0, 4, 2, 1), start_offset=0, completed=5), 1).error_code == 0
    found = asked(raw, read(key, leader_epoch=2))
    assert (found.error_code, found.state_epoch, found.start_offset) == (0, 3, 0)
    assert [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in found.state_batches] == [
        (0, 4, 2, 1)
    ]
    assert asked(raw, summary(key), 1).leader_epoch == 2
    assert asked(raw, summary(key), 1).delivery_complete_count == 5
    assert code(raw, read(key, leader_epoch=1)) == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.case("SG-G03")
def test_after_enough_updates_comes_a_snapshot_of_all() -> None:
    with Broker(share_coordinator_snapshot_update_records_per_snapshot=10) as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 1})
        key = ShareKey("g", broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id), 0)
        find_share(raw, text(key))
        code(raw, initialize(key))
        for offset in range(12):
            assert code(raw, write(key, StateBatch(offset, offset, 2, 1), start_offset=0)) == 0
        kinds = [record.key[1] for record in stored(broker, text(key))]
        assert kinds == [0, *[1] * 10, 0, 1]


@pytest.mark.case("SG-G05")
def test_what_is_wrong_or_fenced_is_refused(raw: Raw, key: ShareKey) -> None:
    code(raw, initialize(key, 3))
    unknown = key._replace(topic_id=OTHER)
    beyond, negative = key._replace(partition=9), key._replace(partition=-1)
    absent: tuple[Message, ...] = (initialize(unknown), delete(unknown), summary(unknown), initialize(beyond))
    assert {code(raw, request) for request in absent} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    wrong: tuple[Message, ...] = (read(unknown), initialize(negative), summary(negative), write(key, leader_epoch=-1))
    assert {code(raw, request) for request in wrong} == {ErrorCode.INVALID_REQUEST}
    assert code(raw, initialize(key, 2)) == ErrorCode.FENCED_STATE_EPOCH
    assert code(raw, write(key, state_epoch=2)) == ErrorCode.FENCED_STATE_EPOCH
    assert code(raw, write(key, state_epoch=4, leader_epoch=7)) == 0
    assert asked(raw, summary(key), 1).leader_epoch == 0


@pytest.mark.case("SG-G07")
def test_a_deleted_share_partition_begins_again_with_its_first_snapshot(
    broker: Broker, raw: Raw, key: ShareKey
) -> None:
    code(raw, initialize(key))
    assert code(raw, delete(key)) == 0
    assert [record.value is None for record in stored(broker, text(key))] == [False, True]
    assert code(raw, delete(key)) == 0
    assert len(stored(broker, text(key))) == 2
    code(raw, initialize(key))
    loaded = read_record(stored(broker, text(key))[-1])
    assert loaded is not None
    assert isinstance(loaded[1], ShareState)
    assert loaded[1].snapshot_epoch == 0


@pytest.mark.case("SG-G08")
def test_a_request_without_share_partitions_has_no_results(raw: Raw, key: ShareKey) -> None:
    without_partitions = [InitializeStateTopic(topic_id=key.topic_id)]
    for request in (
        InitializeShareGroupStateRequest(group_id="g"),
        InitializeShareGroupStateRequest(group_id="g", topics=without_partitions),
        initialize(key._replace(group_id="")),
    ):
        assert raw.ask(request, 0).results == []


@pytest.mark.case("SG-A09")
def test_what_lies_below_all_snapshots_is_pruned_in_time(broker: Broker, raw: Raw, key: ShareKey) -> None:
    code(raw, initialize(key))
    for epoch in range(4, 9):
        code(raw, initialize(key, epoch, 10))
    assert len(stored(broker, text(key))) == 6
    broker.control.advance_clock(301_000)
    assert [record.key[1] for record in stored(broker, text(key))] == [0]
    broker.control.advance_clock(301_000)
    assert asked(raw, summary(key), 1).state_epoch == 8


def test_a_deleted_topics_share_partitions_are_forgotten(broker: Broker, raw: Raw, key: ShareKey) -> None:
    code(raw, initialize(key))
    deleted = raw.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5)
    assert deleted.responses[0].error_code == 0
    assert stored(broker, text(key))[-1].value is None


@pytest.mark.case("SG-N01")
def test_the_state_is_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 1})
        key = ShareKey("g", broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id), 0)
        find_share(raw, text(key))
        code(raw, initialize(key))
        code(raw, write(key, StateBatch(3, 5, 0, 2), start_offset=3, completed=1))
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        find_share(raw, text(key))
        found = asked(raw, read(key))
        assert (found.state_epoch, found.start_offset, len(found.state_batches)) == (3, 3, 1)


def test_another_node_is_not_the_coordinator_and_takes_over_when_the_first_is_gone() -> None:
    with Broker(nodes=2) as broker:
        broker.create_topics({"t": 1})
        key = ShareKey("g", broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id), 0)
        with Raw(broker.port) as raw:
            request = FindCoordinatorRequest(key_type=2, coordinator_keys=[text(key)])
            leader = raw.ask(request, 6).coordinators[0].node_id
        first, second = (broker.cluster.nodes[node].endpoint.port for node in (leader, 3 - leader))
        with Raw(first) as raw:
            assert code(raw, initialize(key)) == 0
        with Raw(second) as raw:
            assert code(raw, read(key)) == ErrorCode.NOT_COORDINATOR
            broker.control.stop_node(leader)
            find_share(raw, text(key))
            assert asked(raw, read(key)).state_epoch == 3


def begin_of_forty(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, Message]:
    """The id of a topic, and what begins group "big" with it, on a broker where each step is a slice."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ROUND_SECONDS", 0.0)
    topic = broker.run(lambda: broker.cluster.create_topic("wide", 40, 1))
    partitions = [InitializeStatePartition(partition=n, state_epoch=1, start_offset=5) for n in range(40)]
    named = [InitializeStateTopic(topic_id=topic.topic_id, partitions=partitions)]
    return topic.topic_id, InitializeShareGroupStateRequest(group_id="big", topics=named)


def test_what_a_group_asks_of_very_many_partitions_lets_others_pass_and_keeps_its_order(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share group of 10,000 partitions stopped the broker for a second when it began, one of 50,000 for minutes."""
    topic_id, begin = begin_of_forty(broker, monkeypatch)
    ended: list[str] = []

    async def everything() -> Any:
        states = broker.running.services.share_states()

        async def ask(name: str, message: Message) -> Any:
            answer = await states.answer(message)
            ended.append(name)
            return answer

        last = ShareKey("big", topic_id, 39)
        return await asyncio.gather(
            ask("begin", begin),
            ask("end", delete(last)),
            ask("other", initialize(ShareKey("small", topic_id, 0), state_epoch=1)),
            ask("read", read(last, leader_epoch=0)),
        )

    begun, *_, left = broker.call(everything())
    assert [part.error_code for part in begun.results[0].partitions] == [ErrorCode.NONE] * 40
    assert (ended[0], ended[-1]) == ("other", "read")
    assert left.results[0].partitions[0].state_epoch == 0, "the state was deleted after it had begun"


def test_a_message_whose_caller_left_is_decided_to_its_end_before_the_groups_next(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one passed it: a deletion came before the beginning of the same state, which then stayed."""
    topic_id, begin = begin_of_forty(broker, monkeypatch)

    async def begin_and_delete() -> Any:
        states = broker.running.services.share_states()
        last = ShareKey("big", topic_id, 39)
        begun = asyncio.ensure_future(states.answer(begin))
        await asyncio.sleep(0)  # it has begun, and takes slices
        begun.cancel()
        await states.answer(delete(last))
        first = await states.answer(read(ShareKey("big", topic_id, 38), leader_epoch=0))
        return begun.cancelled(), first, await states.answer(read(last, leader_epoch=0))

    left, first, deleted = broker.call(begin_and_delete())
    assert left
    assert first.results[0].partitions[0].state_epoch == 1, "what was begun is begun for all"
    assert deleted.results[0].partitions[0].state_epoch == 0
