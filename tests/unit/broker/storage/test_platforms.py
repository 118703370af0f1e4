"""What imports and runs where the POSIX modules are missing, and how macOS makes data durable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from partita.broker.storage.disk_storage import DiskStorage, sync_data

HIDDEN = """
import asyncio, concurrent.futures, importlib.metadata, os, random, shutil, sys, tempfile, threading
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "uvloop"):
    sys.modules[name] = None
for name in (
    "pread", "pwrite", "pwritev", "preadv", "fdatasync", "statvfs", "O_CLOEXEC", "O_DIRECTORY", "register_at_fork"
):
    if hasattr(os, name):
        delattr(os, name)
"""
"""Run first: the standard library has what it needs, and nothing else finds what Windows does not have."""


def without_posix(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + program], capture_output=True, text=True, timeout=60, check=False
    )


def test_clients_command_line_and_a_broker_in_memory_need_no_posix_modules() -> None:
    """Windows has none of them."""
    done = without_posix(
        "import partita, partita.cli.main, partita.cli.commands, partita.cli.broker, partita.cli.doctor\n"
        "import partita.testing, partita.broker.storage.data_dir\n"
        "with partita.Broker() as broker:\n"
        "    with partita.Producer(bootstrap_servers=broker.bootstrap) as producer:\n"
        "        producer.send('t', b'hello').result(60)\n"
        "    options = dict(group_id='g', auto_offset_reset='earliest')\n"
        "    with partita.Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:\n"
        "        consumer.subscribe(['t'])\n"
        "        print(next(iter(consumer)).value)\n"
    )
    assert done.stdout.strip() == "b'hello'", done.stderr


def test_a_data_directory_is_refused_where_it_cannot_be_kept() -> None:
    done = without_posix(
        "os.name = 'nt'\n"
        "from partita.broker.storage.data_dir import DataDirectoryError, DiskStore\n"
        "try:\n    DiskStore('x')\nexcept DataDirectoryError as error:\n    print(error)\n"
    )
    assert "needs Linux or macOS" in done.stdout, done.stderr


@pytest.mark.parametrize("knows_full_sync", [True, False])
def test_macos_empties_the_cache_of_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows_full_sync: bool
) -> None:
    """Without `os.fdatasync` it is F_FULLFSYNC, and `os.fsync` on volumes that do not know that."""
    calls: list[object] = []

    def fcntl(fd: int, operation: int) -> None:
        calls.append(operation)
        if not knows_full_sync:
            raise OSError("not supported")

    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append("fsync"))
    monkeypatch.setitem(sys.modules, "fcntl", SimpleNamespace(fcntl=fcntl, F_FULLFSYNC=51))
    file = DiskStorage(str(tmp_path)).open("a.log", create=True)
    file.append([b"x"])
    file.sync()
    assert calls == ([51] if knows_full_sync else [51, "fsync"])


def test_without_either_it_is_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", calls.append)
    monkeypatch.setitem(sys.modules, "fcntl", SimpleNamespace())
    sync_data(7)
    assert calls == [7]
