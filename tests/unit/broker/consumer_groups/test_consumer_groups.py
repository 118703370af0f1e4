"""KIP-848 groups behind the wire: what the broker adds to the coordinator's rules."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from partita import Broker
from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata
from partita.broker.groups import jobs
from partita.broker.launch import StartError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.list_config_resources import ListConfigResourcesRequest
from partita.protocol.messages.list_groups import ListGroupsRequest
from support.broker.consumer_groups import beat
from support.broker.raw import Raw

GROUP, SET, DELETE, APPEND = 32, 0, 1, 2
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topics({"t": 2})
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.port) as found:
        found.find("g")
        yield found


def alter(raw: Raw, name: str, value: str | None, operation: int = SET, group: str = "g") -> ErrorCode:
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[config])
    return ErrorCode(raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code)


def described(raw: Raw) -> dict[str, tuple[str | None, int]]:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name="g")
    answer = raw.ask(DescribeConfigsRequest(resources=[resource]), 4).results[0]
    return {
        config.name: (config.value, config.config_source)
        for config in answer.configs
        if config.name in (SESSION, HEARTBEAT)
    }


@pytest.mark.case("GC-T01", "GC-T40")
def test_a_group_is_joined_described_listed_left_and_deleted_over_the_wire(raw: Raw) -> None:
    joined = raw.ask(beat("a"), 1)
    assert (joined.error_code, joined.member_epoch) == (0, 2)
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]
    asked = ConsumerGroupDescribeRequest(group_ids=["g", "none"], include_authorized_operations=True)
    group, none = raw.ask(asked, 1).groups
    assert (group.group_state, group.members[0].client_host, none.error_code) == ("Stable", "/127.0.0.1", 69)
    assert group.members[0].assignment.topic_partitions[0].topic_name == "t"
    assert group.authorized_operations > 0
    listed = raw.ask(ListGroupsRequest(types_filter=["consumer"], states_filter=["Stable"]), 5).groups
    assert [(g.group_id, g.group_type) for g in listed] == [("g", "consumer")]
    assert raw.ask(beat("a", -1, None), 1).error_code == 0
    assert raw.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0


@pytest.mark.case("GC-T02")
def test_an_id_that_the_broker_makes_has_22_characters(raw: Raw) -> None:
    joined = raw.ask(beat(""), 0)
    assert (joined.error_code, len(joined.member_id)) == (0, 22)
    assert not set(joined.member_id) & set("+/= ")


@pytest.mark.case("GC-T39")
def test_switched_off_both_apis_answer_unsupported_version() -> None:
    with Broker(group_coordinator_rebalance_protocols="classic") as broker, Raw(broker.port) as raw:
        raw.find("g")
        assert raw.ask(beat("a"), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        answer = raw.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
        assert answer.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
        versions = raw.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
        assert "group.version" in [feature.name for feature in versions.finalized_features], "the two are apart"


@pytest.mark.case("GC-T36")
def test_a_groups_own_settings_count_at_its_next_heartbeat_and_are_described_and_listed(raw: Raw) -> None:
    assert described(raw) == {HEARTBEAT: ("5000", 5), SESSION: ("45000", 5)}
    assert alter(raw, HEARTBEAT, "7000") == ErrorCode.NONE
    assert alter(raw, SESSION, "50000") == ErrorCode.NONE
    assert described(raw) == {HEARTBEAT: ("7000", 8), SESSION: ("50000", 8)}
    assert raw.ask(beat("a"), 1).heartbeat_interval_ms == 7000
    resources = raw.ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1).config_resources
    assert [resource.resource_name for resource in resources] == ["g"]
    assert alter(raw, HEARTBEAT, None, DELETE) == ErrorCode.NONE
    assert raw.ask(beat("a", 2, None), 1).heartbeat_interval_ms == 5000


@pytest.mark.parametrize(
    ("name", "value", "operation", "group"),
    [
        (SESSION, "44999", SET, "g"),
        (SESSION, "60001", SET, "g"),
        (HEARTBEAT, "4999", SET, "g"),
        (HEARTBEAT, "x", SET, "g"),
        ("consumer.other", "1", SET, "g"),
        (SESSION, "1", APPEND, "g"),
        (SESSION, "50000", SET, ""),
    ],
)
def test_settings_of_groups_out_of_bounds_unknown_or_of_no_group_are_refused(
    raw: Raw, name: str, value: str, operation: int, group: str
) -> None:
    assert alter(raw, name, value, operation, group) in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
    assert described(raw) == {HEARTBEAT: ("5000", 5), SESSION: ("45000", 5)}


def test_settings_of_groups_survive_a_restart(tmp_path: object) -> None:
    for _ in range(2):
        with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
            raw.find("g")
            before = described(raw)[SESSION]
            alter(raw, SESSION, "50000")
    assert before == ("50000", 8)


class Backwards(Assignor):
    """The last member gets everything."""

    name: ClassVar[str] = "backwards"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        everything = [(t, p) for t, count in metadata.partition_counts.items() for p in range(count)]
        return {max(subscriptions): everything}


class Endless(Assignor):
    """Never comes to an end before the test does."""

    name: ClassVar[str] = "endless"
    may_end: ClassVar[threading.Event] = threading.Event()

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        self.may_end.wait(60)
        return {}


def has(raw: Raw, member: str) -> list[int]:
    """The partitions of a member of group g, once it was asked for a heartbeat."""
    group = raw.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
    found = next(m for m in group.members if m.member_id == member)
    raw.ask(beat(member, found.member_epoch, None), 1)
    group = raw.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
    found = next(m for m in group.members if m.member_id == member)
    return [number for topic in found.assignment.topic_partitions for number in topic.partitions]


def until(raw: Raw, member: str, wanted: list[int]) -> None:
    for _ in range(2_000):
        if has(raw, member) == wanted:
            return
    raise AssertionError(f"{member} never got {wanted}")


def test_an_assignor_of_ones_own_shares_whether_given_as_an_instance_or_by_name() -> None:
    for given in (Backwards(), f"{__name__}:Backwards"):
        with Broker(assignors=[given]) as broker, Raw(broker.port) as raw:
            broker.create_topics({"t": 2})
            raw.find("g")
            request = beat("a")
            request.server_assignor = "backwards"
            assert raw.ask(request, 1).error_code == 0
            until(raw, "a", [0, 1])


def test_an_endless_assignor_is_given_up_and_holds_no_other_group_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "JOB_SECONDS", 0.05)
    Endless.may_end.clear()
    try:
        with Broker(assignors=[Endless()]) as broker, Raw(broker.port) as raw:
            broker.create_topics({"t": 2})
            raw.find("g")
            stuck = beat("a")
            stuck.group_id, stuck.server_assignor = "stuck", "endless"
            assert raw.ask(stuck, 1).error_code == 0
            assert raw.ask(beat("b"), 1).member_epoch == 2
            followed = broker.notes(follow=True, timeout=60)
            note = next(note for note in followed if note["note"] == "AssignorRaised")
            assert (note["group_id"], note["assignor"], note["error"]) == (
                "stuck", "endless", "it took longer than 0 s",
            )  # fmt: skip
    finally:
        Endless.may_end.set()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"assignors": ["nowhere:Nothing"]}, "'nowhere:Nothing' cannot be found"),
        ({"assignors": [f"{__name__}:Missing"]}, "is named as module:Class"),
        ({"assignors": [f"{__name__}:Broker"]}, "is no subclass of"),
        ({"assignors": [Backwards(), Backwards()]}, "two server-side assignors have the name 'backwards'"),
        ({"group_consumer_assignors": "uniform,best"}, "unknown server-side assignor 'best'"),
    ],
)
def test_an_assignor_that_cannot_be_had_stops_the_start_with_one_line(options: dict[str, object], told: str) -> None:
    with pytest.raises(StartError, match=told):
        Broker(**options).start()  # type: ignore[arg-type]  # wrong on purpose
