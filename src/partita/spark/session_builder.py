"""The settings of a Spark session that runs `format("partita")` well. Each has its reason; see `SETTINGS`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.spark.java import ensure_java
from partita.spark.worker_python import choose_python

if TYPE_CHECKING:
    from pyspark import sql
else:
    sql = later("pyspark.sql")

SETTINGS = {
    # Stopping a query inside foreachBatch overflows the default stack of the stream thread.
    "spark.driver.extraJavaOptions": "-Xss8m",
    # Kafka's timestamps are instants; without this they are shown in the machine's zone.
    "spark.sql.session.timeZone": "UTC",
    # Rows of one Arrow batch to a Python worker: the JVM takes longer for a row of larger ones (decision 0310).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    # Lets batch reads see filters; without it Spark offers none.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # Spark's start-up remarks would bury what a query has to say; set WARN to see them.
    "spark.log.level": "ERROR",
}


def build(app_name: str, *, master: str, ui: bool, config: Mapping[str, str]) -> sql.SparkSession:
    """Start or reuse a session. The Java and the workers' Python are settled before Spark starts."""
    ensure_java()
    choose_python(master)
    if _is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.Builder().appName(app_name).master(master)
    for name, value in settings_for(master, ui=ui, config=config).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def settings_for(master: str, *, ui: bool, config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session on this master; `config` takes precedence over all that is chosen here."""
    chosen = {**SETTINGS, "spark.ui.enabled": str(ui).lower()}
    if _is_local(master):
        # A machine whose own name does not resolve, or only to an outside address, works too.
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return chosen | dict(config)


def _is_local(master: str) -> bool:
    return master.startswith("local")
