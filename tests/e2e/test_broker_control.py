"""What a test may cause, one verb each; and the notes that say what happened."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.control.verbs import ControlError
from partita.broker.embedded import StartError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw, commit_request, join_request, sync_request


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.run(lambda: running.cluster.create_topic("t", 1, 1))
        yield running


def heartbeat(raw: Raw, joined: JoinGroupResponse, instance_id: str | None = None) -> int:
    request = HeartbeatRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
    )
    return int(raw.ask(request, 4).error_code)


def noted(broker: Broker) -> list[str]:
    return [note["what"] for note in broker.notes() if note["note"] == "Control"]


# -- members ---------------------------------------------------------------------------------------------------------


def test_evict_a_member(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    broker.control.evict_member("g", joined.member_id)
    assert heartbeat(raw, joined) == ErrorCode.UNKNOWN_MEMBER_ID
    assert noted(broker) == ["member evicted"]
    gone = [note for note in broker.notes() if note["note"] == "MemberGone"]
    assert gone[0]["cause"]["what"] == "member evicted"


def test_expire_a_session(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g", group_instance_id="i1")
    broker.control.expire_session("g", "i1")
    assert heartbeat(raw, joined) == ErrorCode.UNKNOWN_MEMBER_ID
    assert noted(broker) == ["session expired"]


def test_fence_an_instance(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g", group_instance_id="i1")
    assert heartbeat(raw, joined, "i1") == 0
    broker.control.fence_instance("g", "i1")
    assert heartbeat(raw, joined, "i1") == ErrorCode.FENCED_INSTANCE_ID
    assert broker.control.members("g").keys() != {joined.member_id}
    assert noted(broker) == ["instance fenced"]


def test_a_member_that_is_not_there_is_named_with_those_that_are(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    with pytest.raises(ControlError, match=f"group g has no member x; it has {joined.member_id}"):
        broker.control.evict_member("g", "x")


# -- requests --------------------------------------------------------------------------------------------------------


def test_fail_the_next_requests_of_an_api(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    broker.control.fail("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", 2)
    assert [raw.commit("g", 1) for _ in range(3)] == [15, 15, 0]
    assert noted(broker) == ["fault injected", "fault applied", "fault applied"]


def test_fail_only_one_groups_requests(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    broker.control.fail("offset_commit", 16, 1, group_id="b")
    assert [raw.commit(group, 1) for group in ("a", "b", "b")] == [0, 16, 0]


def test_fail_after_the_fact(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    broker.control.fail("OffsetCommit", "REQUEST_TIMED_OUT", executed=True)
    assert raw.commit("g", 5) == ErrorCode.REQUEST_TIMED_OUT
    assert raw.committed("g") == 5


def test_fail_heartbeats_though_they_repeat(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    assert [heartbeat(raw, joined) for _ in range(3)] == [0, 0, 0]
    broker.control.fail("Heartbeat", "UNKNOWN_MEMBER_ID")
    assert [heartbeat(raw, joined) for _ in range(2)] == [ErrorCode.UNKNOWN_MEMBER_ID, 0]


def test_delay_a_request(broker: Broker, raw: Raw) -> None:
    broker.control.delay("Metadata", 150)
    began = time.monotonic()
    raw.ask(MetadataRequest(topics=[]), 1)
    assert time.monotonic() - began >= 0.149, "timers of the loop count whole milliseconds"


def test_a_held_request_holds_up_its_connection_and_no_other(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    member: dict[str, Any] = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    assert heartbeat(raw, joined) == 0
    late = broker.control.hold("OffsetCommit", 1)
    raw.send(commit_request("g", 1, **member), 8)
    raw.send(commit_request("g", 2, **member), 8)
    raw.send(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 1)
    with Raw(broker.port) as other:
        assert heartbeat(other, joined) == 0
        assert other.committed("g") == -1
    late.clear()
    answers = [raw.recv(8, 8)[1], raw.recv(8, 8)[1]]
    assert [answer.topics[0].partitions[0].error_code for answer in answers] == [0, 0]
    assert raw.recv(13, 1)[1].error_code == 0
    assert raw.committed("g") == 2
    assert not broker.running.faults.active


def test_hold_joins_until_they_are_released(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    broker.control.hold_joins("g")
    raw.send(join_request("g"), 3)
    with Raw(broker.port) as other:
        assert other.stable("free").error_code == 0
    broker.control.release_joins("g")
    assert raw.recv(11, 3)[1].error_code == 0


def test_a_held_load_answers_load_in_progress_until_it_is_released(broker: Broker, raw: Raw) -> None:
    """Issue 11 item 5: a coordinator that loads for as long as a test wants."""
    joined = raw.stable("g")
    assert raw.commit("other", 7) == 0
    broker.control.hold_load("g")
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert raw.ask(join_request("g"), 9).error_code == loading
    assert raw.commit("g", 1) == loading
    assert heartbeat(raw, joined) == 0
    broker.control.move_leader("__consumer_offsets", 0, 1)
    broker.control.hold_load("g")
    assert raw.commit("g", 1) == loading
    broker.control.release_load("g")
    assert heartbeat(raw, joined) == 0
    assert raw.committed("other") == 7
    broker.control.hold_load("g")
    broker.control.clear_faults()
    member: dict[str, Any] = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    assert raw.commit("g", 1, **member) == 0


def test_whoever_waits_when_a_load_is_held_looks_for_the_coordinator_again(broker: Broker, raw: Raw) -> None:
    raw.stable("g")
    raw.send(join_request("g"), 3)
    with Raw(broker.port) as other:
        other.find("g")
    assert any(len(broker.control.members("g")) == 2 for _ in range(10_000))
    broker.control.hold_load("g")
    assert raw.recv(11, 3)[1].error_code == ErrorCode.NOT_COORDINATOR
    broker.control.release_load("g")


def test_faults_can_be_taken_back(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    broker.control.fail("OffsetCommit", 15, 99)
    broker.control.hold_joins("g")
    broker.control.clear_faults()
    assert raw.commit("g", 1) == 0
    assert raw.stable("g").error_code == 0


def test_fail_the_next_append(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    broker.control.fail_next_append("g")
    member: dict[str, Any] = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    assert raw.commit("g", 5, **member) == ErrorCode.NOT_COORDINATOR
    assert raw.committed("g") == -1
    assert heartbeat(raw, joined) == 0
    assert raw.commit("g", 6, **member) == 0


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda c: c.fail("Fetched", 1), "no API Fetched; served are Produce"),
        (lambda c: c.fail("Fetch", "OOPS"), "no error OOPS"),
        (lambda c: c.move_leader("none", 0, 1), "there is no partition none-0"),
        (lambda c: c.move_leader("t", 0, 9), "node 9 is not running; running are 1"),
        (lambda c: c.start_node(1), "node 1 is not stopped; stopped are none"),
        (lambda c: c.evict_member("g", "m"), "group g has no member m$"),
        (lambda c: c.fail("Fetch", 1, 0), "times must be at least 1, not 0"),
        (lambda c: c.delay("Fetch", -1), "ms must be at least 0, not -1"),
        (lambda c: c.advance_clock(-1), "ms must be at least 0, not -1"),
    ],
)
def test_a_call_that_makes_no_sense_says_what_would_and_is_not_noted(
    broker: Broker, act: Callable[[Any], None], message: str
) -> None:
    with pytest.raises(ControlError, match=message):
        act(broker.control)
    assert noted(broker) == []


# -- time ------------------------------------------------------------------------------------------------------------


def test_advance_the_clock(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g", session_timeout_ms=30_000)
    broker.control.advance_clock(29_000)
    assert heartbeat(raw, joined) == 0
    broker.control.advance_clock(30_000)
    assert heartbeat(raw, joined) == ErrorCode.UNKNOWN_MEMBER_ID
    assert noted(broker) == ["clock advanced", "clock advanced"]


# -- nodes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def three() -> Iterator[Broker]:
    with Broker(nodes=3) as running:
        running.run(lambda: running.cluster.create_topic("t", 3, 1))
        yield running


def connect(broker: Broker, node: int) -> Raw:
    return Raw(broker.cluster.nodes[node].endpoint.port)


def produce_error(raw: Raw, partition: int) -> int:
    batch = build_batch([(0, None, b"v", ())])
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=partition, records=batch)])]
    answer = raw.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data), 8)
    return int(answer.responses[0].partition_responses[0].error_code)


def test_move_a_partitions_leader(three: Broker) -> None:
    old = three.control.leader("t", 0)
    new = old % 3 + 1
    with connect(three, old) as at_old, connect(three, new) as at_new:
        assert produce_error(at_old, 0) == 0
        assert produce_error(at_new, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        three.control.move_leader("t", 0, new)
        assert produce_error(at_old, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert produce_error(at_new, 0) == 0
        partition = at_old.ask(MetadataRequest(topics=None), 9).topics[0].partitions[0]
        assert (partition.leader_id, partition.leader_epoch) == (new, 1)
    assert noted(three) == ["leader moved"]


@pytest.mark.case("GC-S01", "GC-S05", "GC-S06", "GC-S14", "GC-B07", "GC-B13")
def test_move_a_groups_coordinator(three: Broker) -> None:
    with connect(three, 1) as first:
        first.find("g")
    old = three.control.coordinator("g")
    new = old % 3 + 1
    with connect(three, old) as at_old, connect(three, new) as at_new:
        joined = at_old.stable("g", session_timeout_ms=45_000)
        pending = at_old.ask(join_request("g"), 9)
        assert pending.error_code == ErrorCode.MEMBER_ID_REQUIRED

        def log_end_offset() -> int:
            partition = three.running.services.groups().partition_of("g")
            assert partition is not None
            return partition.log.log_end_offset

        end = three.run(log_end_offset)
        three.control.move_coordinator("g", new)
        assert three.run(log_end_offset) == end
        assert heartbeat(at_old, joined) == ErrorCode.NOT_COORDINATOR
        assert at_old.ask(join_request("g"), 9).error_code == ErrorCode.NOT_COORDINATOR
        wrong = at_old.ask(join_request("g", session_timeout_ms=1), 9)
        assert wrong.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert at_old.commit("g", 1) == ErrorCode.NOT_COORDINATOR
        assert at_old.committed("g") == -ErrorCode.NOT_COORDINATOR
        assert heartbeat(at_new, joined) == 0
        assert at_new.ask(join_request("g", pending.member_id), 9).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        found = at_old.ask(FindCoordinatorRequest(key="g"), 2)
        assert (found.node_id, found.port) == (new, three.cluster.nodes[new].endpoint.port)


@pytest.mark.case("GC-S03", "GC-S04", "GC-S05")
def test_a_move_in_the_middle_of_a_rebalance_answers_who_waits_and_keeps_the_last_generation(three: Broker) -> None:
    with connect(three, 1) as first:
        first.find("g")
    old = three.control.coordinator("g")
    new = old % 3 + 1
    with connect(three, old) as leader, connect(three, old) as other, connect(three, new) as at_new:
        joined = leader.stable("g")
        given = other.ask(join_request("g"), 9)
        other.send(join_request("g", given.member_id), 9)
        while heartbeat(leader, joined) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        three.control.move_coordinator("g", new)
        assert other.recv(11, 9)[1].error_code == ErrorCode.NOT_COORDINATOR
        assert heartbeat(at_new, joined) == 0
        three.control.move_coordinator("g", old)
        given = other.ask(join_request("g"), 9)
        other.send(join_request("g", given.member_id), 9)
        while heartbeat(leader, joined) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        again = leader.ask(join_request("g", joined.member_id), 9)
        assert again.generation_id == joined.generation_id + 1
        member = other.recv(11, 9)[1]
        other.send(sync_request("g", member), 5)
        while not waiting_syncs(three):
            pass
        three.control.move_coordinator("g", new)
        assert other.recv(14, 5)[1].error_code == ErrorCode.NOT_COORDINATOR
        assert heartbeat(at_new, again) == ErrorCode.ILLEGAL_GENERATION
        assert heartbeat(at_new, member) == ErrorCode.UNKNOWN_MEMBER_ID
        assert heartbeat(at_new, joined) == 0


def waiting_syncs(broker: Broker) -> int:
    def count() -> int:
        runner = broker.running.services.groups().runner_of("g")
        assert runner is not None
        return sum(member.sync is not None for member in runner.coordinator.groups["g"].members.values())

    return broker.run(count)


@pytest.mark.parametrize("stop", ["node", "broker"])
def test_who_waits_in_a_join_is_answered_before_the_connection_closes(three: Broker, stop: str) -> None:
    with connect(three, 1) as raw:
        raw.find("g")
    three.control.move_coordinator("g", 2)
    with connect(three, 2) as leader, connect(three, 2) as other:
        joined = leader.stable("g")
        given = other.ask(join_request("g"), 9)
        other.send(join_request("g", given.member_id), 9)
        while heartbeat(leader, joined) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        three.control.stop_node(2) if stop == "node" else three.stop()
        assert other.recv(11, 9)[1].error_code == ErrorCode.NOT_COORDINATOR
        assert other.is_closed()


def test_stop_and_start_a_node(three: Broker) -> None:
    with connect(three, 1) as raw:
        raw.find("g")
        three.control.move_coordinator("g", 2)
        with connect(three, 2) as at_2:
            joined = at_2.stable("g")
            three.control.stop_node(2)
            assert at_2.is_closed()
        assert [b.node_id for b in raw.ask(MetadataRequest(topics=[]), 1).brokers] == [1, 3]
        with connect(three, three.control.coordinator("g")) as at_new:
            assert heartbeat(at_new, joined) == 0
        assert all(three.control.leader("t", partition) in (1, 3) for partition in range(3))
        three.control.start_node(2)
        assert [b.node_id for b in raw.ask(MetadataRequest(topics=[]), 1).brokers] == [1, 2, 3]
        with connect(three, 2) as at_2:
            assert at_2.ask(MetadataRequest(topics=[]), 1).brokers
    assert noted(three)[-2:] == ["node stopped", "node started"]


def test_a_stopped_node_keeps_its_ports(broker: Broker) -> None:
    """The system could give them to any other program, and then the node did not start again."""
    where = ("127.0.0.1", broker.port)
    broker.control.stop_node(1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(where)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where)
    broker.control.start_node(1)
    with Raw(where[1]) as raw:
        assert raw.ask(MetadataRequest(topics=[]), 1).brokers
    broker.control.stop_node(1)
    broker.stop()
    with socket.socket() as other:
        other.bind(where)


def test_restart_the_only_node(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    port = broker.port
    broker.control.restart_node(1)
    assert raw.is_closed()
    assert broker.port == port
    with Raw(port) as again:
        assert heartbeat(again, joined) == 0


# -- notes and the admin endpoint ------------------------------------------------------------------------------------


def test_every_rebalance_is_noted_with_its_cause_and_phases(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    rebalanced = [note for note in broker.notes() if note["note"] == "Rebalanced"]
    assert [(n["group_id"], n["generation"], n["members"]) for n in rebalanced] == [("g", 1, 1)]
    assert rebalanced[0]["causes"][0]["member_id"] == joined.member_id
    assert rebalanced[0]["causes"][0]["what"] == "member joined"
    assert rebalanced[0]["join_phase_ms"] >= 0


def test_notes_can_be_followed_and_end_after_a_silence(broker: Broker) -> None:
    followed = (note for note in broker.notes(follow=True, timeout=60) if note["note"] == "Control")
    broker.control.advance_clock(1)
    assert next(followed)["ms"] == 1
    later = threading.Thread(target=broker.control.advance_clock, args=(2,))
    later.start()
    assert next(followed)["ms"] == 2, "it was waited for"
    later.join()
    seen = [note["seq"] for note in broker.notes(follow=True, timeout=0.1)]
    assert seen == list(range(len(seen)))


def test_notes_are_written_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    with Broker(notes_file=str(path)) as broker:
        broker.control.advance_clock(3)
    (note,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert (note["what"], note["ms"]) == ("clock advanced", 3)


def test_notes_are_followed_as_server_sent_events_and_go_on_where_a_follower_stopped() -> None:
    with Broker(admin_port=0) as broker:
        address = ("127.0.0.1", broker.running.admin_port)
        listeners = broker.cluster.notes._listeners
        usual = len(listeners)

        def follow(count: int, path: str, *headers: str) -> list[dict[str, Any]]:
            """The first notes that come; meanwhile the clock is advanced twice."""
            with socket.create_connection(address, timeout=60) as follower, follower.makefile("rb") as lines:
                head = [f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {broker.admin_token}"]
                follower.sendall("\r\n".join([*head, *headers, "", ""]).encode())
                assert b"200" in lines.readline()
                while lines.readline().strip():
                    pass
                for ms in (1, 2):
                    broker.control.advance_clock(ms)
                found: list[dict[str, Any]] = []
                while len(found) < count:
                    line = lines.readline()
                    if line.startswith(b"data: "):
                        found.append(json.loads(line[6:]))
                return found

        assert [note["seq"] for note in follow(2, "/notes?follow=true")] == [0, 1]
        again = follow(3, "/notes", "Accept: text/event-stream", "Last-Event-ID: 0")
        assert [(note["seq"], note["ms"]) for note in again] == [(1, 2), (2, 1), (3, 2)]
        broker.control.advance_clock(3)  # whoever has gone is noticed by what it is sent
        while broker.run(lambda: len(listeners)) > usual:
            broker.control.advance_clock(3)


@pytest.mark.case("SE-P20")
def test_the_admin_endpoint_does_what_control_does(raw: Raw) -> None:
    with Broker(admin_port=0) as broker, Raw(broker.port) as other:
        base = f"http://127.0.0.1:{broker.running.admin_port}"
        joined = other.stable("g")

        token = {"Authorization": f"Bearer {broker.admin_token}"}

        def call(path: str, body: Any = None, **headers: str) -> Any:
            data = None if body is None else json.dumps(body).encode()
            headers = token | headers
            with urllib.request.urlopen(urllib.request.Request(base + path, data, headers)) as answer:
                return answer.read()

        assert json.loads(call("/nodes"))[0]["port"] == broker.port
        call("/control/evict_member", {"group_id": "g", "member": joined.member_id})
        assert heartbeat(other, joined) == ErrorCode.UNKNOWN_MEMBER_ID
        kinds = [json.loads(line)["note"] for line in call("/notes?since=0").splitlines()]
        assert "Control" in kinds
        assert "Rebalanced" in kinds
        refused = [
            ("/control/evict_member", {"group_id": "g", "member": "x"}, {}, 400),
            ("/control/evict_member", {"group": "g"}, {}, 400),
            ("/control/evict_member", ["g"], {}, 400),
            ("/control/_wait", {}, {}, 404),
            ("/control/format_disk", {}, {}, 404),
            ("/other", None, {}, 404),
            ("/nodes", None, {"Origin": "http://evil.example"}, 403),
            ("/nodes", None, {"Host": "evil.example"}, 403),
        ]
        for path, body, headers, status in refused:
            with pytest.raises(urllib.error.HTTPError) as caught:
                call(path, body, **headers)
            assert caught.value.code == status


# -- embedded --------------------------------------------------------------------------------------------------------


def test_async_with() -> None:
    async def use() -> None:
        async with Broker() as broker:
            assert broker.bootstrap == f"127.0.0.1:{broker.port}"

    asyncio.run(use())


def test_a_broker_that_cannot_start_says_why(broker: Broker) -> None:
    with pytest.raises(StartError, match=r"Unknown configuration num_partitons; did you mean num_partitions"):
        Broker(num_partitons=3).start()  # type: ignore[call-arg]  # the misspelling is tested
    with pytest.raises(StartError, match="nodes must be between 1 and 32, not 'x'"):
        Broker(nodes="x").start()  # type: ignore[arg-type]
    with pytest.raises(StartError, match="Address already in use"):
        Broker(port=broker.port).start()
    with pytest.raises(StartError, match="runs already"):
        broker.start()
    with pytest.raises(RuntimeError, match="not running"):
        _ = Broker().bootstrap


def test_options_by_keyword_and_by_dotted_name() -> None:
    with Broker({"num.partitions": 4}, group_max_size=7) as broker:
        assert broker.cluster.config.int("num.partitions") == 4
        assert broker.cluster.config.int("group.max.size") == 7


def test_stopping_twice_and_starting_again(tmp_path: Path) -> None:
    broker = Broker(data_dir=str(tmp_path))
    broker.start()
    broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
    broker.stop()
    broker.stop()
    with broker, Raw(broker.port) as raw:
        raw.find("g")
        answer = raw.ask(commit_request("g", 1), 8)
        assert answer.topics[0].partitions[0].error_code == 0


def test_rules_of_kcl_are_faults_or_none_of_them_is(broker: Broker) -> None:
    rules = [
        {"keys": ["produce"], "topic": "t", "error": "NOT_LEADER_OR_FOLLOWER", "count": 2},
        {"keys": ["produce"], "topic": "t", "observe": True},
    ]
    failed, seen = broker.control.kcl_faults(rules)
    broker.produce("t", "x")
    assert (failed.hits, seen.hits) == (2, 3)
    with pytest.raises(ControlError, match="rule 2: no field 'topik'"):
        broker.control.kcl_faults([rules[0], {"topik": "t"}])
    assert [each["fault"] for each in broker.control.faults()] == [seen.number]


def test_rules_of_kcl_come_over_http_with_the_numbers_of_their_faults() -> None:
    with Broker(admin_port=0) as served:
        body = json.dumps({"rules": [{"error": "UNKNOWN_TOPIC_ID", "topic": "t"}, {"observe": True}]}).encode()
        url = f"http://127.0.0.1:{served.admin_port}/control/kcl_faults"
        asked = urllib.request.Request(url, body, {"Authorization": f"Bearer {served.admin_token}"}, method="POST")
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer) == {"ok": True, "result": [1, 2]}
