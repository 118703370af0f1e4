"""One good request of every API, about topic `secret`, group `hidden` and transactional id `tx`, made from its class.

Each list has one item, and fields hold what their names call for; `OTHERS` has what an API wants otherwise, and where
a list has several items, what is different in each.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from partita.broker.api.apis import SERVED
from partita.protocol.primitives import Message, Structure

TOPIC, GROUP, ID = "secret", "hidden", "tx"
NAMED: Mapping[str, Any] = {
    "name": TOPIC, "topic": TOPIC, "topic_name": TOPIC, "resource_name": TOPIC, "group_id": GROUP, "key": GROUP,
    "groups": [GROUP], "group_ids": [GROUP], "groups_names": [GROUP], "coordinator_keys": [GROUP],
    "topic_names": [TOPIC], "subscribed_topic_names": [TOPIC], "transactional_id": ID, "transactional_ids": [ID],
    "v3_and_below_transactional_id": ID, "member_id": "m", "partitions": [0], "partition_indexes": [0],
    "records": bytes(61), "resource_type": 2, "resource_type_filter": 1, "operation": 1, "permission_type": 1,
    "mechanism": 1, "hmac": b"x", "principal": "User:a", "host": "*", "path": "/nowhere", "replicas": [1],
    "client_software_name": "t", "client_software_version": "1",
}  # fmt: skip
"""What fields of these names hold, whatever the API."""
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "Produce": {"acks": -1, "timeout_ms": 1000, "transactional_id": None},
    "Fetch": {"max_bytes": 1000, "partition_max_bytes": 1000, "forgotten_topics_data": []},
    "OffsetCommit": {"member_id": "", "committed_offset": 1},
    "OffsetFetch": {"member_id": None},
    "TxnOffsetCommit": {"member_id": "", "committed_offset": 1},
    "ListOffsets": {"timestamp": -1},
    "JoinGroup": {"session_timeout_ms": 10_000, "protocol_type": "consumer", "name": "range", "member_id": ""},
    "SyncGroup": {"protocol_type": "consumer", "protocol_name": "range", "assignments": [], "member_id": ""},
    "ListGroups": {"states_filter": [], "types_filter": []},
    "CreateTopics": {
        "name": "bad name",
        "num_partitions": 1,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    },
    "InitProducerId": {"transactional_id": None},
    "AlterConfigs": {"name": "retention.ms", "value": "1"},
    "IncrementalAlterConfigs": {
        "value": "1",
        "resources": [
            {"name": "retention.ms"},
            {"resource_type": 4, "resource_name": "1", "name": "log.retention.ms"},
        ],
    },
    "CreateAcls": {"operation": 3, "permission_type": 3},
    "CreatePartitions": {"count": 9, "assignments": None},
    "DescribeConfigs": {
        "configuration_keys": None,
        "resources": [
            {},
            {"resource_type": 4, "resource_name": "1"},
            {"resource_type": 32, "resource_name": GROUP},
        ],
    },
    "CreateDelegationToken": {"owner_principal_type": "User", "owner_principal_name": "a", "renewers": []},
    "DescribeDelegationToken": {"owners": None},
    "DescribeLogDirs": {"topics": None},
    "ListPartitionReassignments": {"topics": None},
    "DescribeClientQuotas": {"components": []},
    "AlterClientQuotas": {"entity_type": "user", "entity_name": "a", "key": "producer_byte_rate", "value": 1},
    "DescribeUserScramCredentials": {"users": None},
    "AlterUserScramCredentials": {"name": "a", "upsertions": []},
    "DescribeQuorum": {"topic_name": "__cluster_metadata"},
    "ListTransactions": {"state_filters": [], "producer_id_filters": []},
    "ConsumerGroupHeartbeat": {"rebalance_timeout_ms": 1, "topic_partitions": []},
    "DescribeTopicPartitions": {"response_partition_limit": 10},
    "ListConfigResources": {"resource_types": []},
}


ASKED = SERVED.keys() - {17, 36}
"""All APIs but those of a login."""


def one_of_each(api_key: int) -> Message:
    """A request of the API, for every version."""
    api = SERVED[api_key]
    made: Message = _filled(api.request, {**NAMED, **OTHERS.get(api.name, {})})
    return made


def _filled(kind: type[Structure], named: Mapping[str, Any]) -> Any:
    made = kind()
    for name, annotation in kind.__init__.__annotations__.items():
        item = str(annotation).removesuffix(" | None").removeprefix("list[").removesuffix("]")
        inner = getattr(sys.modules[kind.__module__], item, None) if "list[" in str(annotation) else None
        given = named.get(name, [{}])
        if inner is not None and given:
            several = given if isinstance(given[0], Mapping) else [{}]
            setattr(made, name, [_filled(inner, {**named, **each}) for each in several])
        elif name in named:
            setattr(made, name, given)
    return made
