"""A Spark standalone cluster or Connect server on this machine, in processes of their own, from pyspark's jars."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from partita.designs.zookeeper.ports import free_ports
from partita.spark import ensure_java

SPARK_HOME = Path(str(pyspark.__file__)).parent
CLASSES = "org.apache.spark.deploy"
PORTS = ("--host", "127.0.0.1", "--webui-port", "0")


class Standalone:
    """`url` is what `session(master=...)` takes. Each worker has one core and 1 GB. Their Python is this one."""

    def __init__(self, folder: Path) -> None:
        port = free_ports(1)[0]
        self.url = f"spark://127.0.0.1:{port}"
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._start(f"{CLASSES}.master.Master", "--port", str(port), *PORTS)
        _wait_for(port)

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start(f"{CLASSES}.worker.Worker", "--cores", "1", "--memory", "1g", *PORTS, self.url)

    def kill_oldest_worker(self) -> None:
        """With its executor, as when a machine is gone."""
        worker = self._started.pop(1)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def end(self) -> None:
        for process in reversed(self._started):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(self._folder), "PYSPARK_PYTHON": sys.executable, "SPARK_LOG_DIR": str(self._folder),
            "SPARK_DAEMON_MEMORY": "256m",
        }  # fmt: skip
        command = [str(SPARK_HOME / "bin" / "spark-class"), *words]
        with (self._folder / f"{len(list(self._folder.glob('*.log')))}.log").open("wb") as log:
            started = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self._started.append(started)
        return started


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """A master and workers. Everything is killed at the end."""
    ensure_java()
    cluster = Standalone(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.end()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on two cores; what `SparkSession.builder.remote` takes. It is killed at the end."""
    ensure_java()
    port = free_ports(1)[0]
    environment = {
        **os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    settings = {"spark.ui.enabled": "false", "spark.connect.grpc.binding.port": str(port)}
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--driver-java-options", "-Xss8m"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with (folder / "connect.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(port)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_for(port: int) -> None:
    limit = time.monotonic() + 180
    while time.monotonic() < limit:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not come up")
