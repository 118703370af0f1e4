"""Which worker of pytest-xdist runs what: a file, with those that share its session of Spark, is one piece of work.

`xdist_group` is not asked: its marks reach the scheduler by names that pytest 9.2 does not let xdist change.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadgroup import LoadGroupScheduling
from xdist.workermanage import WorkerController

TOGETHER = {
    "tests/e2e/test_spark_share.py": "tests/e2e/test_spark.py",
    "tests/e2e/test_spark_streams.py": "tests/e2e/test_spark.py",
    "tests/e2e/test_spark_docs.py": "tests/e2e/test_spark_shared.py",
    "tests/e2e/test_spark_pipeline.py": "tests/e2e/test_spark_shared.py",
    "tests/e2e/test_spark_typed.py": "tests/e2e/test_spark_shared.py",
}
"""Files that go to the worker of another, after it: a session of Spark takes longer to start than most tests in it.

Two sessions, since all that is done in one would take longer than the rest of the suite.
"""
LONGEST = (
    "tests/conformance/test_avro_of_spark.py",  # not long; but only the first session of a process takes its jar
    "tests/conformance/test_why_incidents.py",
    "tests/conformance/test_spark_versions.py",
    "tests/conformance/test_other_releases.py",
    "tests/e2e/test_spark",
    "tests/e2e/test_designs",
    "tests/e2e/test_consumer_stories.py",
    "tests/e2e/test_dashboard_browser.py",
    "tests/unit/test_user_types.py",
    "tests/simulation/",
    "tests/e2e/",
    "tests/property/",
)
"""Beginnings of pieces, the longest first: what begins last should be short, or one worker runs on alone."""


def piece_of(nodeid: str) -> str:
    """The file whose worker runs a test."""
    file = nodeid.partition("::")[0]
    return TOGETHER.get(file, file)


def begun(item: pytest.Item) -> int:
    """When a test is begun: the place of its piece among the others, which keep the order of collection."""
    return next((place for place, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST))


class Indexed(list[str]):
    """A collection that knows its places: xdist asks for the place of each of some 20,000 tests."""

    def __init__(self, tests: Sequence[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(tests)}

    def index(self, test: str, *_: object) -> int:
        """Like that of a list, in constant time."""
        return self._places[test]


class ByFile(LoadGroupScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives out whole files, so that what a module's fixtures build is built once in a run."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # `begun` has sorted them
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Keep what a worker has collected."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Indexed(collection)
