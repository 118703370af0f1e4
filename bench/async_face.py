"""The asyncio face as it is, with its I/O thread, beside one whose I/O runs in the application's own loop.

Throughput of polls and of `async for`, the time from a send to the record, and whether a handler that holds the loop
for three session time-outs costs the member its place. Each variant runs in a process of its own, with asyncio's loop
and with uvloop. Decision 143 draws the conclusion.

`python bench/async_face.py VARIANT LOOP BOOTSTRAP` is one such process.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

from consume import fill
from harness import partita, report

from partita import AsyncConsumer, AsyncProducer
from partita.consumer.config import ConsumerConfig
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.io_thread import IoThread
from partita.consumer.shell.waiting import AsyncWaiter

RECORDS = int(os.environ.get("BENCH_RECORDS", "1000000"))
ROUNDS = 1000
SESSION_MS = 1000
RUNS = 3


class LoopIo(IoThread):
    """The same I/O without a thread: everything runs in the loop of whoever uses the consumer first."""

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def stop(self) -> threading.Thread | None:
        """Close every connection at the loop's next turn; there is no thread to wait for."""
        if self._loop is not None and not self._is_over:
            self._is_over = True
            self._loop.call_soon(self._shut_down)
        return None

    def _shut_down(self) -> None:
        self._ending = asyncio.get_running_loop().create_task(asyncio.sleep(0))
        for task in self._tasks:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._pool is not None:
            self._pool.close()


VARIANTS = {"thread": IoThread, "one loop": LoopIo}


def consumer(variant: str, bootstrap: str, **options: Any) -> AsyncConsumer[bytes, bytes]:
    """A consumer of this variant."""
    config = ConsumerConfig.of({}, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **options)
    return AsyncConsumer._over(ConsumerDriver(config, AsyncWaiter(), strict=False, make_io=VARIANTS[variant]))


async def polls(variant: str, bootstrap: str) -> float:
    """Seconds to read all records by polls."""
    async with consumer(variant, bootstrap) as source:
        source.assign([("full", 0)])
        began, got = time.perf_counter(), 0
        while got < RECORDS:
            got += sum(1 for record in await source.poll(1.0) if record.value)
        return time.perf_counter() - began


async def loop(variant: str, bootstrap: str) -> float:
    """Seconds to read all records by `async for`."""
    async with consumer(variant, bootstrap) as source:
        source.assign([("full", 0)])
        began, got = time.perf_counter(), 0
        async for record in source:
            got += bool(record.value)
            if got == RECORDS:
                break
        return time.perf_counter() - began


async def latency(variant: str, bootstrap: str) -> float:
    """Median time from `send` to the record in microseconds, one record at a time."""
    took: list[float] = []
    sender = AsyncProducer(bootstrap_servers=bootstrap, linger_ms=0)
    async with consumer(variant, bootstrap) as source, sender as producer:
        await producer.send("echo", b"first", partition=0)
        source.assign([("echo", 0)])
        while not await source.poll(1.0):
            pass
        for _ in range(ROUNDS):
            began = time.perf_counter()
            producer.send("echo", b"x", partition=0)
            while not await source.poll(1.0):
                pass
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


async def keeps_its_place(variant: str, bootstrap: str) -> bool:
    """Is the generation the same after a handler has held the loop for three session time-outs?"""
    group = f"{variant}-{os.getpid()}"
    times = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": SESSION_MS // 4}
    async with consumer(variant, bootstrap, group_id=group, **times) as source:
        source.subscribe(["full"])
        while not await source.poll(1.0):
            pass
        generation = source.group_metadata().generation_id
        time.sleep(3 * SESSION_MS / 1000)  # noqa: ASYNC251 (it is the question)
        for _ in range(20):
            await source.poll(0.1)
        return source.group_metadata().generation_id == generation


async def one(variant: str, bootstrap: str) -> dict[str, object]:
    figures: dict[str, object] = {}
    for name, measure in (("polls", polls), ("async_for", loop)):
        runs = []
        for _ in range(RUNS):
            cpu_s = time.process_time()
            took_s = await measure(variant, bootstrap)
            runs.append((took_s, time.process_time() - cpu_s))
        figures[f"{name}_per_s"] = RECORDS / min(took for took, _ in runs)
        figures[f"{name}_per_cpu_s"] = RECORDS / min(cpu for _, cpu in runs)
    cpu_s = time.process_time()
    figures["echo_median_us"] = await latency(variant, bootstrap)
    figures["echo_cpu_us"] = (time.process_time() - cpu_s) / ROUNDS * 1e6
    figures["keeps_its_place"] = await keeps_its_place(variant, bootstrap)
    return figures


def run_one(variant: str, kind: str, bootstrap: str) -> None:
    """Print the figures of one variant in this process."""
    if kind == "uvloop":
        import uvloop

        uvloop.install()
    print(json.dumps(asyncio.run(one(variant, bootstrap))))


def main() -> None:
    """Measure both variants with both loops on one broker."""
    with partita("--set", "group.min.session.timeout.ms=500") as broker:
        asyncio.run(fill(broker.bootstrap, "full", "none", RECORDS))
        for kind in ("asyncio", "uvloop"):
            for variant in VARIANTS:
                command = [sys.executable, __file__, variant, kind, broker.bootstrap]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                report("async_face", variant=variant, loop=kind, **json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    run_one(*sys.argv[1:4]) if len(sys.argv) > 1 else main()
