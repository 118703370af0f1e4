"""Produce in 1 MB batches with acks=-1, and fetch in 16 MB answers: gigabytes per CPU-second of the server."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from harness import Server, apache_kafka, c_server, left_out, measured, partita, report, wire_program
from heartbeats import frames_file

from partita.admin import Admin
from partita.protocol.framing import encode_request
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch

SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
WARM_UP_SECONDS = 1.0
TOPIC = "bench"
C_ANSWER_BYTES = 40
GB = 1e9


def produce_frame() -> tuple[bytes, int]:
    """A Produce request with one batch of about 1 MB of 1000-byte records; and the batch's size."""
    payload = os.urandom(1000)
    batch = build_batch([(1_750_000_000_000, None, payload, [])] * 1000)
    partition = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=TOPIC, partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    return b"".join(encode_request(0, 7, 1, "bench", request)), len(batch)


def fetch_frame() -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=16_000_000)
    topic = FetchTopic(topic=TOPIC, partitions=[partition])
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=16_000_000, topics=[topic])
    return b"".join(encode_request(1, 4, 1, "bench", request))


def answer_bytes(server: Server, frame: bytes) -> int:
    """The size of the server's answer to this frame, its length included."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(frame)
        size: int = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
        left = size
        while left:
            left -= len(connection.recv(min(left, 1 << 20)))
        return size + 4


def load(program: Path, server: Server, frame: bytes, depth: int, size: int, answer: int = 0) -> tuple[float, float]:
    """Return GB/s and GB per CPU-second, where each answered frame stands for `size` bytes."""
    path = frames_file(frame, 1)
    answer = answer or answer_bytes(server, frame)
    rates: list[float] = []

    def work(limit_s: float = SECONDS) -> float:
        arguments = [str(server.port), str(path), str(answer), str(depth), str(limit_s)]
        done = subprocess.run([str(program), "load", *arguments], capture_output=True, text=True, check=True)
        count, seconds = map(float, done.stdout.split())
        rates[:] = [count * size / seconds / GB]
        return count * size / GB

    work(WARM_UP_SECONDS)
    per_cpu_s, _ = measured(server, work)
    path.unlink()
    return rates[0], per_cpu_s


async def create_topic(server: Server) -> None:
    async with Admin(bootstrap_servers=server.bootstrap) as admin:
        await admin.create_topic(TOPIC, partitions=1)


def main() -> None:
    program = wire_program("produce_fetch")
    if program is None:
        return
    produce, batch_bytes = produce_frame()
    fetch = fetch_frame()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-bench-"))
        ours = stack.enter_context(partita("--data-dir", folder))
        kafka = stack.enter_context(apache_kafka("produce_fetch"))
        for server in (ours, *([kafka] if kafka else [])):
            asyncio.run(create_topic(server))
            rate, per_cpu_s = load(program, server, produce, 2, batch_bytes)
            report("produce", server=server.name, **{"GB/s": rate, "GB per CPU-second": per_cpu_s})
            answer = answer_bytes(server, fetch)
            rate, per_cpu_s = load(program, server, fetch, 2, answer)
            report("fetch", server=server.name, answer_bytes=answer, **{"GB/s": rate, "GB per CPU-second": per_cpu_s})
        least = ["store", str(Path(folder, "stored")), str(len(produce)), str(C_ANSWER_BYTES)]
        stored = stack.enter_context(c_server(program, "C, receive and write", *least))
        rate, per_cpu_s = load(program, stored, produce, 2, batch_bytes, C_ANSWER_BYTES)
        report("produce", server=stored.name, **{"GB/s": rate, "GB per CPU-second": per_cpu_s})
    left_out("produce_fetch", "kfake, noida-db", "not published as packages")


if __name__ == "__main__":
    main()
