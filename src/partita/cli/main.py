"""The `partita` command: one group whose commands are imported only when they are called.

All errors of the command line end here: each becomes one line, with exit code 2 for bad input and 1 otherwise.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from partita.cli.terminal import complain
from partita.lazy import later

if TYPE_CHECKING:
    import difflib

    from partita import errors as kafka_errors
else:
    difflib = later("difflib")
    kafka_errors = later("partita.errors")

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
    "certs": ("certs", "Make throw-away certificates for a broker and its clients."),
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


def main() -> None:
    """Run the command line and exit. SIGTERM ends a command as Ctrl-C does: members leave and files are closed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code: object = 1
    try:
        code = cli.main(prog_name="partita", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        complain(error.format_message(), command=context.command_path if context else "partita")
        code = error.exit_code
    except kafka_errors.KafkaError as error:
        complain(str(error), command="partita")
    except OSError as error:
        code = _output_failed(error)
    except (click.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _output_failed(error: OSError) -> int:
    """Exit code after a failed write. A closed pipe is no error: its reader has seen enough."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)  # what is still buffered would fail again when the interpreter flushes it
    if error.errno in (errno.EPIPE, errno.ESHUTDOWN):
        return 0
    complain(f"{error.filename or 'cannot write the output'}: {error.strerror or error}", command="partita")
    return 1


if __name__ == "__main__":
    main()
