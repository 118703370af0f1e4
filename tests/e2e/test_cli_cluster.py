"""`partita cluster`, `config`, `partitions`, `mirror` and `perf` as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Consumer, Producer
from partita.cli.commands import cli
from partita.consumer.records import ConsumerRecord

Run = Callable[..., str]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(nodes=3) as broker:
        yield broker


@pytest.fixture
def run(broker: Broker) -> Run:
    def call(*words: str, code: int = 0, told: str = "") -> str:
        result = CliRunner().invoke(cli, [*words, "-b", broker.bootstrap])
        assert result.exit_code == code, result.output
        assert told in result.output
        return result.stdout

    return call


def test_the_cluster_is_described(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "3")
    lines = run("cluster").splitlines()
    assert "3 brokers, 1 topic, 3 partitions" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "3"]
    assert sum("controller" in line for line in lines) == 1
    told = json.loads(run("cluster", "--json", "--versions"))
    assert sum(told["leads"].values()) == 3
    heartbeat = next(row for row in told["api_versions"]["2"] if row["key"] == 12)
    assert (heartbeat["name"], heartbeat["min_version"], heartbeat["max_version"]) == ("Heartbeat", 0, 4)
    versions = run("cluster", "--versions")
    assert "brokers 1, 2, 3" in versions
    assert "Heartbeat" in versions


def test_options_are_shown_and_changed(run: Run) -> None:
    run("topics", "create", "t")
    assert run("config", "get", "topic", "t") == "all options of topic t have their defaults; use --all to show them\n"
    assert run("config", "set", "topic", "t", "retention.ms=1000", "--dry-run") == "topic t: would change 1 option\n"
    assert "defaults" in run("config", "get", "topic", "t")
    assert run("config", "set", "topic", "t", "retention.ms=1000", "--add", "cleanup.policy=compact")
    shown = run("config", "get", "topic", "t").splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["cleanup.policy", "delete,compact"], ["retention.ms", "1000"]]
    assert run("config", "set", "topic", "t", "--unset", "retention.ms", "--remove", "cleanup.policy=compact")
    (entry,) = json.loads(run("config", "get", "topic", "t", "retention.ms", "--json"))
    assert entry["is_default"]
    assert "num.partitions" in run("config", "get", "broker", "1", "--all")
    run("config", "get", "topic", "t", "retention", code=1, told="topic t has no option retention")
    run("config", "set", "topic", "t", code=2, told="nothing to change")
    run("config", "set", "topic", "t", "x", code=2, told="expects NAME=VALUE")


def test_partitions_move_and_leaders_are_elected(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "2")
    assert run("partitions", "move", "t", "--to", "3") == "moved 2 partitions; 0 still being copied\n"
    assert [broker.control.leader("t", partition) for partition in (0, 1)] == [3, 3]
    assert run("partitions", "list") == "no partition is being moved\n"
    assert json.loads(run("partitions", "list", "--json")) == []
    assert run("partitions", "elect", "t:0") == "every partition has its preferred leader\n"
    run("partitions", "move", "t", "--to", "3,1")
    broker.control.move_leader("t", 0, 1)
    assert json.loads(run("partitions", "elect", "--json")) == [{"topic": "t", "partition": 0}]
    assert broker.control.leader("t", 0) == 3
    run("partitions", "move", "t", "--to", "x", code=2, told="--to expects numbers")
    run("partitions", "move", "t:0", "--to", "9", code=1, told="t-0")
    run("partitions", "cancel", "t:0", code=1, told="NO_REASSIGNMENT_IN_PROGRESS")
    run("partitions", "elect", "--unclean", code=2, told="--unclean needs")


def test_a_mirror_copies_records_and_groups(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "2")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send("t", b"\xff%d" % number, b"k", headers=[("h", None)], partition=number % 2, timestamp=number)
    with Broker() as other:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.delete_records({("t", 0): 2})
            admin.alter_group_offsets("readers", {("t", 0): 4, ("t", 1): 5})
        words = ["mirror", "t", "--to", other.bootstrap, "--prefix", "from.", "--group", "m", "--translate", "readers"]
        run(*words, "--until-end", told="copied 8 records of 1 topic")
        with Admin(bootstrap_servers=other.bootstrap) as there:
            moved = {(c.topic, c.partition): c.offset for c in there.group_offsets("readers")}
        assert moved == {("from.t", 0): 2, ("from.t", 1): 5}
        with Consumer(bootstrap_servers=other.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([("from.t", 0), ("from.t", 1)])
            records: list[ConsumerRecord] = []
            while len(records) < 8:
                records += consumer.poll(1.0)
        first = next(record for record in records if record.partition == 0)
        assert (first.key, first.value, first.headers, first.timestamp) == (b"k", b"\xff4", (("h", None),), 4)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_group_offsets("readers", {("t", 0): 5, ("t", 1): 2})
        run(*words, "--until-end", told="copied 0 records")
        with Admin(bootstrap_servers=other.bootstrap) as there:
            moved = {(c.topic, c.partition): c.offset for c in there.group_offsets("readers")}
        assert moved == {("from.t", 0): 3, ("from.t", 1): 2}, "translated by what the run before had copied"
        with Consumer(bootstrap_servers=other.bootstrap, group_id="readers") as member:
            member.subscribe(["from.t"])
            while not member.assignment():
                member.poll(0.1)
            rewound = ["mirror", "t", "--to", other.bootstrap, "--prefix", "from.", "--translate", "readers", "-e"]
            run(*rewound, code=1, told="the offsets of group readers are not carried over")


def test_a_mirror_onto_itself_or_into_fewer_partitions_is_refused(run: Run) -> None:
    run("topics", "create", "t", "-p", "2")
    run("topics", "create", "x.t", "-p", "1")
    run("mirror", "t", code=2, told="source and target are the same topics")
    run("mirror", "nothing", "--prefix", "y.", code=1, told="there is no topic named nothing")
    run("mirror", "t", "--prefix", "x.", code=1, told="x.t has 1 partition and t has 2")


def test_speed_is_measured(run: Run) -> None:
    run("topics", "create", "t", "-p", "3")
    sent = json.loads(run("perf", "produce", "t", "-n", "2000", "--size", "10", "--json"))
    assert (sent["records"], sent["ack_ms_p50"] > 0) == (2000, True)
    assert sent["ack_ms_p50"] <= sent["ack_ms_p99"] <= sent["ack_ms_max"]
    assert json.loads(run("perf", "consume", "t", "--json"))["records"] == 2000
    assert json.loads(run("perf", "consume", "t", "-n", "5", "--json"))["records"] == 5
    lines = run("perf", "group", "t", "--members", "3").splitlines()
    assert [line.rsplit(maxsplit=1)[0].strip() for line in lines] == [
        "members", "partitions", "all join ms", "one joins ms", "one leaves ms",
    ]  # fmt: skip
    assert run("groups", "list") == "no groups\n"
    run("perf", "consume", "nothing", code=1, told="there is no topic named nothing")
