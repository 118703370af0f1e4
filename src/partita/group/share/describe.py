"""ShareGroupDescribe: the state of a share group as clients see it. Read only. (Kafka: shareGroupDescribe)"""

from __future__ import annotations

from partita.assignors.simple import SimpleAssignor
from partita.group.contract import GroupRequest, Token
from partita.group.records.consumer_group import by_topic
from partita.group.records.share_group import ShareGroup, ShareMember
from partita.group.requests import DescribeShareGroup, FindSharedTopics, SharedTopicsFound
from partita.group.share.heartbeat import absent
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_group_describe import (
    DescribedShareAssignment,
    DescribedShareGroup,
    DescribedShareGroupMember,
    DescribedShareTopicPartitions,
)


def describe_share_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Describe the group; one that is absent or of another type is an error."""
    ask = request.message
    assert isinstance(ask, DescribeShareGroup)
    group = turn.state.share_group(ask.group_id)
    if not ask.group_id:
        answer = DescribedShareGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
    elif group is not None:
        answer = _described(turn, group)
    else:
        refused = absent(turn, ask.group_id)
        answer = DescribedShareGroup(group_id=ask.group_id, error_code=refused.error, error_message=refused.text)
    turn.out.answer(token, answer)


def find_shared_topics(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer with the partitions that have state."""
    ask = request.message
    assert isinstance(ask, FindSharedTopics)
    group = turn.state.share_group(ask.group_id)
    topics = {} if group is None else group.topics.initialized
    found = {topic_id: topic.partitions for topic_id, topic in topics.items()}
    turn.out.answer(token, SharedTopicsFound(found))


def _described(turn: Turn, group: ShareGroup) -> DescribedShareGroup:
    return DescribedShareGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SimpleAssignor.name,
        members=[_member(turn, member) for member in group.members.values()],
    )


def _member(turn: Turn, member: ShareMember) -> DescribedShareGroupMember:
    name_of = turn.state.topics.name_of
    return DescribedShareGroupMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=DescribedShareAssignment(
            topic_partitions=[
                DescribedShareTopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
                for topic_id, numbers in by_topic(member.assigned).items()
                if (name := name_of(topic_id)) is not None
            ]
        ),
    )
