"""Members that a coordinator refused, which no rebalance shows: they cannot join, or two share an instance id."""

from __future__ import annotations

from collections.abc import Iterable

from partita.explain.facts import Assigned, Fact, Refused
from partita.explain.story import clock
from partita.explain.wording import shortened

CURES = {
    "INCONSISTENT_GROUP_PROTOCOL": "Give all members an assignor in common; to change it, list both for a while.",
    "GROUP_MAX_SIZE_REACHED": "Raise group.max.size on the broker, or run fewer members.",
}


def refusals_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    """One sentence, and the cure if there is one, about each member that is refused still, the last refused first.

    A member that was refused and is in a later generation is left out.
    """
    last: dict[tuple[str, str], Refused] = {}
    seen_ms: dict[str, int] = {}
    for fact in sorted(facts, key=lambda fact: fact.at_ms):
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
