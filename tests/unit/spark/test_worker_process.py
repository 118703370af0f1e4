"""What a worker of Spark does so that tasks cost little: garbage that is not collected, acknowledgements at once.

Issue 13, item 6.
"""

from __future__ import annotations

import gc
import pickle
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import partita
from partita.spark import worker_process
from partita.spark.lag_source import LagReader, LagStreamReader
from partita.spark.settings.options import parse_sink, parse_source
from partita.spark.source import BatchReader, StreamReader
from partita.spark.writing.sink import TopicArrowWriter, TopicStreamArrowWriter
from support.spark.standalone import python_without_partita


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(worker_process, "_settled", False)
    return calls


def run_as(module: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = None if module is None else SimpleNamespace(name=module)
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=spec))


def test_a_worker_settles_once(frozen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_as("pyspark.daemon", monkeypatch)
    worker_process.settle()
    worker_process.settle()
    assert frozen == ["collect", "freeze"]


@pytest.mark.parametrize("module", [None, "pytest", "pyspark.sql.streaming.python_streaming_source_runner"])
def test_other_processes_are_left_alone(module: str | None, frozen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(module, monkeypatch)
    worker_process.settle()
    assert frozen == []


QUICK_ACK = getattr(socket, "TCP_QUICKACK", 0)


@pytest.fixture
def slow_to_acknowledge() -> Iterator[socket.socket]:
    """One end of a connection that puts acknowledgements off."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 0)
            yield client


@pytest.mark.skipif(not QUICK_ACK, reason="an option of Linux")
def test_a_worker_acknowledges_at_once_what_has_come(
    slow_to_acknowledge: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM keeps the second part of a task for 40 ms otherwise."""
    worker_process.acknowledge_at_once()
    assert not slow_to_acknowledge.getsockopt(socket.IPPROTO_TCP, QUICK_ACK), "this is no worker"
    run_as("pyspark.daemon", monkeypatch)
    worker_process.acknowledge_at_once()
    assert slow_to_acknowledge.getsockopt(socket.IPPROTO_TCP, QUICK_ACK)
    slow_to_acknowledge.sendall(b"and it is still open")


def test_files_and_sockets_of_other_kinds_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as("pyspark.daemon", monkeypatch)
    one, other = socket.socketpair()
    with one, other, open(__file__) as file:
        worker_process.acknowledge_at_once()
        one.sendall(b"x")
        assert other.recv(1) == b"x"
        assert file.read(3) == '"""'


def test_readers_and_writers_acknowledge_as_they_are_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is between the two parts of a task."""
    told: list[str] = []
    monkeypatch.setattr(worker_process, "acknowledge_at_once", lambda: told.append("now"))
    reads = parse_source({"kafka.bootstrap.servers": "x:1", "subscribe": "t"})
    writes = parse_sink({"kafka.bootstrap.servers": "x:1", "topic": "t"})
    lag = parse_source({"kafka.bootstrap.servers": "x:1", "view": "lag"})
    readers = (BatchReader(reads), StreamReader(reads), LagReader(lag), LagStreamReader(lag))
    made = (*readers, TopicArrowWriter(writes), TopicStreamArrowWriter(writes))
    for count, sent in enumerate(made, start=1):
        assert type(pickle.loads(pickle.dumps(sent))) is type(sent)
        assert len(told) == count


UNPICKLE = """
import sys
from pathlib import Path
from pyspark import SparkFiles, cloudpickle
folder = Path(sys.argv[1])
pickled = (folder / "pickled").read_bytes()
SparkFiles._is_running_on_worker, SparkFiles._root_directory = True, str(folder / "streaming_job")
(folder / "uploaded").mkdir()
archive = (folder / "partita.zip").rename(folder / "moved")
try:
    cloudpickle.loads(pickled)
except ImportError as error:
    print(str(error).partition(" (looked in ")[0])
archive.rename(folder / "uploaded" / "partita.zip")
source = cloudpickle.loads(pickled)
print(source.name(), source.options, sys.modules["partita"].__file__)
"""


def test_a_process_that_lacks_the_package_finds_the_archive_it_was_uploaded_in(tmp_path: Path) -> None:
    """As the process of a stream's source does, whose folder of uploaded files does not exist."""
    with zipfile.ZipFile(tmp_path / "partita.zip", "w") as archive:
        folder = Path(str(partita.__path__[0]))
        for path in (*folder.rglob("*.py"), *folder.rglob("*.json")):
            archive.write(path, path.relative_to(folder.parent))
    pickle_it = (
        "import sys; sys.path.insert(0, sys.argv[1] + '/partita.zip'); from partita.spark.source import GroupSource;"
        " from pyspark import cloudpickle;"
        " open(sys.argv[1] + '/pickled', 'wb').write(cloudpickle.dumps(GroupSource({'subscribe': 't'})))"
    )
    subprocess.run([sys.executable, "-c", pickle_it, str(tmp_path)], check=True, timeout=60)
    python = python_without_partita(tmp_path)
    done = subprocess.run(
        [python, "-c", UNPICKLE, str(tmp_path)], check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "partita is in the uploaded partita.zip, which Spark did not bring to this process",
        f"partita {{'subscribe': 't'}} {tmp_path}/uploaded/partita.zip/partita/__init__.py",
    ]
