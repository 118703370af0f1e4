"""Text scenarios: commands, `----`, expected output; blank lines between blocks, a comment begins a new scenario.

Must not know what the commands mean: a runner is given each block's commands and returns the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Runner = Callable[[list[str]], list[str]]
SEPARATOR = "----"


@dataclass
class Block:
    commands: list[str]
    expected: list[str]
    line: int


@dataclass
class Scenario:
    """Blocks that share one world; `title` are its comment lines."""

    title: list[str]
    line: int
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.title[0].lstrip("# ").rstrip(".") if self.title else f"line {self.line}"

    def run(self, runner: Runner) -> list[list[str]]:
        return [runner(block.commands) for block in self.blocks]


def read(path: Path) -> list[Scenario]:
    scenarios: list[Scenario] = []
    for line, text in _paragraphs(path.read_text()):
        lines = text.splitlines()
        title = [part for part in lines if part.startswith("#")]
        rest = lines[len(title) :]
        if title:
            scenarios.append(Scenario(title, line))
        if not rest:
            continue
        if SEPARATOR not in rest:
            raise ValueError(f"{path.name}:{line}: a block has commands, {SEPARATOR}, and output")
        at = rest.index(SEPARATOR)
        scenarios[-1].blocks.append(Block(rest[:at], rest[at + 1 :], line))
    return scenarios


def _paragraphs(text: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    start = 1
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            start = start if lines else number
            lines.append(line.rstrip())
        elif lines:
            found.append((start, "\n".join(lines)))
            lines = []
    return found


def render(scenarios: list[Scenario], outputs: list[list[list[str]]]) -> str:
    """The file's text with `outputs` in place of what was expected."""
    parts: list[str] = []
    for scenario, got in zip(scenarios, outputs, strict=True):
        head = list(scenario.title)
        for block, output in zip(scenario.blocks, got, strict=True):
            parts.append("\n".join([*head, *block.commands, SEPARATOR, *output]))
            head = []
    return "\n\n".join(parts) + "\n"
