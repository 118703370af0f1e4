"""The answer each API has when the whole request failed with one code.

Mirrors `getErrorResponse` of Kafka's request classes: the code goes to the top where the version has a place for it,
otherwise onto every group, topic or partition asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from partita.protocol.api_table import APIS
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Structure

Built: TypeAlias = Any
"""A Message of a module that is imported when the first error is built."""

MESSAGE_CHARACTERS_MAX = 1000
_TOP_LEVEL = frozenset({12, 13, 14, 16, 17, 18, 25, 26, 36, 46, 47, 55, 60, 66, 68, 74})
"""APIs whose response starts with one error code and may be empty below it, in all versions we serve."""


def error_answer(api_key: int, version: int, request: Any, code: int) -> Message | None:
    """The response to `request` that says `code`; None where no answer is due (Produce with acks=0)."""
    api = APIS[api_key]
    if api_key in _TOP_LEVEL:
        return api.response(error_code=code)  # type: ignore[call-arg]  # a Message of one code
    messages = import_module(api.request.__module__)
    answer: Message | None = _BUILDERS[api_key](messages, version, request, code)
    return answer


def shortened(message: Structure) -> bool:
    """Cut every error message that is too long for an answer, as one that repeats a long name; say whether any was."""
    was_cut = False
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, list):
            for element in value:
                was_cut = (isinstance(element, Structure) and shortened(element)) or was_cut
        elif name.endswith("error_message") and isinstance(value, str) and len(value) > MESSAGE_CHARACTERS_MAX:
            setattr(message, name, f"{value[:MESSAGE_CHARACTERS_MAX]}...")
            was_cut = True
    return was_cut


def _produce(m: Any, version: int, request: Any, code: int) -> Built | None:
    if request.acks == 0:
        return None
    return m.ProduceResponse(
        responses=[
            m.TopicProduceResponse(
                topic_id=topic.topic_id,
                name=topic.name,
                partition_responses=[
                    m.PartitionProduceResponse(index=p.index, error_code=code, base_offset=-1)
                    for p in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _fetch(m: Any, version: int, request: Any, code: int) -> Built:
    if version >= 7:
        return m.FetchResponse(error_code=code, session_id=request.session_id)
    return m.FetchResponse(
        responses=[
            m.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    m.PartitionData(partition_index=p.partition, error_code=code, high_watermark=-1, records=b"")
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _list_offsets(m: Any, version: int, request: Any, code: int) -> Built:
    return m.ListOffsetsResponse(
        topics=[
            m.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    m.ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _metadata(m: Any, version: int, request: Any, code: int) -> Built:
    return m.MetadataResponse(
        error_code=code,
        topics=[
            m.MetadataResponseTopic(error_code=code, name=t.name or ("" if version < 12 else None), topic_id=t.topic_id)
            for t in request.topics or ()
        ],
    )


def _offset_commit(m: Any, version: int, request: Any, code: int) -> Built:
    return m.OffsetCommitResponse(
        topics=[
            m.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    m.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_fetch(m: Any, version: int, request: Any, code: int) -> Built:
    if version >= 8:
        return m.OffsetFetchResponse(
            groups=[m.OffsetFetchResponseGroup(group_id=g.group_id, error_code=code) for g in request.groups]
        )
    if version >= 2:
        return m.OffsetFetchResponse(error_code=code)
    return m.OffsetFetchResponse(
        topics=[
            m.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    m.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _find_coordinator(m: Any, version: int, request: Any, code: int) -> Built:
    if version < 4:
        return m.FindCoordinatorResponse(error_code=code, error_message="", node_id=-1, port=-1)
    return m.FindCoordinatorResponse(
        coordinators=[
            m.Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message="")
            for key in request.coordinator_keys
        ]
    )


def _join_group(m: Any, version: int, request: Any, code: int) -> Built:
    return m.JoinGroupResponse(error_code=code, member_id="", protocol_name="" if version < 7 else None)


def _describe_groups(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeGroupsResponse(
        groups=[m.DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )


def _consumer_group_describe(m: Any, version: int, request: Any, code: int) -> Built:
    groups = [m.DescribedConsumerGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
    return m.ConsumerGroupDescribeResponse(groups=groups)


def _create_topics(m: Any, version: int, request: Any, code: int) -> Built:
    return m.CreateTopicsResponse(
        topics=[m.CreatableTopicResult(name=t.name, error_code=code, error_message=None) for t in request.topics]
    )


def _delete_topics(m: Any, version: int, request: Any, code: int) -> Built:
    by_state = version >= 6
    asked = [(t.name, t.topic_id) for t in request.topics if by_state]
    asked = asked or [(name, bytes(16)) for name in request.topic_names if not by_state]
    return m.DeleteTopicsResponse(
        responses=[m.DeletableTopicResult(name=name, topic_id=id_, error_code=code) for name, id_ in asked]
    )


def _delete_records(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DeleteRecordsResponse(
        topics=[
            m.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    m.DeleteRecordsPartitionResult(partition_index=p.partition_index, low_watermark=-1, error_code=code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_for_leader_epoch(m: Any, version: int, request: Any, code: int) -> Built:
    return m.OffsetForLeaderEpochResponse(
        topics=[
            m.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[m.EpochEndOffset(partition=p.partition, error_code=code) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _txn_offset_commit(m: Any, version: int, request: Any, code: int) -> Built:
    return m.TxnOffsetCommitResponse(
        topics=[
            m.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    m.TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _write_txn_markers(m: Any, version: int, request: Any, code: int) -> Built:
    return m.WriteTxnMarkersResponse(
        markers=[
            m.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    m.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            m.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _add_partitions_to_txn(m: Any, version: int, request: Any, code: int) -> Built:
    if version >= 4:
        return m.AddPartitionsToTxnResponse(error_code=code)
    return m.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            m.V3AndBelowTopicResult(
                name=topic.name,
                results_by_partition=[
                    m.V3AndBelowPartitionResult(partition_index=index, partition_error_code=code)
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )


def _alter_replica_log_dirs(m: Any, version: int, request: Any, code: int) -> Built:
    return m.AlterReplicaLogDirsResponse(
        results=[
            m.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    m.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _describe_producers(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeProducersResponse(
        topics=[
            m.DescribeProducersTopicResult(
                name=topic.name,
                partitions=[
                    m.DescribeProducersPartitionResult(
                        partition_index=index, error_code=code, error_message=_text(code)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe_transactions(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeTransactionsResponse(
        transaction_states=[
            m.DescribedTransaction(transactional_id=transactional_id, error_code=code)
            for transactional_id in request.transactional_ids
        ]
    )


def _describe_configs(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeConfigsResponse(
        results=[
            m.DescribeConfigsResult(
                resource_type=r.resource_type, resource_name=r.resource_name, error_code=code, error_message=None
            )
            for r in request.resources
        ]
    )


def _describe_log_dirs(m: Any, version: int, request: Any, code: int) -> Built:
    """Before version 3 there is no place for the code: a refusal looks like a broker without folders, as in Kafka."""
    return m.DescribeLogDirsResponse(error_code=code)


def _init_producer_id(m: Any, version: int, request: Any, code: int) -> Built:
    return m.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def _create_partitions(m: Any, version: int, request: Any, code: int) -> Built:
    return m.CreatePartitionsResponse(
        results=[m.CreatePartitionsTopicResult(name=t.name, error_code=code) for t in request.topics]
    )


def _delete_groups(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DeleteGroupsResponse(
        results=[m.DeletableGroupResult(group_id=g, error_code=code) for g in dict.fromkeys(request.groups_names)]
    )


def _alter_configs(m: Any, version: int, request: Any, code: int) -> Built:
    return m.AlterConfigsResponse(responses=_altered(m, request, code))


def _incremental_alter_configs(m: Any, version: int, request: Any, code: int) -> Built:
    return m.IncrementalAlterConfigsResponse(responses=_altered(m, request, code))


def _altered(m: Any, request: Any, code: int) -> list[Any]:
    return [
        m.AlterConfigsResourceResponse(
            resource_type=r.resource_type, resource_name=r.resource_name, error_code=code, error_message=None
        )
        for r in request.resources
    ]


def _elect_leaders(m: Any, version: int, request: Any, code: int) -> Built:
    return m.ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            m.ElectLeadersTopicResult(
                topic=topic.topic,
                partition_result=[
                    m.ElectLeadersPartitionResult(partition_id=index, error_code=code, error_message=None)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _alter_partition_reassignments(m: Any, version: int, request: Any, code: int) -> Built:
    return m.AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=None,
        responses=[
            m.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    m.ReassignablePartitionResponse(
                        partition_index=p.partition_index, error_code=code, error_message=None
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _describe_topic_partitions(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeTopicPartitionsResponse(
        topics=[m.DescribedTopic(name=topic.name, error_code=code) for topic in request.topics]
    )


def _describe_client_quotas(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeClientQuotasResponse(error_code=code, error_message=_text(code), entries=None)


def _alter_client_quotas(m: Any, version: int, request: Any, code: int) -> Built:
    return m.AlterClientQuotasResponse(
        entries=[
            m.AlteredEntryData(error_code=code, error_message=_text(code), entity=entry.entity)
            for entry in request.entries
        ]
    )


def _text(code: int) -> str:
    """Kafka's text for a refusal, else what the code means."""
    kind, found, _ = ErrorCode(code).name.partition("_AUTHORIZATION_FAILED")
    return f"{kind.capitalize()} authorization failed." if found else ErrorCode(code).meaning


