"""Requests of a group and their answers: `control.trace_group` and `partita groups trace`."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer
from partita.cli.commands import cli
from partita.testing.plugin import BrokerFactory
from support.broker.streams_application import AT_ONCE, StreamsApplication


def join_and_leave(broker: Broker) -> None:
    with Consumer(
        bootstrap_servers=broker.bootstrap, group_id="g", client_id="reader", heartbeat_interval_ms=20
    ) as one:
        one.subscribe(["t"])
        while not one.assignment():
            one.poll(0.05)
        one.commit({("t", 0): 0})


@pytest.mark.partita(topics={"t": 1})
def test_every_request_of_a_traced_group_is_noted_with_its_answer(partita_broker: Broker) -> None:
    control = partita_broker.control
    control.trace_group("g")
    control.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS")
    join_and_leave(partita_broker)
    control.untrace_group("g")
    join_and_leave(partita_broker)
    notes = [note for note in partita_broker.notes() if note["note"] in ("GroupRequest", "GroupAnswer")]
    asked = {note["exchange"]: note for note in notes if note["note"] == "GroupRequest"}
    answers = [note for note in notes if note["note"] == "GroupAnswer"]
    assert {note["exchange"] for note in answers} == set(asked)
    told = [(note["api"], note["error"], note["state_after"]) for note in answers if note["api"] != "Heartbeat"]
    assert [api for api, _, _ in told].count("LeaveGroup") == 1
    for expected in (
        ("JoinGroup", "MEMBER_ID_REQUIRED", "Empty"),
        ("JoinGroup", "NONE", "CompletingRebalance"),
        ("SyncGroup", "NONE", "Stable"),
        ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", "Stable"),
        ("OffsetCommit", "NONE", "Stable"),
        ("LeaveGroup", "NONE", "Empty"),
    ):
        assert expected in told
    joined = next(note for note in answers if note["api"] == "JoinGroup" and note["error"] == "NONE")
    assert (joined["generation"], joined["protocol_name"], joined["members"]) == (1, "range", 1)
    assert asked[joined["exchange"]]["member_id"] == joined["member_id"] == joined["leader"]


def test_a_trace_is_shown_as_lines_and_as_a_chart(partita_broker_factory: BrokerFactory, tmp_path: Path) -> None:
    broker = partita_broker_factory(admin_port=0, topics={"t": 1})
    svg = tmp_path / "g.svg"
    words = ["groups", "trace", "g", "--admin-port", str(broker.running.admin_port), "--max", "6", "--svg", str(svg)]
    words += ["--admin-token", broker.admin_token]

    def when_traced() -> None:
        next(note for note in broker.notes(follow=True, timeout=60) if note.get("what") == "group traced")
        join_and_leave(broker)

    member = threading.Thread(target=when_traced)
    member.start()
    result = CliRunner().invoke(cli, words)
    member.join()
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 6
    assert any("reader -> JoinGroup v9: " in line for line in lines)
    assert any("reader <- JoinGroup" in line and "MEMBER_ID_REQUIRED  [Empty]" in line for line in lines)
    texts = ["".join(node.itertext()) for node in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"reader", "coordinator", "group g", "Empty"} <= set(texts)
    assert not broker.running.trace.active


def test_a_trace_of_a_kip_848_group_names_partitions_and_leaves_own_tools_out(partita_broker: Broker) -> None:
    partita_broker.create_topics({"t": 2})
    partita_broker.control.trace_group("g")
    options = {"bootstrap_servers": partita_broker.bootstrap, "group_id": "g", "client_id": "reader"}
    with Consumer(options, group_protocol="consumer") as one:
        one.subscribe(["t"])
        while len(one.assignment()) != 2:
            one.poll(0.05)
        described = CliRunner().invoke(cli, ["groups", "describe", "g", "-b", partita_broker.bootstrap])
        assert described.exit_code == 0, described.output
    notes = [note for note in partita_broker.notes() if note["note"] in ("GroupRequest", "GroupAnswer")]
    assert {note["client_id"] for note in notes} == {"reader"}
    beats = [note for note in notes if note["api"] == "ConsumerGroupHeartbeat"]
    assert beats[0]["subscribed_topic_names"] == ["t"]
    assert next(note["assignment"] for note in beats if note.get("assignment")) == ["t-0", "t-1"]
    assert beats[-2]["member_epoch"] == -1, "it leaves"


def test_without_a_control_endpoint_the_trace_says_how_to_get_one() -> None:
    result = CliRunner().invoke(cli, ["groups", "trace", "g", "--admin-port", "1"])
    assert result.exit_code == 1
    assert "start the broker with --admin-port 1" in result.output


def test_a_trace_of_a_streams_group_has_tasks_and_statuses() -> None:
    with Broker(AT_ONCE) as broker:
        broker.create_topics({"t": 2})
        broker.control.trace_group("g")
        application = StreamsApplication(broker.bootstrap, "g", "t")
        application.join()
        application.leave()
        answers = [note for note in broker.notes() if note.get("api") == "StreamsGroupHeartbeat" and "error" in note]
        bumped = [note["protocol"] for note in broker.notes() if note["note"] == "GroupEpochBumped"]
    assert answers[0]["status"] == ["Internal topics are missing: g-changelog"]
    assert next(note["assignment"] for note in answers if note.get("assignment")) == ["0_0", "0_1"]
    assert set(bumped) == {"streams"}
