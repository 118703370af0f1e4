"""One good request of every API, about topic `secret`, group `hidden` and transactional id `tx`."""

from __future__ import annotations

from collections.abc import Callable

from partita.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from partita.protocol.primitives import Message

TOPIC, GROUP, ID = "secret", "hidden", "tx"


def _metadata(version: int) -> Message:
    topic = metadata.MetadataRequestTopic(name=TOPIC)
    return metadata.MetadataRequest(topics=[topic], allow_auto_topic_creation=True)


def _fetch(version: int) -> Message:
    asked = fetch.FetchPartition(partition_max_bytes=1000)
    return fetch.FetchRequest(max_wait_ms=0, max_bytes=1000, topics=[fetch.FetchTopic(topic=TOPIC, partitions=[asked])])


def _produce(version: int) -> Message:
    data = produce.PartitionProduceData(records=bytes(61))
    return produce.ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[produce.TopicProduceData(name=TOPIC, partition_data=[data])]
    )


def _list_offsets(version: int) -> Message:
    asked = list_offsets.ListOffsetsPartition(timestamp=-1)
    return list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(name=TOPIC, partitions=[asked])])


def _offset_commit(version: int) -> Message:
    topic = offset_commit.OffsetCommitRequestTopic(
        name=TOPIC, partitions=[offset_commit.OffsetCommitRequestPartition(committed_offset=1)]
    )
    return offset_commit.OffsetCommitRequest(group_id=GROUP, topics=[topic])


def _offset_fetch(version: int) -> Message:
    if version < 8:
        one = offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        return offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=[one])
    many = offset_fetch.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    group = offset_fetch.OffsetFetchRequestGroup(group_id=GROUP, topics=[many])
    return offset_fetch.OffsetFetchRequest(groups=[group])


def _find_coordinator(version: int) -> Message:
    if version < 4:
        return find_coordinator.FindCoordinatorRequest(key=GROUP)
    return find_coordinator.FindCoordinatorRequest(coordinator_keys=[GROUP])


def _join_group(version: int) -> Message:
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
    return join_group.JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol]
    )


def _leave_group(version: int) -> Message:
    if version < 3:
        return leave_group.LeaveGroupRequest(group_id=GROUP, member_id="m")
    return leave_group.LeaveGroupRequest(group_id=GROUP, members=[leave_group.MemberIdentity(member_id="m")])


def _sync_group(version: int) -> Message:
    return sync_group.SyncGroupRequest(group_id=GROUP, protocol_type="consumer", protocol_name="range")


def _create_topics(version: int) -> Message:
    topic = create_topics.CreatableTopic(name="bad name", num_partitions=1, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[topic])


def _delete_topics(version: int) -> Message:
    if version < 6:
        return delete_topics.DeleteTopicsRequest(topic_names=[TOPIC])
    return delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name=TOPIC)])


def _delete_records(version: int) -> Message:
    topic = delete_records.DeleteRecordsTopic(name=TOPIC, partitions=[delete_records.DeleteRecordsPartition(offset=0)])
    return delete_records.DeleteRecordsRequest(topics=[topic])


def _offset_for_leader_epoch(version: int) -> Message:
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(
        topic=TOPIC, partitions=[offset_for_leader_epoch.OffsetForLeaderPartition()]
    )
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[topic])


def _add_partitions_to_txn(version: int) -> Message:
    if version < 4:
        old = add_partitions_to_txn.V3AndBelowTopic(name=TOPIC, partitions=[0])
        return add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID, v3_and_below_topics=[old]
        )
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    one = add_partitions_to_txn.AddPartitionsToTxnTransaction(transactional_id=ID, topics=[topic])
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[one])


def _alter_replica_log_dirs(version: int) -> Message:
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    directory = alter_replica_log_dirs.AlterReplicaLogDir(path="/nowhere", topics=[topic])
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory])


def _describe_quorum(version: int) -> Message:
    topic = describe_quorum.DescribeQuorumTopic(
        topic_name="__cluster_metadata", partitions=[describe_quorum.DescribeQuorumPartition()]
    )
    return describe_quorum.DescribeQuorumRequest(topics=[topic])


def _describe_producers(version: int) -> Message:
    topic = describe_producers.DescribeProducersTopic(name=TOPIC, partition_indexes=[0])
    return describe_producers.DescribeProducersRequest(topics=[topic])


def _write_txn_markers(version: int) -> Message:
    topic = write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    return write_txn_markers.WriteTxnMarkersRequest(markers=[write_txn_markers.WritableTxnMarker(topics=[topic])])


def _txn_offset_commit(version: int) -> Message:
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(
        name=TOPIC, partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(committed_offset=1)]
    )
    return txn_offset_commit.TxnOffsetCommitRequest(transactional_id=ID, group_id=GROUP, topics=[topic])


def _create_acls(version: int) -> Message:
    creation = create_acls.AclCreation(
        resource_type=2, resource_name=TOPIC, principal="User:a", host="*", operation=3, permission_type=3
    )
    return create_acls.CreateAclsRequest(creations=[creation])


