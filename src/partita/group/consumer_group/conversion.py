"""Converts classic groups to KIP-848 groups and back, empty or with members. Committed offsets always stay.

A group with members is converted only if `group.consumer.migration.policy` allows that direction. (Kafka:
convertToConsumerGroup, convertToClassicGroup, ClassicGroup.fromConsumerGroup; specification section 21.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from partita.assignors.payloads import decode_assignment, decode_subscription, encode_assignment
from partita.group.classic import rebalance, unled
from partita.group.consumer_group import errors, timers
from partita.group.consumer_group.errors import Refused
from partita.group.consumer_group.subscriptions import metadata_hash
from partita.group.contract import Record
from partita.group.notes import Cause, GroupConverted
from partita.group.records import consumer_log
from partita.group.records.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember, MemberState, Partition
from partita.group.state import answers
from partita.group.state.model import STABLE, Group, Member
from partita.group.state.stored import group_record, group_tombstone
from partita.group.state.topics import TopicImage
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import MalformedRequest

CONSUMER = "consumer"
_UPGRADES, _DOWNGRADES = frozenset({"upgrade", "bidirectional"}), frozenset({"downgrade", "bidirectional"})


def policy(turn: Turn) -> str:
    """Return `group.consumer.migration.policy`; an unknown name counts as "disabled"."""
    return turn.state.config.group_consumer_migration_policy.lower()


def end_classic(turn: Turn, group_id: str) -> None:
    """Drop the classic group with this id, if there is one; parked requests are answered so that members rejoin."""
    group = turn.state.groups.get(group_id)
    if group is None:
        return
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in list(group.members.values()):
        if member.join is not None:
            answer = answers.join_error(error, member.member_id, version=member.join.version)
            turn.answer_join(group, member, answer)
        turn.answer_sync(member, answers.sync_error(error))
    for member_id in list(group.pending):
        turn.drop_pending(group, member_id, "refused")
    group.members.clear()
    turn.state.forget(group)


def classic_tombstone(turn: Turn, group_id: str) -> tuple[Record, ...]:
    """Return the tombstone of the classic group, if it exists."""
    return (group_tombstone(group_id),) if group_id in turn.state.hard.groups else ()


def upgrade(turn: Turn, group_id: str) -> Refused | None:
    """Convert a classic group with members to a KIP-848 group; members keep their assignments and protocol.

    Deviation: Partita writes the hash of no topics for an upgraded group that was rebalancing or has partitions without
    an owner, so that the next request begins an epoch, where Kafka leaves them so if a static member with the same
    topics triggers the upgrade.

    Deviation: Partita has a cooperative member revoke owned partitions that it was not assigned before another member
    gets them, where Kafka assigns them at once.
    """
    classic = turn.state.groups[group_id]
    members = _upgraded_members(turn, classic)
    if members is None:
        return errors.wrong_type("consumer", group_id)
    epoch = classic.generation
    records = [*classic_tombstone(turn, group_id)]
    records += [consumer_log.member_record(group_id, member) for member in members]
    records.append(consumer_log.epoch_record(group_id, epoch, _upgraded_hash(turn, classic, members)))
    records += [consumer_log.target_record(group_id, member.member_id, member.assigned) for member in members]
    records.append(consumer_log.target_epoch_record(group_id, epoch, 0))
    records += [consumer_log.assignment_record(group_id, member) for member in members]
    if not turn.state.fits(records):
        return errors.wrong_type("consumer", group_id)
    end_classic(turn, group_id)
    turn.write(records)
    for member in members:
        timers.start_session(turn, group_id, member)
        timers.follow_state(turn, group_id, member)
    turn.out.note(GroupConverted(group_id, CONSUMER, len(members), turn.now.wall_ms))
    return None


def _upgraded_hash(turn: Turn, classic: Group, members: Collection[ConsumerMember]) -> int:
    image = turn.state.topics
    # 0 is the hash of no topics: the next request finds another one and bumps the epoch.
    if classic.state is not STABLE or not unled.assigns_all(image, classic):
        return 0
    return metadata_hash(image, sorted({name for member in members for name in member.topics}))


def _upgraded_members(turn: Turn, classic: Group) -> list[ConsumerMember] | None:
    """Return the members as KIP-848 members; None if the conversion is impossible or not allowed."""
    fits_in = len(classic.members) <= turn.state.config.group_consumer_max_size
    if policy(turn) not in _UPGRADES or classic.protocol_type != CONSUMER or not fits_in:
        return None
    try:
        members = [_upgraded(turn.state.topics, classic, member) for member in classic.members.values()]
        claims = [_claimed(turn.state.topics, member) for member in classic.members.values()]
    except MalformedRequest:
        return None
    taken = {partition for member in members for partition in member.assigned}
    return [_with_claims(member, claim, taken) for member, claim in zip(members, claims, strict=True)]


def _claimed(image: TopicImage, member: Member) -> list[Partition]:
    """Return the partitions the member reported to own when it joined; none for an eager member."""
    owned = decode_subscription(member.protocols[0][1]).owned_partitions
    return [(topic.topic_id, number) for name, number in owned if (topic := image.get(name)) is not None]


def _with_claims(member: ConsumerMember, claims: Collection[Partition], taken: set[Partition]) -> ConsumerMember:
    """Return the member with its claimed but unassigned partitions to revoke, which are added to `taken`."""
    gone = {partition: member.epoch for partition in claims if partition not in taken}
    taken.update(gone)
    return replace(member, state=MemberState.UNREVOKED_PARTITIONS, revoking=gone) if gone else member


def _upgraded(image: TopicImage, classic: Group, member: Member) -> ConsumerMember:
    subscription = decode_subscription(member.protocols[0][1])
    partitions, _ = decode_assignment(member.assignment)
    assigned = {
        (topic.topic_id, number): classic.generation
        for name, number in partitions
        if (topic := image.get(name)) is not None
    }
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicPart(member.session_timeout_ms, member.protocols),
        epoch=classic.generation,
        previous_epoch=classic.generation,
        assigned=assigned,
    )


def can_downgrade(
    turn: Turn, group: ConsumerGroup, leaving: Sequence[ConsumerMember], comes: ConsumerMember | None = None
) -> bool:
    """Whether only classic members remain once these are gone, and the policy allows a downgrade.

    `comes` replaces one of them.
    """
    if policy(turn) not in _DOWNGRADES or (not group.classic_members and comes is None):
        return False
    gone = {member.member_id for member in leaving}
    staying = [member for member in group.members.values() if member.member_id not in gone]
    staying += [] if comes is None else [comes]
    only_classic = bool(staying) and all(member.is_classic for member in staying)
    had_others = any(not member.is_classic for member in leaving)
    fits_in = len(staying) <= turn.state.config.group_max_size
    return only_classic and had_others and fits_in


def downgrade(
    turn: Turn,
    group: ConsumerGroup,
    leaving: Sequence[ConsumerMember],
    cause: Cause,
    *,
    comes: ConsumerMember | None = None,
    rebalances: bool = True,
) -> Group:
    """Convert the group to a stable classic one, with the partitions members may own now; then let them rejoin.

    `comes` replaces one that leaves; then the group may stay as it is, while the coordinator watches its topics
    (`partita.group.classic.unled`). The record always says so; a coordinator that loads it thus begins the rebalance
    that this one could not end.

    Deviation: Partita gives each member of a group that becomes classic what it may own as its assignment, where Kafka
    gives it the target, so that a partition can get a second owner when a client joins by the new protocol before the
    member has rejoined.
    """
    gone = {member.member_id for member in leaving}
    staying = [member for member in group.members.values() if member.member_id not in gone]
    staying += [] if comes is None else [comes]
    records = consumer_log.group_tombstones(group)
    turn.state.consumers.forget(group.group_id)
    turn.write(records)
    classic = Group(group.group_id, turn.now.wall_ms)
    turn.state.add(classic)
    classic.protocol_type = CONSUMER
    classic.generation = classic.generation_told = group.epoch
    for member in staying:
        _enter(turn, classic, member)
    classic.protocol_name = classic.vote()
    classic.subscriptions = tuple(m.metadata(classic.protocol_name) for m in classic.members.values())
    classic.state = STABLE
    unled.watch(turn, classic)
    turn.write([group_record(classic)])
    turn.out.note(GroupConverted(group.group_id, "classic", len(staying), turn.now.wall_ms))
    if rebalances:
        rebalance.note_cause(classic, cause)
        rebalance.prepare(turn, classic, cause)
    return classic


def _enter(turn: Turn, classic: Group, member: ConsumerMember) -> None:
    assert member.classic is not None, f"{member.member_id} does not speak the classic protocol"
    session_ms, protocols = member.classic
    entered = Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=session_ms,
        protocols=protocols,
    )
    entered.assignment = assignment_bytes(turn.state.topics, member, member.assigned)
    rebalance.enter_member(turn, classic, entered, deadline_ms=turn.now.mono_ms + session_ms)


def assignment_bytes(image: TopicImage, member: ConsumerMember, partitions: Collection[Partition]) -> bytes:
    """Return partitions encoded for the classic consumer protocol, in the version the member itself used."""
    assert member.classic is not None, f"{member.member_id} does not speak the classic protocol"
    named = [(name, number) for topic, number in sorted(partitions) if (name := image.name_of(topic)) is not None]
    # Metadata of the consumer protocol starts with its version (int16).
    version = int.from_bytes(member.classic.protocols[0][1][:2], "big")
    return encode_assignment(named, version=min(version, 3))


def supported_protocols(group: ConsumerGroup, except_id: str = "") -> Mapping[str, int]:
    """Count the classic members that list each protocol, leaving out `except_id`."""
    counts: dict[str, int] = {}
    for member in group.members.values():
        if member.classic is not None and member.member_id != except_id:
            for name in dict(member.classic.protocols):
                counts[name] = counts.get(name, 0) + 1
    return counts
