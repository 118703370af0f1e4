"""The `partita` command: one group whose commands are imported only when they are called.

All errors of the command line end here: each becomes one line, with exit code 2 for bad input and 1 otherwise.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import click

COMMANDS = {
    "broker": "Run a broker.",
    "topics": "Create, list, describe and delete topics.",
    "produce": "Write records from standard input or a file.",
    "consume": "Read records, with or without a group.",
    "groups": "List, describe, watch and manage consumer groups.",
    "doctor": "Check this installation and suggest fixes.",
    "demo": "Run a complete example on real flight data.",
    "sim": "Simulate groups under faults in virtual time and check every rule.",
}


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports the module of a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"partita.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their one-line descriptions, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="partita")
def cli() -> None:
    """Kafka's consumer-group system in Python: a broker, a consumer, and a Spark source that needs no jar."""


def main() -> None:
    """Run the command line and exit. SIGTERM ends a command as Ctrl-C does: members leave and files are closed."""
    from partita.errors import KafkaError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = cli.main(prog_name="partita", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        code = _refuse(context.command_path if context else "partita", error.format_message(), error.exit_code)
    except KafkaError as error:
        code = _refuse("partita", str(error), 1)
    except (click.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(command: str, reason: str, code: int) -> int:
    click.echo(f"{command}: {' '.join(reason.split())}", err=True)
    return code


if __name__ == "__main__":
    main()
