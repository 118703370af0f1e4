"""`partita groups`: list, describe and manage consumer groups, on any broker.

Resetting shows the plan first and changes nothing without --execute. (Kafka: kafka-consumer-groups.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partita.admin import Target
from partita.admin.reset import parse_table
from partita.admin.results import cell
from partita.cli.address import Address, address_options
from partita.cli.connecting import complete_group, connected, json_option, partitions_of, try_each, yes_option
from partita.cli.groups.control_port import ControlPort
from partita.cli.groups.log import LOG_TOPIC, log
from partita.cli.groups.trace import trace
from partita.cli.groups.watch import watch
from partita.cli.groups.why import history, why
from partita.cli.terminal import confirm, print_json, print_table, say
from partita.cli.variables import token_option
from partita.group import partition_for
from partita.wording import count, printable

if TYPE_CHECKING:
    from partita.admin import Admin
    from partita.admin.results import GroupDescription, PartitionLag, ResetPlan


LAG_COLUMNS = ("group", "state", "members", "partitions", "lag", "uncommitted")


@click.group()
def groups() -> None:
    """List, describe, watch and manage consumer groups."""


groups.add_command(watch)
groups.add_command(log)
groups.add_command(history)
groups.add_command(why)
groups.add_command(trace)


@groups.command("list")
@address_options
@click.option("--state", "states", multiple=True, help="Show only groups in this state, such as Stable or Empty.")
@click.option("--type", "types", multiple=True, help="Show only groups of this type, such as consumer or streams.")
@json_option
def list_(bootstrap: Address, states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> None:
    """List the groups of the cluster."""
    with connected(bootstrap) as admin:
        found = admin.list_groups(states=states, types=types)
    if as_json:
        print_json(found)
    elif not found:
        say("no groups")
    else:
        rows = [(group.group_id, group.state, group.type, group.protocol_type) for group in found]
        print_table(["group", "state", "type", "protocol"], rows)


@groups.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_group)
@address_options
@click.option("--members", "with_members", is_flag=True, help="Show members and their partitions instead of offsets.")
@click.option("--timers", "with_timers", is_flag=True,
              help="Show instead what the coordinator waits for, and for how long; needs --admin-port.")  # fmt: skip
@click.option("--admin-port", type=click.IntRange(1, 65535), help="The --admin-port of a Partita broker.")
@token_option
@json_option
def describe(
    group_ids: tuple[str, ...], bootstrap: Address, with_members: bool, with_timers: bool, admin_port: int | None,
    admin_token: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the state, members, committed offsets and lag of groups."""
    if with_timers and admin_port is None:
        raise click.UsageError("--timers needs --admin-port: only a Partita broker shows them")
    port = ControlPort(admin_port, admin_token) if with_timers and admin_port is not None else None
    shown: list[dict[str, Any]] = []

    def describe_one(group_id: str) -> None:
        group, lag = admin.describe_group(group_id), admin.group_lag(group_id)
        place = _place(admin, group_id)
        timers = [] if port is None else port.call("timers", group_id=group_id)
        more = {} if port is None else {"timers": timers}
        shown.append({**group.as_json(), **place, "offsets": [row.as_json() for row in lag], **more})
        if as_json:
            return
        _print_head(group, place)
        if port is not None:
            _print_timers(timers)
        elif with_members:
            _print_members(group)
        elif lag:
            _print_lag(lag, "start" if group.type == "share" else "committed")

    with connected(bootstrap) as admin:
        try:
            try_each(dict.fromkeys(group_ids), describe_one)
        finally:
            if as_json:
                print_json(shown)


def _place(admin: Admin, group_id: str) -> dict[str, int | None]:
    """Return which partition of `__consumer_offsets` holds the group; None where this client may not see that topic."""
    found = {topic.name: topic.partitions for topic in admin.list_topics(include_internal=True)}
    total = found.get(LOG_TOPIC)
    return {"coordinator_partition": partition_for(group_id, total) if total else None, "coordinator_partitions": total}


