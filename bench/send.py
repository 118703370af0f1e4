"""100-byte records sent one by one, and many at once, until all are acknowledged; each producer in its own process.

All have the same settings. `python bench/send.py CLIENT BOOTSTRAP TOPIC COUNT` is one such process. The floor is `pack`
of bench/floor.c, which encodes records into batches and keeps five requests in flight.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path

from harness import QUICK, Medians, Server, c_program, left_out, partita, report, row, turns, wanted
from produce_fetch import answer, create_topic
from table import AIOKAFKA, C_PACK, CONFLUENT, CONFLUENT_BATCH, KAFKA_PYTHON, OURS, TABLE

from partita.protocol.framing import encode_request
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch

RECORDS = int(os.environ.get("BENCH_RECORDS", "60000" if QUICK else "300000"))
LINGER_MS, BATCH_BYTES = 5, 131_072
VALUE = os.urandom(50).hex().encode()
PACKED_TIMES = 10
"""So many times more records of the floor, which is through with them at once."""


def partita_blocking(bootstrap: str, topic: str, count: int) -> None:
    from partita import Producer

    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        for _ in range(count):
            producer.send(topic, VALUE)
        producer.flush()


def partita_many(bootstrap: str, topic: str, count: int) -> None:
    from partita import Producer

    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        producer.send_many(topic, [VALUE] * count).result()


def partita_table(bootstrap: str, topic: str, count: int) -> None:
    import pyarrow as pa

    from partita import Producer

    offsets, values = array("i", range(0, (count + 1) * len(VALUE), len(VALUE))), VALUE * count
    column = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(values)])
    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        producer.send_table(topic, pa.table({"value": column})).result()


def partita_asyncio(bootstrap: str, topic: str, count: int) -> None:
    from partita import Producer

    async def run() -> None:
        async with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
            for i in range(count):
                producer.send(topic, VALUE)
                if i % 100 == 0:
                    await producer.room()
                    await asyncio.sleep(0)
            await producer.flush()

    asyncio.run(run())


def confluent(bootstrap: str, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
        }
    )
    failed = []
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, VALUE, on_delivery=lambda error, _: failed.append(error) if error else None)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    assert producer.flush() == 0
    assert not failed, failed[0]


def confluent_batch(bootstrap: str, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    settings = {"enable.idempotence": True, "linger.ms": LINGER_MS, "batch.size": BATCH_BYTES}
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 2 * count, **settings})
    for begin in range(0, count, 10_000):
        some = [{"value": VALUE} for _ in range(min(10_000, count - begin))]
        assert producer.produce_batch(topic, some) == len(some)
    assert producer.flush() == 0


def aiokafka(bootstrap: str, topic: str, count: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
        )
        await producer.start()
        for _ in range(count):
            await producer.send(topic, VALUE)
        await producer.stop()

    asyncio.run(run())


def kafka_python(bootstrap: str, topic: str, count: int) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
    )
    for _ in range(count):
        producer.send(topic, VALUE)
    producer.flush()
    producer.close()


CLIENTS: dict[str, Callable[[str, str, int], None]] = {
    OURS: partita_blocking,
    "partita asyncio": partita_asyncio,
    "partita send_many": partita_many,
    TABLE: partita_table,
    CONFLUENT: confluent,
    CONFLUENT_BATCH: confluent_batch,
    AIOKAFKA: aiokafka,
    KAFKA_PYTHON: kafka_python,
}
SHARE = {AIOKAFKA: 3, KAFKA_PYTHON: 6}
"""Slow clients send a part only, so that the whole run stays short."""


def one_client(name: str, bootstrap: str, topic: str, count: int) -> None:
    CLIENTS[name](bootstrap, topic, 1000)
    began, cpu_s = time.perf_counter(), time.process_time()
    CLIENTS[name](bootstrap, topic, count)
    print(count, time.perf_counter() - began, time.process_time() - cpu_s)


def pack_command(floor: Path, server: Server) -> list[str]:
    """The C program with a request that it fills again and again."""
    asyncio.run(create_topic(server, "packed"))
    batch = build_batch([(1_750_000_000_000, None, VALUE, [])] * (BATCH_BYTES // (len(VALUE) + 9)))
    data = TopicProduceData(name="packed", partition_data=[PartitionProduceData(index=0, records=batch)])
    frame = b"".join(encode_request(0, 7, 1, "bench", ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])))
    path = Path(tempfile.mkstemp(prefix="partita-bench-")[1])
    path.write_bytes(frame)
    shape = [str(len(frame) - len(batch)), str(len(answer(server, frame)))]
    return [str(floor), "pack", str(server.port), str(path), *shape, str(RECORDS * PACKED_TIMES)]


def command_of(name: str, server: Server) -> list[str]:
    topic = f"send-{name.replace(' ', '-')}"
    return [sys.executable, __file__, name, server.bootstrap, topic, str(RECORDS // SHARE.get(name, 1))]


def main() -> None:
    floor = c_program("send", "floor")
    with partita() as server:
        names = [name for name in CLIENTS if name.startswith(OURS) or wanted(name)]
        commands = {name: command_of(name, server) for name in names}
        if floor is not None and wanted(C_PACK):
            commands[C_PACK] = pack_command(floor, server)
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in turns():
            for name, command in list(commands.items()):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    left_out("send", name, (done.stderr.strip().splitlines() or ["failed"])[-1])
                    del commands[name], runs[name]
                    continue
                count, seconds, cpu_s = map(float, done.stdout.splitlines()[-1].split())
                runs[name].append((count / seconds, count / cpu_s))
    per_s, per_cpu_s = ({n: [run[i] for run in found] for n, found in runs.items()} for i in (0, 1))
    many = {OURS: "partita send_many", TABLE: TABLE, CONFLUENT_BATCH: CONFLUENT_BATCH}
    row("sent one by one", Medians({n: found for n, found in per_s.items() if n not in many.values()}))
    row("sent one by one, CPU", Medians({n: v for n, v in per_cpu_s.items() if n not in (*many.values(), C_PACK)}))
    row("sent at once", Medians({shown: per_cpu_s[name] for shown, name in many.items() if name in per_cpu_s}))
    report("send", **{f"{name} records per CPU-second": value for name, value in Medians(per_cpu_s).items()})


if __name__ == "__main__":
    if len(sys.argv) == 5:
        one_client(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
