"""How far a running query is behind, from the progress that Spark reports of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partita.spark.planning.offsets import OffsetFormatError, decode

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def lag(query: StreamingQuery) -> dict[str, dict[int, int]]:
    """Records that each partition holds beyond the query's last batch, by topic and partition.

    Offsets are counted, so compaction gaps and transaction markers count too. As old as the last progress of the
    query; empty before the first one. Sources of other formats are left out.
    """
    return lag_of(query.lastProgress)


def lag_of(progress: Any) -> dict[str, dict[int, int]]:
    """The same, from one progress report: a StreamingQueryProgress of Spark, or a dict of that shape."""
    behind: dict[str, dict[int, int]] = {}
    for source in progress["sources"] if progress is not None else ():
        end, latest = _ends(source["endOffset"]), _ends(source["latestOffset"])
        for (topic, partition), offset in sorted(latest.items()):
            read = end.get((topic, partition), offset)
            behind.setdefault(topic, {})[partition] = max(0, offset - read)
    return behind


def _ends(offset: str | Mapping[str, Any] | None) -> dict[tuple[str, int], int]:
    """The end of each partition in one of our offsets; empty for anything else."""
    try:
        found = json.loads(offset) if isinstance(offset, str) else offset
        return {key: found_range.end for key, found_range in decode(found or {}).ranges.items()}
    except (ValueError, OffsetFormatError, AttributeError):
        return {}
