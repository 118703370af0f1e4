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
    assert {r"a<\x1b>", r"group g&\x07", "Preparing"} <= names
    bad = [node for node in root.iter("{http://www.w3.org/2000/svg}line") if node.get("class") == "bad"]
    assert len(bad) == 1
    ElementTree.fromstring(chart("empty", []))


def note(kind: str, at_ms: int, client: str, api: str, **more: object) -> dict[str, object]:
    return {"note": kind, "wall_ms": at_ms, "exchange": 1, "client_id": client, "api": api, "version": 9, **more}


def texts(svg: str) -> set[str]:
    return {"".join(found.itertext()) for found in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}


def test_a_chart_shows_what_messages_bring_with_members_by_name() -> None:
    ids = {"one": "one-8442aaaa-1111-2222-3333-444444444444", "two": "two-99990000-1111-2222-3333-444444444444"}
    steps = [
        step_of(note("GroupRequest", 0, "one", "JoinGroup", member_id=ids["one"], topics=["T"], protocols=["range"])),
        step_of(note("GroupRequest", 1, "two", "Heartbeat", member_id=ids["two"], generation=2)),
        step_of(note("GroupAnswer", 2, "one", "JoinGroup", error="NONE", leader=ids["one"], joined=[*ids.values()])),
        step_of(note("GroupRequest", 3, "one", "SyncGroup", shares={ids["one"]: ["T-0", "T-1"], ids["two"]: None})),
        step_of(note("GroupAnswer", 4, "one", "SyncGroup", error="NONE", share=[], state_after="Stable")),
    ]
    shown = texts(chart("g", steps, "A newcomer"))
    assert {
        "A newcomer", "topics T; protocols range", "leader one", "members one, two", "one: T-0 T-1",
        "two: a format of its own", "share none", "Stable",
    } <= shown  # fmt: skip


def test_a_chart_shows_the_silence_of_a_member_up_to_the_end_of_its_session() -> None:
    gone = {"client_id": "two", "what": "session expired"}
    steps = [
        step_of(note("GroupRequest", 0, "two", "Heartbeat")),
        step_of({"note": "MemberGone", "wall_ms": 6_000, "cause": gone}),
        step_of(note("GroupAnswer", 6_500, "one", "Heartbeat", error="NONE", state_after="PreparingRebalance")),
    ]
    assert line(steps[1], 0) == "    6.000        two: session expired"
    svg = chart("g", steps)
    assert svg.count('<rect class="silence"') == 1
    assert svg.count('<rect class="preparing"') == 1
    assert "two: session expired" in texts(svg)


def test_a_heartbeat_of_kip_848_shows_epoch_subscription_and_assignment() -> None:
    asked = step_of(
        note("GroupRequest", 0, "w1", "ConsumerGroupHeartbeat", member_epoch=0, subscribed_topic_names=["T"], owned=[])
    )
    answered = step_of(
        note("GroupAnswer", 5, "w1", "ConsumerGroupHeartbeat", error="NONE", member_epoch=2, assignment=["T-0", "T-1"])
    )
    assert line(asked, 0).endswith("v9: member epoch 0, subscribed T, owned none")
    assert "member epoch 2, assignment T-0 T-1" in line(answered, 0)
    assert {"subscribed T", "assignment T-0 T-1"} <= texts(chart("g", [asked, answered]))
