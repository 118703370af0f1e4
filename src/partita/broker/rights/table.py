"""THE table of rights: what each API needs, in the order in which Kafka checks it. (security.md 15)

Mirrors KafkaApis and ControllerApis of Apache Kafka 4.3.1. The page docs/rights.md is printed from here by
tools/rights.py. Rights are looked at before coordinators, group ids and existence are, so that a refusal tells nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from partita.broker.rights import special
from partita.broker.rights.checks import Check, InHandler, Needs, NeedsEach, Special
from partita.security.rights.acls import Operation, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
_READ_GROUP = Needs(READ, GROUP, "group_id")
_WRITE_ID = Needs(WRITE, TRANSACTIONAL_ID, "transactional_id")
_GROUP_30, _TOPIC_29, _ALL_29 = (
    "GROUP_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED for it, the others go on",
    "named: TOPIC_AUTHORIZATION_FAILED, whether it exists or not; all: left out",
)
_CONFIG_RESOURCES = "on the TOPIC, the GROUP, or for brokers and loggers on the CLUSTER"
_CONFIG_CODES = "TOPIC_, GROUP_ or CLUSTER_AUTHORIZATION_FAILED for it, the others go on"


class Row(NamedTuple):
    """What one API needs. No checks: nothing, whoever asks."""

    api_key: int
    api: str
    checks: tuple[Check, ...] = ()


TABLE: tuple[Row, ...] = (
    Row(
        0,
        "Produce",
        (
            Special(
                special.transactional_batches,
                "WRITE TRANSACTIONAL_ID, if a batch belongs to a transaction",
                "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition",
            ),
            NeedsEach(WRITE, TOPIC, "topic_data", "responses", "name", ids_from=13),
        ),
    ),
    Row(1, "Fetch", (InHandler("READ on each TOPIC", _TOPIC_29),)),
    Row(2, "ListOffsets", (NeedsEach(DESCRIBE, TOPIC, "topics", "topics", "name"),)),
    Row(
        3,
        "Metadata",
        (
            Special(special.metadata, "DESCRIBE on each TOPIC", f"{_ALL_29}; by id: without the name"),
            InHandler("to create a topic: CREATE CLUSTER, or CREATE TOPIC", "TOPIC_AUTHORIZATION_FAILED"),
        ),
    ),
    Row(8, "OffsetCommit", (_READ_GROUP, NeedsEach(READ, TOPIC, "topics", "topics", "name", ids_from=10))),
    Row(
        9,
        "OffsetFetch",
        (
            Special(special.offset_fetch, "DESCRIBE on each GROUP", _GROUP_30),
            InHandler("DESCRIBE on each TOPIC", _ALL_29),
        ),
    ),
    Row(
        10,
        "FindCoordinator",
        (
            Special(
                special.find_coordinator,
                "DESCRIBE on each GROUP or TRANSACTIONAL_ID",
                "GROUP_ or TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the key",
            ),
        ),
    ),
    Row(11, "JoinGroup", (_READ_GROUP,)),
    Row(12, "Heartbeat", (_READ_GROUP,)),
    Row(13, "LeaveGroup", (_READ_GROUP,)),
    Row(
        14,
        "SyncGroup",
        (
            Special(special.sync_group, "from version 5 on protocol type and name", "INCONSISTENT_GROUP_PROTOCOL"),
            _READ_GROUP,
        ),
    ),
    Row(15, "DescribeGroups", (NeedsEach(DESCRIBE, GROUP, "groups", "groups"),)),
    Row(16, "ListGroups", (Special(special.list_groups, "DESCRIBE CLUSTER, or DESCRIBE on each GROUP", "left out"),)),
    Row(17, "SaslHandshake"),
    Row(18, "ApiVersions"),
    Row(
        19,
        "CreateTopics",
        (
            Special(special.create_topics, "CREATE CLUSTER, or CREATE on each TOPIC", _TOPIC_29),
            InHandler("to see the settings: DESCRIBE_CONFIGS TOPIC", "no settings, the topic is created"),
        ),
    ),
    Row(
        20,
        "DeleteTopics",
        (
            Special(
                special.delete_topics,
                "DESCRIBE and DELETE on each TOPIC",
                "TOPIC_AUTHORIZATION_FAILED, whether it exists or not; by id without DESCRIBE: without the name",
            ),
        ),
    ),
    Row(21, "DeleteRecords", (NeedsEach(DELETE, TOPIC, "topics", "topics", "name"),)),
    Row(
        22,
        "InitProducerId",
        (
            Needs(WRITE, TRANSACTIONAL_ID, "transactional_id", optional=True),
            Special(
                special.init_producer_id,
                "else IDEMPOTENT_WRITE CLUSTER, or WRITE on some TOPIC",
                "CLUSTER_AUTHORIZATION_FAILED",
            ),
        ),
    ),
    Row(
        23,
        "OffsetForLeaderEpoch",
        (NeedsEach(DESCRIBE, TOPIC, "topics", "topics", "topic", unless=CLUSTER_ACTION),),
    ),
    Row(
        24,
        "AddPartitionsToTxn",
        (
            Special(
                special.add_partitions_to_txn,
                "WRITE TRANSACTIONAL_ID; from version 4 on CLUSTER_ACTION CLUSTER",
                "TRANSACTIONAL_ID_AUTHORIZATION_FAILED; CLUSTER_AUTHORIZATION_FAILED",
            ),
            InHandler(
                "up to version 3 WRITE on each TOPIC",
                "TOPIC_AUTHORIZATION_FAILED for it, OPERATION_NOT_ATTEMPTED for the others",
            ),
        ),
    ),
    Row(25, "AddOffsetsToTxn", (_WRITE_ID, _READ_GROUP)),
    Row(26, "EndTxn", (_WRITE_ID,)),
    Row(27, "WriteTxnMarkers", (Needs(CLUSTER_ACTION, CLUSTER, or_else=ALTER),)),
    Row(28, "TxnOffsetCommit", (_WRITE_ID, _READ_GROUP, NeedsEach(READ, TOPIC, "topics", "topics", "name"))),
    Row(29, "DescribeAcls", (Needs(DESCRIBE, CLUSTER),)),
    Row(30, "CreateAcls", (Needs(ALTER, CLUSTER),)),
    Row(31, "DeleteAcls", (Needs(ALTER, CLUSTER),)),
    Row(
        32,
        "DescribeConfigs",
        (
            Special(
                special.configs(DESCRIBE_CONFIGS, "results"), f"DESCRIBE_CONFIGS {_CONFIG_RESOURCES}", _CONFIG_CODES
            ),
        ),
    ),
    Row(
        33,
        "AlterConfigs",
        (Special(special.configs(ALTER_CONFIGS, "responses"), f"ALTER_CONFIGS {_CONFIG_RESOURCES}", _CONFIG_CODES),),
    ),
    Row(34, "AlterReplicaLogDirs", (Needs(ALTER, CLUSTER),)),
    Row(35, "DescribeLogDirs", (Needs(DESCRIBE, CLUSTER),)),
    Row(36, "SaslAuthenticate"),
    Row(37, "CreatePartitions", (NeedsEach(ALTER, TOPIC, "topics", "results", "name"),)),
    Row(42, "DeleteGroups", (NeedsEach(DELETE, GROUP, "groups_names", "results"),)),
    Row(43, "ElectLeaders", (Needs(ALTER, CLUSTER),)),
    Row(
        44,
        "IncrementalAlterConfigs",
        (Special(special.configs(ALTER_CONFIGS, "responses"), f"ALTER_CONFIGS {_CONFIG_RESOURCES}", _CONFIG_CODES),),
    ),
    Row(45, "AlterPartitionReassignments", (Needs(ALTER, CLUSTER),)),
    Row(46, "ListPartitionReassignments", (Needs(DESCRIBE, CLUSTER),)),
    Row(
        47,
        "OffsetDelete",
        (
            Needs(DELETE, GROUP, "group_id"),
            Special(special.offset_delete, "READ on each TOPIC", _TOPIC_29),
        ),
    ),
    Row(48, "DescribeClientQuotas", (Needs(DESCRIBE_CONFIGS, CLUSTER),)),
    Row(49, "AlterClientQuotas", (Needs(ALTER_CONFIGS, CLUSTER),)),
    Row(50, "DescribeUserScramCredentials", (Needs(DESCRIBE, CLUSTER),)),
    Row(51, "AlterUserScramCredentials", (Needs(ALTER, CLUSTER),)),
    Row(55, "DescribeQuorum", (Needs(DESCRIBE, CLUSTER),)),
    Row(60, "DescribeCluster"),
    Row(61, "DescribeProducers", (NeedsEach(READ, TOPIC, "topics", "topics", "name"),)),
    Row(
        65,
        "DescribeTransactions",
        (
            NeedsEach(DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", "transaction_states"),
            InHandler("to see its partitions: DESCRIBE on each TOPIC", "left out"),
        ),
    ),
    Row(66, "ListTransactions", (InHandler("DESCRIBE on each TRANSACTIONAL_ID", "left out"),)),
    Row(
        68,
        "ConsumerGroupHeartbeat",
        (
            _READ_GROUP,
            Special(
                special.consumer_group_heartbeat,
                "DESCRIBE on each TOPIC named",
                "TOPIC_AUTHORIZATION_FAILED; a regular expression does not match it",
            ),
        ),
    ),
    Row(
        69,
        "ConsumerGroupDescribe",
        (
            NeedsEach(DESCRIBE, GROUP, "group_ids", "groups"),
            Special(
                special.consumer_group_describe,
                "DESCRIBE on each TOPIC of its members",
                "TOPIC_AUTHORIZATION_FAILED for the group, without members",
            ),
        ),
    ),
    Row(74, "ListConfigResources", (Needs(DESCRIBE_CONFIGS, CLUSTER),)),
    Row(
        75,
        "DescribeTopicPartitions",
        (Special(special.describe_topic_partitions, "DESCRIBE on each TOPIC", _ALL_29),),
    ),
)
RIGHTS: dict[int, Row] = {row.api_key: row for row in TABLE}


def markdown_table() -> str:
    """The table for docs/rights.md."""
    lines = ["| API | needs | refused |", "|---|---|---|"]
    for row in TABLE:
        if not row.checks:
            lines.append(f"| {row.api} | nothing | |")
        for number, check in enumerate(row.checks):
            lines.append(f"| {'' if number else row.api} | {check.needed} | {check.outcome} |")
    return "\n".join(lines)
