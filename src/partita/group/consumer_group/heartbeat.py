"""ConsumerGroupHeartbeat: checks, then a table of group kind by request kind, then one of sender by request kind.

A heartbeat joins (epoch 0), continues (above 0), leaves (-1) or leaves temporarily (-2). (Kafka:
GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid, GroupMetadataManager.consumerGroupHeartbeat and
consumerGroupLeave; specification sections 20.2, 20.3 and 20.6.)

Deviation: Partita admits a static member that joins again under its own member id, as after a lost answer, where Kafka
answers UNRELEASED_INSTANCE_ID until its session has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum, IntEnum
from typing import NamedTuple

from partita.expressions import InvalidExpression
from partita.group.consumer_group import conversion, errors, leaving, timers
from partita.group.consumer_group.change import Change, apply
from partita.group.consumer_group.errors import Refused
from partita.group.consumer_group.member_ids import bare_member_id
from partita.group.consumer_group.subscriptions import compile_expression
from partita.group.contract import GroupRequest, Token
from partita.group.offsets import expiration
from partita.group.records.consumer_group import LEFT_STATIC, ConsumerGroup, ConsumerMember, Partition, by_topic
from partita.group.state.model import EMPTY
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from partita.wording import What

_JOIN, _LEAVE, _REST = 0, -1, LEFT_STATIC
_CLIENT_MAKES_ID_FROM = 1


class Found(Enum):
    """Kind of group that the shard holds under the group id; the rows of `GROUP`."""

    __hash__ = object.__hash__  # Enum's own is written in Python, and every heartbeat looks one up

    NOTHING = 0
    """No group, or one that only stores offsets."""
    EMPTY_CLASSIC = 1
    """A classic group without members."""
    CLASSIC = 2
    """A classic group with members."""
    CONSUMER = 3
    """A KIP-848 group."""


NOTHING, EMPTY_CLASSIC, CLASSIC, CONSUMER = Found


class Ask(IntEnum):
    """Kind of heartbeat, by its member epoch; the columns of both tables."""

    JOIN = 0
    """Epoch 0."""
    GO_ON = 1
    """An epoch above 0."""
    LEAVE = 2
    """Epoch -1."""
    REST = 3
    """Epoch -2: a static member leaves and intends to return."""


GO_ON = Ask.GO_ON


class Who(Enum):
    """Sender of a heartbeat to a KIP-848 group; the rows of `MEMBERS`."""

    __hash__ = object.__hash__

    STRANGER = 0
    """An unknown member id, and no group instance id."""
    MEMBER = 1
    """The id of a member, alone or with its own instance id."""
    NEW_INSTANCE = 2
    """A group instance id that no member holds."""
    SUCCESSOR = 3
    """The instance id of a member that left temporarily or speaks the classic protocol; and another member id."""
    RIVAL = 4
    """The instance id of a live member; and another member id."""


STRANGER, MEMBER, NEW_INSTANCE, SUCCESSOR, RIVAL = Who


class Beat(NamedTuple):
    """One ConsumerGroupHeartbeat being decided."""

    token: Token
    request: GroupRequest
    wire: ConsumerGroupHeartbeatRequest

    @property
    def owned(self) -> frozenset[Partition] | None:
        """The partitions that the member reports to own; None: unchanged."""
        topics = self.wire.topic_partitions
        return None if topics is None else frozenset((t.topic_id, number) for t in topics for number in t.partitions)

    @property
    def is_full(self) -> bool:
        """Whether the request carries every field, so that the answer must carry the full assignment."""
        wire = self.wire
        subscribes = wire.subscribed_topic_names is not None or wire.subscribed_topic_regex is not None
        says_all = wire.rebalance_timeout_ms != -1 and subscribes and wire.topic_partitions is not None
        return wire.member_epoch == _JOIN or says_all


def heartbeat(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer a ConsumerGroupHeartbeat. It is answered at once and never parked."""
    wire = request.message
    assert isinstance(wire, ConsumerGroupHeartbeatRequest)
    # Written into the request, so that all that follows sees one kind of join.
    if not wire.member_id and request.version < _CLIENT_MAKES_ID_FROM and wire.member_epoch == _JOIN:
        wire.member_id = bare_member_id(turn)
    beat = Beat(token, request, wire)
    refused = first_problem(turn, beat)
    if refused is None:
        refused = GROUP[find(turn, wire.group_id)][classify(wire)](turn, beat)
    if refused is not None:
        answer = ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.text)
        turn.out.answer(token, answer)


