"""Records of 100 bytes and of 1 KB from one partition, each client in a process of its own; fields are looked at.

`python bench/consume.py CLIENT BOOTSTRAP TOPIC COUNT` is one such process. kcat prints nothing; Java runs in
bench/peers/Clients.java; the floor is `walk` of bench/floor.c, which copies records into columns.
BENCH_CODECS=lz4,zstd measures compressed topics too.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import peers
from harness import (
    QUICK,
    Medians,
    Server,
    c_program,
    left_out,
    partita,
    report,
    row,
    row_is_wanted,
    turns,
    wanted,
)
from produce_fetch import answer, fetch_frame
from table import AIOKAFKA, C_WALK, CONFLUENT, JAVA, KAFKA_PYTHON, KCAT, OURS

from partita.net.cluster import Cluster
from partita.protocol.messages.fetch import FetchResponse
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch

RECORDS = int(os.environ.get("BENCH_RECORDS", "500000" if QUICK else "2000000"))
LARGE_SHARE = 5
"""So many times fewer records of 1 KB."""
CODECS = {"none": 0, "lz4": 3, "zstd": 4}
BATCHES, BATCH_RECORDS = 16, 580


async def fill(bootstrap: str, topic: str, codec: str, count: int, value_bytes: int = 90) -> None:
    """Write `count` records with keys of ten bytes in batches as a busy producer makes them, half of them random."""
    now_ms = int(time.time() * 1000)
    batches = []
    for _ in range(BATCHES):
        records = [
            (now_ms, b"%010d" % i, os.urandom(value_bytes // 2).hex().encode(), ()) for i in range(BATCH_RECORDS)
        ]
        batches.append(build_batch(records, codec=CODECS[codec]))
    async with Cluster(bootstrap) as cluster:
        await cluster.retry(lambda: cluster.leader_for(topic, 0, create=True))
        for i in range(-(-count // BATCH_RECORDS)):
            data = TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=batches[i % BATCHES])]
            )
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
            answer = await cluster.request(None, request, max_version=12)
            assert not answer.responses[0].partition_responses[0].error_code, answer


def partita_arrow(bootstrap: str, topic: str, count: int) -> int:
    from partita import Consumer

    got = total = 0
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        while got < count:
            batch = consumer.poll_arrow(timeout=1.0)
            if batch is not None and batch.num_rows:
                got += batch.num_rows
                total += batch.column("value").nbytes
    return total


def partita_records(bootstrap: str, topic: str, count: int) -> int:
    from partita import Consumer

    got = total = 0
    with Consumer(bootstrap_servers=bootstrap, max_poll_records=10_000) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        while got < count:
            for record in consumer.poll(timeout=1.0):
                assert isinstance(record.value, bytes)
                assert isinstance(record.key, bytes)
                total += len(record.value) + len(record.key)
                got += 1
    return total


def confluent(bootstrap: str, topic: str, count: int) -> int:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    # As it is by itself it waits a second whenever 100,000 records are queued: a fifth of what it can do.
    ahead = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 5}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, **ahead})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    got = total = 0
    while got < count:
        for message in consumer.consume(10_000, 1.0):
            total += len(message.value() or b"") + len(message.key() or b"")
            got += 1
    consumer.close()
    return total


def aiokafka(bootstrap: str, topic: str, count: int) -> int:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        got = total = 0
        while got < count:
            for records in (await consumer.getmany(timeout_ms=1000, max_records=10_000)).values():
                for record in records:
                    assert isinstance(record.value, bytes)
                assert isinstance(record.key, bytes)
                total += len(record.value) + len(record.key)
                got += len(records)
        await consumer.stop()
        return total

    return asyncio.run(run())


def kafka_python(bootstrap: str, topic: str, count: int) -> int:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    got = total = 0
    while got < count:
        for records in consumer.poll(timeout_ms=1000, max_records=10_000).values():
            for record in records:
                assert isinstance(record.value, bytes)
                assert isinstance(record.key, bytes)
                total += len(record.value) + len(record.key)
            got += len(records)
    consumer.close()
    return total


def kcat(bootstrap: str, topic: str, count: int) -> int:
    """kcat with an empty format: it decodes every record and prints nothing."""
    command = [str(peers.kcat()), "-C", "-q", "-b", bootstrap, "-t", topic, "-p", "0", "-o", "beginning"]
    settings = ["-X", "queued.min.messages=1000000", "-X", "check.crcs=true"]
    subprocess.run([*command, *settings, "-c", str(count), "-f", ""], check=True, stdout=subprocess.DEVNULL)
    return count


ARROW, AS_RECORDS = "partita arrow", "partita records"
CLIENTS: dict[str, Callable[[str, str, int], int]] = {
    ARROW: partita_arrow,
    AS_RECORDS: partita_records,
    CONFLUENT: confluent,
    AIOKAFKA: aiokafka,
    KAFKA_PYTHON: kafka_python,
    KCAT: kcat,
}
SHARE = {AIOKAFKA: 8, KAFKA_PYTHON: 40, CONFLUENT: 4}
"""Slow clients read a part only, so that the whole run stays short."""


def cpu_s() -> float:
    """CPU seconds of this process and of those that it waited for."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def one_client(name: str, bootstrap: str, topic: str, count: int) -> None:
    CLIENTS[name](bootstrap, topic, min(count, 20_000))
    began, cpu = time.perf_counter(), cpu_s()
    CLIENTS[name](bootstrap, topic, count)
    took_s, cpu = time.perf_counter() - began, cpu_s() - cpu
    print(count / took_s, count / cpu)


