"""`partita perf`: how fast a cluster takes records, hands them out, and rebalances a group."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

import partita
from partita.cli.address import Address, address_options, client_settings_option
from partita.cli.connecting import (
    complete_topic,
    connected,
    json_option,
    patient_for,
    require_broker,
    require_topics,
    writable_partitions,
)
from partita.cli.records.patience import Patience, brief_calls, told_once
from partita.cli.terminal import print_json, say
from partita.cli.variables import NumberRange

if TYPE_CHECKING:
    from partita import Consumer
    from partita.producer.shell.client import DeliveryFuture

POLL_S = 0.2
SETTLE_WITHIN_S = 60.0
GIVE_UP_AFTER_S = 15
MEBIBYTE = 1 << 20


@click.group()
def perf() -> None:
    """Measure the speed of producing, consuming and rebalancing, as a client of the cluster sees it."""


@perf.command("produce")
@click.argument("topic", shell_complete=complete_topic)
@address_options
@click.option("--records", "-n", type=click.IntRange(min=1), default=100_000, show_default=True, help="How many.")
@click.option("--size", type=click.IntRange(min=0), default=100, show_default=True, help="Bytes of each value.")
@click.option("--rate", type=NumberRange(min=1), help="Records per second to send at most.")
@client_settings_option("producer")
@json_option
def produce_(
    topic: str, bootstrap: Address, records: int, size: int, rate: float | None, client_settings: dict[str, str],
    as_json: bool,
) -> None:  # fmt: skip
    """Write random values to TOPIC. Prints records and MiB per second and the time until each was acknowledged."""
    require_broker(bootstrap)
    value = os.urandom(size)
    took: list[float] = []
    failures: list[Exception] = []
    options = bootstrap.client_options()
    options |= patient_for(client_settings, options, GIVE_UP_AFTER_S) | client_settings
    with told_once(outages=True), partita.Producer(options) as producer:
        writable_partitions(producer, topic)
        began = time.perf_counter()
        for number in range(records):
            if failures:
                break
            if rate is not None:
                time.sleep(max(0.0, began + number / rate - time.perf_counter()))
            producer.send(topic, value).add_done_callback(_Timed(time.perf_counter(), took, failures))
        producer.flush()
        seconds = time.perf_counter() - began
    if failures:
        raise click.ClickException(str(failures[0]))
    _print({"records": records, **_rates(records, records * size, seconds), **_latency_ms(took)}, as_json)


class _Timed:
    """Called when a record is acknowledged: adds how long that took, or the failure."""

    __slots__ = ("_failures", "_sent_at", "_took")

    def __init__(self, sent_at: float, took: list[float], failures: list[Exception]) -> None:
        self._sent_at, self._took, self._failures = sent_at, took, failures

    def __call__(self, future: DeliveryFuture) -> None:
        failure = future.failure()
        if failure is not None:
            self._failures.append(failure)
        self._took.append(time.perf_counter() - self._sent_at)


@perf.command("consume")
@click.argument("topic", shell_complete=complete_topic)
@address_options
@click.option("--records", "-n", type=click.IntRange(min=1), help="How many to read; without it, all there are now.")
@client_settings_option("consumer")
@json_option
def consume_(
    topic: str, bootstrap: Address, records: int | None, client_settings: dict[str, str], as_json: bool
) -> None:
    """Read TOPIC from its start. Prints records and MiB per second; looks at every key and value."""
    with connected(bootstrap) as admin:
        require_topics(admin, [topic])
    options = bootstrap.client_options(auto_offset_reset="earliest")
    options |= brief_calls(client_settings, options) | client_settings
    with told_once(outages=True), partita.Consumer(options) as consumer:
        partitions = [(topic, number) for number in consumer.partitions_for(topic)]
        begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        left = sum(ends[tp] - begins[tp] for tp in ends)
        wanted = left if records is None else records
        patience = Patience(consumer, ends)
        done, volume, began = 0, 0, time.perf_counter()
        while done < wanted and (behind := patience.behind(ends)):
            records_now = consumer.poll(POLL_S, max_records=wanted - done)
            if not records_now:
                patience.nothing_came(behind)
            for record in records_now:
                done += 1
                volume += sum(len(field) for field in (record.key, record.value) if isinstance(field, bytes))
        seconds = time.perf_counter() - began
    _print({"records": done, **_rates(done, volume, seconds)}, as_json)


@perf.command("group")
@click.argument("topic", shell_complete=complete_topic)
@address_options
@click.option("--members", "-m", type=click.IntRange(min=2), default=5, show_default=True, help="How many members.")
@click.option("--group", "-g", help="Name of the group, deleted at the end. [default: a new one]")
@client_settings_option("consumer")
@json_option
def group_(
    topic: str, bootstrap: Address, members: int, group: str | None, client_settings: dict[str, str], as_json: bool
) -> None:
    """Time the rebalances of a group on TOPIC: all members join, one more joins, and one leaves.

    Each time ends when every partition has an owner again. Give the topic at least as many partitions as members.
    """
    group = group or f"partita-perf-{os.getpid()}"
    with connected(bootstrap) as admin:
        require_topics(admin, [topic])
        total = len(admin.describe_topics(topic)[0].partitions)
        options = bootstrap.client_options(group_id=group, enable_auto_commit=False) | client_settings
        with told_once(outages=True), ExitStack() as stack:
            joined = [stack.enter_context(partita.Consumer(options)) for _ in range(members - 1)]
            patience = Patience(joined[0], {})
            began = time.perf_counter()
            for consumer in joined:
                consumer.subscribe([topic])
            first = _settled(joined, patience, total, began)
            last = stack.enter_context(partita.Consumer(options))
            began = time.perf_counter()
            last.subscribe([topic])
            joins = _settled([*joined, last], patience, total, began)
            began = time.perf_counter()
            last.close()
            leaves = _settled(joined, patience, total, began)
        admin.delete_groups(group)
    times = {"all_join_ms": first, "one_joins_ms": joins, "one_leaves_ms": leaves}
    _print({"members": members, "partitions": total, **times}, as_json)


def _settled(members: Sequence[Consumer], patience: Patience, partitions: int, began: float) -> float:
    """Milliseconds from `began` until the members share all partitions.

    Raises ClickException after a minute, or as soon as `patience` says that no broker has been reachable for too long.
    """
    shared = min(len(members), partitions)
    while True:
        for member in members:
            member.poll(0.01, max_records=1)
        patience.nothing_came(())
        held = [member.assignment() for member in members]
        if len(set().union(*held)) == sum(map(len, held)) == partitions and sum(map(bool, held)) == shared:
            return round((time.perf_counter() - began) * 1000, 1)
        if time.perf_counter() - began > SETTLE_WITHIN_S:
            raise click.ClickException(f"the group has not settled within {SETTLE_WITHIN_S:.0f} s")


def _rates(records: int, volume: int, seconds: float) -> dict[str, float]:
    safe = max(seconds, 1e-9)
    return {
        "seconds": round(seconds, 3),
        "records_per_second": round(records / safe),
        "mib_per_second": round(volume / safe / MEBIBYTE, 2),
    }


def _latency_ms(took: list[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum of the acknowledgement times, in ms."""
    ordered = sorted(took)
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 2)
        for name, share in (("ack_ms_p50", 0.5), ("ack_ms_p99", 0.99), ("ack_ms_max", 1.0))
    }


def _print(figures: dict[str, float], as_json: bool) -> None:
    if as_json:
        print_json(figures)
        return
    for name, figure in figures.items():
        say(f"{name.replace('_', ' '):20} {figure:>14,}")