def id_is_missing(turn: Turn, beat: Beat) -> Refused | None:
    """From version 1 on clients generate their member ids; before that, only a join may omit it."""
    needs = beat.request.version >= _CLIENT_MAKES_ID_FROM or beat.wire.member_epoch != _JOIN
    return errors.invalid("MemberId can't be empty.") if needs and not beat.wire.member_id.strip() else None


def a_text_is_empty(turn: Turn, beat: Beat) -> Refused | None:
    """Group id, instance id and rack must not be blank."""
    wire = beat.wire
    for name, text in (("GroupId", wire.group_id), ("InstanceId", wire.instance_id), ("RackId", wire.rack_id)):
        if text is not None and not text.strip():
            return errors.invalid(f"{name} can't be empty.")
    return None


def join_is_incomplete(turn: Turn, beat: Beat) -> Refused | None:
    """A join must carry a rebalance timeout, an empty list of owned partitions, and a subscription."""
    wire = beat.wire
    if wire.member_epoch != _JOIN:
        return None
    if wire.rebalance_timeout_ms == -1:
        return errors.invalid("RebalanceTimeoutMs must be provided in first request.")
    if wire.topic_partitions is None or wire.topic_partitions:
        return errors.invalid("TopicPartitions must be empty when (re-)joining.")
    if wire.subscribed_topic_names is None and wire.subscribed_topic_regex is None:
        return errors.invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    return None


def rest_has_no_instance(turn: Turn, beat: Beat) -> Refused | None:
    """Only static members may leave temporarily."""
    is_dynamic = beat.wire.member_epoch == _REST and beat.wire.instance_id is None
    return errors.invalid("InstanceId can't be null.") if is_dynamic else None


def epoch_is_out_of_range(turn: Turn, beat: Beat) -> Refused | None:
    """Member epochs below -2 are invalid."""
    epoch = beat.wire.member_epoch
    return (
        errors.invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.") if epoch < _REST else None
    )


def assignor_is_unknown(turn: Turn, beat: Beat) -> Refused | None:
    """The broker has no such server-side assignor."""
    name, known = beat.wire.server_assignor, turn.state.assignors
    if name is None or name in known:
        return None
    text = f"ServerAssignor {name} is not supported. Supported assignors: {', '.join(known)}."
    return Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, text)


def expression_is_invalid(turn: Turn, beat: Beat) -> Refused | None:
    """A regular expression that is new to the group must compile."""
    regex = beat.wire.subscribed_topic_regex
    group = turn.state.consumer_group(beat.wire.group_id)
    if not regex or beat.wire.member_epoch < 0 or (group is not None and regex in group.patterns):
        return None
    try:
        compile_expression(regex)
    except InvalidExpression as error:
        return Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error))
    return None


Check = Callable[[Turn, Beat], Refused | None]
CHECKS: tuple[Check, ...] = (
    id_is_missing,
    a_text_is_empty,
    join_is_incomplete,
    rest_has_no_instance,
    epoch_is_out_of_range,
    assignor_is_unknown,
    expression_is_invalid,
)


def first_problem(turn: Turn, beat: Beat) -> Refused | None:
    """Return the refusal of the first check that fails; None if all pass."""
    # In Kafka's order: which of two mistakes is named is visible to clients.
    return next((refused for check in CHECKS if (refused := check(turn, beat)) is not None), None)


def find(turn: Turn, group_id: str) -> Found:
    """Return the row of `GROUP`."""
    if turn.state.consumer_group(group_id) is not None:
        return CONSUMER
    classic = turn.state.groups.get(group_id)
    if classic is None or (classic.protocol_type is None and not classic.pending and classic.state is EMPTY):
        return NOTHING
    # A group with pending ids is classic already, although no member has joined yet.
    return EMPTY_CLASSIC if classic.state is EMPTY else CLASSIC


def classify(wire: ConsumerGroupHeartbeatRequest) -> Ask:
    """Return the column of `GROUP` and of `MEMBERS`."""
    if wire.member_epoch > 0:
        return GO_ON
    return {_JOIN: Ask.JOIN, _LEAVE: Ask.LEAVE, _REST: Ask.REST}[wire.member_epoch]


