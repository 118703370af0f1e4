"""Notes say who the members were at the end of a rebalance: hosts, time-outs, topics, partitions, instants."""

from __future__ import annotations

from typing import Any

from partita.broker.notes import KEPT_WITH_MEMBERS, Notes, as_json
from partita.group.notes import TargetComputed
from support.clock import ManualClock
from support.explain.staged import Stage
from support.group.consumers import World


def test_the_note_of_a_rebalance_describes_each_member() -> None:
    stage = Stage({"orders": 4})
    stage.start("a")
    stage.pass_ms(700)
    stage.start("b", instance="i-b")
    stage.settle()
    held = {member["client_id"]: member for member in stage.told("Rebalanced")[-1]["held"]}
    assert held["a"]["partitions"] == {"orders": [2, 3]}
    assert held["b"]["partitions"] == {"orders": [0, 1]}, "static members come first"
    assert held["b"]["group_instance_id"] == "i-b"
    assert {m["client_host"] for m in held.values()} == {"/a", "/b"}
    assert {(m["session_timeout_ms"], m["rebalance_timeout_ms"]) for m in held.values()} == {(45_000, 300_000)}
    assert held["a"]["topics"] == ["orders"]
    assert held["b"]["joined_ms"] <= held["a"]["joined_ms"], "the newcomer joined, then the other one rejoined"
    assert held["a"]["synced_ms"] >= held["a"]["joined_ms"]
    assert held["b"]["synced_ms"] is None, "the group leader was faster"


def test_an_assignment_in_another_format_has_no_partitions() -> None:
    stage = Stage({"orders": 1})
    stage.start("a", assignment=b"\0\0\0\1something else")
    stage.settle()
    assert stage.told("Rebalanced")[-1]["held"][0]["partitions"] == {}


def test_the_note_of_a_new_target_describes_the_members_of_a_consumer_group() -> None:
    world = World({"t": 4})
    world.join("a")
    world.join("b")
    told = [as_json(n) for step in world.steps for n in step.notes if isinstance(n, TargetComputed)]
    assert [len(m["partitions"]["t"]) for m in told[-1]["held"]] == [2, 2]
    assert told[-1]["held"][0]["session_timeout_ms"] == 45_000


def test_only_the_latest_notes_keep_members() -> None:
    notes = Notes(ManualClock())
    for _ in range(KEPT_WITH_MEMBERS + 3):
        notes._add({"note": "Rebalanced", "held": [1]})
    kept: list[Any] = notes.since()
    assert [note["held"] for note in kept[:4]] == [None, None, None, [1]]
