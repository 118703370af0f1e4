"""`partita groups log`: the records of `__consumer_offsets`, one by one, on any Kafka."""

from __future__ import annotations

import json
import sys
import time

import click

import partita
from partita.cli.address import Address, address_options
from partita.cli.connecting import complete_group, connected, require_topics
from partita.cli.groups.log_entries import read_entry
from partita.cli.records.where import parse_where
from partita.cli.terminal import say
from partita.group import partition_for

POLL_S = 0.5
LOG_TOPIC = "__consumer_offsets"


@click.command()
@click.argument("group_id", required=False, metavar="[GROUP]", shell_complete=complete_group)
@address_options
@click.option("--from", "start", default="earliest", show_default=True, metavar="WHERE",
              help="Start at earliest, latest, an offset, -N, a time or an age, as in partita consume.")  # fmt: skip
@click.option("--follow", "-F", is_flag=True, help="Go on with new records until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record, with all fields.")
def log(group_id: str | None, bootstrap: Address, start: str, follow: bool, as_json: bool) -> None:
    """Show what the coordinators wrote to __consumer_offsets: commits, members, generations, tombstones.

    With GROUP only its records are shown. A * marks the group leader. Compaction removes records that a later one
    replaces, so an old history has gaps.
    """
    try:
        where = parse_where(start, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with connected(bootstrap) as admin:
        require_topics(admin, [LOG_TOPIC])
        total = len(admin.describe_topics(LOG_TOPIC)[0].partitions)
    numbers = range(total) if group_id is None else [partition_for(group_id, total)]
    partitions = [(LOG_TOPIC, number) for number in numbers]
    options = bootstrap.client_options(auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        with partita.Consumer(options) as consumer:
            begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
            timed = consumer.offsets_for_times(dict.fromkeys(partitions, where.value)) if where.is_time else {}
            at_time = {tp: found.offset for tp, found in timed.items() if found is not None}
            consumer.assign(partitions)
            for tp in begins:
                consumer.seek(tp, where.offset(begins[tp], ends[tp], at_time.get(tp)))
            while follow or any(consumer.position(tp) < end for tp, end in ends.items()):
                for record in consumer.poll(POLL_S):
                    entry = read_entry(record)
                    if group_id in (None, entry.group_id):
                        say(json.dumps(entry.as_json()) if as_json else entry.line())
                sys.stdout.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        return  # who reads the pipe has seen enough
