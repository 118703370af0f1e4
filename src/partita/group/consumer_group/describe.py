"""ConsumerGroupDescribe: the state of a KIP-848 group as clients see it. Read only.

(Kafka: GroupMetadataManager.consumerGroupDescribe, ConsumerGroup.asDescribedGroup; specification section 20.11.)
"""

from __future__ import annotations

from collections.abc import Collection

from partita.group.consumer_group import errors
from partita.group.consumer_group.target import chosen_assignor
from partita.group.contract import GroupRequest, Token
from partita.group.records.consumer_group import NO_PARTITIONS, ConsumerGroup, ConsumerMember, Partition, by_topic
from partita.group.requests import DescribeConsumerGroup
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import (
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
    DescribedTopicPartitions,
)

_CLASSIC, _CONSUMER = 0, 1


def describe_consumer_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Describe the group; one that is absent or classic is an error."""
    ask = request.message
    assert isinstance(ask, DescribeConsumerGroup)
    group = turn.state.consumer_group(ask.group_id)
    if not ask.group_id:
        answer = DescribedConsumerGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
    elif group is not None:
        answer = described(turn, group)
    else:
        is_classic = ask.group_id in turn.state.groups
        refused = errors.wrong_type("consumer", ask.group_id) if is_classic else errors.group_not_found(ask.group_id)
        answer = DescribedConsumerGroup(group_id=ask.group_id, error_code=refused.error, error_message=refused.text)
    turn.out.answer(token, answer)


def described(turn: Turn, group: ConsumerGroup) -> DescribedConsumerGroup:
    """Return the group with each member's current and target assignment. Deleted topics are left out.

    Partitions to be revoked count as assigned until the member confirms that it gave them up.
    """
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=chosen_assignor(group.members.values(), turn.state.assignors),
        members=[_member(turn, group, member) for member in group.members.values()],
    )


def _member(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumerGroupMember:
    return DescribedConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_partitions(turn, {**member.assigned, **member.revoking}),
        target_assignment=_partitions(turn, group.targets.get(member.member_id, NO_PARTITIONS)),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _partitions(turn: Turn, partitions: Collection[Partition]) -> DescribedAssignment:
    name_of = turn.state.topics.name_of
    return DescribedAssignment(
        topic_partitions=[
            DescribedTopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
            for topic_id, numbers in by_topic(partitions).items()
            if (name := name_of(topic_id)) is not None
        ]
    )
