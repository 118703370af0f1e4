"""Requests and responses for ONE group, where Kafka's wire message holds several.

The broker splits a wire request, asks each group's shard, and merges the answers (`wire` has the pure halves of both).
Topics carry name and topic id, both filled in by the broker. All other group requests are used in their wire form:
JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, TxnOffsetCommit, OffsetDelete, ConsumerGroupHeartbeat.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

from partita.group.contract import Record
from partita.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from partita.protocol.primitives import Structure

if TYPE_CHECKING:
    from partita.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse


class FetchOffsets(Structure):
    """OffsetFetch of one group; answered with an OffsetFetchResponseGroup.

    More than `at_once_max` partitions are answered with OffsetsFound, from which the shell builds the response.
    """

    __slots__ = ("at_once_max", "group", "require_stable")

    def __init__(
        self, group: OffsetFetchRequestGroup, *, require_stable: bool = False, at_once_max: int = sys.maxsize
    ) -> None:
        self.group = group
        self.require_stable = require_stable
        self.at_once_max = at_once_max


class OffsetsFound(Structure):
    """A snapshot of a group's offsets: encoded values of the log, by topic and partition.

    `unstable` are partitions with an offset in an open transaction, if the request asks for stable offsets.
    """

    __slots__ = ("offsets", "unstable")

    def __init__(self, offsets: Mapping[tuple[str, int], bytes], unstable: Container[tuple[str, int]]) -> None:
        self.offsets = offsets
        self.unstable = unstable


class StoredOffsets(NamedTuple):
    """The result of an OffsetCommit: records, the same values by topic and partition, and the response.

    `size_in_bytes` is the size of their batch; once it exceeds the limit, later records are omitted.
    """

    records: list[Record]
    offsets: dict[tuple[str, int], bytes]
    response: OffsetCommitResponse
    size_in_bytes: int


class CommitOffsets(Structure):
    """A large OffsetCommit whose result is already computed.

    Answered with an OffsetCommitResponse, or with OffsetsRefused, from which the shell builds the response.
    """

    __slots__ = ("group_id", "stored", "wire")

    def __init__(self, wire: OffsetCommitRequest, stored: StoredOffsets) -> None:
        self.wire = wire
        self.group_id = wire.group_id
        self.stored = stored


class OffsetsRefused(Structure):
    """The error that refuses every partition of a CommitOffsets."""

    __slots__ = ("error_code",)

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code


class DescribeGroup(Structure):
    """DescribeGroups of one group; answered with a DescribedGroup."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class DescribeConsumerGroup(Structure):
    """ConsumerGroupDescribe of one group; answered with a DescribedConsumerGroup."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class DescribeShareGroup(Structure):
    """ShareGroupDescribe of one group; answered with a DescribedShareGroup."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class DescribeStreamsGroup(Structure):
    """StreamsGroupDescribe of one group; answered with a StreamsDescribedGroup."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class InternalTopic(NamedTuple):
    """A topic that belongs to a Kafka Streams application. A replication factor of 0 means the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]


class StreamsBeat(Structure):
    """The answer to a StreamsGroupHeartbeat, and the internal topics of the application that are missing."""

    __slots__ = ("missing", "response")

    def __init__(
        self, response: StreamsGroupHeartbeatResponse, missing: Mapping[str, InternalTopic] | None = None
    ) -> None:
        self.response = response
        self.missing = missing or {}


class FindSharedTopics(Structure):
    """The topics of one share group that have state; answered with SharedTopicsFound."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class SharedTopicsFound(Structure):
    """Partitions with state, by topic id; none where there is no such share group."""

    __slots__ = ("error_code", "topics")

    def __init__(self, topics: Mapping[bytes, Set[int]] | None = None, error_code: int = 0) -> None:
        self.topics = topics or {}
        self.error_code = error_code


class DeleteGroup(Structure):
    """DeleteGroups of one group; answered with a DeletableGroupResult."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class ListShardGroups(Structure):
    """ListGroups of one shard; answered with a ListGroupsResponse, which the broker merges with other shards'."""

    __slots__ = ("states_filter", "types_filter")

    def __init__(self, states_filter: list[str] | None = None, types_filter: list[str] | None = None) -> None:
        self.states_filter = states_filter or []
        self.types_filter = types_filter or []


class TransactionEnded(Structure):
    """The answer to EndTransaction: the error code of this partition in WriteTxnMarkers."""

    __slots__ = ("error_code",)

    def __init__(self, error_code: int = 0) -> None:
        self.error_code = error_code


class EndTransaction(Structure):
    """A transaction marker (WriteTxnMarkers) for this shard; answered with TransactionEnded.

    `version` is the transaction version of the marker: from 2 on its epoch is above the epoch of the offsets.
    """

    __slots__ = ("committed", "coordinator_epoch", "producer_epoch", "producer_id", "version")

    def __init__(
        self, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int = 0, version: int = 0
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self.coordinator_epoch = coordinator_epoch
        self.version = version