def _delete_acls(version: int) -> Message:
    wanted = delete_acls.DeleteAclsFilter(resource_type_filter=1, operation=1, permission_type=1)
    return delete_acls.DeleteAclsRequest(filters=[wanted])


def _describe_acls(version: int) -> Message:
    return describe_acls.DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)


def _describe_configs(version: int) -> Message:
    resources = [
        describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, TOPIC), (4, "1"), (32, GROUP))
    ]
    return describe_configs.DescribeConfigsRequest(resources=resources)


def _alter_configs(version: int) -> Message:
    setting = alter_configs.AlterableConfig(name="retention.ms", value="1")
    resource = alter_configs.AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[setting])
    return alter_configs.AlterConfigsRequest(resources=[resource])


def _incremental_alter_configs(version: int) -> Message:
    resources = [
        incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[incremental_alter_configs.AlterableConfig(name=option, value="1")],
        )
        for kind, name, option in ((2, TOPIC, "retention.ms"), (4, "1", "log.retention.ms"))
    ]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)


def _create_partitions(version: int) -> Message:
    topic = create_partitions.CreatePartitionsTopic(name=TOPIC, count=9, assignments=None)
    return create_partitions.CreatePartitionsRequest(topics=[topic])


def _elect_leaders(version: int) -> Message:
    topic = elect_leaders.ElectLeadersTopic(topic=TOPIC, partitions=[0])
    return elect_leaders.ElectLeadersRequest(topic_partitions=[topic])


def _alter_partition_reassignments(version: int) -> Message:
    moved = alter_partition_reassignments.ReassignablePartition(replicas=[1])
    topic = alter_partition_reassignments.ReassignableTopic(name=TOPIC, partitions=[moved])
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[topic])


def _offset_delete(version: int) -> Message:
    topic = offset_delete.OffsetDeleteRequestTopic(
        name=TOPIC, partitions=[offset_delete.OffsetDeleteRequestPartition()]
    )
    return offset_delete.OffsetDeleteRequest(group_id=GROUP, topics=[topic])


def _describe_topic_partitions(version: int) -> Message:
    topic = describe_topic_partitions.DescribeTopicPartitionsTopic(name=TOPIC)
    return describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[topic], response_partition_limit=10)


REQUESTS: dict[int, Callable[[int], Message]] = {
    0: _produce,
    1: _fetch,
    2: _list_offsets,
    3: _metadata,
    8: _offset_commit,
    9: _offset_fetch,
    10: _find_coordinator,
    11: _join_group,
    12: lambda version: heartbeat.HeartbeatRequest(group_id=GROUP, member_id="m"),
    13: _leave_group,
    14: _sync_group,
    68: lambda version: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=[TOPIC], topic_partitions=[]
    ),
    69: lambda version: consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[GROUP]),
    15: lambda version: describe_groups.DescribeGroupsRequest(groups=[GROUP]),
    16: lambda version: list_groups.ListGroupsRequest(),
    18: lambda version: api_versions.ApiVersionsRequest(client_software_name="t", client_software_version="1"),
    19: _create_topics,
    20: _delete_topics,
    21: _delete_records,
    22: lambda version: init_producer_id.InitProducerIdRequest(transactional_id=None),
    23: _offset_for_leader_epoch,
    24: _add_partitions_to_txn,
    25: lambda version: add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id=ID, group_id=GROUP),
    26: lambda version: end_txn.EndTxnRequest(transactional_id=ID),
    27: _write_txn_markers,
    28: _txn_offset_commit,
    29: _describe_acls,
    30: _create_acls,
    31: _delete_acls,
    32: _describe_configs,
    33: _alter_configs,
    34: _alter_replica_log_dirs,
    35: lambda version: describe_log_dirs.DescribeLogDirsRequest(topics=None),
    37: _create_partitions,
    42: lambda version: delete_groups.DeleteGroupsRequest(groups_names=[GROUP]),
    43: _elect_leaders,
    44: _incremental_alter_configs,
    45: _alter_partition_reassignments,
    46: lambda version: list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
    47: _offset_delete,
    48: lambda version: describe_client_quotas.DescribeClientQuotasRequest(components=[]),
    49: lambda version: alter_client_quotas.AlterClientQuotasRequest(
        entries=[
            alter_client_quotas.EntryData(
                entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="a")],
                ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1)],
            )
        ]
    ),
    50: lambda version: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None),
    51: lambda version: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        deletions=[alter_user_scram_credentials.ScramCredentialDeletion(name="a", mechanism=1)]
    ),
    55: _describe_quorum,
    60: lambda version: describe_cluster.DescribeClusterRequest(),
    61: _describe_producers,
    65: lambda version: describe_transactions.DescribeTransactionsRequest(transactional_ids=[ID]),
    66: lambda version: list_transactions.ListTransactionsRequest(),
    74: lambda version: list_config_resources.ListConfigResourcesRequest(),
    75: _describe_topic_partitions,
}
