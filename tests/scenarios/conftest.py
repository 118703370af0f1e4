"""Collects text scenarios. `pytest tests/scenarios --rewrite` writes what happens into the files: read the diff."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita.play import text

WORLDS = {"consumer": "support.consumer.text", "group": "support.group.world"}
"""Folder -> module whose `new_runner()` makes a world and returns what runs commands in it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the actual output into the scenario files")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    if file_path.suffix == ".txt" and file_path.parent.name in WORLDS:
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        new_runner = importlib.import_module(WORLDS[self.path.parent.name]).new_runner
        scenarios = text.read(self.path.read_text())
        if self.config.getoption("--rewrite", default=False):
            outputs = [scenario.run(new_runner()) for scenario in scenarios]
            self.path.write_text(text.render(scenarios, outputs))
            scenarios = text.read(self.path.read_text())
        for scenario in scenarios:
            yield ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario, new_runner=new_runner)


class ScenarioItem(pytest.Item):
    def __init__(self, *, scenario: text.Story, new_runner: Callable[[], text.Runner], **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]  # pytest's own arguments, passed on
        self.scenario = scenario
        self.new_runner = new_runner

    def runtest(self) -> None:
        runner = self.new_runner()
        for block in self.scenario.blocks:
            got = runner(block.commands)
            if got != block.expected:
                raise ScenarioFailed(block, got)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, ScenarioFailed):
            block, got = excinfo.value.args
            lines = [f"{self.path.name}:{block.line}", *block.commands, "expected:", *block.expected, "got:", *got]
            return "\n".join(lines)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.scenario.line - 1, self.name


class ScenarioFailed(AssertionError):
    """(block, actual output)"""
