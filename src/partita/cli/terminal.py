"""All output of the command line. Text that came over the wire cannot control the terminal.

Topic names are checked by the broker, but group ids, client ids, hosts, keys and values are whatever a client sent,
escape sequences included. `printable` makes them harmless; `say`, `complain` and `print_table` apply it.
"""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from partita.lazy import later
from partita.wording import printable

if TYPE_CHECKING:
    import json
    import shutil

    import click
else:
    click = later("click")
    json = later("json")
    shutil = later("shutil")

_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def say(text: str = "", *, err: bool = False, newline: bool = True) -> None:
    """Print text, which may have several lines."""
    shown = printable(text, keep="\n\r\t")
    if shown.isascii():
        print(f"{shown}\n" if newline else shown, end="", file=sys.stderr if err else sys.stdout, flush=True)
    else:
        click.echo(shown, err=err, nl=newline)  # it knows terminals that have no such characters


def complain(reason: str, *, command: str = "") -> None:
    """Print an error as one line on standard error, after the name of the command."""
    context = click.get_current_context(silent=True)
    name = command or (context.command_path if context else "partita")
    click.echo(f"{name}: {printable(' '.join(reason.split()))}", err=True)


def print_json(value: Any) -> None:
    """Print a result, a list of results, or plain data as JSON."""
    if isinstance(value, list):
        value = [item.as_json() if hasattr(item, "as_json") else item for item in value]
    elif hasattr(value, "as_json"):
        value = value.as_json()
    click.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as columns under their names, numbers aligned to the right, "-" for unknown values."""
    for line in table_lines(columns, rows):
        click.echo(line)


def redraw(lines: Iterable[str]) -> None:
    """Show lines in place of what is on the terminal, cut to its size; elsewhere, print them."""
    if not sys.stdout.isatty():
        say("\n".join(lines))
        return
    size = shutil.get_terminal_size()
    shown = [printable(line)[: size.columns] for line in lines][: size.lines - 1]
    click.echo(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in shown) + _CLEAR_BELOW, nl=False)


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table as `print_table` prints it."""
    body = [["-" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    numeric = [bool(body) and all(_is_number(row[i]) for row in body) for i in range(len(columns))]
    widths = [max(len(name), *(len(row[i]) for row in body)) if body else len(name) for i, name in enumerate(columns)]
    lines = []
    for row in [[name.upper() for name in columns], *body]:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").replace(",", "").isdigit()


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is destroyed. Asks only if a person is there; raises Abort if the answer is no.

    Scripts (standard input is not a terminal) and `--yes` are not asked.
    """
    if not yes and is_asked():
        click.confirm(printable(question), abort=True, err=True)


def is_asked() -> bool:
    """Whether standard input is a terminal, with a person to ask."""
    return sys.stdin.isatty()


class PrintableFormatter(logging.Formatter):
    """Formats log records for a terminal; escapes control characters that a client may have sent.

    No argument of a message begins a line, which could look like one of ours. Tracebacks keep their line breaks; they
    are indented, as the text of an exception may be a client's.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The formatted record."""
        shown = copy.copy(record)
        if isinstance(record.args, tuple):
            shown.args = tuple(each if isinstance(each, int | float) else printable(str(each)) for each in record.args)
        return printable(super().format(shown), keep="\n\t")

    def formatException(self, ei: Any) -> str:  # logging's name
        """A traceback whose every line but the first is indented."""
        return super().formatException(ei).replace("\n", "\n  ")
