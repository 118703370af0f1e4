"""`view=lag`: how far every group is behind, at the moment a task asks. Needs no log, only a few requests per group."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from partita.admin.groups import describe_group, group_lag, list_groups
from partita.admin.results import GroupListing, PartitionLag
from partita.errors import GroupIdNotFoundError, KafkaError
from partita.group.records.read_back import Row
from partita.now import Clock
from partita.spark.cluster.broker_link import BrokerLink, link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.planning.lookups import Lookups
from partita.spark.settings.positions import TopicPartition

AT_ONCE = 16
"""Number of groups asked about at the same time."""
SHARE = "share"
"""The type of groups that commit no offsets."""
COLUMNS = (
    *("group", "state", "topic", "partition", "committedOffset", "endOffset", "lag", "lagSeconds"),
    *("memberId", "groupInstanceId", "clientId", "clientHost", "error"),
)


def lag_batch(client: Mapping[str, str], group: str | None, clock: Clock, schema: pa.Schema) -> pa.RecordBatch:
    """One row per partition that a group has committed or holds now; of one group or of all.

    A group that cannot be asked, or a single one that does not exist, is one row with `error`. `lag` is the end offset
    minus the committed one, at least 0; `lagSeconds` the age of the first record not yet committed. Both are null
    without a commit. Raises KafkaError when the groups cannot be listed.
    """
    link = link_to(client)
    rows = link.call(_rows(link, group))
    now_ms = clock.now().wall_ms
    _add_seconds(rows, ClusterLookups(link), now_ms)
    columns = []
    for field in schema:
        if field.name == "sampledAt":
            columns.append(pa.array([now_ms * 1000] * len(rows), pa.int64()).cast(field.type))
        else:
            columns.append(pa.array([row[field.name] for row in rows], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


async def _rows(link: BrokerLink, group: str | None) -> list[Row]:
    listed = await list_groups(link) if group is None else [GroupListing(group, "", "", "")]
    turn = asyncio.Semaphore(AT_ONCE)

    async def of_group(found: GroupListing) -> list[Row]:
        name, state = found.group_id, found.state
        async with turn:
            try:
                try:
                    state = (await describe_group(link, name)).state
                except GroupIdNotFoundError:
                    # Brokers describe no group of Kafka Streams to others; what it committed can be read.
                    if group is not None:
                        raise
                return [_row(name, state, lag) for lag in await group_lag(link, name)]
            except GroupIdNotFoundError as error:
                return [_failed(name, error)] if group is not None else []
            except KafkaError as error:
                return [_failed(name, error)]

    asked = (of_group(found) for found in listed if found.type != SHARE)
    return [row for rows in await asyncio.gather(*asked) for row in rows]


def _failed(group: str, error: KafkaError) -> Row:
    return dict.fromkeys(COLUMNS) | {"group": group, "error": str(error)}


def _row(group: str, state: str, lag: PartitionLag) -> dict[str, Any]:
    return {
        "group": group,
        "state": state,
        "topic": lag.topic,
        "partition": lag.partition,
        "committedOffset": lag.committed_offset,
        "endOffset": lag.log_end_offset,
        # A commit can be ahead of the end: of a control record, or of records that a leader lost.
        "lag": None if lag.lag is None else max(0, lag.lag),
        "lagSeconds": None if lag.lag is None or lag.lag > 0 else 0.0,
        "memberId": lag.member_id,
        "groupInstanceId": lag.group_instance_id,
        "clientId": lag.client_id,
        "clientHost": lag.client_host,
        "error": None,
    }


def _add_seconds(rows: Iterable[Row], lookups: Lookups, now_ms: int) -> None:
    """Set the age of the first unread record of each row that is behind, where it can be found quickly."""
    behind: dict[TopicPartition, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["lag"]:
            behind[row["topic"], row["partition"]][row["committedOffset"]].append(row)
    # Groups stand at different offsets of a partition, and each question has one of them.
    for places in zip_longest(*([(key, offset) for offset in offsets] for key, offsets in behind.items())):
        wanted = dict(place for place in places if place is not None)
        for key, time_ms in lookups.record_times(wanted).items():
            for row in behind[key][wanted[key]]:
                row["lagSeconds"] = max(0, now_ms - time_ms) / 1000
