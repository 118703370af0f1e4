"""Preparation of a Spark Python worker, so that reusing it is cheap and its tasks start at once."""

from __future__ import annotations

import gc
import os
import pickle
import socket
import sys
from contextlib import suppress
from glob import glob
from importlib.util import find_spec
from typing import Any, SupportsIndex

from pyspark import SparkFiles, cloudpickle

_FDS = "/proc/self/fd"
_settled = False


def settle() -> None:
    """In a worker of Spark, once: collect, then freeze the remaining objects. Elsewhere nothing.

    Spark's daemon runs a full garbage collection after each task of a worker. It walks everything that was imported,
    including pandas and pyarrow: 30 to 50 ms of CPU time for a task that may have read 200 rows. Call this at the end
    of a task, when everything that a task needs has been imported.
    """
    global _settled
    if not _settled and _is_worker():
        _settled = True
        gc.collect()
        gc.freeze()


def acknowledge_at_once() -> None:
    """In a worker of Spark on Linux: have the kernel acknowledge received TCP data now. Elsewhere nothing.

    The JVM sends a task in two parts and keeps the second until the first is acknowledged, which a kernel delays by
    40 ms when the process at the other end sends nothing. Call this between the two, as `SentToWorkers` does. Where a
    session has Unix sockets there is nothing to wait for, and nothing is done.
    """
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None or not _is_worker():
        return
    for number in map(int, os.listdir(_FDS)):
        with suppress(OSError):  # no socket, or none of TCP
            found = socket.socket(fileno=number)
            try:
                found.setsockopt(socket.IPPROTO_TCP, option, 1)
            finally:
                found.detach()


class SentByArchive:
    """Takes the name of its archive along when it is pickled, if this package was imported from one.

    Spark gives uploaded files to planners. Processes of a stream's source and tasks of streams look for them in other
    folders (Spark 4.0 to 4.3), so what they unpickle first has to find the archive.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        plain = super().__reduce_ex__(protocol)
        archive = getattr(__spec__.loader, "archive", None)
        return plain if archive is None else by_archive(archive, plain)


class SentToWorkers(SentByArchive):
    """A reader or writer whose unpickling acknowledges the first part of each of its tasks at once."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge_at_once()


def by_archive(archive: str, plain: Any) -> tuple[Any, ...]:
    """Return what pickles an object, given by its plain reduction, for processes that lack this package.

    They find the archive beside their own folder of uploaded files or in a folder below it. The function that does so
    is a local one: cloudpickle takes it along, and names the modules that it uses.
    """

    def load(archive: str, pickled: bytes) -> Any:
        if find_spec("partita") is None:
            own, name = SparkFiles.getRootDirectory(), os.path.basename(archive)
            beside = glob(f"{os.path.dirname(own)}/*/{name}")
            places = [place for place in (archive, *beside, *glob(f"{own}/*/{name}")) if os.path.exists(place)]
            if not places:
                raise ImportError(
                    f"partita is in the uploaded {name}, which Spark did not bring to this process (looked in {own}):"
                    " install partita[spark] at the server and its executors"
                )
            sys.path.append(places[0])
        make, given, state, *_ = pickle.loads(pickled)
        made = make(*given)
        getattr(made, "__setstate__", made.__dict__.update)(state)
        return made

    return load, (archive, cloudpickle.dumps(plain))  # type: ignore[no-untyped-call]  # pyspark's copy has no types


def _is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == "pyspark.daemon"
