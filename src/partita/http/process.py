"""Metrics of this process under the names of Prometheus' client libraries, where the system provides them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from partita.lazy import later

if TYPE_CHECKING:
    import resource
else:
    resource = later("resource")

_STARTED = time.time()


def process_text() -> str:
    """Memory, file descriptors, CPU and start of this process in Prometheus' text format."""
    return "".join(
        f"# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value:.15g}\n" for name, kind, help, value in _numbers()
    )


def _numbers() -> Iterator[tuple[str, str, str, float]]:
    yield "process_start_time_seconds", "gauge", "when the process started, in seconds since 1970", _STARTED
    yield "process_cpu_seconds_total", "counter", "seconds of CPU used", time.process_time()
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        descriptors = len(os.listdir("/proc/self/fd"))
    except (OSError, ValueError, AttributeError, IndexError):
        return  # no Linux

    yield "process_resident_memory_bytes", "gauge", "memory in use", memory
    yield "process_open_fds", "gauge", "open file descriptors", descriptors
    yield "process_max_fds", "gauge", "file descriptors that may be open", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
