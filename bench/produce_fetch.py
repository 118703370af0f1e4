"""Produce in 1 MB batches of small and larger records with acks=-1, and fetch in answers of 1 and 16 MB.

Megabytes per CPU-second of the server. Partita and Apache Kafka write to disk, kfake and noida-db keep everything in
memory; so each of these starts again for each measurement. The floors are bench/floor.c: `store` and `serve`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from harness import (
    SECONDS,
    Server,
    apache_kafka,
    c_program,
    c_server,
    in_turns,
    partita,
    row,
    row_is_wanted,
    small_peer,
    wanted,
    wire_program,
)
from heartbeats import frames_file, loaded
from table import C_SERVE, C_STORE, KAFKA, KFAKE, NOIDA, OURS

from partita.admin import Admin
from partita.errors import TopicAlreadyExistsError
from partita.protocol.framing import encode_request
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from partita.records.batch import build_batch

WARM_UP_SECONDS = 0.4
TOPIC = "bench"
C_ANSWER_BYTES = 40
PRODUCE_VERSION = 7
BATCH_BYTES = 1_000_000
RECORD_OVERHEAD_BYTES = 10
"""Of lengths, offset and timestamp: with them a batch would exceed what a topic takes, and every server refuse it."""
FILLED_BYTES = 40_000_000
PRODUCE = {"produce 100 B": 100, "produce 1 KB": 1000}
PRODUCE_IN_MEMORY = {"produce 100 B, memory": 100, "produce 1 KB, memory": 1000}
IN_FLIGHT = 2
IN_FLIGHT_IN_MEMORY = 5
FETCH = {"fetch 1 MB": 1_000_000, "fetch 16 MB": 16_000_000}
MB = 1e6


def produce_frame(record_bytes: int = 1000, topic: str = TOPIC) -> tuple[bytes, int]:
    """A Produce request with one batch of about 1 MB of records with such values; and the batch's size."""
    payload = os.urandom(record_bytes)
    records = BATCH_BYTES // (record_bytes + RECORD_OVERHEAD_BYTES)
    batch = build_batch([(1_750_000_000_000, None, payload, [])] * records)
    partition = PartitionProduceData(index=0, records=batch)
    data = TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    return b"".join(encode_request(0, PRODUCE_VERSION, 1, "bench", request)), len(batch)


def fetch_frame(answer_bytes: int = 16_000_000, topic: str = TOPIC) -> bytes:
    """A Fetch request for answers of this size from the start of the topic."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=answer_bytes)
    asked = FetchTopic(topic=topic, partitions=[partition])
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=answer_bytes, topics=[asked])
    return b"".join(encode_request(1, 4, 1, "bench", request))


def answer(server: Server, frame: bytes) -> bytes:
    """The server's answer to this frame, its length included."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(frame)
        size: int = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
        parts = [struct.pack(">i", size)]
        while size:
            parts.append(connection.recv(min(size, 1 << 20)))
            size -= len(parts[-1])
        return b"".join(parts)


def mb_per_cpu_s(
    program: Path, server: Server, frame: bytes, moved: int, answer_bytes: int, depth: int = IN_FLIGHT
) -> float:
    """MB per CPU-second of the server, where each answered frame stands for `moved` bytes."""
    path = frames_file(frame, 1)
    loaded(program, server, path, answer_bytes, depth, WARM_UP_SECONDS)
    per_cpu_s, _ = loaded(program, server, path, answer_bytes, depth, SECONDS)
    path.unlink()
    return per_cpu_s * moved / MB


async def create_topic(server: Server, name: str = TOPIC) -> None:
    async with Admin(bootstrap_servers=server.bootstrap) as admin:
        with suppress(TopicAlreadyExistsError):  # the answer to the first try came too late
            await admin.create_topic(name, partitions=1)


@contextmanager
def on_disk() -> Iterator[Server]:
    """Partita with a data directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder, partita("--data-dir", folder) as server:
        yield server


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A server that goes on afterwards."""
    yield server


