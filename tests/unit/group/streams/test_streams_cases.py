"""The cases of docs/streams-groups.md on our coordinator; conformance plays the same ones on Apache Kafka."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.group.streams import StreamsWorld
from support.group.streams_cases import CASES, TOPICS, told

PAGE = Path(__file__).parents[4] / "docs" / "streams-groups.md"


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_the_page_is_answered_so(case: str) -> None:
    world = StreamsWorld(TOPICS, group_streams_num_standby_replicas=1)
    for number, step in enumerate(CASES[case]):
        answer = told(world.ask(step.request("g"), 1).response)
        assert {name: answer[name] for name in step.expected} == step.expected, f"{case}, step {number}"


def test_every_case_of_the_page_is_played_and_every_played_one_is_on_the_page() -> None:
    assert re.findall(r"^- (SX-\w\d\d): ", PAGE.read_text(), re.MULTILINE) == list(CASES)