def CREATE(turn: Turn, beat: Beat) -> Refused | None:
    """Create the group with its first member, if the broker has room for one more."""
    group_id = beat.wire.group_id
    # Groups whose offsets have all expired are removed first, if that is what it takes.
    if group_id not in turn.state.groups and turn.state.is_full and not expiration.make_room(turn, group_id):
        return errors.broker_is_full(turn.state.config.partita_groups_max)
    return ADMIT(turn, beat, ConsumerGroup(group_id))


def CONVERT(turn: Turn, beat: Beat) -> Refused | None:
    """Convert an empty classic group to a KIP-848 group; its offsets stay."""
    return ADMIT(turn, beat, ConsumerGroup(beat.wire.group_id))


def UPGRADE(turn: Turn, beat: Beat) -> Refused | None:
    """Convert a classic group with members to a KIP-848 group that serves them as before, if the policy allows it."""
    refused = conversion.upgrade(turn, beat.wire.group_id)
    return refused or SERVE(turn, beat)


def SERVE(turn: Turn, beat: Beat) -> Refused | None:
    """Look the sender up in `MEMBERS`."""
    group = turn.state.hard.consumer_groups[beat.wire.group_id]
    return MEMBERS[who(group, beat)][classify(beat.wire)](turn, beat, group)


def NO_GROUP(turn: Turn, beat: Beat) -> Refused | None:
    """Answer GROUP_ID_NOT_FOUND; Kafka looks for a group to leave among all kinds of groups."""
    return errors.group_not_found(beat.wire.group_id, "Group" if beat.wire.member_epoch < 0 else "Consumer group")


def OTHER_PROTOCOL(turn: Turn, beat: Beat) -> Refused | None:
    """Answer GROUP_ID_NOT_FOUND: the group is classic."""
    return errors.wrong_type("consumer", beat.wire.group_id)


GroupAction = Callable[[Turn, Beat], Refused | None]
# fmt: off
GROUP: dict[Found, tuple[GroupAction, ...]] = {
    #               JOIN     GO_ON           LEAVE           REST
    NOTHING:       (CREATE,  NO_GROUP,       NO_GROUP,       NO_GROUP),
    EMPTY_CLASSIC: (CONVERT, OTHER_PROTOCOL, OTHER_PROTOCOL, OTHER_PROTOCOL),
    CLASSIC:       (UPGRADE, OTHER_PROTOCOL, OTHER_PROTOCOL, OTHER_PROTOCOL),
    CONSUMER:      (SERVE,   SERVE,          SERVE,          SERVE),
}
# fmt: on


def who(group: ConsumerGroup, beat: Beat) -> Who:
    """Return the row of `MEMBERS`."""
    member_id, instance_id = beat.wire.member_id, beat.wire.instance_id
    if instance_id is None:
        return MEMBER if member_id in group.members else STRANGER
    holder = group.static.get(instance_id)
    if holder is None:
        return NEW_INSTANCE
    if holder == member_id:
        return MEMBER
    member = group.members[holder]
    return SUCCESSOR if member.epoch == LEFT_STATIC or member.is_classic else RIVAL