def produced(
    program: Path,
    start: Callable[[], AbstractContextManager[Server | None]],
    record_bytes: int,
    depth: int = IN_FLIGHT,
) -> float:
    """Start (or take) the server, give it a topic of its own, load it."""
    topic = f"{TOPIC}-{os.urandom(4).hex()}"
    frame, batch_bytes = produce_frame(record_bytes, topic)
    with start() as server:
        assert server is not None
        asyncio.run(create_topic(server, topic))
        taken = answer(server, frame)
        part = ProduceResponse.decode(taken[8:], PRODUCE_VERSION).responses[0].partition_responses[0]
        assert not part.error_code, f"{server.name} refuses the batch with error {part.error_code}"
        return mb_per_cpu_s(program, server, frame, batch_bytes, len(taken), depth)


def stored(program: Path, floor: Path, record_bytes: int) -> float:
    """The floor of produce."""
    frame, batch_bytes = produce_frame(record_bytes)
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        least = ["store", f"{folder}/stored", str(len(frame)), str(len(frame) - batch_bytes), str(C_ANSWER_BYTES)]
        with c_server(floor, C_STORE, *least) as server:
            return mb_per_cpu_s(program, server, frame, batch_bytes, C_ANSWER_BYTES)


def measure_produce(program: Path, floor: Path, kafka: Server | None) -> None:
    for name, record_bytes in PRODUCE.items():
        if not row_is_wanted(name):
            continue
        starts: dict[str, Callable[[], AbstractContextManager[Server | None]]] = {OURS: on_disk}
        if kafka is not None:
            starts[KAFKA] = partial(running, kafka)
        starts |= {peer: partial(small_peer, "produce_fetch", peer) for peer in available_peers()}
        measures = {who: partial(produced, program, start, record_bytes) for who, start in starts.items()}
        if wanted(C_STORE):
            measures[C_STORE] = partial(stored, program, floor, record_bytes)
        row(name, in_turns(measures))


def measure_produce_in_memory(program: Path) -> None:
    """The same with five in flight, and nobody writes to a disk."""
    for name, record_bytes in PRODUCE_IN_MEMORY.items():
        if row_is_wanted(name):
            starts: dict[str, Callable[[], AbstractContextManager[Server | None]]] = {OURS: partita}
            starts |= {peer: partial(small_peer, "produce_fetch", peer) for peer in available_peers()}
            depth = IN_FLIGHT_IN_MEMORY
            row(
                name, in_turns({who: partial(produced, program, to, record_bytes, depth) for who, to in starts.items()})
            )


def available_peers() -> list[str]:
    """Which of the small peers can be had."""
    found = []
    for name in (KFAKE, NOIDA):
        with small_peer("produce_fetch", name) as server:
            found += [name] if server is not None else []
    return found


def measure_fetch(program: Path, floor: Path, kafka: Server | None, stack: ExitStack) -> None:
    servers = [stack.enter_context(on_disk()), kafka]
    servers += [stack.enter_context(small_peer("produce_fetch", name)) for name in (KFAKE, NOIDA)]
    present = [server for server in servers if server is not None]
    filling, batch_bytes = produce_frame()
    for server in present:
        asyncio.run(create_topic(server))
        for _ in range(FILLED_BYTES // batch_bytes):
            answer(server, filling)
    for name, size in FETCH.items():
        if not row_is_wanted(name):
            continue
        frame = fetch_frame(size)
        answers = {server.name: answer(server, frame) for server in present}
        measures = {
            server.name: partial(
                mb_per_cpu_s, program, server, frame, len(answers[server.name]), len(answers[server.name])
            )
            for server in present
        }
        if wanted(C_SERVE):
            file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-bench-")), "answer")
            file.write_bytes(answers[OURS])
            served = stack.enter_context(c_server(floor, C_SERVE, "serve", str(file), str(len(frame))))
            moved = len(answers[OURS])
            measures[C_SERVE] = partial(mb_per_cpu_s, program, served, frame, moved, moved)
        row(name, in_turns(measures))


def main() -> None:
    program, floor = wire_program("produce_fetch"), c_program("produce_fetch", "floor")
    if program is None or floor is None:
        return
    with ExitStack() as stack:
        kafka = stack.enter_context(apache_kafka("produce_fetch"))
        if any(map(row_is_wanted, FETCH)):
            measure_fetch(program, floor, kafka, stack)
        if any(map(row_is_wanted, PRODUCE)):
            measure_produce(program, floor, kafka)
    measure_produce_in_memory(program)


if __name__ == "__main__":
    main()
