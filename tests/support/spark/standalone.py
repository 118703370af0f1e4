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

from partita.spark import ensure_java

SPARK_HOME = Path(str(pyspark.__file__)).parent
CLASSES = "org.apache.spark.deploy"


class Standalone:
    """`url` is what `session(master=...)` takes; `workers` are the processes, to be killed."""

    def __init__(self, url: str, master: subprocess.Popen[bytes], workers: list[subprocess.Popen[bytes]]) -> None:
        self.url = url
        self.master = master
        self.workers = workers


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """Each worker has one core and 1 GB. Their Python is this one. Everything is killed at the end."""
    ensure_java()
    environment = {
        **os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOG_DIR": str(folder), "SPARK_DAEMON_MEMORY": "256m",
    }  # fmt: skip
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{len(started)}.log").open("wb")
        command = [str(SPARK_HOME / "bin" / "spark-class"), *words]
        started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True))
        return started[-1]

    try:
        ports = ["--host", "127.0.0.1", "--webui-port", "0"]
        master = start(f"{CLASSES}.master.Master", "--port", str(port), *ports)
        _wait_for(port)
        several = [
            start(f"{CLASSES}.worker.Worker", "--cores", "1", "--memory", "1g", *ports, url) for _ in range(workers)
        ]
        yield Standalone(url, master, several)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on two cores; what `SparkSession.builder.remote` takes. It is killed at the end."""
    ensure_java()
    port = _free_port()
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


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not come up")
