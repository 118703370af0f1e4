"""Derives why a member rejoins from its request: topics, protocols and the reason it gives (KIP-800).

It only names causes; `partita.group.classic.join` decides the result of a rejoin.
"""

from __future__ import annotations

from partita.group.notes import Cause
from partita.group.state.model import Group, Member, Protocols
from partita.wording import What

_REASONS = (
    ("cached metadata has changed", What.PARTITIONS_CHANGED),
    ("rebalance enforced", What.ENFORCED),
    ("need to revoke partitions", What.PARTITIONS_GIVEN_UP),
)
"""Prefixes of the reasons that the Java consumer and ours give."""


def rejoin_cause(group: Group, member: Member, protocols: Protocols, reason: str) -> Cause:
    """Return the cause, with the reason as its detail. Call it before the member is updated."""
    return member.cause(_what(group, member, protocols, reason), reason)


def _what(group: Group, member: Member, protocols: Protocols, reason: str) -> What:
    if protocols != member.protocols:
        if not member.was_loaded and [name for name, _ in protocols] != [name for name, _ in member.protocols]:
            return What.PROTOCOLS_CHANGED
        before = dict(member.protocols)
        if any(name in before and group.topics_differ(before[name], metadata) for name, metadata in protocols):
            return What.SUBSCRIPTION_CHANGED
    for beginning, what in _REASONS:
        if reason.startswith(beginning):
            return what
    return What.LEADER_REJOINED if group.leader_id == member.member_id else What.MEMBER_REJOINED
