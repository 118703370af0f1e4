"""The number of cores a session has for its tasks; it decides groupMembers=auto and the tasks of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from partita.options import ConfigError
from partita.spark.planning.lookups import Lookups
from partita.spark.settings.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS, EXECUTORS_MAX = "spark.executor.instances", "spark.dynamicAllocation.maxExecutors"
CORES_EACH, CORES_MAX = "spark.executor.cores", "spark.cores.max"


def cores_of(spark: SparkSession) -> int | None:
    """Return the larger of the cores running now and those that the session's settings ask for.

    None where neither is known: a client of Spark Connect sees only the settings.
    """
    settings = {name: spark.conf.get(name, None) for name in (EXECUTORS, EXECUTORS_MAX, CORES_EACH, CORES_MAX)}
    asked = cores_asked_for({name: value for name, value in settings.items() if value is not None})
    running = spark.sparkContext.defaultParallelism if hasattr(spark, "_jsparkSession") else 0
    return max(asked, running) or None


def is_local(spark: SparkSession) -> bool:
    """Whether the session runs in one process, so that it never has more cores than now."""
    return hasattr(spark, "_jsparkSession") and str(spark.sparkContext.master).startswith("local")


def cores_asked_for(settings: Mapping[str, str]) -> int:
    """Return the cores these Spark settings ask for: executors times cores, at most `spark.cores.max`; 0 if unset."""
    executors = [int(settings[name]) for name in (EXECUTORS, EXECUTORS_MAX) if settings.get(name, "").isdecimal()]
    asked = max(executors, default=0) * int(settings.get(CORES_EACH, "1"))
    most = int(settings.get(CORES_MAX, "0"))
    return min(asked, most) if asked and most else asked or most


def check_cores(options: SourceOptions, cores: int | None) -> None:
    """Raises ConfigError for groupMembers=auto where the session's cores are unknown."""
    if options.member is not None and options.member.count is None and cores is None:
        raise ConfigError("groupMembers=auto needs session() or register(spark), which look how large the cluster is")


def member_count(options: SourceOptions, lookups: Lookups, cores: int | None) -> Callable[[], int]:
    """Return a function that counts groupMembers=auto: one member per core, at most one per partition."""
    return lambda: max(1, min(cores or 1, len(lookups.view(options.topics).partitions)))
