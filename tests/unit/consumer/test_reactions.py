"""The table of reactions, cell by cell: each request is answered with each error code, and the verb is seen happening.

Finding aesthetics A10; consumer.md 15.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from partita.consumer.group.member import ALLOWED_MOVES, CONSUMER_MOVES, Member, MemberState
from partita.consumer.reactions import REACTIONS, Reaction, reaction
from partita.errors import KafkaError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import fetch, list_offsets, metadata, offset_commit, offset_fetch
from partita.protocol.messages import offset_for_leader_epoch as epochs
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupResponse
from partita.protocol.messages.sync_group import SyncGroupResponse
from support.consumer.epochs import EPOCHS, EpochGroup
from support.consumer.world import Sent, World

T0 = ("t", 0)
PLAIN: dict[str, Any] = {
    "SyncGroup": SyncGroupResponse,
    "Heartbeat": HeartbeatResponse,
    "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatResponse,
    "LeaveGroup": LeaveGroupResponse,
    "Fetch": fetch.FetchResponse,
}
CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


@dataclass
class Seen:
    """What happened after the answer with the error code."""

    api: str
    at_ms: int = 0
    raised: list[BaseException] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    lost: bool = False
    member_id: str = ""

    def first(self, api: str) -> Sent | None:
        return next((one for one in self.sent if one.name == api), None)

    @property
    def repeat_after_ms(self) -> int | None:
        again = self.first(self.api)
        return None if again is None else again.at_ms - self.at_ms

    def before_repeat(self, api: str) -> bool:
        again, other = self.first(self.api), self.first(api)
        return other is not None and (again is None or self.sent.index(other) < self.sent.index(again))

    @property
    def joined_as(self) -> str | None:
        """The member id of the next JoinGroup: the same, none, or no JoinGroup at all.

        The member id of the consumer protocol is the client's own; a heartbeat of epoch 0 joins.
        """
        beat = self.first("ConsumerGroupHeartbeat")
        if beat is not None:
            return "none" if beat.message.member_epoch == 0 else None
        join = self.first("JoinGroup")
        if join is None:
            return None
        return "none" if not join.message.member_id else "same" if join.message.member_id == self.member_id else "other"


def answer_of(api: str, code: int) -> Any:
    """The answer to one request with this code where its row says."""
    part: Any
    match api:
        case "FindCoordinator":
            return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code)], error_code=code)
        case "JoinGroup":
            return JoinGroupResponse(error_code=code, member_id="given")
        case "SyncGroup" | "Heartbeat" | "ConsumerGroupHeartbeat" | "LeaveGroup" | "Fetch":
            return PLAIN[api](error_code=code)
        case "OffsetCommit":
            part = offset_commit.OffsetCommitResponsePartition(partition_index=0, error_code=code)
            topic = offset_commit.OffsetCommitResponseTopic(name="t", partitions=[part])
            return offset_commit.OffsetCommitResponse(topics=[topic])
        case "OffsetFetch":
            return offset_fetch.OffsetFetchResponse(
                groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=code)]
            )
        case "OffsetFetch, each partition":
            part = offset_fetch.OffsetFetchResponsePartitions(committed_offset=-1, metadata="", error_code=code)
            named = offset_fetch.OffsetFetchResponseTopics(name="t", partitions=[part])
            group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=[named])
            return offset_fetch.OffsetFetchResponse(groups=[group])
        case "Fetch, each partition":
            return lambda message: fetch.FetchResponse(
                responses=[
                    fetch.FetchableTopicResponse(
                        topic="t",
                        topic_id=message.topics[0].topic_id,
                        partitions=[fetch.PartitionData(partition_index=0, error_code=code)],
                    )
                ]
            )
        case "ListOffsets":
            part = list_offsets.ListOffsetsPartitionResponse(partition_index=0, error_code=code)
            return list_offsets.ListOffsetsResponse(
                topics=[list_offsets.ListOffsetsTopicResponse(name="t", partitions=[part])]
            )
        case "OffsetForLeaderEpoch":
            part = epochs.EpochEndOffset(partition=0, error_code=code)
            return epochs.OffsetForLeaderEpochResponse(
                topics=[epochs.OffsetForLeaderTopicResult(topic="t", partitions=[part])]
            )
        case _:
            one = metadata.MetadataResponseTopic(name="t", error_code=code, topic_id=b"\0" * 15 + b"\1")
            brokers = [metadata.MetadataResponseBroker(node_id=1, host="node1", port=9092)]
            return metadata.MetadataResponse(brokers=brokers, topics=[one])


def play(row: str, code: int) -> Seen:
    """Answer the row's request once with this code, in the situation it belongs to, and watch for three seconds."""
    api = row.partition(",")[0]
    world = World({"t": 1})
    static = api == "Heartbeat" or api == "OffsetCommit"
    options: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False, "heartbeat_interval_ms": 500}
    if static:
        options["group_instance_id"] = "i"
    if api == "ConsumerGroupHeartbeat":
        options = {**EPOCHS, "enable_auto_commit": False}
        EpochGroup(world, interval_ms=500).assign(T0)
    consumer = world.consumer(**options, metadata_max_age_ms=2_000)
    core = consumer._calls._core
    seen = Seen(api)
    answer, usual = answer_of(row, code), row

    def watched(message: Any) -> Any:
        seen.at_ms = world.now + world.latency_ms
        world.log.clear()
        seen.member_id = core.member.generation.member_id
        return answer(message) if callable(answer) else answer

    consumer.subscribe(["t"], on_lost=lambda _: setattr(seen, "lost", True))
    if api == "JoinGroup":
        world.script("JoinGroup", None, watched)
    elif api in ("FindCoordinator", "SyncGroup", "OffsetFetch", "Metadata"):
        world.script(api, watched)
    act: Callable[[], Any] = lambda: consumer.poll(1.0)  # noqa: E731
    if api not in ("FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "Metadata"):
        act = _ready(world, consumer, api, watched)
    deadline = world.now + 3_000
    while world.now < deadline:
        try:
            act()
        except KafkaError as error:
            seen.raised.append(error)
            if len(seen.raised) > 3:
                break
        act = lambda: consumer.poll(1.0)  # noqa: E731
        if api == "LeaveGroup" and world.sent("LeaveGroup") == [] and seen.at_ms:
            break
    seen.sent = world.log
    assert seen.at_ms, f"{usual} was never answered with the code"
    return seen


def _ready(world: World, consumer: Any, api: str, watched: Callable[[Any], Any]) -> Callable[[], Any]:
    """A stable member whose next request of this kind is answered with the code; returns what makes it ask."""
    core = consumer._calls._core
    if api == "ListOffsets":
        world.script("ListOffsets", watched)
        return lambda: consumer.beginning_offsets([T0], timeout=1.0)
    while core.subscription.assignment.get(T0) is None or not core.subscription.assignment[T0].has_valid_position:
        consumer.poll(0.05)
    world.script(api, watched)
    if api == "LeaveGroup":

        def leave() -> None:
            consumer.unsubscribe()
            world.run(100)
            consumer.subscribe(["t"])

        return leave
    if api == "OffsetCommit":
        return lambda: consumer.commit({T0: 0}, timeout=1.0)
    if api == "OffsetForLeaderEpoch":
        world.append("t", 0, 1)
        core.subscription.assignment[T0].position = None
        from partita.consumer.partition_state import Position

        core.subscription.assignment[T0].seek_unvalidated(Position(0, 0, 1, 0))
    if api == "Fetch":
        world.append("t", 0, 1)
    return lambda: consumer.poll(0.1)


def happens(verb: Reaction, seen: Seen) -> bool:
    """Is what was seen what the verb promises?"""
    wait, raised = seen.repeat_after_ms, bool(seen.raised)
    match verb:
        case Reaction.IGNORE:
            return not raised
        case Reaction.RETRY:
            return not raised and wait is not None and wait >= 80 and not seen.before_repeat("FindCoordinator")
        case Reaction.REFRESH:
            asked = seen.first("Metadata")
            return not raised and wait is not None and asked is not None and asked.at_ms - seen.at_ms < 500
        case Reaction.LOOK_UP:
            return not raised and seen.before_repeat("FindCoordinator")
        case Reaction.ADOPT_ID | Reaction.REJOIN | Reaction.FORGET_GENERATION | Reaction.FORGET_MEMBER:
            return joins(verb, seen)
        case Reaction.LEAVE_OUT:
            return not raised and (wait is None or seen.before_repeat("JoinGroup"))
        case Reaction.NEW_SESSION:
            again = seen.first("Fetch")
            return not raised and again is not None and again.message.session_epoch == 0
        case Reaction.RESET:
            return not raised and seen.before_repeat("ListOffsets")
        case Reaction.FENCED | Reaction.COLLECT | Reaction.RAISE | Reaction.NEWER_EPOCH:
            return raised  # a member of the classic protocol has no epoch that could be newer
        case Reaction.TELL:
            return len(seen.raised) == 1 and wait is not None and wait >= 80 and not seen.lost
        case Reaction.FATAL:
            return len(seen.raised) == 1 and wait is None and seen.lost
        case _:
            return False


def joins(verb: Reaction, seen: Seen) -> bool:
    """Did the member join again as whom the verb says?"""
    match verb:
        case Reaction.ADOPT_ID:
            join = seen.first("JoinGroup")
            return not seen.raised and join is not None and join.message.member_id == "given"
        case Reaction.REJOIN:
            return seen.joined_as == "same" and not seen.lost
        case Reaction.FORGET_GENERATION:
            return seen.joined_as == "same" and (seen.lost or seen.api == "SyncGroup")
        case Reaction.FORGET_MEMBER:
            return seen.joined_as == "none" and (seen.lost or seen.api in ("JoinGroup", "SyncGroup"))
        case _:
            return False


_RAISING = (
    Reaction.RAISE, Reaction.COLLECT, Reaction.FENCED, Reaction.NEWER_EPOCH, Reaction.TELL, Reaction.FATAL,
)  # fmt: skip


def expected_error(verb: Reaction, code: int, seen: Seen) -> bool:
    """What is raised names the code, unless the API has an error of its own for it."""
    if verb in _RAISING:
        return isinstance(seen.raised[0], KafkaError) and seen.raised[0].code == code
    return True


OF_CONSUMERS = [row for row in REACTIONS if not row.startswith("Share")]
"""The rows of share consumers are played in test_share_core.py."""


@pytest.mark.parametrize("row", OF_CONSUMERS)
def test_every_code_leads_to_the_reaction_of_its_cell(row: str) -> None:
    wrong = []
    for code in CODES:
        verb = reaction(row, code)
        seen = play(row, code)
        if not (happens(verb, seen) and expected_error(verb, code, seen)):
            told = [type(error).__name__ for error in seen.raised], [one.name for one in seen.sent][:6]
            wrong.append(f"{code.name}: {verb.name} was expected; raised and sent: {told}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("row", REACTIONS)
def test_every_code_has_a_reaction_and_an_unknown_number_is_final(row: str) -> None:
    assert all(isinstance(reaction(row, code), Reaction) for code in ErrorCode)
    assert reaction(row, 0) is Reaction.TAKE
    assert reaction(row, 9_999) is REACTIONS[row].final


@pytest.mark.parametrize(("protocol", "moves"), [("classic", ALLOWED_MOVES), ("consumer", CONSUMER_MOVES)])
def test_a_member_moves_only_as_the_table_of_its_protocol_says(
    protocol: str, moves: dict[MemberState, tuple[MemberState, ...]]
) -> None:
    core = World({"t": 1}).consumer(group_id="g", group_protocol=protocol)._calls._core
    for before in moves:
        for after in MemberState:
            member = Member(core.config, core.subscription, core.metadata.view, [])
            member.state = before
            if after is before or after in moves[before]:
                member.move(after)
                assert member.state is after
            else:
                with pytest.raises(AssertionError, match="does not move"):
                    member.move(after)


def test_the_document_shows_the_tables_of_the_code() -> None:
    root = Path(__file__).parents[3]
    printed = run_path(str(root / "tools" / "consumer_tables.py"))["text"]()
    written = (root / "docs" / "consumer-tables.md").read_text()
    assert written == printed, "run: python tools/consumer_tables.py > docs/consumer-tables.md"
