"""DescribeGroups and ListGroups: the state of groups as clients see it.

(Kafka: GroupMetadataManager.describeGroups, listGroups; specification sections 16.1 and 16.2.)
Read only.
"""

from __future__ import annotations

from collections.abc import Iterator

from partita.group.contract import GroupRequest, Token
from partita.group.requests import DescribeGroup, ListShardGroups
from partita.group.state.model import DEAD, STABLE, Group
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from partita.protocol.messages.list_groups import ListedGroup, ListGroupsResponse

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
_TELLS_ABSENT_GROUP = 6


def describe_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Describe the group; an absent one as Dead, with an error in the versions that have it."""
    ask = request.message
    assert isinstance(ask, DescribeGroup)
    group = turn.state.groups.get(ask.group_id)
    if group is None:
        answer = DescribedGroup(group_id=ask.group_id, group_state=DEAD.value)
        if request.version >= _TELLS_ABSENT_GROUP:
            answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            is_other = turn.state.has_other_type(ask.group_id)
            answer.error_message = f"Group {ask.group_id} {'is not a classic group' if is_other else 'not found'}."
    else:
        answer = described(group)
    turn.out.answer(token, answer)


def described(group: Group) -> DescribedGroup:
    """Return the group's description: metadata only while Stable, assignments always."""
    is_stable = group.state is STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def list_groups(turn: Turn, token: Token, request: GroupRequest) -> None:
    """List the groups that match both filters, ignoring case; an empty filter matches everything."""
    ask = request.message
    assert isinstance(ask, ListShardGroups)
    states = {state.strip().lower() for state in ask.states_filter}
    types = {kind.strip().lower() for kind in ask.types_filter}
    listed = [
        entry
        for entry in _entries(turn)
        if (not states or entry.group_state.lower() in states) and (not types or entry.group_type in types)
    ]
    turn.out.answer(token, ListGroupsResponse(groups=listed))


def _entries(turn: Turn) -> Iterator[ListedGroup]:
    """Yield every group of the shard, of all types."""
    for group in turn.state.groups.values():
        yield ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
    for consumers in turn.state.hard.consumer_groups.values():
        yield ListedGroup(
            group_id=consumers.group_id,
            protocol_type=CONSUMER,
            group_state=consumers.state.value,
            group_type=CONSUMER,
        )
    for kind, groups in ((SHARE, turn.state.hard.share_groups), (STREAMS, turn.state.hard.streams_groups)):
        for group_id, other in groups.items():
            yield ListedGroup(group_id=group_id, protocol_type=kind, group_state=other.state, group_type=kind)
