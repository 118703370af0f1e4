"""The `partita` command. All errors of the command line end here: each becomes one line, with exit code 2 for bad input
and 1 otherwise.

A broker with nothing but the usual options starts without click, which would take an eighth of the start and 2 MB.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from partita.lazy import later

if TYPE_CHECKING:
    import click

    from partita import errors as kafka_errors
    from partita.cli import commands, terminal
    from partita.cli.service import serving
else:
    click = later("click")
    commands = later("partita.cli.commands")
    kafka_errors = later("partita.errors")
    serving = later("partita.cli.service.serving")
    terminal = later("partita.cli.terminal")


def main() -> None:
    """Run the command line and exit. SIGTERM ends a command as Ctrl-C does: members leave and files are closed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code: object = 1
    try:
        code = 0 if _served_plainly(sys.argv[1:]) else commands.cli.main(prog_name="partita", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        terminal.complain(error.format_message(), command=context.command_path if context else "partita")
        code = error.exit_code
    except kafka_errors.KafkaError as error:
        terminal.complain(str(error), command="partita")
    except OSError as error:
        code = _output_failed(error)
    except (click.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _served_plainly(words: Sequence[str]) -> bool:
    """Whether the words are `partita broker` with nothing but its usual options; then it has run and stopped."""
    if words[:1] != ["broker"]:
        return False
    gc.disable()  # as for other commands: modules stay
    try:
        settings = serving.plain(words[1:], os.environ)
    finally:
        gc.enable()
    if settings is None:
        return False
    gc.freeze()
    serving.run(settings)
    return True


def _output_failed(error: OSError) -> int:
    """Exit code after a failed write. A closed pipe is no error: its reader has seen enough. But it ends a broker."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)  # what is still buffered would fail again when the interpreter flushes it
    if error.errno in (errno.EPIPE, errno.ESHUTDOWN):
        return int(sys.argv[1:2] == ["broker"])
    terminal.complain(f"{error.filename or 'cannot write the output'}: {error.strerror or error}", command="partita")
    return 1


if __name__ == "__main__":
    main()
