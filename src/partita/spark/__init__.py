"""The Spark side of Partita: `format("partita")` for batch and streaming reads and writes, without a jar.

`session()` gives a Spark session that is set up for it; `register(spark)` adds the format to a session you have.
Importing this package imports neither pyspark nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING

from partita.java import JavaNotFound
from partita.lazy import later
from partita.options import ConfigError
from partita.spark.java import ensure_java
from partita.spark.last_commit import commit_stopped, committing
from partita.spark.progress import lag, lag_seconds, metrics, metrics_text
from partita.spark.worker_python import quick_workers, worker_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.streaming.query import StreamingQuery

    from partita.spark import cores, query_watch, session_builder
    from partita.spark import source as spark_source
else:
    cores = later("partita.spark.cores")
    query_watch = later("partita.spark.query_watch")
    session_builder = later("partita.spark.session_builder")
    spark_source = later("partita.spark.source")

__all__ = [
    "JavaNotFound",
    "commit_stopped",
    "commit_when_stopped",
    "ensure_java",
    "lag",
    "lag_seconds",
    "metrics",
    "metrics_text",
    "read",
    "register",
    "session",
    "worker_python",
]


def register(spark: SparkSession) -> SparkSession:
    """Make `format("partita")` known to this session, and return it.

    In a classic session its queries are watched from then on: the last batch of a stopped query is committed to its
    group, and a query that may not run in its group is stopped, with the reason in the log. With a local master the
    format runs on `worker_python()` where the session runs on this Python.
    """
    _require_packages()
    local = cores.is_local(spark)
    with quick_workers(spark.sparkContext) if local else nullcontext():
        _register(spark, spark_source.source_for(cores.cores_of(spark), is_local=local))
    query_watch.watch_queries(spark)
    return spark


def _register(spark: SparkSession, source: type[DataSource]) -> None:
    try:
        spark.dataSource.register(source)
    except Exception as error:
        # Before 4.1 Spark finds the package pyspark_partita by itself and takes no other source by that name.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def session(
    app_name: str = "partita",
    *,
    master: str = "local[*]",
    ui: bool = False,
    config: dict[str, str] | None = None,
    py_files: Sequence[str] = (),
) -> SparkSession:
    """Return a Spark session that is set up for `format("partita")`: Java, workers on this Python, UTC, a large stack.

    `config` adds Spark settings or replaces those chosen here. `py_files` (zip, egg or py files) reach the executors;
    after a later addPyFile call `register` again, since Spark notes the files of a data source when it is registered.
    An existing session is reused, as Spark does. Raises JavaNotFound.
    """
    _require_packages()
    spark = session_builder.build(app_name, master=master, ui=ui, config=config or {})
    for path in py_files:
        spark.sparkContext.addPyFile(path)
    register(spark)
    return spark


def read(spark: SparkSession, options: Mapping[str, str], *, columns: Sequence[str] = ()) -> DataFrame:
    """Return a batch of `format("partita")` with these options, and of its columns only `columns`, in this order.

    Spark tells no source which columns a query uses, so without `columns` (or the option of that name) all are read; a
    count of `columns=["offset"]` takes half as much CPU. The session has to know the format (`session`, `register`).
    Raises ConfigError.
    """
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise ConfigError(f"columns must be a list of names, as in columns=['key', 'offset'], not {columns!r}")
    reader = spark.read.format("partita").options(**options)
    return (reader.option("columns", ",".join(columns)) if columns else reader).load()


def commit_when_stopped(query: StreamingQuery, options: Mapping[str, str]) -> None:
    """Call `commit_stopped` as soon as the query ends, for whatever reason. Call this once the query is started.

    For Spark Connect: the client listens to its session until it ends, so it has to live as long as the query. End it
    with `spark.stop()`: before that, pyspark's listener keeps the script from ending. Does nothing in a classic
    session, which commits by itself. Raises ConfigError for wrong options.
    """
    source, connect = committing(options), getattr(query, "_session", None)
    if connect is not None:
        connect.streams.addListener(query_watch.ConnectWatch(query, source))
        if not query.isActive:  # it may have ended before the listener was there
            commit_stopped(query, options)


def _require_packages() -> None:
    lacking = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]
    if lacking:
        raise ImportError(f"the Spark side needs {' and '.join(lacking)}: pip install 'partita[spark]'")
