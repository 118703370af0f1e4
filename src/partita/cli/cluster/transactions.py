"""`partita transactions`: show transactional ids and end abandoned transactions, as kafka-transactions does."""

from __future__ import annotations

import time

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import connected, json_option, partition_pairs, yes_option
from partita.cli.terminal import confirm, print_json, print_table, say
from partita.wording import count

_WHERE = "TOPIC or TOPIC:0,1"


@click.group()
def transactions() -> None:
    """List, describe and abort transactions; find those that hang."""


@transactions.command("list")
@address_options
@click.option("--state", multiple=True, metavar="NAME", help="Only in this state, such as Ongoing.")
@click.option("--producer-id", multiple=True, type=int, metavar="ID", help="Only of this producer id.")
@click.option("--longer-than", type=click.IntRange(min=0), metavar="SECONDS", help="Only open for longer.")
@click.option("--pattern", metavar="REGEX", help="Only ids that match as a whole.")
@json_option
def list_(
    bootstrap: Address,
    state: tuple[str, ...],
    producer_id: tuple[int, ...],
    longer_than: int | None,
    pattern: str | None,
    as_json: bool,
) -> None:
    """Show transactional ids with their coordinators, producer ids and states."""
    min_ms = -1 if longer_than is None else longer_than * 1000
    with connected(bootstrap) as admin:
        found = admin.list_transactions(states=state, producer_ids=producer_id, min_duration_ms=min_ms, pattern=pattern)
    if as_json:
        print_json(found)
    elif not found:
        say("no transactional ids")
    else:
        rows = [(one.transactional_id, one.coordinator, one.producer_id, one.state) for one in found]
        print_table(["transactional id", "coordinator", "producer id", "state"], rows)


@transactions.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@address_options
@json_option
def describe(bootstrap: Address, ids: tuple[str, ...], as_json: bool) -> None:
    """Show state, timeout, age and partitions of transactional ids."""
    with connected(bootstrap) as admin:
        found = admin.describe_transactions(ids)
    if as_json:
        print_json(found)
        return
    now_ms = time.time_ns() // 1_000_000
    rows = [
        (
            one.transactional_id,
            one.coordinator,
            one.producer_id,
            one.producer_epoch,
            one.state,
            f"{one.timeout_ms / 1000:g} s",
            _age(now_ms - one.started_ms) if one.started_ms is not None and one.partitions else None,
            " ".join(f"{topic}:{partition}" for topic, partition in one.partitions) or None,
        )
        for one in found
    ]
    names = ["transactional id", "coordinator", "producer id", "epoch", "state", "timeout", "open for", "partitions"]
    print_table(names, rows)


@transactions.command()
@click.argument("where", nargs=-1, required=True, metavar=f"[{_WHERE}]...")
@address_options
@json_option
def producers(bootstrap: Address, where: tuple[str, ...], as_json: bool) -> None:
    """Show the producers that partitions remember, with the first offset of an open transaction."""
    with connected(bootstrap) as admin:
        found = admin.describe_producers(partition_pairs(admin, where))
    if as_json:
        print_json(
            [
                {"topic": topic, "partition": partition, **one.as_json()}
                for (topic, partition), some in found.items()
                for one in some
            ]
        )
        return
    now_ms = time.time_ns() // 1_000_000
    rows = [
        (
            *at,
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            _age(now_ms - one.last_timestamp_ms),
            one.open_since_offset,
        )
        for at, some in found.items()
        for one in some
    ]
    print_table(["topic", "partition", "producer id", "epoch", "last sequence", "last record", "open since"], rows)


@transactions.command("find-hanging")
@click.argument("where", nargs=-1, metavar=f"[{_WHERE}]...")
@address_options
@click.option(
    "--max-transaction-timeout",
    type=click.IntRange(min=0),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="The cluster's transaction.max.timeout.ms: younger transactions are skipped.",
)
@json_option
def find_hanging(bootstrap: Address, where: tuple[str, ...], max_transaction_timeout: int, as_json: bool) -> None:
    """Find open transactions that no coordinator will end; they hold back every read_committed reader."""
    with connected(bootstrap) as admin:
        partitions = partition_pairs(admin, where) if where else None
        found = admin.find_hanging_transactions(partitions, max_transaction_timeout_ms=max_transaction_timeout * 1000)
    if as_json:
        print_json(found)
        return
    if not found:
        say("no transaction hangs")
        return
    rows = [
        (one.topic, one.partition, one.start_offset, one.transactional_id, one.producer_id, one.producer_epoch,
         _age(one.idle_ms))
        for one in found
    ]  # fmt: skip
    print_table(["topic", "partition", "start offset", "transactional id", "producer id", "epoch", "idle for"], rows)
    say("end one with: partita transactions abort --topic TOPIC --partition N --start-offset N")


@transactions.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@address_options
@click.option("--topic", help="Where a hanging transaction is open.")
@click.option("--partition", type=click.IntRange(min=0), help="Its partition.")
@click.option("--start-offset", type=click.IntRange(min=0), help="Its first offset, as find-hanging shows it.")
@yes_option
def abort(
    bootstrap: Address,
    ids: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    yes: bool,
) -> None:
    """Abort the open transactions of transactional ids and fence their producers, or end one hanging transaction.

    A live producer with one of these ids fails with ProducerFencedError. With --topic, --partition and --start-offset
    an abort marker is written into that partition, whatever the coordinator thinks.
    """
    place = (topic, partition, start_offset)
    if bool(ids) == any(part is not None for part in place):
        raise click.UsageError("name transactional ids, or --topic, --partition and --start-offset")
    with connected(bootstrap) as admin:
        if ids:
            known = [one.transactional_id for one in admin.describe_transactions(ids)]
            confirm(f"Fence the producers of {count(len(known), 'transactional id')}?", yes=yes)
            admin.fence_producers(known)
            say(f"fenced {count(len(known), 'transactional id')}")
            return
        if topic is None or partition is None or start_offset is None:
            raise click.UsageError("--topic, --partition and --start-offset belong together")
        confirm(f"Abort the transaction at offset {start_offset} of {topic}-{partition}?", yes=yes)
        ended = admin.abort_hanging_transaction(topic, partition, start_offset)
        say(f"aborted the transaction of producer {ended.producer_id} in {topic}-{partition}")


def _age(ms: int) -> str:
    seconds = max(0, ms) // 1000
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