def _describe_acls(m: Any, version: int, request: Any, code: int) -> Built:
    return m.DescribeAclsResponse(error_code=code, error_message=_text(code))


def _create_acls(m: Any, version: int, request: Any, code: int) -> Built:
    message = _text(code)
    return m.CreateAclsResponse(
        results=[m.AclCreationResult(error_code=code, error_message=message) for _ in request.creations]
    )


def _delete_acls(m: Any, version: int, request: Any, code: int) -> Built:
    message = _text(code)
    return m.DeleteAclsResponse(
        filter_results=[m.DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters]
    )


def _describe_user_scram_credentials(m: Any, version: int, request: Any, code: int) -> Built:
    each = m.DescribeUserScramCredentialsResult(user="", error_code=code, error_message=None)
    return m.DescribeUserScramCredentialsResponse(
        error_code=code, error_message=None, results=[each for _ in request.users or ()]
    )


def _alter_user_scram_credentials(m: Any, version: int, request: Any, code: int) -> Built:
    users = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    results = [m.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=None) for user in users]
    return m.AlterUserScramCredentialsResponse(results=results)


_BUILDERS: dict[int, Callable[[Any, int, Any, int], Message | None]] = {
    0: _produce,
    1: _fetch,
    2: _list_offsets,
    3: _metadata,
    8: _offset_commit,
    9: _offset_fetch,
    10: _find_coordinator,
    11: _join_group,
    15: _describe_groups,
    19: _create_topics,
    20: _delete_topics,
    21: _delete_records,
    22: _init_producer_id,
    23: _offset_for_leader_epoch,
    24: _add_partitions_to_txn,
    27: _write_txn_markers,
    28: _txn_offset_commit,
    29: _describe_acls,
    30: _create_acls,
    31: _delete_acls,
    32: _describe_configs,
    33: _alter_configs,
    34: _alter_replica_log_dirs,
    35: _describe_log_dirs,
    37: _create_partitions,
    42: _delete_groups,
    43: _elect_leaders,
    44: _incremental_alter_configs,
    45: _alter_partition_reassignments,
    48: _describe_client_quotas,
    49: _alter_client_quotas,
    50: _describe_user_scram_credentials,
    51: _alter_user_scram_credentials,
    61: _describe_producers,
    65: _describe_transactions,
    69: _consumer_group_describe,
    75: _describe_topic_partitions,
}
