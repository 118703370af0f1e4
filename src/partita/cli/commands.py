"""The group of all commands, each of which is imported when it is called."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING

import click

from partita.lazy import later

if TYPE_CHECKING:
    import difflib
else:
    difflib = later("difflib")

COMMANDS = {
    "broker": ("broker", "Run a broker."),
    "backup": ("service.backup", "Copy a broker's data directory, also while it runs."),
    "cluster": ("cluster.cluster", "Show brokers, controller and supported API versions."),
    "topics": ("cluster.topics", "Create, list, describe and delete topics."),
    "partitions": ("cluster.partitions", "Move partitions between brokers and elect their leaders."),
    "config": ("cluster.config", "Show and change options of topics, brokers and groups."),
    "acls": ("cluster.acls", "List, add and remove ACLs: who may do what."),
    "quotas": ("cluster.quotas", "List, set and remove quotas of users, client ids and addresses."),
    "users": ("cluster.users", "List, set and remove the SCRAM credentials of users."),
    "certs": ("service.certs", "Make throw-away certificates for a broker and its clients."),
    "produce": ("records.produce", "Write records from standard input or a file."),
    "consume": ("records.consume", "Read records, with or without a group."),
    "mirror": ("records.mirror", "Copy topics, with groups' offsets, to another cluster."),
    "perf": ("records.perf", "Measure the speed of producing, consuming and rebalancing."),
    "groups": ("groups.command", "List, describe, watch and manage consumer groups."),
    "top": ("top", "Show all groups live: lag, trend, and why each last rebalanced."),
    "dashboard": ("dashboard", "Show groups, lag and rebalances of any Kafka as live web pages."),
    "exporter": ("service.exporter", "Serve lag and rebalances of groups of any Kafka to Prometheus."),
    "transactions": ("cluster.transactions", "List, describe and abort transactions; find those that hang."),
    "pipeline": ("pipeline", "Plan and run a pipeline from a topic to tables with Spark."),
    "profiles": ("profiles", "List the clusters named in the profile file."),
    "doctor": ("doctor", "Check this installation and suggest fixes."),
    "demo": ("demo", "Run a complete example on real flight data."),
    "taste": ("demo", "See a group survive a crash, in twenty seconds."),
    "designs": ("designs", "Compare the designs of a rebalance that Kafka has had, on a real ZooKeeper."),
    "migrate": ("stories.migrate", "Measure what the consumer protocol or share groups change for a program."),
    "play": ("stories.play", "Play a story of a group: who joins, crashes, commits, and what comes of it."),
    "sim": ("sim", "Simulate groups under faults in virtual time and check every rule."),
}
"""Name of the command -> its module under `partita.cli`, and its line in the help."""


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports the module of a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        gc.disable()  # modules stay: looking for garbage among them would only take time
        try:
            command = getattr(import_module(f"partita.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        finally:
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a suggestion for a misspelt command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if near and "Did you mean" not in error.format_message():
                raise click.UsageError(f"{error.message.rstrip('.')}. Did you mean '{near[0]}'?", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their one-line descriptions, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="partita")
def cli() -> None:
    """Kafka's consumer-group system in Python: a broker, a consumer, and a Spark source that needs no jar."""