def _print_head(group: GroupDescription, place: dict[str, int | None]) -> None:
    assignor = f", assignor {group.protocol}" if group.protocol else ""
    epoch = f", {group.type} protocol at epoch {group.epoch}" if group.epoch is not None else ""
    if group.topology is not None:
        epoch += f" (assignment {group.assignment_epoch}, topology {group.topology_epoch})"
    node = group.coordinator
    members = count(len(group.members), "member")
    partition = (
        f", partition {place['coordinator_partition']} of {place['coordinator_partitions']}"
        if place["coordinator_partitions"]
        else ""
    )
    say(
        f"{printable(group.group_id)}  {group.state}, {members}{epoch}{assignor}, "
        f"coordinator {node.id} ({node.host}:{node.port}){partition}"
    )
    for sub in group.topology or ():
        say(f"  {sub.text}")


def _print_timers(timers: list[dict[str, Any]]) -> None:
    rows = [
        (None if left is None else f"{left / 1000:.1f} s", what, member_id or None)
        for left, what, member_id in map(itemgetter("left_ms", "what", "member_id"), timers)
    ]
    print_table(["left", "what", "member"], rows)


def _print_members(group: GroupDescription) -> None:
    if group.topology is not None:
        running = [
            (m.client_id, m.group_instance_id, m.client_host, t.process_id, t.endpoint, t.text, m.epoch, m.member_id)
            for m in group.members
            if (t := m.tasks) is not None
        ]
        print_table(["client", "instance", "host", "process", "endpoint", "tasks", "epoch", "member"], running)
        return
    rows = [
        (
            member.client_id,
            member.group_instance_id,
            member.client_host,
            sum(map(len, member.assignment.values())),
            cell(member.assignment) or None,
            *((cell(member.target or {}) or None, member.epoch, member.type) if group.epoch is not None else ()),
            member.member_id,
        )
        for member in group.members
    ]
    of_epochs = ["target", "epoch", "protocol"] if group.epoch is not None else []
    print_table(["client", "instance", "host", "partitions", "assignment", *of_epochs, "member"], rows)


def _print_lag(lag: list[PartitionLag], position: str) -> None:
    rows = [
        (r.topic, r.partition, r.committed_offset, r.log_end_offset, r.lag, r.client_id, r.client_host, r.member_id)
        for r in lag
    ]
    print_table(["topic", "partition", position, "log end", "lag", "client", "host", "member"], rows)


@groups.command()
@click.argument("group_ids", nargs=-1, metavar="[GROUP]...", shell_complete=complete_group)
@address_options
@json_option
def lag(group_ids: tuple[str, ...], bootstrap: Address, as_json: bool) -> None:
    """Show how far groups are behind, one line per group; all groups if none is named."""
    with connected(bootstrap) as admin:
        names = group_ids or [group.group_id for group in admin.list_groups()]
        rows: list[dict[str, Any]] = []
        try:
            try_each(names, lambda name: rows.append(_sum_up(admin, name)))
        finally:
            if as_json:
                print_json(rows)
            elif rows:
                print_table(LAG_COLUMNS, [[row[name] for name in LAG_COLUMNS] for row in rows])
            elif not names:
                say("no groups")


def _sum_up(admin: Admin, group_id: str) -> dict[str, Any]:
    group, offsets = admin.describe_group(group_id), admin.group_lag(group_id)
    return {
        "group": group_id,
        "state": group.state,
        "members": len(group.members),
        "partitions": len(offsets),
        "lag": sum(row.lag for row in offsets if row.lag is not None),
        "uncommitted": sum(row.committed_offset is None for row in offsets),
    }


