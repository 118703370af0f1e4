"""Write the commands in docs/command-line.md from the code: usage and options. `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from partita.cli.main import cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
ADDRESS_OPTIONS = frozenset({"servers", "profiles", "config_file", "password_file", "extra"})
"""Options of every command that talks to a cluster; the page explains them once."""
ADDRESS_ROW = "| [options of a cluster](#which-cluster) | |"
MARK = "<!-- The rest is printed from the code by tools/command_line.py; do not edit it. -->"


def commands_part() -> str:
    """Every command with its help, groups before their subcommands."""
    parts = ["## Commands"]
    context = click.Context(cli, info_name="partita", max_content_width=110)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        parts += _sections(command, f"partita {name}", context)
    return "\n\n".join(parts) + "\n"


def _sections(command: click.Command, path: str, parent: click.Context) -> list[str]:
    context = click.Context(command, info_name=path.rsplit(" ", 1)[-1], parent=parent)
    text = command.help or ""
    level = "#" * (1 + len(path.split()))
    parts = [f"{level} {path}", "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))]
    parts.append(f"```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```")
    options = [option for option in command.params if isinstance(option, click.Option)]
    rows = [_row(option, context) for option in options if option.name not in ADDRESS_OPTIONS or _is_own(option)]
    if len(rows) < len(options):
        rows.append(ADDRESS_ROW)
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    if isinstance(command, click.Group):
        for name, sub in command.commands.items():
            parts += _sections(sub, f"{path} {name}", context)
    return parts


def _is_own(option: click.Option) -> bool:
    """Whether a command takes several clusters, which the others do not."""
    return option.name == "profiles" and option.multiple


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None, f"{option.name} is hidden"
    names, meaning = (" ".join(text.split()).replace("|", "\\|") for text in record)
    return f"| `{names}` | {meaning} |"


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
