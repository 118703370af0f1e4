"""Client quotas: who has which, and what happens to those who use more. (security.md 16, SE-M)"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.permits.quotas import METERS_MAX
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from partita.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from partita.security.quotas import QuotaTable, entity_of
from support.broker.raw import Raw

Names = dict[str, str | None]
ANYBODY: Names = {"user": "ANONYMOUS"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.run(lambda: running.cluster.create_topic("t", 1, 1))
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.port) as client:
        yield client


def entry(entity: Names, **quotas: float | None) -> EntryData:
    """Set quotas; None removes one."""
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )


def alter(raw: Raw, *entries: EntryData, version: int = 1, validate_only: bool = False) -> list[tuple[int, str | None]]:
    answer = raw.ask(AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only), version)
    return [(each.error_code, each.error_message) for each in answer.entries]


def described(raw: Raw, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """The quotas found, or (code, message)."""
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components],
        strict=strict,
    )
    answer = raw.ask(request, version)
    if answer.error_code:
        return answer.error_code, answer.error_message
    return [
        ({part.entity_type: part.entity_name for part in each.entity}, {v.key: v.value for v in each.values})
        for each in answer.entries
    ]


@pytest.mark.case("SE-M01", "SE-M02")
@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_and_found(raw: Raw, version: int) -> None:
    done = alter(
        raw,
        entry({"user": "alice"}, producer_byte_rate=1000, consumer_byte_rate=2000),
        entry({"user": "alice", "client-id": "c"}, request_percentage=12.5),
        entry({"ip": "10.0.0.7"}, connection_creation_rate=5),
        entry({"user": None}, controller_mutation_rate=0.5),
        version=version,
    )
    assert done == [(0, None)] * 4
    own = ({"user": "alice"}, {"producer_byte_rate": 1000, "consumer_byte_rate": 2000})
    both = ({"client-id": "c", "user": "alice"}, {"request_percentage": 12.5})
    default = ({"user": None}, {"controller_mutation_rate": 0.5})
    assert described(raw, ("user", 0, "alice"), version=version) == [own, both]
    assert described(raw, ("user", 0, "alice"), strict=True) == [own]
    assert described(raw, ("user", 1, None)) == [default]
    assert described(raw, ("user", 2, None), strict=True) == [own, default]
    assert described(raw, ("ip", 2, None)) == [({"ip": "10.0.0.7"}, {"connection_creation_rate": 5})]
    assert described(raw, ("client-id", 0, "other")) == []
    assert len(described(raw)) == 4


@pytest.mark.case("SE-M03", "SE-M05")
@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("team", 0, "x")], 35, "Unsupported entity type team"),
        ([("user", 7, "x")], 42, "Unknown match type 7"),
        ([("user", 0, None)], 42, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", 1, "x")], 42, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("ip", 0, "x"), ("user", 2, "")], 42, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match"),
        ([("user", 0, "x"), ("user", 1, None)], 42, "Entity type user cannot appear more than once in the filter."),
        ([("", 0, "x")], 42, "Invalid empty entity type."),
        ([("ip", 2, None), ("user", 2, None)], 42, "Invalid entity filter component combination"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(raw: Raw, components: Any, code: int, message: str) -> None:
    found = described(raw, *components)
    assert found[0] == code
    assert found[1].startswith(message)


WRONG: list[tuple[Names, dict[str, float], str]] = [
    ({"user": "a"}, {"speed": 1.0}, "Invalid configuration key speed"),
    ({"team": "a"}, {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: team"),
    ({"user": "a"}, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
    ({"user": "a"}, {"request_percentage": -1.0}, "Quota request_percentage must be greater than 0"),
    ({"user": "a"}, {"consumer_byte_rate": float("nan")}, "Quota consumer_byte_rate must be a finite number"),
    ({"user": "a"}, {"request_percentage": float("inf")}, "Quota request_percentage must be a finite number"),
    ({"user": "a"}, {"consumer_byte_rate": 1.5}, "consumer_byte_rate cannot be a fractional value."),
    ({"ip": "10.0.0.7"}, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
    ({"user": "a"}, {"connection_creation_rate": 1.0}, "Invalid configuration key connection_creation_rate"),
    ({}, {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
    ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
    ({"ip": "example.com"}, {"connection_creation_rate": 1.0}, "example.com is not a valid IP or resolvable host."),
    ({"ip": "10.0.0.7", "user": "a"}, {"producer_byte_rate": 1.0}, "Invalid quota entity combination"),
]


@pytest.mark.case("SE-M04", "SE-M05")
@pytest.mark.parametrize(("entity", "quotas", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_what_is_no_quota_is_refused_and_the_others_are_set(
    raw: Raw, entity: Names, quotas: dict[str, float], message: str
) -> None:
    (code, told), good = alter(raw, entry(entity, **quotas), entry({"user": "good"}, producer_byte_rate=1))
    assert (code, good) == (42, (0, None))
    assert told is not None
    assert told.startswith(message)
    assert described(raw) == [({"user": "good"}, {"producer_byte_rate": 1})]


@pytest.mark.case("SE-M06")
def test_validating_stores_nothing(raw: Raw) -> None:
    good, bad = entry({"user": "a"}, producer_byte_rate=1), entry({"user": "a"}, producer_byte_rate=0)
    assert [code for code, _ in alter(raw, good, bad, validate_only=True)] == [0, 42]
    assert described(raw) == []


@pytest.mark.case("SE-M07")
def test_removing_what_is_not_there_is_good_and_the_last_one_takes_the_entity_along(raw: Raw) -> None:
    alter(raw, entry({"user": "a"}, producer_byte_rate=1, consumer_byte_rate=2))
    assert alter(raw, entry({"user": "a"}, request_percentage=None), entry({"user": "b"}, producer_byte_rate=None)) == [
        (0, None),
        (0, None),
    ]
    alter(raw, entry({"user": "a"}, producer_byte_rate=None))
    assert described(raw) == [({"user": "a"}, {"consumer_byte_rate": 2})]
    alter(raw, entry({"user": "a"}, consumer_byte_rate=None))
    assert described(raw) == []


@pytest.mark.case("SE-E15")
def test_quotas_are_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        alter(
            raw,
            entry({"user": None, "client-id": "c"}, producer_byte_rate=7),
            entry({"user": "a"}, request_percentage=1),
        )
        alter(raw, entry({"user": "a"}, request_percentage=None))
    for _ in range(2):
        with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
            assert described(raw) == [({"client-id": "c", "user": None}, {"producer_byte_rate": 7})]


@pytest.mark.case("SE-M11")
def test_the_more_specific_quota_counts() -> None:
    kinds: list[Names] = [
        {"user": "u", "client-id": "c"},
        {"user": "u", "client-id": None},
        {"user": "u"},
        {"user": None, "client-id": "c"},
        {"user": None, "client-id": None},
        {"user": None},
        {"client-id": "c"},
        {"client-id": None},
    ]
    shared = [("u", "c"), ("u", "c"), ("u", ""), ("u", "c"), ("u", "c"), ("u", ""), ("", "c"), ("", "c")]
    table = QuotaTable()
    for rank in reversed(range(len(kinds))):
        table.set(entity_of(kinds[rank].items()), {"producer_byte_rate": rank + 1})
        found = table.limit("producer_byte_rate", "u", "c")
        assert found is not None
        assert (found.value, found.shared_by) == (rank + 1, shared[rank])
    assert table.limit("consumer_byte_rate", "u", "c") is None
    assert len(table) == 8


def produce(raw: Raw, size: int, *, acks: int = -1) -> ProduceRequest:
    batch = build_batch([(int(time.time() * 1000), None, b"x" * size, [])])
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(records=batch)])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


@pytest.mark.case("SE-M09", "SE-M10")
def test_a_producer_over_its_quota_is_told_and_made_to_wait(broker: Broker, raw: Raw) -> None:
    alter(raw, entry(ANYBODY, producer_byte_rate=100_000))
    assert raw.ask(produce(raw, 500_000), 9).throttle_time_ms == 0
    begun = time.monotonic()
    answer = raw.ask(produce(raw, 560_000), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert 0 < answer.throttle_time_ms < 700  # 600, less what has passed between the two
    raw.ask(ApiVersionsRequest(), 0)
    assert time.monotonic() - begun > answer.throttle_time_ms / 1000 - 0.01
    assert broker.records("t")[-1].offset == 1


@pytest.mark.case("SE-M10")
def test_requests_sent_before_the_answer_wait_too(broker: Broker, raw: Raw) -> None:
    alter(raw, entry(ANYBODY, producer_byte_rate=100_000))
    frames = [raw.frame(produce(raw, 1_020_000, acks=0), 9), *(raw.frame(ApiVersionsRequest(), 0) for _ in range(3))]
    begun = time.monotonic()
    raw.socket.sendall(b"".join(frames))
    for _ in range(3):
        raw.recv(18, 0)
    assert 0.1 < time.monotonic() - begun < 30
    with Raw(broker.port) as other:
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def fetch(session_id: int = 0, epoch: int = -1) -> FetchRequest:
    topics = [] if session_id else [FetchTopic(topic="t", partitions=[FetchPartition(partition_max_bytes=10_000_000)])]
    return FetchRequest(max_bytes=10_000_000, session_id=session_id, session_epoch=epoch, topics=topics)


@pytest.mark.case("SE-M12")
def test_a_consumer_over_its_quota_gets_nothing_at_once(broker: Broker, raw: Raw) -> None:
    raw.ask(produce(raw, 900_000), 9)
    alter(raw, entry(ANYBODY, consumer_byte_rate=89_000))
    with Raw(broker.port) as consumer, Raw(broker.port) as other:
        first = other.ask(fetch(epoch=0), 12)
        assert first.session_id
        assert first.responses[0].partitions[0].records
        assert first.throttle_time_ms > 0
        again = consumer.ask(fetch(), 12)
        assert (again.error_code, again.responses, again.session_id) == (0, [], 0)
        assert again.throttle_time_ms > 0
        within = other.ask(fetch(first.session_id, epoch=1), 12)
        assert (within.error_code, within.session_id) == (0, first.session_id)


def test_a_throttled_fetch_of_a_session_keeps_the_session(broker: Broker, raw: Raw) -> None:
    first = raw.ask(fetch(epoch=0), 12)
    raw.ask(produce(raw, 500_000), 9)
    alter(raw, entry(ANYBODY, consumer_byte_rate=47_000))
    with Raw(broker.port) as other:
        assert other.ask(fetch(), 12).throttle_time_ms > 0
    throttled = raw.ask(fetch(first.session_id, epoch=1), 12)
    assert (throttled.error_code, throttled.session_id, throttled.responses) == (0, first.session_id, [])
    assert throttled.throttle_time_ms > 0
    broker.control.advance_clock(11_000)
    assert raw.ask(fetch(first.session_id, epoch=2), 12).responses[0].partitions[0].records
    wrong = raw.ask(fetch(first.session_id, epoch=9), 12)
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_changes_of_topics_over_the_quota_are_refused(broker: Broker, raw: Raw) -> None:
    """KIP-599: one request may go into debt, what comes after it is refused."""
    alter(raw, entry(ANYBODY, controller_mutation_rate=100))

    def create(*sizes: int, version: int = 7) -> Any:
        topics = [CreatableTopic(name=f"n{size}", num_partitions=size, replication_factor=1) for size in sizes]
        return raw.ask(CreateTopicsRequest(topics=topics), version)

    created = create(1110, 1)
    assert {topic.name: topic.error_code for topic in created.topics} == {
        "n1110": 0,
        "n1": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
    assert 0 < created.throttle_time_ms <= 100
    alter(raw, entry(ANYBODY, controller_mutation_rate=None), entry({"client-id": "raw"}, controller_mutation_rate=1))
    assert create(12).topics[0].error_code == 0
    with Raw(broker.port) as other:
        grown = other.ask(
            CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2, assignments=None)]), 3
        )
        assert grown.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert grown.throttle_time_ms > 0
    with Raw(broker.port) as other:
        gone = other.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6).responses[0]
        assert (gone.name, gone.error_code) == ("t", ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    with Raw(broker.port) as other:
        older = other.ask(DeleteTopicsRequest(topic_names=["t"]), 4)
        assert (older.responses[0].error_code, older.throttle_time_ms > 0) == (0, True)


def test_what_is_refused_anyway_takes_nothing_of_the_quota(broker: Broker, raw: Raw) -> None:
    """As in Kafka, programs that create what they need at their start do not use up the quota of those who create."""
    alter(raw, entry(ANYBODY, controller_mutation_rate=1e-9))
    topics = [("t", 5, 1), ("a#b", 5, 1), ("many", 2**31 - 1, 1), ("wide", 5, 3)]
    asked = [CreatableTopic(name=name, num_partitions=size, replication_factor=copies) for name, size, copies in topics]
    refused = raw.ask(CreateTopicsRequest(topics=asked), 7)
    assert {ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE}.isdisjoint(each.error_code for each in refused.topics)
    growing = [CreatePartitionsTopic(name=name, count=1, assignments=None) for name in ("t", "no such topic")]
    assert not raw.ask(CreatePartitionsRequest(topics=growing), 3).throttle_time_ms
    assert not raw.ask(DeleteTopicsRequest(topic_names=["no such topic"]), 5).throttle_time_ms
    twice = raw.ask(DeleteTopicsRequest(topic_names=["t", "t"]), 5)
    assert (twice.responses[0].error_code, twice.throttle_time_ms) == (ErrorCode.INVALID_REQUEST, 0)
    made = CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)])
    assert raw.ask(made, 7).topics[0].error_code == ErrorCode.NONE
    with Raw(broker.port) as other:
        again = other.ask(DeleteTopicsRequest(topic_names=["new"]), 5)
    assert (again.responses[0].error_code, again.throttle_time_ms) == (
        ErrorCode.THROTTLING_QUOTA_EXCEEDED, 2**31 - 1,
    )  # fmt: skip


def test_an_address_that_connects_too_fast_is_refused(broker: Broker, raw: Raw) -> None:
    alter(raw, entry({"ip": "127.0.0.1"}, connection_creation_rate=1))
    outcomes = []
    for _ in range(14):
        with Raw(broker.port) as other:
            try:
                other.ask(ApiVersionsRequest(), 0)
                outcomes.append(True)
            except (EOFError, ConnectionResetError, BrokenPipeError):
                outcomes.append(False)
    assert outcomes[:10] == [True] * 10
    assert outcomes[-1] is False
    alter(raw, entry({"ip": "127.0.0.1"}, connection_creation_rate=None))
    with Raw(broker.port) as other:
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.case("SE-M14")
def test_client_ids_without_a_quota_are_not_remembered(broker: Broker, raw: Raw) -> None:
    alter(raw, entry({"client-id": "known"}, producer_byte_rate=10))
    quotas = broker.running.services.make_quotas()
    for number in range(100_000):
        assert quotas.record("producer_byte_rate", "u", str(number), 5) == 0
    assert not quotas._meters


def test_meters_of_those_who_are_gone_are_forgotten(broker: Broker, raw: Raw) -> None:
    alter(raw, entry({"client-id": None}, producer_byte_rate=10))
    quotas = broker.running.services.make_quotas()
    for number in range(METERS_MAX):
        quotas.record("producer_byte_rate", "u", str(number), 5)
    assert len(quotas._meters) == METERS_MAX
    broker.control.advance_clock(2 * 3_600_000)
    quotas.record("producer_byte_rate", "u", "new", 5)
    assert len(quotas._meters) == 1
