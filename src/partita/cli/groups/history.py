"""`partita groups history`: the rebalances of a group as the log of any Kafka tells them, as text or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import connected, json_option, require_topics
from partita.cli.groups.history_page import Step, history_page, steps_of
from partita.cli.groups.log import LOG_TOPIC, POLL_S
from partita.cli.records.formats import iso_time
from partita.cli.terminal import print_json, print_table, say
from partita.group import partition_for
from partita.group.records.read_back import LogRecord

COLUMNS = ("time", "generation", "members", "added", "removed", "moved")


@click.command()
@click.argument("group_id", metavar="GROUP")
@address_options
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write a page with a picture of who held which partition.")  # fmt: skip
@json_option
def history(group_id: str, bootstrap: Address, page: Path | None, as_json: bool) -> None:
    """Show how the members and partitions of a group changed, generation by generation.

    Read from __consumer_offsets. Compaction removes old generations, so the history has gaps. The same rows in Spark:
    view=rebalances and view=assignments.
    """
    steps = steps_of(record for record in _records(bootstrap, group_id))
    steps = [step for step in steps if step.group == group_id]
    if as_json:
        print_json([step.as_json() for step in steps])
    elif not steps:
        say(f"the log knows nothing of group {group_id}")
    elif page is None:
        print_table(list(COLUMNS), [_line(step) for step in steps])
    if page is not None and steps:
        page.write_text(history_page(group_id, steps), encoding="utf-8")
        if not as_json:
            say(f"wrote {page}")


def _records(bootstrap: Address, group_id: str) -> list[LogRecord]:
    """Everything in the group's partition of the log, up to its end now."""
    from partita import Consumer

    with connected(bootstrap) as admin:
        require_topics(admin, [LOG_TOPIC])
        place = (LOG_TOPIC, partition_for(group_id, len(admin.describe_topics(LOG_TOPIC)[0].partitions)))
    found = []
    with Consumer(bootstrap.client_options(auto_offset_reset="earliest", enable_auto_commit=False)) as consumer:
        (end,) = consumer.end_offsets([place]).values()
        consumer.assign([place])
        while consumer.position(place) < end:
            found += [LogRecord(r.key, r.value, r.partition, r.offset, r.timestamp) for r in consumer.poll(POLL_S)]
    return found


def _line(step: Step) -> tuple[str, ...]:
    lists = (step.members, step.added, step.removed, step.moved)
    return (iso_time(step.at_ms), str(step.generation), *(" ".join(some) or "-" for some in lists))