def ADMIT(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Add the member, unless the group is at its maximum size."""
    size = turn.state.config.group_consumer_max_size
    # A member may come back however full the group is: its place is counted already.
    if len(group.members) >= size and beat.wire.member_id not in group.members:
        return errors.group_is_full("consumer", size)
    known = group.members.get(beat.wire.member_id)
    before = known or ConsumerMember(beat.wire.member_id)
    return _answer(turn, beat, Change(group, before, updated(before, beat), known is None, beat.owned))


def RETURN(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Answer a join of an existing member (lost answer, restart): it owns nothing, keeps its epoch, gets everything."""
    before = group.members[beat.wire.member_id]
    # It left for a while and returns under its id: epoch 0, so that the answer carries everything it owns.
    if before.epoch == LEFT_STATIC:
        before = replace(before, epoch=0)
    return _answer(turn, beat, Change(group, before, updated(before, beat), False, beat.owned))


def TAKE_OVER(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Let a static member return under another id and take over the assignment kept for it."""
    assert beat.wire.instance_id is not None
    old = group.members[group.static[beat.wire.instance_id]]
    # The successor inherits assignment and target; a member that spoke the classic protocol keeps its epoch, for
    # nothing of it has changed.
    before = replace(old, member_id=beat.wire.member_id, epoch=old.epoch if old.is_classic else 0)
    change = Change(group, before, updated(before, beat), True, beat.owned, replaces=old)
    return _answer(turn, beat, change)


def BEAT(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Accept a heartbeat in the member's epoch, or in the previous one if the answer was evidently lost."""
    before, owned, epoch = group.members[beat.wire.member_id], beat.owned, beat.wire.member_epoch
    if epoch != before.epoch:
        # A retry in the previous epoch is safe if the member owns nothing beyond its assignment: it never acted on
        # the lost answer, and partitions it had to give up are not among those it reports.
        lost_answer = (
            epoch == before.previous_epoch
            and epoch < before.epoch
            and owned is not None
            and all(partition in before.assigned for partition in owned)
        )
        if not lost_answer:
            return errors.fenced_epoch("consumer", before, epoch)
    return _answer(turn, beat, Change(group, before, updated(before, beat), False, owned))


def REMOVE(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Remove the member."""
    leaving.fence(turn, group, [group.members[beat.wire.member_id]], What.LEFT)
    return _gone(turn, beat)


def SET_ASIDE(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Keep the static member's place and partitions until its session ends."""
    leaving.set_aside(turn, group, group.members[beat.wire.member_id])
    return _gone(turn, beat)


def UNKNOWN(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Answer UNKNOWN_MEMBER_ID."""
    if beat.wire.instance_id is not None:
        return errors.unknown_instance(beat.wire.instance_id)
    return errors.unknown_member(group.group_id, beat.wire.member_id)


def IN_USE(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Answer UNRELEASED_INSTANCE_ID: the previous process is still active."""
    return errors.instance_in_use(group, beat.wire.member_id, beat.wire.instance_id or "")


def FENCED(turn: Turn, beat: Beat, group: ConsumerGroup) -> Refused | None:
    """Answer FENCED_INSTANCE_ID: another process has the instance id now."""
    return errors.fenced_instance(group, beat.wire.member_id, beat.wire.instance_id or "")


MemberAction = Callable[[Turn, Beat, ConsumerGroup], Refused | None]
# fmt: off
MEMBERS: dict[Who, tuple[MemberAction, ...]] = {
    #              JOIN       GO_ON    LEAVE    REST
    STRANGER:     (ADMIT,     UNKNOWN, UNKNOWN, UNKNOWN),
    MEMBER:       (RETURN,    BEAT,    REMOVE,  SET_ASIDE),
    NEW_INSTANCE: (ADMIT,     UNKNOWN, UNKNOWN, UNKNOWN),
    SUCCESSOR:    (TAKE_OVER, FENCED,  FENCED,  FENCED),
    RIVAL:        (IN_USE,    FENCED,  FENCED,  FENCED),
}
# fmt: on


def updated(member: ConsumerMember, beat: Beat) -> ConsumerMember:
    """Return the member updated by the request (null fields change nothing); it now speaks the new protocol."""
    wire = beat.wire
    names, regex, timeout_ms = wire.subscribed_topic_names, wire.subscribed_topic_regex, wire.rebalance_timeout_ms
    return replace(
        member,
        instance_id=wire.instance_id if wire.instance_id is not None else member.instance_id,
        rack_id=wire.rack_id if wire.rack_id is not None else member.rack_id,
        client_id=beat.request.client_id,
        client_host=beat.request.client_host,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        regex=member.regex if regex is None else regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms < 0 else timeout_ms,
        server_assignor=wire.server_assignor if wire.server_assignor is not None else member.server_assignor,
        classic=None,
    )


def _answer(turn: Turn, beat: Beat, change: Change) -> Refused | None:
    group_id = change.group.group_id
    member = apply(turn, change, beat.request.may_see)
    if isinstance(member, Refused):
        return member
    answer = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=timers.heartbeat_interval_ms(turn, group_id),
    )
    if beat.is_full or member.assigned.keys() != change.before.assigned.keys():
        topics = [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_topic(member.assigned).items()
        ]
        answer.assignment = ConsumerGroupHeartbeatAssignment(topic_partitions=topics)
    turn.out.answer(beat.token, answer)
    return None


def _gone(turn: Turn, beat: Beat) -> Refused | None:
    wire = beat.wire
    answer = ConsumerGroupHeartbeatResponse(member_id=wire.member_id, member_epoch=wire.member_epoch)
    turn.out.answer(beat.token, answer)
    return None
