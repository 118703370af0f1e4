"""docs/command-line.md tells what the commands are."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click

from partita.cli.commands import cli
from support.every_case import every_case

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "command-line.md").read_text()
PROSE = PAGE.partition("<!-- The rest")[0]
EXAMPLES = [
    part.strip()
    for block in re.findall(r"```text\n(.*?)```", PROSE, re.S)
    for line in block.splitlines()
    for part in line.split(" | ")
    if part.strip().startswith("partita ")
]


def test_the_printed_part_is_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "command_line.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@every_case("line", EXAMPLES)
def test_an_example_is_a_call_that_exists(line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    words = words[: next((place for place, word in enumerate(words) if word in "<>"), len(words))]
    context = click.Context(cli, info_name="partita")
    command = cli.get_command(context, name)
    assert command is not None
    command.make_parser(click.Context(command, parent=context)).parse_args(words)


def test_every_variable_that_is_read_is_on_the_page() -> None:
    read = set()
    for path in (ROOT / "src" / "partita" / "cli").rglob("*.py"):
        read |= set(re.findall(r'"(PARTITA_[A-Z_]*[A-Z])"', path.read_text()))
    clusters = {"PARTITA_BOOTSTRAP", "PARTITA_PROFILE", "PARTITA_CONFIG", "PARTITA_COMMAND_CONFIG"}
    assert read == clusters | {"PARTITA_ADMIN_TOKEN", "PARTITA_BROKER", "PARTITA_DASHBOARD_TOKEN"}
    assert all(f"`{name}`" in PROSE for name in read)


def test_the_page_shows_what_answers_why_a_group_rebalanced() -> None:
    """Finding 4 of a newcomer: the page and README named none of them."""
    for words in ("groups why", "groups history", "top", "dashboard"):
        assert any(line.startswith(f"partita {words}") for line in EXAMPLES), words
    (row,) = [line for line in PROSE.splitlines() if line.startswith("| Why a group rebalanced |")]
    assert {"`groups why`", "`top`", "`dashboard`"} <= set(re.findall(r"`[^`]+`", row))
    assert "$ partita groups why billing -b your-kafka:9092" in (ROOT / "README.md").read_text()
