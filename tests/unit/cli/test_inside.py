"""The part of the demo's report about the protocol. (Issue 30, item 8)"""

from __future__ import annotations

from collections import deque

from partita.cli.groups.log import LOG_TOPIC
from partita.cli.stories.inside import rebalance, section
from partita.demo.story import Inside
from partita.demo.worker import DESK
from partita.group.records.log_records import group_key, group_value, offset_key
from partita.play import text
from partita.play.player import Player
from partita.play.simulated import Simulator
from partita.protocol.messages.group_log import GroupMetadataValue
from partita.records.batch import Record

NEWCOMER = "# A newcomer.\ntopic T 2\none join T\nadvance 5s\ntwo join T\nadvance 5s\n"


def seen() -> Inside:
    (story,) = text.read(NEWCOMER)
    stage = Simulator.of([])
    for _ in Player(story, stage).play():
        pass
    stage.close()
    notes = [{**note, "group_id": DESK} if "group_id" in note else note for note in stage.notes()]
    at, value = 1_700_000_000_000, group_value(GroupMetadataValue(generation=3))
    group = Record(LOG_TOPIC, 38, 7, at, 0, group_key(DESK), value)
    gone = Record(LOG_TOPIC, 38, 6, at, 0, offset_key(DESK, "flights", 0), None)
    return Inside(38, 50, 1, 2, 54.4, 0, notes, deque([group]), deque([gone]))


def test_the_part_names_the_coordinator_and_shows_a_rebalance_records_and_stories() -> None:
    page = section(seen())
    assert "partition 38 of the 50" in page
    assert "At 54.4 s node 2 was made its leader: members looked for the coordinator again, and no rebalance" in page
    assert page.index("38@6") < page.index("38@7"), "in the order of the log"
    assert all(title in page for title in ("A static member restarts", "Offsets are committed", "Four polls"))
    assert page.count("<svg") == 4, "one rebalance, and one chart for each story"


def test_the_rebalance_is_the_last_one_with_its_commit_before_its_join() -> None:
    steps = rebalance(seen().notes)
    of_one = [step.api for step in steps if step.client == "one" and not step.is_answer]
    assert of_one.index("OffsetCommit") < of_one.index("JoinGroup") < of_one.index("SyncGroup")
    assert rebalance([]) == []
