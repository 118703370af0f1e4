"""`partita topics`: create, list, describe, change and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from partita.cli.address import Address, address_options, settings_of
from partita.cli.connecting import complete_topic, connected, json_option, partition_pairs, try_each, yes_option
from partita.cli.terminal import confirm, print_json, print_table, say
from partita.lazy import later
from partita.wording import count

if TYPE_CHECKING:
    from partita import admin as admin_client
    from partita import errors as kafka_errors
    from partita.admin.results import TopicDescription
else:
    admin_client = later("partita.admin")
    kafka_errors = later("partita.errors")


@click.group()
def topics() -> None:
    """Create, list, describe, change and delete topics."""


@topics.command("list")
@address_options
@click.option("--internal", is_flag=True, help="Include internal topics, such as __consumer_offsets.")
@json_option
def list_(bootstrap: Address, internal: bool, as_json: bool) -> None:
    """List all topics."""
    with connected(bootstrap) as admin:
        found = admin.list_topics(include_internal=internal)
    if as_json:
        print_json(found)
    elif not found:
        say("no topics yet; create one with: partita topics create NAME")
    else:
        print_table(["topic", "partitions", "id"], [(topic.name, topic.partitions, topic.topic_id) for topic in found])


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@address_options
@click.option(
    "--partitions", "-p", type=click.IntRange(min=1), help="Number of partitions; by default the broker's setting."
)
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(min=1),
    help="Number of replicas; by default the broker's setting.",
)
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="Set a topic option by Kafka's name.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if a topic exists.")
@click.option("--dry-run", is_flag=True, help="Check whether it would work; change nothing.")
def create(
    names: tuple[str, ...],
    bootstrap: Address,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics."""
    settings = settings_of(configs, "--config")

    def create_one(name: str) -> None:
        try:
            (made,) = admin.create_topics(
                admin_client.NewTopic(name, partitions or -1, replication_factor or -1, settings), validate_only=dry_run
            )
        except kafka_errors.TopicAlreadyExistsError:
            if not if_not_exists:
                raise
            say(f"{name} already exists")
            return
        size = f" with {count(made.partitions, 'partition')}" if made.partitions > 0 else ""
        say(f"{'would create' if dry_run else 'created'} {name}{size}")

    with connected(bootstrap) as admin:
        try_each(names, create_one)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topic)
@address_options
@json_option
def describe(names: tuple[str, ...], bootstrap: Address, as_json: bool) -> None:
    """Show partitions, leaders, record counts, and options that differ from their defaults."""
    shown: list[dict[str, Any]] = []

    def describe_one(name: str) -> None:
        shown.append(_describe(admin, admin.describe_topics(name)[0]))
        if not as_json:
            _print_topic(shown[-1])

    with connected(bootstrap) as admin:
        try:
            try_each(dict.fromkeys(names), describe_one)
        finally:
            if as_json:
                print_json(shown)


def _print_topic(topic: dict[str, Any]) -> None:
    configs = "".join(f" {name}={value}" for name, value in topic["configs"].items())
    say(f"{topic['name']}  id {topic['topic_id']}, {count(len(topic['partitions']), 'partition')}{configs}")
    columns = ["partition", "leader", "replicas", "isr", "log_start_offset", "high_watermark", "records"]
    print_table([name.replace("_", " ") for name in columns], [_row(part, columns) for part in topic["partitions"]])


def _describe(admin: admin_client.Admin, topic: TopicDescription) -> dict[str, Any]:
    served = [(topic.name, part.partition) for part in topic.partitions if part.leader >= 0]
    starts = admin.list_offsets(dict.fromkeys(served, "earliest"))
    ends = admin.list_offsets(dict.fromkeys(served, "latest"))
    shown = topic.as_json()
    for part in shown["partitions"]:
        key = (topic.name, part["partition"])
        start, end = (found[key].offset if key in found else None for found in (starts, ends))
        part["log_start_offset"], part["high_watermark"] = start, end
        part["records"] = None if start is None or end is None else end - start
    entries = admin.describe_configs("topic", topic.name)
    shown["configs"] = {entry.name: entry.value for entry in entries if entry.source == "topic"}
    return shown


def _row(part: dict[str, Any], columns: list[str]) -> list[object]:
    return [",".join(map(str, part[c])) if isinstance(part[c], list) else part[c] for c in columns]


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topic)
@address_options
@click.option("--if-exists", is_flag=True, help="Do not fail if a topic does not exist.")
@yes_option
def delete(names: tuple[str, ...], bootstrap: Address, if_exists: bool, yes: bool) -> None:
    """Delete topics with all their records. This cannot be undone.

    Asks for confirmation on a terminal.
    """

    def delete_one(name: str) -> None:
        try:
            admin.delete_topics(name)
        except kafka_errors.UnknownTopicOrPartitionError:
            if not if_exists:
                raise click.ClickException(f"there is no topic {name}; see: partita topics list") from None
            say(f"there is no topic {name}")
        else:
            say(f"deleted {name}")

    confirm(f"Delete {', '.join(names)} with all records?", yes=yes)
    with connected(bootstrap) as admin:
        try_each(dict.fromkeys(names), delete_one)


@topics.command()
@click.argument("name", shell_complete=complete_topic)
@address_options
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="Increase the number of partitions to this.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a topic option.")
@click.option("--unset", multiple=True, metavar="NAME", help="Reset a topic option to its default.")
def alter(
    name: str, bootstrap: Address, partitions: int | None, settings: tuple[str, ...], unset: tuple[str, ...]
) -> None:
    """Add partitions to a topic or change its options. New partitions change which partition a key goes to."""
    changes = settings_of(settings)
    if partitions is None and not changes and not unset:
        raise click.UsageError("nothing to change; give --partitions, --set or --unset")
    with connected(bootstrap) as admin:
        if partitions is not None:
            admin.create_partitions(name, partitions)
            say(f"{name} now has {count(partitions, 'partition')}")
        if changes or unset:
            admin.alter_configs("topic", name, changes, delete=unset)
            say(f"{name}: {count(len(changes) + len(unset), 'option')} changed")


@topics.command()
@click.argument("name", shell_complete=complete_topic)
@address_options
@click.option("--all", "everything", is_flag=True, help="Include options that have their defaults.")
@json_option
def configs(name: str, bootstrap: Address, everything: bool, as_json: bool) -> None:
    """Show the options of a topic and where each was set."""
    with connected(bootstrap) as admin:
        entries = [e for e in admin.describe_configs("topic", name) if everything or not e.is_default]
    if as_json:
        print_json(entries)
    elif not entries:
        say(f"all options of {name} have their defaults; use --all to show them")
    else:
        print_table(["option", "value", "set by"], [(e.name, e.value, e.source) for e in entries])


@topics.command("delete-records")
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC[:0,1]...", shell_complete=complete_topic)
@address_options
@click.option("--before", type=click.IntRange(min=0), help="Delete records before this offset; by default all records.")
@yes_option
def delete_records(partitions: tuple[str, ...], bootstrap: Address, before: int | None, yes: bool) -> None:
    """Delete records from the start of partitions. This cannot be undone.

    Asks for confirmation on a terminal.
    """
    what = "all records" if before is None else f"the records before offset {before}"
    confirm(f"Delete {what} of {', '.join(partitions)}?", yes=yes)
    with connected(bootstrap) as admin:
        starts = admin.delete_records(
            dict.fromkeys(partition_pairs(admin, partitions), -1 if before is None else before)
        )
    print_table(["topic", "partition", "log start offset"], [(*key, start) for key, start in starts.items()])
