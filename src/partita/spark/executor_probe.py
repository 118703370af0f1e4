"""Probe the executors of a Spark cluster: their Python, its packages, and whether they reach the brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_PER_CORE = 4
"""So many short tasks for each core that every executor gets one."""
CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ExecutorReport:
    """Findings of one executor's Python. `packages` maps names to versions, or to why one cannot be imported.

    `unreachable` lists brokers, host:port, with the reason.
    """

    host: str
    executor: str
    python: str
    packages: tuple[tuple[str, str], ...]
    compiled: int
    unreachable: tuple[str, ...]

    @property
    def fault(self) -> str:
        """The problem in one line; empty if there is none."""
        lacking = [f"{name}: {found}" for name, found in self.packages if not found[:1].isdigit()]
        return "; ".join([*lacking, *(f"no way to {broker}" for broker in self.unreachable)])


def probe(spark: SparkSession, brokers: Sequence[tuple[str, int]]) -> list[ExecutorReport]:
    """Return one report for each executor that got a task; `brokers` are the addresses that the cluster advertises."""
    context = spark.sparkContext
    tasks = max(1, context.defaultParallelism) * TASKS_PER_CORE
    found = context.parallelize(range(tasks), tasks).mapPartitions(_asking(list(brokers), CONNECT_TIMEOUT_S)).collect()
    reports = {row["executor"]: row for row in found}
    return [
        ExecutorReport(
            row["host"], executor, row["python"], tuple(sorted(row["packages"].items())), row["compiled"],
            tuple(row["unreachable"]),
        )
        for executor, row in sorted(reports.items())
    ]  # fmt: skip


def _asking(brokers: list[tuple[str, int]], timeout_s: float) -> Callable[[Any], Iterator[dict[str, Any]]]:
    """Return the task. A nested function is pickled as code, so it runs where partita is not installed, too."""

    def ask(_: Any) -> Iterator[dict[str, Any]]:
        import os
        import platform
        import socket
        from importlib import import_module

        packages, compiled = {}, 0
        for name in ("partita", "pyarrow", "pandas", "crc32c", "cramjam"):
            try:
                module = import_module(name)
                packages[name] = str(getattr(module, "__version__", "0, version unknown"))
            except Exception as error:  # a package may fail in any way when it is imported
                packages[name] = f"cannot be imported: {error}"
        if packages["partita"][:1].isdigit():
            compiled = sum(import_module("partita.compiled").compiled_modules().values())
        unreachable = []
        for host, port in brokers:
            try:
                socket.create_connection((host, port), timeout_s).close()
            except OSError as error:
                unreachable.append(f"{host}:{port} ({error})")
        yield {
            "host": socket.gethostname(), "executor": os.environ.get("SPARK_EXECUTOR_DIRS", str(os.getppid())),
            "python": platform.python_version(), "packages": packages, "compiled": compiled,
            "unreachable": unreachable,
        }  # fmt: skip

    return ask
