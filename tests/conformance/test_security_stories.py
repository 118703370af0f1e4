"""The script that observed Apache Kafka's security, played on it and on our broker: the same answers, but for what we
do otherwise on purpose (security-cases.md): SE-D10, SE-I15, SE-I17, SE-J17 and SE-P05. SE-P03 has a test of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance import composed_stories, login_stories, rights_stories
from conformance.login_stories import Seen
from conformance.security_sides import Side, both_sides
from support.kafka.node import KafkaUnavailable

pytestmark = pytest.mark.conformance
STORIES = (*login_stories.STORIES, *rights_stories.STORIES, *composed_stories.STORIES)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    try:
        with both_sides(tmp_path_factory.mktemp("certificates")) as both:
            yield both
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to compare with: {reason}")


def seen(story: Seen) -> dict[str, object]:
    """What the story saw, by label; each label comes once."""
    found: dict[str, object] = {}
    for label, value in story:
        assert label not in found, label
        found[label] = value
    return found


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_both_answer_alike(sides: tuple[Side, Side], story: login_stories.Story) -> None:
    kafka, ours = (seen(story(side)) for side in sides)
    assert kafka.keys() == ours.keys()
    different = {label: (kafka[label], ours[label]) for label in kafka if kafka[label] != ours[label]}
    on_purpose = {label for label in kafka if label.endswith("!")}
    assert {label: pair for label, pair in different.items() if label not in on_purpose} == {}
    assert on_purpose <= different.keys(), "a deviation that is none is a row of the documentation that is wrong"
