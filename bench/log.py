"""Append and read speed of one partition's log, per CPU-second: `python bench/log.py [directory]`.

Prints one JSON line. Appending: the checks of the produce path, then the write. Reading: 16 MiB at a time, sent through
a socket pair as a broker would; the receiver's work is left out.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import tempfile
import threading
import time

from partita.broker.storage.disk_storage import DiskStorage
from partita.log.log_config import Durability, LogConfig
from partita.log.partition_log import PartitionLog
from partita.log.storage import MemoryStorage, Storage
from partita.records.batch import build_batch
from partita.records.validate import check_produced
from partita.system_clock import SystemClock

BATCH_BYTES = 1_000_000
APPENDS = 800
READ_BYTES = 16 << 20


def append_rate(log: PartitionLog, batch: bytearray, count: int) -> float:
    """Bytes appended per CPU-second."""
    clock, started = SystemClock(), time.process_time()
    for _ in range(count):
        header = check_produced(batch)
        log.append(memoryview(batch)[: header.size_in_bytes], 0, clock.now(), header=header)
    return count * len(batch) / (time.process_time() - started)


def read_rate(log: PartitionLog, batch_bytes: int) -> float:
    """Bytes read, and sent, per CPU-second of this thread."""
    ours, theirs = socket.socketpair()
    drain = threading.Thread(target=_drain, args=(theirs,), daemon=True)
    drain.start()
    total, started = 0, time.thread_time()
    for _ in range(3):
        offset = 0
        while offset < log.log_end_offset:
            view = log.read(offset, READ_BYTES)
            ours.sendall(view)
            total += len(view)
            offset += len(view) // batch_bytes
    spent = time.thread_time() - started
    ours.close()
    drain.join()
    return total / spent


def _drain(end: socket.socket) -> None:
    buffer = bytearray(1 << 20)
    while end.recv_into(buffer):
        pass
    end.close()


def measure(storage: Storage, durability: Durability) -> dict[str, float]:
    empty = len(build_batch([(0, None, b"", ())]))
    batch = bytearray(build_batch([(int(time.time() * 1000), None, os.urandom(BATCH_BYTES - empty - 6), ())]))
    batch_count = APPENDS * BATCH_BYTES // len(batch)
    log = PartitionLog.open(storage, "bench", LogConfig(), durability=durability)
    result = {"append_GB_per_cpu_s": append_rate(log, batch, batch_count) / 1e9}
    small = bytearray(build_batch([(int(time.time() * 1000), None, b"x" * 100, ())] * 10))
    tiny = PartitionLog.open(storage, "tiny", LogConfig(), durability=durability)
    result["small_appends_per_cpu_s"] = append_rate(tiny, small, 20_000) / len(small)
    result["read_and_send_GB_per_cpu_s"] = read_rate(log, len(batch)) / 1e9
    started = time.thread_time()
    for offset in range(20_000):
        tiny.read(offset, 1 << 20 if offset % 100 == 0 else 2000)
    result["small_reads_per_cpu_s"] = 20_000 / (time.thread_time() - started)
    log.close()
    return {name: round(value, 2) for name, value in result.items()}


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as root:
        result = {
            "bench": "log",
            "machine": f"{platform.machine()} x{os.cpu_count()} {platform.python_version()}",
            "memory": measure(MemoryStorage(), Durability.MEMORY),
            "os": measure(DiskStorage(root), Durability.OS),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
