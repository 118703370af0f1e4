"""`partita partitions`: where partitions live and who leads them."""

from __future__ import annotations

import re

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import complete_topic, connected, json_option, partition_pairs
from partita.cli.terminal import print_json, print_table, say
from partita.wording import count


@click.group()
def partitions() -> None:
    """Move partitions between brokers and elect their leaders."""


@partitions.command()
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC[:0,1]...", shell_complete=complete_topic)
@click.option("--to", "brokers", required=True, metavar="1,2", help="Brokers to move to, the preferred leader first.")
@address_options
def move(partitions: tuple[str, ...], brokers: str, bootstrap: Address) -> None:
    """Move partitions to other brokers. Shows which moves are still under way; see also list.

    A cluster that copies data, as Apache Kafka does, goes on copying after this command returns.
    """
    if not re.fullmatch(r"\d+(,\d+)*", brokers):
        raise click.UsageError(f"--to expects numbers of brokers such as 1 or 1,2, not {brokers!r}")
    nodes = [int(number) for number in brokers.split(",")]
    with connected(bootstrap) as admin:
        pairs = partition_pairs(admin, partitions)
        admin.alter_partition_reassignments(dict.fromkeys(pairs, nodes))
        waiting = {(move.topic, move.partition) for move in admin.list_partition_reassignments()} & set(pairs)
    say(f"moved {count(len(pairs) - len(waiting), 'partition')}; {len(waiting)} still being copied")


@partitions.command()
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC[:0,1]...", shell_complete=complete_topic)
@address_options
def cancel(partitions: tuple[str, ...], bootstrap: Address) -> None:
    """Cancel moves that are under way."""
    with connected(bootstrap) as admin:
        pairs = partition_pairs(admin, partitions)
        admin.alter_partition_reassignments(dict.fromkeys(pairs))
    say(f"cancelled {count(len(pairs), 'move')}")


@partitions.command("list")
@address_options
@json_option
def list_(bootstrap: Address, as_json: bool) -> None:
    """List the moves that are under way."""
    with connected(bootstrap) as admin:
        moves = admin.list_partition_reassignments()
    if as_json:
        print_json(moves)
    elif not moves:
        say("no partition is being moved")
    else:
        rows = [(m.topic, m.partition, *(",".join(map(str, ids)) for ids in (m.replicas, m.adding, m.removing)))
                for m in moves]  # fmt: skip
        print_table(["topic", "partition", "replicas", "adding", "removing"], rows)


@partitions.command()
@click.argument("partitions", nargs=-1, metavar="[TOPIC[:0,1]]...", shell_complete=complete_topic)
@address_options
@click.option("--unclean", is_flag=True, help="Allow a leader that is not in sync; records may be lost.")
@json_option
def elect(partitions: tuple[str, ...], bootstrap: Address, unclean: bool, as_json: bool) -> None:
    """Make the preferred replica the leader again; without TOPIC, of all partitions."""
    if unclean and not partitions:
        raise click.UsageError("--unclean needs the names of topics")
    with connected(bootstrap) as admin:
        elected = admin.elect_leaders(partition_pairs(admin, partitions) if partitions else None, unclean=unclean)
    if as_json:
        print_json([{"topic": topic, "partition": number} for topic, number in sorted(elected)])
    elif not elected:
        say("every partition has its preferred leader")
    else:
        print_table(["topic", "partition"], sorted(elected))
