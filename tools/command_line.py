"""Write the commands in docs/command-line.md from the code: usage and options. `--check` only compares."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import click

from partita.cli.commands import cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
ADDRESS_OPTIONS = frozenset({"servers", "profiles", "config_file", "password_file", "extra"})
"""Options of every command that talks to a cluster; the page explains them once."""
COMMON = {
    "Print JSON, for scripts.": "`--json`",
    "Do not ask for confirmation.": "`--yes`",
    "The token that the broker printed at its start.": "`--admin-token`",
    "Set a consumer option by Kafka's name, as -X does.": "`--set`",
    "Set a producer option by Kafka's name, as -X does.": "`--set`",
}
"""Options that many commands have alike, by their help; the page explains them once."""
OBVIOUS = re.compile(r"(; |(?<=\[))(x>=?[01]|[01]<=x<=65535)(?![.\d])")
"""Bounds that every reader would guess."""
ASKS = "Asks for confirmation on a terminal."
MARK = "<!-- The rest is printed from the code by tools/command_line.py; do not edit it. -->"


def commands_part() -> str:
    """Every command with its help, groups before their subcommands."""
    context = click.Context(cli, info_name="partita", max_content_width=110)
    alone = [f"`{path}`" for path, command in _leaves(cli, "", context) if not _reaches_a_cluster(command)]
    parts = [
        "## Commands",
        f"All take the [options of a cluster](#which-cluster) but {', '.join(alone)}. "
        "In brackets stand default and bounds.",
    ]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        parts += _sections(command, f"partita {name}", context)
    return "\n\n".join(parts) + "\n"


def _sections(command: click.Command, path: str, parent: click.Context, shared: Collection[str] = ()) -> list[str]:
    """A command with its options; those that are `shared` were described at its group."""
    context = click.Context(command, info_name=path.rsplit(" ", 1)[-1], parent=parent)
    text = command.help or ""
    level = "#" * (1 + len(path.split()))
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    pieces = [] if isinstance(command, click.Group) else command.collect_usage_pieces(context)
    takes = " ".join(piece for piece in pieces if piece != "[OPTIONS]")
    parts = [
        f"{level} {path} `{takes}`" if takes else f"{level} {path}",
        *(part for part in paragraphs if part != ASKS),
    ]
    rows = _rows(command, context)
    if own := [row for row in rows if row not in shared]:
        parts.append("\n".join(own))
    of_the_group = [f"`{_long(option)}`" for row, option in rows.items() if row in shared]
    also = ["all shared ones"] if len(of_the_group) == len(shared) > 1 else of_the_group
    also += [COMMON[option.help] for option in _own(command) if option.help in COMMON]
    if also:
        parts.append(f"{'Also' if own else 'Options'}: {', '.join(also)}.")
    if isinstance(command, click.Group):
        several = Counter(row for sub in command.commands.values() for row in _rows(sub, context))
        alike = [row for row, count in several.items() if count > 1]
        if alike:
            parts += ["Shared options:", "\n".join(alike)]
        for name, sub in command.commands.items():
            parts += _sections(sub, f"{path} {name}", context, alike)
    return parts


def _rows(command: click.Command, context: click.Context) -> dict[str, click.Option]:
    """The options that the page describes for this command, by their rows."""
    return {_row(option, context): option for option in _own(command) if option.help not in COMMON}


def _long(option: click.Option) -> str:
    return next(name for name in option.opts if name.startswith("--"))


def _own(command: click.Command) -> list[click.Option]:
    """The options of a command that are not those of every command that talks to a cluster."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return [option for option in options if option.name not in ADDRESS_OPTIONS or _takes_several(option)]


def _leaves(group: click.Group, path: str, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{path}{name} ", context)
        else:
            yield path + name, command


def _reaches_a_cluster(command: click.Command) -> bool:
    return any(option.name in ADDRESS_OPTIONS and not _takes_several(option) for option in command.params)


def _takes_several(option: click.Parameter) -> bool:
    """Whether a command takes several clusters, which the others do not."""
    return option.name == "profiles" and option.multiple


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None, f"{option.name} is hidden"
    names, meaning = (" ".join(text.split()) for text in record)
    meaning = OBVIOUS.sub("", meaning).replace("[default: ", "[").replace("[; ", "[").removesuffix("[]").rstrip()
    return f"- `{names.removesuffix(' RANGE')}`: {meaning}".removesuffix(": ")


def page(current: str) -> str:
    """The page with its printed part as it should be."""
    prose, mark, _ = current.partition(MARK)
    assert mark, f"{PAGE} has lost the line {MARK}"
    return f"{prose}{MARK}\n\n{commands_part()}"


def main() -> int:
    """Write the page, or with `--check` return 1 if it is stale."""
    current = PAGE.read_text(encoding="utf-8")
    fresh = page(current)
    if "--check" in sys.argv:
        print("" if fresh == current else "docs/command-line.md is stale; run: python tools/command_line.py")
        return int(fresh != current)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
