"""A Spark standalone cluster or Connect server on this machine, in processes of their own, from pyspark's jars."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from partita.designs.zookeeper.ports import free_ports
from partita.spark import ensure_java, session

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

    def executors(self) -> list[int]:
        """The process ids of the executors that run now; a worker starts another for one that is killed.

        Without a terminal `ps` cuts its lines at 80 letters unless it is given -ww.
        """
        ours = {str(process.pid) for process in self._started}
        listed = subprocess.run(["ps", "-wweo", "pid,sid,args"], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()]
        return [int(row[0]) for row in rows if row[1] in ours and "CoarseGrainedExecutorBackend" in row[2]]

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
def connect_server(
    folder: Path, python: str = sys.executable, master: str = "local[2]", config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A Spark Connect server; what `SparkSession.builder.remote` takes. It is killed at the end."""
    ensure_java()
    port = free_ports(1)[0]
    environment = {
        **os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python,
    }  # fmt: skip
    settings = {"spark.ui.enabled": "false", "spark.connect.grpc.binding.port": str(port), **(config or {})}
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--driver-java-options", "-Xss8m"]
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


@contextmanager
def session_at(master: str, folder: Path, config: Mapping[str, str], *, over_connect: bool) -> Iterator[SparkSession]:
    """A session on this master: of this process, or of a Connect server in a process below it."""
    if not over_connect:
        spark = session("at", master=master, config=dict(config))
        yield spark
        spark.stop()
    else:
        with connect_server(folder, master=master, config=config) as remote:
            spark = SparkSession.builder.remote(remote).getOrCreate()
            yield spark
            spark.stop()


def python_without_partita(folder: Path) -> str:
    """A program that runs Python with every package of this one but partita."""
    packages = folder / "packages"
    packages.mkdir()
    found = {entry.name: entry for path in sys.path if path.endswith("site-packages") for entry in Path(path).iterdir()}
    for name, entry in found.items():
        if "partita" not in name and entry.suffix != ".pth":
            (packages / name).symlink_to(entry)
    venv.create(folder / "venv", with_pip=False)
    program = folder / "python"
    # Spark puts its own sources on the path; what this process has there goes.
    path = f"{packages}:{SPARK_HOME / 'python'}"
    program.write_text(f'#!/bin/sh\nexport PYTHONPATH={path}\nexec {folder}/venv/bin/python "$@"\n')
    program.chmod(0o755)
    return str(program)


def _wait_for(port: int) -> None:
    limit = time.monotonic() + 180
    while time.monotonic() < limit:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not come up")
