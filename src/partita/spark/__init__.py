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
from partita.spark.java import ensure_java
from partita.spark.last_commit import commit_stopped, committing
from partita.spark.progress import lag, lag_seconds, metrics, metrics_text
from partita.spark.worker_python import quick_workers, worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "JavaNotFound",
    "commit_stopped",
    "commit_when_stopped",
    "ensure_java",
    "lag",
    "lag_seconds",
    "metrics",
    "metrics_text",
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
    from partita.spark.cores import cores_of, is_local
    from partita.spark.query_watch import watch_queries
    from partita.spark.source import source_for

    local = is_local(spark)
    with quick_workers(spark.sparkContext) if local else nullcontext():
        spark.dataSource.register(source_for(cores_of(spark), is_local=local))
    watch_queries(spark)
    return spark


def session(
    app_name: str = "partita",
    *,
    master: str = "local[*]",
    ui: bool = False,
    config: dict[str, str] | None = None,
    py_files: Sequence[str] = (),
) -> SparkSession:
    """A Spark session with `format("partita")`: Java found, workers on this Python, UTC, a stack that is large enough.

    `config` adds Spark settings or replaces those chosen here. `py_files` (zip, egg or py files) reach the executors;
    after a later addPyFile call `register` again, since Spark notes the files of a data source
    when it is registered. An existing session is reused, as Spark does. Raises JavaNotFound.
    """
    _require_packages()
    from partita.spark.session_builder import build

    spark = build(app_name, master=master, ui=ui, config=config or {})
    for path in py_files:
        spark.sparkContext.addPyFile(path)
    register(spark)
    return spark


def commit_when_stopped(query: StreamingQuery, options: Mapping[str, str]) -> None:
    """As `commit_stopped`, by itself, as soon as the query ends, whoever ends it. Call it once the query is started.

    For Spark Connect: the client listens to its session until it ends, so it has to live as long as the query. End it
    with `spark.stop()`: before that, pyspark's listener keeps the script from ending. In a classic session nothing is
    left to be done, and nothing is. Raises ConfigError for wrong options.
    """
    source, connect = committing(options), getattr(query, "_session", None)
    if connect is not None:
        from partita.spark.query_watch import ConnectWatch

        connect.streams.addListener(ConnectWatch(query, source))
        if not query.isActive:  # it may have ended before the listener was there
            commit_stopped(query, options)


def _require_packages() -> None:
    lacking = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]
    if lacking:
        raise ImportError(f"the Spark side needs {' and '.join(lacking)}: pip install 'partita[spark]'")
