"""The text of stories: commands, perhaps `----` and the expected output; blank lines between blocks. Pure.

A comment after a blank line begins a new story with a world of its own. A runner is given each block's commands and
returns the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

Runner = Callable[[list[str]], list[str]]
SEPARATOR = "----"


@dataclass
class Block:
    """Commands and the output that they are to have; None: any. `line` is the line of the first command."""

    commands: list[str]
    expected: list[str] | None
    line: int


@dataclass
class Story:
    """Blocks that share one world; `title` are its comment lines."""

    title: list[str]
    line: int
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The first line of the title."""
        return self.title[0].lstrip("# ").rstrip(".") if self.title else f"line {self.line}"

    def run(self, runner: Runner) -> list[list[str]]:
        """The output of each block."""
        return [runner(block.commands) for block in self.blocks]


def read(text: str) -> list[Story]:
    """The stories in a text."""
    stories: list[Story] = []
    for line, lines in _paragraphs(text):
        title = list(takewhile(lambda part: part.startswith("#"), lines))
        if title or not stories:
            stories.append(Story(title, line))
        rest = lines[len(title) :]
        if rest:
            at = rest.index(SEPARATOR) if SEPARATOR in rest else None
            stories[-1].blocks.append(
                Block(rest[:at], None if at is None else rest[at + 1 :], line + len(title)),
            )
    return stories


def _paragraphs(text: str) -> list[tuple[int, list[str]]]:
    found: list[tuple[int, list[str]]] = []
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            found.append((number - len(lines), lines))
            lines = []
    return found


def render(stories: list[Story], outputs: list[list[list[str]]]) -> str:
    """The text of these stories with `outputs` in place of what was expected."""
    parts: list[str] = []
    for story, got in zip(stories, outputs, strict=True):
        head = list(story.title)
        for block, output in zip(story.blocks, got, strict=True):
            parts.append("\n".join([*head, *block.commands, SEPARATOR, *output]))
            head = []
    return "\n\n".join(parts) + "\n"
