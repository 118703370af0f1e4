"""Why a member rejoins, as far as its request tells: its topics, its protocols, the reason it gives (KIP-800).

Only names: what a rejoin leads to is decided in `partita.group.classic.join`.
"""

from __future__ import annotations

from partita.group.notes import (
    ENFORCED,
    LEADER_REJOINED,
    MEMBER_REJOINED,
    PARTITIONS_CHANGED,
    PARTITIONS_GIVEN_UP,
    PROTOCOLS_CHANGED,
    SUBSCRIPTION_CHANGED,
    Cause,
)
from partita.group.state.model import Group, Member, Protocols

_REASONS = (
    ("cached metadata has changed", PARTITIONS_CHANGED),
    ("rebalance enforced", ENFORCED),
    ("need to revoke partitions", PARTITIONS_GIVEN_UP),
)
"""How the reasons begin that Java's consumer and ours give."""


def rejoin_cause(group: Group, member: Member, protocols: Protocols, reason: str) -> Cause:
    """The cause, with the reason as its detail. Asked before the member is updated."""
    return member.cause(_what(group, member, protocols, reason), reason)


def _what(group: Group, member: Member, protocols: Protocols, reason: str) -> str:
    if not member.was_loaded and [name for name, _ in protocols] != [name for name, _ in member.protocols]:
        return PROTOCOLS_CHANGED
    before = dict(member.protocols)
    if any(name in before and group.topics_differ(before[name], metadata) for name, metadata in protocols):
        return SUBSCRIPTION_CHANGED
    for beginning, what in _REASONS:
        if reason.startswith(beginning):
            return what
    return LEADER_REJOINED if group.leader_id == member.member_id else MEMBER_REJOINED
