"""Lines and charts of traced groups."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from partita.cli.groups.exchanges import chart, line, step_of

ASKED = {
    "note": "GroupRequest", "wall_ms": 1_000, "exchange": 7, "api": "SyncGroup", "version": 5, "client_id": "a<\x1b>",
    "member_id": "m-1", "generation": 3,
}  # fmt: skip
ANSWERED = {
    "note": "GroupAnswer", "wall_ms": 2_500, "exchange": 7, "api": "SyncGroup", "client_id": "a<\x1b>",
    "error": "REBALANCE_IN_PROGRESS", "state_after": "PreparingRebalance",
}  # fmt: skip


def test_a_request_and_its_answer_are_a_line_each() -> None:
    assert line(step_of(ASKED), 1_000) == "    0.000     7  a<\x1b> -> SyncGroup v5: member m-1, generation 3"
    assert line(step_of(ANSWERED), 1_000) == (
        "    1.500     7  a<\x1b> <- SyncGroup  REBALANCE_IN_PROGRESS  [PreparingRebalance]"
    )


def test_a_chart_is_well_formed_whatever_clients_are_called() -> None:
    text = chart("g&\x07", [step_of(ASKED), step_of(ANSWERED)])
    root = ElementTree.fromstring(text)
    names = {"".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {r"a<\x1b>", r"group g&\x07", "PreparingRebalance"} <= names
    bad = [node for node in root.iter("{http://www.w3.org/2000/svg}line") if node.get("class") == "bad"]
    assert len(bad) == 1
    ElementTree.fromstring(chart("empty", []))
