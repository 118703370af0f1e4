"""The `partita` command: one group, each command in a module that is imported only when it is called.

Holds the one catch-all of the command line: a caller's error is one clear line and exit code 2 (bad input) or 1.
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
    "groups": "List, describe and mend consumer groups.",
    "doctor": "Say what works on this machine, and what to do about the rest.",
    "demo": "Run the main job on real flight data.",
    "sim": "Run whole groups through faults on virtual time, and check every rule.",
}


class LazyGroup(click.Group):
    """Knows its commands by name and imports `partita.cli.<name>` when one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"partita.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="partita")
def cli() -> None:
    """Kafka's consumer-group system in Python: a broker, a consumer, and a Spark source that needs no jar."""


def main() -> None:
    """Entry point of the installed command. SIGTERM ends a command as Ctrl-C does: members leave, files are closed."""
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