@groups.command("reset-offsets")
@click.argument("group_id", metavar="GROUP", shell_complete=complete_group)
@address_options
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:0,1]", help="Reset this topic, or partitions of it.")
@click.option("--all-topics", is_flag=True, help="Reset every partition with a committed offset (the default).")
@click.option("--to-earliest", is_flag=True, help="Move to the first record.")
@click.option("--to-latest", is_flag=True, help="Move to the end, so that only new records are read.")
@click.option("--to-current", is_flag=True, help="Keep the current offsets; commits them again.")
@click.option("--to-offset", type=click.IntRange(min=0), help="Move to this offset.")
@click.option("--shift-by", type=int, help="Move forward by this many records, or back if negative.")
@click.option(
    "--to-datetime",
    metavar="WHEN",
    help="Move to the first record at or after a time, such as 2026-01-31T12:00:00.000 (UTC).",
)
@click.option("--by-duration", metavar="P7D", help="Move to the first record that is no older than this: P7D, PT1H30M.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the offsets from a file with lines topic,partition,offset.",
)
@click.option(
    "--export", is_flag=True, help="Print the plan as lines topic,partition,offset, the input of --from-file."
)
@click.option("--execute", is_flag=True, help="Carry out the plan; without this it is only shown.")
@json_option
def reset_offsets(
    group_id: str, bootstrap: Address, topics: tuple[str, ...], all_topics: bool, export: bool, execute: bool,
    as_json: bool, **targets: Any,
) -> None:  # fmt: skip
    """Move the committed offsets of a group that has no members. Shows the plan; --execute carries it out."""
    if all_topics and topics:
        raise click.UsageError("--all-topics and --topic cannot be combined")
    with connected(bootstrap) as admin:
        plan = admin.plan_reset(group_id, _target(targets), partitions_of(topics) or None)
        if execute:
            admin.apply_reset(plan)
    if as_json:
        print_json({**plan.as_json(), "executed": execute})
    elif export:
        for move in plan.moves:
            say(f"{move.topic},{move.partition},{move.after}")
    else:
        _print_plan(plan, execute)


def _target(given: dict[str, Any]) -> Target:
    makers: dict[str, Callable[[Any], Target]] = {
        "to_earliest": lambda _: Target.earliest(),
        "to_latest": lambda _: Target.latest(),
        "to_current": lambda _: Target.current(),
        "to_offset": Target.offset,
        "shift_by": Target.shift_by,
        "to_datetime": Target.datetime,
        "by_duration": lambda text: Target.duration(text, time.time_ns() // 1_000_000),
        "from_file": lambda path: Target.offsets(parse_table(Path(path).read_text())),
    }
    chosen = [name for name in makers if given[name] is not None and given[name] is not False]
    if len(chosen) != 1:
        names = ", ".join("--" + name.replace("_", "-") for name in makers)
        raise click.UsageError(f"give exactly one of {names}")
    return makers[chosen[0]](given[chosen[0]])


def _print_plan(plan: ResetPlan, executed: bool) -> None:
    rows = [(move.topic, move.partition, move.before, move.after, move.note) for move in plan.moves]
    print_table(["topic", "partition", "from", "to", "note"], rows)
    moved = count(sum(move.before != move.after for move in plan.moves), "offset")
    say(f"moved {moved} of {plan.group_id}" if executed else f"nothing has changed; --execute would move {moved}")


@groups.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_group)
@address_options
@yes_option
def delete(group_ids: tuple[str, ...], bootstrap: Address, yes: bool) -> None:
    """Delete groups that have no members, with all their offsets.

    Asks for confirmation on a terminal.
    """

    def delete_one(group_id: str) -> None:
        admin.delete_groups(group_id)
        say(f"deleted {group_id}")

    confirm(f"Delete {', '.join(group_ids)} with all committed offsets?", yes=yes)
    with connected(bootstrap) as admin:
        try_each(dict.fromkeys(group_ids), delete_one)


@groups.command("delete-offsets")
@click.argument("group_id", metavar="GROUP", shell_complete=complete_group)
@address_options
@click.option(
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:0,1]",
    help="Topic or partitions whose offsets to delete.",
)
@yes_option
def delete_offsets(group_id: str, bootstrap: Address, topics: tuple[str, ...], yes: bool) -> None:
    """Delete committed offsets of a group, for topics that none of its members reads.

    Asks for confirmation on a terminal.
    """
    confirm(f"Delete the offsets of {group_id} for {', '.join(topics)}?", yes=yes)
    with connected(bootstrap) as admin:
        wanted = partitions_of(topics)
        chosen = [
            (c.topic, c.partition)
            for c in admin.group_offsets(group_id)
            if c.topic in wanted or (c.topic, c.partition) in wanted
        ]
        if not chosen:
            raise click.ClickException(f"group {group_id} has committed nothing for {', '.join(topics)}")
        admin.delete_group_offsets(group_id, chosen)
    say(f"deleted {count(len(chosen), 'offset')} of {group_id}")
