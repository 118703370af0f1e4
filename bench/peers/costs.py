"""One process of bench/client_costs.py: `python costs.py CLIENT BOOTSTRAP GROUP TOPIC PARTITIONS SECONDS`.

Without seconds it prints the CPU milliseconds from the start of the process to the first record, else the percentage of
a core that `poll(1.0)` in a loop takes while nothing comes; then the peak of memory in MB. It imports the client alone,
so that the start is the client's, and ends without closing, which is another row's.
"""

import os
import resource
import sys
import time
from collections.abc import Callable

SETTLING_S = 5.0
Client = tuple[Callable[[], object], Callable[[], int]]
"""What polls once for a second, and how many partitions are assigned."""


def partita(bootstrap: str, group: str, topic: str) -> Client:
    from partita import Consumer

    consumer = Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    consumer.subscribe([topic])
    return lambda: consumer.poll(1.0), lambda: len(consumer.assignment())


def confluent(bootstrap: str, group: str, topic: str) -> Client:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    return lambda: consumer.poll(1.0), lambda: len(consumer.assignment())


def aiokafka(bootstrap: str, group: str, topic: str) -> Client:
    import asyncio

    from aiokafka import AIOKafkaConsumer

    async def started() -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
        await consumer.start()
        return consumer

    loop = asyncio.new_event_loop()
    consumer = loop.run_until_complete(started())
    return lambda: loop.run_until_complete(consumer.getmany(timeout_ms=1000)), lambda: len(consumer.assignment())


def kafka_python(bootstrap: str, group: str, topic: str) -> Client:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    return lambda: consumer.poll(timeout_ms=1000), lambda: len(consumer.assignment())


CLIENTS = {"partita": partita, "confluent-kafka": confluent, "aiokafka": aiokafka, "kafka-python": kafka_python}


def cpu_s() -> float:
    """CPU seconds of this process, its start included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mb() -> float:
    """The most memory this program had resident; `ru_maxrss` would begin with the parent's."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def cost(client: Client, partitions: int, seconds: float) -> float:
    """What the client took, in milliseconds or per cent."""
    poll, held = client
    if not seconds:
        while not poll():
            pass
        return cpu_s() * 1000
    while held() < partitions:
        poll()
    settled = time.monotonic() + SETTLING_S
    while time.monotonic() < settled:
        poll()
    began, used = time.monotonic(), cpu_s()
    while time.monotonic() < began + seconds:
        poll()
    return (cpu_s() - used) / (time.monotonic() - began) * 100


if __name__ == "__main__":
    name, bootstrap, group, topic, partitions, seconds = sys.argv[1:]
    figure = cost(CLIENTS[name](bootstrap, group, topic), int(partitions), float(seconds))
    print(figure, peak_mb(), flush=True)
    os._exit(0)
