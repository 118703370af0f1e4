"""docs/the-system.md: its programs run, its charts show what they did, its figures and tables are those of the code."""

from __future__ import annotations

import html
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.every_case import every_case

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "the-system.md").read_text()
TOOL = ROOT / "tools" / "system_figures.py"
ARROW = re.compile(r'<line(?: class="bad")? x1="(\d+)" y1="(\d+)" x2="(\d+)" y2="\2" .*?<title>(\w+)', re.S)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("system_figures", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrows(svg: str) -> set[tuple[int, bool, str]]:
    """(lane, is an answer, API) of each arrow of a chart."""
    return {
        (min(int(start), int(end)), int(start) > int(end), api)
        for start, _, end, api in ARROW.findall(html.unescape(svg))
    }


def test_the_programs_run_and_the_charts_show_what_they_did(tool: ModuleType) -> None:
    """Issue 11, item 6: each scene of the page is drawn, and its drawing has the exchanges of a fresh run."""
    scenes = tool.scenes()
    assert len(scenes) == 5
    for name, steps in scenes.items():
        assert f"figures/scene-{name}.svg" in PAGE
        drawn = arrows((ROOT / "docs" / "figures" / f"scene-{name}.svg").read_text())
        assert drawn == arrows(tool.scene(name, steps)), name
        assert drawn


def test_the_figures_are_those_of_the_code() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: python tools/system_figures.py"


def test_the_page_has_its_sections_and_its_names() -> None:
    assert [int(number) for number in re.findall(r"^## (\d+) ", PAGE, re.M)] == list(range(1, 14))
    names = PAGE.partition("## 12 ")[2].partition("## 13 ")[0]
    assert len(re.findall(r"^- ", names, re.M)) == 25


@every_case("place", sorted(set(re.findall(r"`((?:broker|group|consumer|net|assignors)/[\w/.]*)`", PAGE))))
def test_the_places_that_the_page_names_exist(place: str) -> None:
    assert (ROOT / "src" / "partita" / place).exists()
