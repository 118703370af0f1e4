"""Is the caller who it says it is? One answer for sync, heartbeat, commit and transactional commit."""

from __future__ import annotations

from partita.group.model import Group
from partita.protocol.error_codes import ErrorCode

UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, NONE = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.NONE,
)


def unknown_identity(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    """NONE, or why not: the instance id is unknown, it is another's, the member id is unknown; in this order."""
    if instance_id is not None:
        holder = group.static.get(instance_id)
        if holder is None:
            return UNKNOWN_MEMBER_ID
        if holder != member_id:
            return FENCED_INSTANCE_ID
    return NONE if member_id in group.members else UNKNOWN_MEMBER_ID