def command_of(name: str, server: Server, topic: str, count: int, floor: Path | None) -> list[str]:
    """The process that measures this client. Raises PeerUnavailable."""
    if name == JAVA:
        return peers.java_clients("consume", server.bootstrap, topic, str(count // 2))
    if name == KCAT:
        peers.kcat()
    if name == C_WALK:
        return walk_command(floor, server, topic, count)
    return [sys.executable, __file__, name, server.bootstrap, topic, str(count // SHARE.get(name, 1))]


def walk_command(floor: Path | None, server: Server, topic: str, count: int) -> list[str]:
    """The C program that asks for the first megabyte again and again."""
    if floor is None:
        raise peers.PeerUnavailable("no C compiler")
    frame = fetch_frame(1_000_000, topic)
    reply = answer(server, frame)
    path = Path(tempfile.mkstemp(prefix="partita-bench-")[1])
    path.write_bytes(frame)
    records = FetchResponse.decode(reply[8:], 4).responses[0].partitions[0].records
    assert records is not None
    return [
        str(floor),
        "walk",
        str(server.port),
        str(path),
        str(len(reply)),
        str(len(reply) - len(records)),
        str(count),
    ]


Runs = dict[str, list[float]]
"""What each client did in each round."""


def measured(commands: dict[str, list[str]]) -> tuple[Runs, Runs]:
    """Records per second and per CPU-second of each client."""
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in turns():
        for name, command in list(commands.items()):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                left_out("consume", name, (done.stderr.strip().splitlines() or ["failed"])[-1])
                del commands[name], runs[name]
                continue
            figures = [float(figure) for figure in done.stdout.splitlines()[-1].split()]
            if name == C_WALK:
                count, seconds, cpu = figures
                figures = [count / seconds, count / cpu]
            runs[name].append((figures[0], figures[1]))
    per_s, per_cpu_s = ({name: [run[i] for run in found] for name, found in runs.items()} for i in (0, 1))
    return per_s, per_cpu_s


def measure(server: Server, topic: str, count: int, floor: Path | None) -> tuple[Runs, Runs]:
    """All clients that can be had on this topic."""
    commands: dict[str, list[str]] = {}
    for name in (ARROW, AS_RECORDS, CONFLUENT, AIOKAFKA, KAFKA_PYTHON, KCAT, JAVA, C_WALK):
        if name not in (ARROW, AS_RECORDS) and not wanted(name):
            continue
        try:
            commands[name] = command_of(name, server, topic, count, floor)
        except peers.PeerUnavailable as reason:
            left_out("consume", name, str(reason))
    return measured(commands)


def figures_of(way: str, found: Runs) -> Medians:
    """The figures of one row: this way of Partita, and everyone else."""
    return Medians(
        {OURS: found[way], **{name: runs for name, runs in found.items() if name not in (ARROW, AS_RECORDS)}}
    )


def main() -> None:
    floor = c_program("consume", "floor")
    small = ("100 B to Arrow", "100 B as records", "100 B to Arrow, elapsed")
    with partita() as server:
        if any(map(row_is_wanted, small)):
            asyncio.run(fill(server.bootstrap, "small", "none", RECORDS))
            per_s, per_cpu_s = measure(server, "small", RECORDS, floor)
            row(small[0], figures_of(ARROW, per_cpu_s))
            row(small[1], figures_of(AS_RECORDS, per_cpu_s))
            row(small[2], figures_of(ARROW, per_s))
        if row_is_wanted("1 KB to Arrow"):
            count = RECORDS // LARGE_SHARE
            asyncio.run(fill(server.bootstrap, "large", "none", count, value_bytes=1000))
            row("1 KB to Arrow", figures_of(ARROW, measure(server, "large", count, floor)[1]))
        for codec in filter(None, os.environ.get("BENCH_CODECS", "").split(",")):
            asyncio.run(fill(server.bootstrap, codec, codec, RECORDS))
            per_s, per_cpu_s = measure(server, codec, RECORDS, None)
            found = Medians(per_cpu_s)
            report("consume", codec=codec, **{f"{name} per CPU-second": value for name, value in found.items()})


if __name__ == "__main__":
    if len(sys.argv) == 5:
        one_client(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
