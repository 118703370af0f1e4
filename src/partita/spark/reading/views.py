"""Views of a read of `__consumer_offsets`: Arrow batches in, Arrow batches out.

Commits, the majority, are decoded a whole batch at a time; records of groups, which are rare and nested, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from partita.group.records.log_records import OFFSET_KEY
from partita.group.records.read_back import GroupRecord, LogRecord, Row, group_records
from partita.spark.planning.lookups import Lookups
from partita.spark.reading.epoch_group_rows import ConsumerGroups, GroupEpochs
from partita.spark.reading.group_rows import Rebalances, assignment_rows, group_rows, member_rows
from partita.spark.reading.lag_history import asked_of, lag_history
from partita.spark.reading.offset_commits import Cells, offset_commits

Decode: TypeAlias = Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch]
LINEAGE = r"^spark:(?P<query>.*):(?P<batch>[0-9]{1,18})$"


def decoder(view: str, lookups: Lookups) -> Decode:
    """Return how one task decodes its batches, which come in log order. Only lag_history asks the cluster."""
    if view == "lag_history":
        for_batch = asked_of(lookups)
        return lambda records, schema: _named(lag_history(offset_commits(records), for_batch()), schema)
    if view == "offset_commits":
        return lambda records, schema: _named(offset_commits(records), schema)
    if view == "commit_lineage":
        return lambda records, schema: _named(commit_lineage(records), schema)
    if view == "group_log":
        return lambda records, schema: _named(group_log(records), schema)
    with_epochs = ConsumerGroups(lookups.topic_names)
    rows: dict[str, tuple[Callable[[GroupRecord], Iterable[Row]], Callable[[LogRecord], Iterable[Row]]]] = {
        "groups": (group_rows, GroupEpochs().rows),
        "members": (member_rows, with_epochs.member_rows),
        "assignments": (assignment_rows, with_epochs.assignment_rows),
        "rebalances": (Rebalances().rows, with_epochs.rebalance_rows),
    }
    of_classic, of_others = rows[view]

    def of_record(record: LogRecord) -> Iterable[Row]:
        for classic in group_records((record,)):
            return of_classic(classic)
        return of_others(record)

    return lambda records, schema: _batch((row for r in _of_groups(records) for row in of_record(r)), schema)


def commit_lineage(records: pa.RecordBatch) -> pa.RecordBatch:
    """The commits that Spark queries made through this data source: which query, which of its batches."""
    commits = offset_commits(records)
    found = pc.extract_regex(commits.column("metadata"), LINEAGE)
    ours = pc.fill_null(pc.is_valid(found), False)
    kept, found = commits.filter(ours), found.filter(ours)
    names = ("group", "topic", "partition", "offset", "commitTime", "logPartition", "logOffset", "logTimestamp")
    columns = {name: kept.column(name) for name in names}
    columns["query"] = pc.struct_field(found, "query").cast(pa.string())
    columns["batch"] = pc.struct_field(found, "batch").cast(pa.int64())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def group_log(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return every record unchanged, with the versions it begins with and the group that its key begins with."""
    keys, values = Cells.of(records.column("key")), Cells.of(records.column("value"))
    group_size = keys.number(2, 2)
    has_group = (group_size >= 0) & (keys.lengths >= 4 + group_size)
    columns = {
        "group": pc.if_else(pa.array(has_group), keys.texts(4, np.where(has_group, group_size, 0)), None),
        "keyVersion": pa.array(keys.number(0, 2).astype(np.int32), mask=keys.lengths < 2),
        "valueVersion": pa.array(values.number(0, 2).astype(np.int32), mask=values.lengths < 2),
        "isTombstone": records.column("value").is_null(),
        "key": records.column("key"),
        "value": records.column("value"),
        "logPartition": records.column("partition"),
        "logOffset": records.column("offset"),
        "logTimestamp": records.column("timestamp"),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _of_groups(records: pa.RecordBatch) -> Iterable[LogRecord]:
    """Only keys of groups become Python objects, those of commits do not."""
    keys = Cells.of(records.column("key"))
    kept = records.filter(pa.array((keys.lengths >= 2) & (keys.number(0, 2) > OFFSET_KEY)))
    columns = (kept.column(name).to_pylist() for name in ("key", "value", "partition", "offset", "timestamp"))
    return map(LogRecord, *columns)


def _batch(rows: Iterable[Row], schema: pa.Schema) -> pa.RecordBatch:
    found = list(rows)
    return pa.RecordBatch.from_arrays([_column(found, field) for field in schema], schema=schema)


def _column(rows: list[Row], field: pa.Field) -> pa.Array:
    """A time is in milliseconds in a row and an instant in the table."""
    if field.name == "stateTime":
        micros = [None if row["stateTimeMs"] is None else row["stateTimeMs"] * 1000 for row in rows]
        return pa.array(micros, pa.int64()).cast(field.type)
    return pa.array([row[field.name] for row in rows], field.type)


def _named(found: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns: list[Any] = [found.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
