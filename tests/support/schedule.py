"""Which worker of pytest-xdist runs what: a file, or a group named by `xdist_group`, is one piece of work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadgroup import LoadGroupScheduling
from xdist.workermanage import WorkerController

LONGEST = (
    "spark",
    "zookeeper",
    "tests/e2e/test_consumer_stories.py",
    "browser",
    "tests/unit/test_user_types.py",
    "tests/simulation/",
    "tests/e2e/",
    "tests/property/",
)
"""Beginnings of pieces, the longest first: what begins last should be short, or one worker runs on alone."""


def begun(item: pytest.Item) -> int:
    """When a test is begun: the place of its piece among the others, which keep the order of collection."""
    group = item.get_closest_marker("xdist_group")
    piece = group.args[0] if group else item.nodeid
    return next((place for place, start in enumerate(LONGEST) if piece.startswith(start)), len(LONGEST))


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
        piece: str = super()._split_scope(nodeid)
        return piece.partition("::")[0]

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Keep what a worker has collected."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Indexed(collection)
