"""Events that no rebalance shows: members refused, offsets set while a group was empty, records lost unread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from partita.explain.facts import Assigned, BeginSeen, Committed, Fact, Partition, Refused
from partita.explain.story import clock
from partita.explain.wording import listed, partition_name, shortened
from partita.wording import count

CURES = {
    "INCONSISTENT_GROUP_PROTOCOL": "Give all members an assignor in common; to change it, list both for a while.",
    "GROUP_MAX_SIZE_REACHED": "Raise group.max.size on the broker, or run fewer members.",
}
TOGETHER_MS = 10_000
"""Offsets that were set within this time were set by one command."""


def asides_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    """One sentence, and the cure if there is one, about each such event in the facts of one group."""
    ordered = sorted(facts, key=lambda fact: fact.at_ms)
    return (*_refusals(ordered), *_offsets_set(ordered), *_lost(ordered))


# -- offsets -----------------------------------------------------------------------------------------------------------


def _offsets_set(facts: Sequence[Fact]) -> Iterator[str]:
    """Commits while the group had no members; of several times, the last one."""
    committed: dict[Partition, int] = {}
    is_empty, found, sets = False, dict[Partition, tuple[int, int]](), 0
    for fact in facts:
        if isinstance(fact, Assigned):
            is_empty = not fact.members
        elif isinstance(fact, Committed):
            before = committed.get(fact.partition, fact.offset)
            if is_empty and before != fact.offset:
                found = {} if fact.at_ms - sets > TOGETHER_MS else found
                found[fact.partition], sets = (before, fact.offset), fact.at_ms
            committed[fact.partition] = fact.offset
    if found:
        changes = [f"{partition_name(part)} from {old:,} to {new:,}" for part, (old, new) in sorted(found.items())]
        yield (
            f"While the group had no members, its committed offsets were set at {clock(sets)} ({listed(changes)}),"
            " by an administrator or by a client that is no member: members go on from there."
        )


def _lost(facts: Sequence[Fact]) -> Iterator[str]:
    """Records that were deleted before the group had read them."""
    committed = {fact.partition: fact.offset for fact in facts if isinstance(fact, Committed)}
    begins = {fact.partition: fact.offset for fact in facts if isinstance(fact, BeginSeen)}
    for partition, offset in sorted(committed.items()):
        begin = begins.get(partition, 0)
        if begin > offset >= 0:
            yield (
                f"{count(begin - offset, 'record')} of {partition_name(partition)} that the group had not read are"
                f" gone: it committed {offset:,}, and the log begins at {begin:,}. Its lag still counts them, and"
                " auto.offset.reset says where it goes on. Keep records for longer than a group may be away."
            )


# -- members -----------------------------------------------------------------------------------------------------------


def _refusals(facts: Sequence[Fact]) -> tuple[str, ...]:
    """About each member that is refused still, the last refused first; one in a later generation is left out."""
    last: dict[tuple[str, str], Refused] = {}
    seen_ms: dict[str, int] = {}
    for fact in facts:
        match fact:
            case Refused():
                last.pop((_name(fact), fact.error), None)
                last[_name(fact), fact.error] = fact
            case Assigned():
                seen_ms.update((member.client_id, fact.at_ms) for member in fact.members)
    found = [one for one in reversed(last.values()) if _is_twin(one) or seen_ms.get(one.client_id, 0) < one.at_ms]
    return tuple(_sentence(one) for one in found)


def _is_twin(one: Refused) -> bool:
    return one.error == "FENCED_INSTANCE_ID"


def _name(one: Refused) -> str:
    return one.instance_id or one.client_id or one.member_id


def _sentence(one: Refused) -> str:
    name, when = shortened(_name(one)), clock(one.at_ms)
    if _is_twin(one):
        return (
            f"Two processes use the instance id {name}: the older one was alive and was fenced at {when}."
            " Give every process its own group.instance.id."
        )
    detail = f": {one.detail}" if one.detail else ""
    return f"{name} cannot join ({one.error}, at {when}){detail}. {CURES.get(one.error, '')}".rstrip()
