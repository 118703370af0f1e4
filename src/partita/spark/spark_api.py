"""Spark's Python Data Source API, as far as the installed Spark has it.

The API grew: 4.0 has readers, writers and the Arrow writer of batches; 4.1 adds filters and the Arrow writer of
streams; 4.2 adds limits of a batch, and with them the start of the batch that is planned. What is missing has a
stand-in here, so that the classes of this package are written once, for the newest.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceStreamArrowWriter,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
    )
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
    from pyspark.sql.types import StructType

    HAS_FILTERS = HAS_LIMITS = True
else:

    class Missing:
        """A class that this Spark lacks: it makes none, so none is ever met."""

    HAS_FILTERS = hasattr(DataSourceReader, "pushFilters")
    """Whether Spark offers filters to a batch read (4.1 and newer)."""
    for _name in ("EqualTo", "Filter", "GreaterThan", "GreaterThanOrEqual", "In", "IsNotNull", "LessThan",
                  "LessThanOrEqual"):  # fmt: skip
        globals()[_name] = getattr(datasource, _name, Missing)

    # Spark 4.0 hands Arrow batches to any writer that is a DataSourceArrowWriter, in a stream too.
    if hasattr(datasource, "DataSourceStreamArrowWriter"):
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    else:

        class DataSourceStreamArrowWriter(datasource.DataSourceStreamWriter, DataSourceArrowWriter):
            """The Arrow writer of streams."""

    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            ReadMaxRows,
            ReadMinRows,
            SupportsTriggerAvailableNow,
        )
    except ImportError:
        HAS_LIMITS = False
        ReadAllAvailable = ReadLimit = ReadMaxBytes = ReadMaxRows = ReadMinRows = SupportsTriggerAvailableNow = Missing
    else:
        HAS_LIMITS = True
        """Whether Spark gives a stream the start of its next batch, and a limit (4.2 and newer)."""

__all__ = [
    "HAS_FILTERS",
    "HAS_LIMITS",
    "DataSource",
    "DataSourceArrowWriter",
    "DataSourceReader",
    "DataSourceStreamArrowWriter",
    "DataSourceStreamReader",
    "EqualTo",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "InputPartition",
    "IsNotNull",
    "LessThan",
    "LessThanOrEqual",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "WriterCommitMessage",
    "arrow_schema",
]

_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of these columns, with timestamps in UTC."""
    return to_arrow_schema(schema, **_UTC)
