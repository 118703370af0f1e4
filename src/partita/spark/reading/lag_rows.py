"""`view=lag`: how far every group is behind, at the moment a task asks. Needs no log, only two requests per group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from partita.admin.groups import describe_group, group_lag, list_groups
from partita.admin.results import PartitionLag
from partita.errors import GroupIdNotFoundError, KafkaError
from partita.group.records.read_back import Row
from partita.net.cluster import Cluster
from partita.now import Clock
from partita.spark.cluster.broker_link import link_to

AT_ONCE = 16
"""Number of groups asked about at the same time."""


def lag_batch(client: Mapping[str, str], group: str | None, clock: Clock, schema: pa.Schema) -> pa.RecordBatch:
    """One row per partition that a group has committed or holds now; of one group or of all.

    `lag` is the end offset minus the committed one, null without a commit. Raises KafkaError when the groups cannot be
    listed; a group that may not be read is left out.
    """
    link = link_to(client)
    rows = link.call(_rows(link.cluster, group))
    now_us = clock.now().wall_ms * 1000
    columns = []
    for field in schema:
        if field.name == "sampledAt":
            columns.append(pa.array([now_us] * len(rows), pa.int64()).cast(field.type))
        else:
            columns.append(pa.array([row[field.name] for row in rows], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


async def _rows(cluster: Cluster, group: str | None) -> list[Row]:
    names = [group] if group is not None else [found.group_id for found in await list_groups(cluster, (), ())]
    turn = asyncio.Semaphore(AT_ONCE)

    async def of_group(name: str) -> list[Row]:
        async with turn:
            try:
                state = (await describe_group(cluster, name)).state
                return [_row(name, state, lag) for lag in await group_lag(cluster, name)]
            except GroupIdNotFoundError:
                return []
            except KafkaError:
                if group is not None:
                    raise
                return []

    return [row for rows in await asyncio.gather(*map(of_group, names)) for row in rows]


def _row(group: str, state: str, lag: PartitionLag) -> dict[str, Any]:
    return {
        "group": group,
        "state": state,
        "topic": lag.topic,
        "partition": lag.partition,
        "committedOffset": lag.committed_offset,
        "endOffset": lag.log_end_offset,
        "lag": lag.lag,
        "memberId": lag.member_id,
        "groupInstanceId": lag.group_instance_id,
        "clientId": lag.client_id,
        "clientHost": lag.client_host,
    }
