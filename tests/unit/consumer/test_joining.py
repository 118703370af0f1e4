"""Finding the coordinator, joining, leading (consumer.md 5.1 to 5.7)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from partita.assignors.interface import Assignment, Assignor, RebalanceProtocol, Subscription, TopicMetadata
from partita.assignors.payloads import decode_subscription, encode_assignment
from partita.assignors.range import RangeAssignor
from partita.consumer.errors import IllegalStateError, RebalanceListenerError, WakeupError
from partita.errors import (
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from partita.protocol.messages.sync_group import SyncGroupResponse
from support.consumer.members import Heard, member
from support.consumer.world import DROP, HOLD, Delay, World

T0 = ("t", 0)


def find_error(code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code)], error_code=code)


@pytest.mark.case("CC-034")
def test_a_dynamic_member_joins_twice() -> None:
    world = World({"t": 1})
    member(world)
    joins = [s.message.member_id for s in world.sent("JoinGroup")]
    assert joins == ["", "c1-1"]
    assert len(world.sent("SyncGroup")) == 1


@pytest.mark.case("CC-035")
def test_a_static_member_joins_once() -> None:
    world = World({"t": 1})
    member(world, group_instance_id="i1")
    assert [s.message.group_instance_id for s in world.sent("JoinGroup")] == ["i1"]


@pytest.mark.case("CC-036")
def test_a_failed_lookup_is_repeated_with_growing_waits() -> None:
    world = World({"t": 1})
    world.script("FindCoordinator", find_error(15), find_error(15))
    _consumer, heard = member(world, poll=2)
    times = [s.at_ms for s in world.sent("FindCoordinator")]
    waits = [b - a for a, b in itertools.pairwise(times)]
    assert waits == [pytest.approx(200, rel=0.3), pytest.approx(400, rel=0.3)]
    assert heard.calls == [("assigned", [T0])]


@pytest.mark.case("CC-037")
def test_a_forbidden_lookup_is_raised_by_every_poll_until_one_succeeds() -> None:
    world = World({"t": 1})
    world.always["FindCoordinator"] = find_error(30)
    consumer, _ = member(world, poll=0)
    for _ in range(3):
        with pytest.raises(GroupAuthorizationFailedError):
            consumer.poll(0.5)
    del world.always["FindCoordinator"]
    world.run(2_000)
    consumer.poll(0.5)
    assert consumer.assignment() == {T0}


@pytest.mark.case("CC-038")
def test_the_coordinator_has_its_own_connection() -> None:
    world = World({"t": 2}, nodes=2)
    _consumer, _ = member(world)
    beats = {(s.node, s.to_coordinator) for s in world.log if s.name in ("JoinGroup", "SyncGroup", "OffsetFetch")}
    assert beats == {(2, True)}
    assert (2, False) in {(s.node, s.to_coordinator) for s in world.sent("Fetch")}


@pytest.mark.case("CC-039", "BM-115")
def test_a_short_poll_leaves_the_join_under_way() -> None:
    world = World({"t": 1})
    world.script("JoinGroup", None, HOLD)
    consumer, _ = member(world, poll=0)
    start = world.now
    assert len(consumer.poll(0.1)) == 0
    assert world.now - start == 100
    consumer.poll(0.1)
    assert len(world.sent("JoinGroup")) == 2
    world.answer_held()
    consumer.poll(0.1)
    assert consumer.assignment() == {T0}


@pytest.mark.case("CC-040")
def test_a_join_may_take_the_whole_rebalance_timeout() -> None:
    world = World({"t": 1})
    seen: list[int] = []
    deliver = world.deliver

    def spy(io: Any, request: Any) -> None:
        if type(request.message).__name__ == "JoinGroupRequest":
            seen.append(request.timeout_ms)
        deliver(io, request)

    world.deliver = spy  # type: ignore[method-assign]  # the test steps in between
    member(world)
    assert seen[0] == 305_000


@pytest.mark.case("CC-041", "BM-131")
def test_a_join_at_the_wrong_node_looks_again_and_keeps_its_id() -> None:
    world = World({"t": 1})
    world.script("JoinGroup", None, JoinGroupResponse(error_code=16))
    member(world, poll=2)
    assert [s.message.member_id for s in world.sent("JoinGroup")] == ["", "c1-1", "c1-1"]
    assert len(world.sent("FindCoordinator")) == 2


@pytest.mark.case("CC-042")
def test_an_unknown_member_id_is_dropped_and_the_join_repeated_at_once() -> None:
    world = World({"t": 1})
    world.script("JoinGroup", None, JoinGroupResponse(error_code=25))
    member(world)
    sent = world.sent("JoinGroup")
    assert [s.message.member_id for s in sent][:3] == ["", "c1-1", ""]
    assert sent[2].at_ms - sent[1].at_ms <= 2


@pytest.mark.parametrize("code", [25, 27, 79])
def test_no_refusal_of_a_join_spins(code: int) -> None:
    world = World({"t": 1})
    world.always["JoinGroup"] = JoinGroupResponse(error_code=code, member_id="m")
    _consumer, _ = member(world, poll=10)
    assert len(world.sent("JoinGroup")) <= 3 + 10_000 // 1_000 + 4


@pytest.mark.case("CC-043", "CC-044")
@pytest.mark.parametrize(("code", "error"), [(23, InconsistentGroupProtocolError), (81, GroupMaxSizeReachedError)])
def test_a_fatal_refusal_is_raised_once_and_tried_again_by_the_next_poll(code: int, error: type[KafkaError]) -> None:
    world = World({"t": 1})
    consumer, _ = member(world, poll=0)
    world.script("JoinGroup", None, JoinGroupResponse(error_code=code))
    with pytest.raises(error):
        consumer.poll(5)
    assert len(world.sent("JoinGroup")) == 2
    consumer.poll(0.2)
    joins = world.sent("JoinGroup")
    assert [s.message.member_id for s in joins] == ["", "c1-1", "c1-1"]
    assert consumer.assignment() == {T0}


@pytest.mark.case("CC-045", "BM-125")
def test_a_rebalance_during_sync_keeps_id_and_generation() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    heard.calls.clear()
    consumer.enforce_rebalance()
    world.forget()
    world.script("SyncGroup", SyncGroupResponse(error_code=27))
    consumer.poll(0.2)
    joins = world.sent("JoinGroup")
    assert [s.message.member_id for s in joins] == ["c1-1", "c1-1"]
    assert [decode_subscription(s.message.protocols[0].metadata).generation_id for s in joins] == [1, 2]
    assert [name for name, _ in heard.calls] == ["revoked", "assigned"]


@pytest.mark.case("CC-046")
def test_an_illegal_generation_during_sync_keeps_the_id_and_loses_what_is_owned() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, partition_assignment_strategy=["cooperative-sticky"])
    consumer.enforce_rebalance()
    world.forget()
    world.script("SyncGroup", SyncGroupResponse(error_code=22))
    consumer.poll(0.3)
    joins = world.sent("JoinGroup")
    assert joins[1].message.member_id == "c1-1"
    assert decode_subscription(joins[1].message.protocols[0].metadata).generation_id == -1
    assert ("lost", [T0]) in heard.calls


@pytest.mark.case("CC-047")
def test_sync_must_name_the_protocol_of_the_join() -> None:
    world = World({"t": 1})
    world.script("SyncGroup", SyncGroupResponse(protocol_type="consumer", protocol_name="other", assignment=b""))
    consumer, _ = member(world, poll=0)
    with pytest.raises(InconsistentGroupProtocolError):
        consumer.poll(1)


@pytest.mark.case("CC-048")
def test_the_protocol_type_must_be_consumer() -> None:
    world = World({"t": 1})
    answer = JoinGroupResponse(
        generation_id=1, protocol_type="connect", protocol_name="range", leader="x", member_id="m"
    )
    world.script("JoinGroup", None, answer)
    consumer, _ = member(world, poll=0)
    with pytest.raises(InconsistentGroupProtocolError):
        consumer.poll(1)


def lead(world: World, *subscriptions: tuple[str, Sequence[str]], **fields: Any) -> JoinGroupResponse:
    """A JoinGroup answer that makes c1-1 the leader of these members."""
    from partita.assignors.payloads import encode_subscription

    members = [JoinGroupResponseMember(member_id=m, metadata=encode_subscription(Subscription(topics=t)))
               for m, t in subscriptions]  # fmt: skip
    return JoinGroupResponse(generation_id=1, protocol_type="consumer", protocol_name="range", leader="c1-1",
                             member_id="c1-1", members=members, **fields)  # fmt: skip


@pytest.mark.case("CC-049")
def test_the_leader_asks_for_topics_of_others_before_it_assigns() -> None:
    world = World({"t": 1, "other": 2})
    world.script("JoinGroup", None, lead(world, ("c1-1", ["t"]), ("m2", ["other"])))
    world.always["SyncGroup"] = HOLD
    member(world)
    names = world.names()
    after_join = names[len(names) - names[::-1].index("JoinGroup") :]
    assert after_join[0] == "Metadata"
    shares = {a.member_id: a.assignment for a in world.sent("SyncGroup")[0].message.assignments}
    assert shares["m2"] == encode_assignment([("other", 0), ("other", 1)])


@pytest.mark.case("CC-050")
def test_a_returning_static_leader_does_not_assign_but_watches_metadata() -> None:
    world = World({"t": 1})
    answer = lead(world, ("c1-1", ["t"]), skip_assignment=True)
    sync = SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=encode_assignment([T0]))
    world.script("JoinGroup", answer)
    world.script("SyncGroup", sync)
    consumer, _ = member(world, group_instance_id="i", metadata_max_age_ms=1_000)
    assert world.sent("SyncGroup")[0].message.assignments == []
    world.forget()
    world.create("t", 2)
    consumer.poll(2)
    assert world.sent("JoinGroup")


@pytest.mark.case("CC-051")
def test_an_empty_assignment_payload_is_raised_by_every_poll() -> None:
    world = World({"t": 1})
    world.script("SyncGroup", SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b""))
    consumer, _ = member(world, poll=0)
    for _ in range(3):
        with pytest.raises(IllegalStateError, match="0 bytes"):
            consumer.poll(1)
    world.forget()
    world.run(4_000)
    assert world.sent("Heartbeat")


@pytest.mark.case("CC-052", "BM-119")
def test_a_subscription_changed_during_sync_joins_again_without_callbacks() -> None:
    world = World({"t": 1, "u": 1})
    world.script("SyncGroup", Delay(50))
    consumer, heard = member(world, poll=0.02)
    consumer.subscribe(["u"], listener=heard)
    consumer.poll(0.5)
    assert heard.calls == [("revoked", []), ("assigned", [("u", 0)])]


@pytest.mark.case("BM-119")
def test_a_follower_that_wants_more_during_sync_joins_again() -> None:
    """Nothing it is given is strange to it, and only the leader watches metadata."""
    world = World({"t": 2, "u": 1})
    first, _ = member(world)
    world.script("SyncGroup", None, Delay(500))
    second, heard = member(world, poll=0)
    for _ in range(40):
        first.poll(0.1)
        second.poll(0.1)
        if len(world.sent("SyncGroup", who=2)) == 1 and len(second.subscription()) == 1:
            second.subscribe(["t", "u"], listener=heard)
    assert len(world.sent("JoinGroup", who=2)) > 2
    assert ("u", 0) in second.assignment()
    assert len(first.assignment() | second.assignment()) == 3


@pytest.mark.case("CC-053")
def test_a_follower_takes_a_matching_topic_it_has_not_seen() -> None:
    world = World({"pa": 1})
    join = JoinGroupResponse(
        generation_id=1, protocol_type="consumer", protocol_name="range", leader="x", member_id="m1"
    )
    payload = encode_assignment([("pa", 0), ("pb", 0)])
    world.script("JoinGroup", join)
    sync = SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=payload)

    def grow(_: Any) -> SyncGroupResponse:
        world.create("pb")
        return sync

    world.script("SyncGroup", grow)
    world.always["Heartbeat"] = HeartbeatResponse()
    heard = Heard()
    consumer = world.consumer(group_id="g")
    consumer.subscribe(pattern="p.*", listener=heard)
    consumer.poll(0.2)
    assert consumer.subscription() == {"pa", "pb"}
    assert heard.calls == [("assigned", [("pa", 0), ("pb", 0)])]
    consumer.poll(0.2)
    assert len(world.sent("JoinGroup")) == 1


@pytest.mark.case("CC-054")
def test_a_failing_assigned_callback_leaves_the_assignment_standing() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    consumer, heard = member(world, poll=0)
    heard.fail_on["assigned"] = RuntimeError("on purpose")
    with pytest.raises(RebalanceListenerError):
        consumer.poll(1)
    assert consumer.assignment() == {T0}
    assert len(consumer.poll(1)) == 3
    assert heard.calls == [("assigned", [T0]), ("assigned", [])]
    assert len(world.sent("JoinGroup")) == 2
    world.run(3_500)
    assert world.sent("Heartbeat")


@pytest.mark.case("CC-055")
def test_a_failing_revoked_callback_is_not_called_again() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    heard.fail_on["revoked"] = RuntimeError("on purpose")
    consumer.enforce_rebalance()
    world.forget()
    with pytest.raises(RebalanceListenerError):
        consumer.poll(1)
    assert consumer.assignment() == set()
    assert not world.sent("JoinGroup")
    consumer.poll(0.2)
    assert [name for name, _ in heard.calls] == ["assigned", "revoked", "assigned"]


@pytest.mark.case("CC-056")
def test_a_wakeup_inside_the_assigned_callback() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, poll=0)

    def inside(partitions: Any) -> None:
        heard._hear("assigned", partitions)
        if len(heard.calls) == 1:
            consumer.wakeup()
            consumer._driver.check()

    heard.on_partitions_assigned = inside  # type: ignore[method-assign]  # the test steps in between
    with pytest.raises(WakeupError):
        consumer.poll(1)
    consumer.poll(0.1)
    assert heard.calls == [("assigned", [T0]), ("assigned", [])]


@pytest.mark.case("CC-057")
def test_more_partitions_make_the_leader_join_and_the_follower_follow() -> None:
    world = World({"t": 1})
    first, _ = member(world, metadata_max_age_ms=1_000)
    second, _ = member(world, poll=0, metadata_max_age_ms=1_000)
    for _ in range(60):
        first.poll(0.05)
        second.poll(0.05)
    world.forget()
    world.create("t", 4)
    for _ in range(120):
        first.poll(0.05)
        second.poll(0.05)
    assert world.sent("JoinGroup")[0].who == 1
    assert len(first.assignment() | second.assignment()) == 4


@pytest.mark.case("CC-058", "BM-111")
def test_metadata_that_changed_during_the_assignment_rebalances_again() -> None:
    world = World({"t": 1})
    world.script("SyncGroup", Delay(300))
    consumer, _ = member(world, poll=0.1, metadata_max_age_ms=150)
    world.create("t", 3)
    consumer.poll(2)
    assert len(consumer.assignment()) == 3


@pytest.mark.case("CC-059")
@pytest.mark.parametrize("rack", ["", "r1"])
def test_a_moved_replica_matters_only_to_a_consumer_with_a_rack(rack: str) -> None:
    from partita.protocol.metadata_view import Node

    world = World({"t": 1}, nodes=2)
    world.nodes = {1: Node(1, "a", 1, "r1"), 2: Node(2, "b", 1, "r2")}
    consumer, _ = member(world, client_rack=rack, metadata_max_age_ms=500)
    world.forget()
    world.logs[T0].replicas = (2,)
    consumer.poll(1)
    assert bool(world.sent("JoinGroup")) == bool(rack)


@pytest.mark.case("CC-060")
def test_ten_members_by_pattern_take_a_new_topic_in_at_most_two_rebalances() -> None:
    world = World({"pa": 10})
    consumers = []
    for _ in range(10):
        consumer = world.consumer(group_id="g", metadata_max_age_ms=2_000)
        consumer.subscribe(pattern="p.*")
        consumers.append(consumer)
    for _ in range(60):
        for consumer in consumers:
            consumer.poll(0.02)
    before = consumers[0].group_metadata().generation_id
    world.create("pb", 10)
    for _ in range(60):
        for consumer in consumers:
            consumer.poll(0.02)
    assert consumers[0].group_metadata().generation_id - before <= 2
    assert sum(len(c.assignment()) for c in consumers) == 20


@pytest.mark.case("CC-202", "BM-141")
def test_a_loading_coordinator_during_sync_is_raised_once() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    consumer.enforce_rebalance()
    world.forget()
    world.script("SyncGroup", SyncGroupResponse(error_code=14))
    with pytest.raises(KafkaError):
        consumer.poll(1)
    consumer.poll(0.2)
    joins = world.sent("JoinGroup")
    assert [s.message.member_id for s in joins] == ["c1-1", "c1-1"]
    assert consumer.assignment() == {T0}


@pytest.mark.case("CC-206")
def test_an_eager_member_claims_nothing_but_its_generation() -> None:
    world = World({"t": 2})
    consumer, _ = member(world, partition_assignment_strategy=["range", "sticky"])
    consumer.enforce_rebalance()
    world.forget()
    consumer.poll(0.2)
    claims = {p.name: decode_subscription(p.metadata) for p in world.sent("JoinGroup")[0].message.protocols}
    assert {(len(c.owned_partitions), c.generation_id) for c in claims.values()} == {(0, 1)}
    assert claims["sticky"].user_data is not None or claims["range"].user_data is None


@pytest.mark.case("CC-209")
@pytest.mark.parametrize(("code", "error"), [(17, InvalidTopicError), (29, TopicAuthorizationFailedError)])
def test_a_bad_topic_is_raised_by_one_poll(code: int, error: type[KafkaError]) -> None:
    world = World({"t": 1})
    world.topic_errors["bad"] = code
    consumer, _ = member(world, "t", "bad", poll=0)
    with pytest.raises(error, match="bad"):
        consumer.poll(1)
    consumer.poll(0.2)
    assert consumer.assignment() == {T0}


@pytest.mark.case("CC-209")
def test_an_unknown_topic_is_no_error() -> None:
    _consumer, heard = member(World(), "nope")
    assert heard.calls == [("assigned", [])]


@pytest.mark.case("CC-210")
def test_a_pattern_matches_whole_names_and_asks_for_all_topics() -> None:
    world = World({"pa": 1})
    world.create("px__internal", 1)
    world.internal.add("px__internal")
    consumer = world.consumer(group_id="g", metadata_max_age_ms=1_000)
    consumer.subscribe(pattern="p.*")
    consumer.poll(0.2)
    assert consumer.subscription() == {"pa"}
    assert world.sent("Metadata")[-1].message.topics is None
    world.create("pb", 1)
    world.create("zp", 1)
    generation = consumer.group_metadata().generation_id
    consumer.poll(2)
    assert consumer.assignment() == {("pa", 0), ("pb", 0)}
    assert consumer.group_metadata().generation_id == generation + 1


@pytest.mark.case("CC-213")
def test_the_order_and_versions_of_the_first_requests() -> None:
    world = World({"t": 1})
    member(world)
    assert world.names()[:8] == [
        "Metadata", "FindCoordinator", "JoinGroup", "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets", "Fetch",
    ]  # fmt: skip
    versions = {s.name: s.version for s in world.log}
    assert versions == {"Metadata": 13, "FindCoordinator": 6, "JoinGroup": 9, "SyncGroup": 5, "OffsetFetch": 9,
                        "ListOffsets": 11, "Fetch": 18}  # fmt: skip


@pytest.mark.case("CC-215")
def test_generated_client_ids() -> None:
    world = World()
    ids = [world.consumer(group_id="names", client_id="")._driver.config.client_id for _ in range(2)]
    static = world.consumer(group_id="names", group_instance_id="i7", client_id="")
    assert ids == ["consumer-names-1", "consumer-names-2"]
    assert static._driver.config.client_id == "consumer-names-i7"


class MovesDirectly(Assignor):
    """A cooperative assignor that does what none may."""

    name = "moves-directly"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        last = sorted(subscriptions)[-1]
        return {m: [("t", 0)] if m == last else [] for m in subscriptions}


@pytest.mark.case("CC-084")
def test_a_cooperative_assignor_must_not_move_what_is_owned() -> None:
    world = World({"t": 1})
    first, _ = member(world, partition_assignment_strategy=[MovesDirectly])
    second, _ = member(world, poll=0, partition_assignment_strategy=[MovesDirectly])
    second.poll(0.1)
    world.run(3_000)

    def go_on() -> None:
        for _ in range(40):
            first.poll(0.05)
            second.poll(0.05)

    with pytest.raises(IllegalStateError, match="still owns"):
        go_on()


@pytest.mark.case("CC-074", "BM-130")
def test_a_coordinator_lost_during_a_join_is_found_again() -> None:
    world = World({"t": 1})
    world.script("JoinGroup", None, DROP, DROP)
    consumer, _ = member(world, poll=3)
    assert consumer.assignment() == {T0}
    assert len(world.sent("FindCoordinator")) == 3


@pytest.mark.case("BM-127")
def test_a_topic_deleted_during_a_rebalance_does_not_hang() -> None:
    world = World({"t": 1, "u": 1})
    consumer, _ = member(world, "t", "u")
    consumer.enforce_rebalance()
    del world.ids["u"], world.logs["u", 0]
    consumer.poll(2)
    assert consumer.assignment() == {T0}


@pytest.mark.case("BM-099")
def test_unreadable_subscriptions_of_others_get_nothing() -> None:
    world = World({"t": 2})
    answer = lead(world, ("c1-1", ["t"]))
    answer.members.append(JoinGroupResponseMember(member_id="evil", metadata=b"\x00\x01\x7f\xff\xff\xff"))
    world.script("JoinGroup", None, answer)
    world.always["SyncGroup"] = HOLD
    member(world)
    shares = {a.member_id: a.assignment for a in world.sent("SyncGroup")[0].message.assignments}
    assert shares["evil"] == encode_assignment([])
    assert shares["c1-1"] == encode_assignment([("t", 0), ("t", 1)])


def test_an_assignor_that_raises_is_reported() -> None:
    class Broken(RangeAssignor):
        name = "broken"

        def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
            raise KeyError("on purpose")

    consumer, _ = member(World({"t": 1}), poll=0, partition_assignment_strategy=[Broken])
    with pytest.raises(IllegalStateError, match="on purpose"):
        consumer.poll(1)


def test_codes_unknown_to_us_are_errors_not_loops() -> None:
    world = World({"t": 1})
    world.always["JoinGroup"] = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    consumer, _ = member(world, poll=0)
    for _ in range(3):
        with pytest.raises(KafkaError):
            consumer.poll(2)
    assert len(world.sent("JoinGroup")) <= 6
