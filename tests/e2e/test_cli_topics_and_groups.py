"""`partita topics`, `produce` and `groups` against a real broker, as a user types them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from partita import Admin, Broker, Consumer
from partita.cli.commands import cli
from support.broker.streams_application import AT_ONCE, StreamsApplication

Run = Callable[..., str]
"""Runs one command; `stdin` is what it reads, `code` the exit code it must have."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(AT_ONCE) as running:
        yield running


@pytest.fixture
def run(broker: Broker) -> Run:
    """Run a command; return its output. `code` is the exit code expected."""

    def call(*words: str, stdin: str | None = None, code: int = 0) -> str:
        result = CliRunner().invoke(cli, [*words, "-b", broker.bootstrap], input=stdin)
        assert result.exit_code == code, result.output
        return result.output

    return call


def lines(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_topics_from_create_to_delete(run: Run) -> None:
    assert "no topics yet" in run("topics", "list")
    assert run("topics", "create", "orders", "--partitions", "3", "--config", "retention.ms=60000") == (
        "created orders with 3 partitions\n"
    )
    assert "exists" in run("topics", "create", "orders", code=1)
    assert "already exists" in run("topics", "create", "orders", "--if-not-exists")
    assert "would create more" in run("topics", "create", "more", "--dry-run")
    assert [topic["name"] for topic in json.loads(run("topics", "list", "--json"))] == ["orders"]
    assert lines(run("topics", "list"))[1][:2] == ["orders", "3"]
    assert run("topics", "alter", "orders", "-p", "4", "--set", "max.message.bytes=999999").splitlines() == [
        "orders now has 4 partitions",
        "orders: 1 option changed",
    ]
    described = run("topics", "describe", "orders")
    assert described.startswith("orders  id ")
    assert "4 partitions max.message.bytes=999999 retention.ms=60000" in described
    assert "retention.ms" in run("topics", "configs", "orders")
    assert run("topics", "alter", "orders", "--unset", "retention.ms", "--unset", "max.message.bytes")
    assert "all options of orders have their defaults" in run("topics", "configs", "orders")
    assert run("topics", "delete", "orders") == "deleted orders\n"
    assert "there is no topic orders" in run("topics", "delete", "orders", code=1)
    assert run("topics", "delete", "orders", "--if-exists") == "there is no topic orders\n"


def test_lines_become_records(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "1")
    assert "2 records written to t" in run("produce", "t", stdin="one\ntwo\n")
    run("produce", "t", "--key-separator", ":", "--header", "a=b", "--compression", "zstd", stdin="k:v\n")
    run("produce", "t", "--json", stdin='{"value": {"n": 1}, "key": "x", "headers": [["h", "1"]], "timestamp": 5}\n')
    (described,) = json.loads(run("topics", "describe", "t", "--json"))
    assert described["partitions"][0]["records"] == 4
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        records: list[Any] = []
        while len(records) < 4:
            records += consumer.poll(1.0)
    assert [(r.key, r.value) for r in records] == [(None, b"one"), (None, b"two"), (b"k", b"v"), (b"x", b'{"n": 1}')]
    assert records[2].headers == (("a", b"b"),)
    assert (records[3].headers, records[3].timestamp) == ((("h", b"1"),), 5)


def test_files_become_records(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("1\n2\n3\n")
    assert "6 records written" in run("produce", "t", str(file), str(file))
    assert run("produce", "t", str(file), "--quiet") == ""


@pytest.mark.parametrize(
    ("words", "stdin", "code", "told"),
    [
        (["--json"], "nonsense\n", 2, "line 1 is not JSON"),
        (["--json"], '{"value": "x"}\nnonsense\n', 2, "nonsense; 1 record written to t before that"),
        (["--json"], '{"value": "x"}\n{"value": "x", "partition": 9}\n', 1, "no partition 9; 1 record written to t"),
        (["--json"], "[1]\n", 2, "line 1 is not an object with a value"),
        (["--json", "--key", "k"], "", 2, "leave out --key"),
        (["--key-separator", ":"], "none here\n", 2, "line 1 has no ':'"),
        (["--set", "linger"], "", 2, "--set expects NAME=VALUE"),
        (["--set", "linger.sm=1"], "", 2, "did you mean 'linger.ms'"),
        (["--set", "max.request.size=200"], "x" * 300 + "\n", 1, "more than max_request_size 200"),
    ],
)
def test_what_cannot_be_produced_is_told_by_line(run: Run, words: list[str], stdin: str, code: int, told: str) -> None:
    assert told in run("produce", "t", *words, stdin=stdin, code=code)


def test_the_shell_completes_topics_and_groups(broker: Broker) -> None:
    """An audit: completion knew the commands, and no names of the cluster."""
    with (
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        Consumer(bootstrap_servers=broker.bootstrap, group_id="billing") as consumer,
    ):
        for name in ("orders", "orders-old", "payments"):
            admin.create_topic(name, 1)
        consumer.commit({("orders", 0): 0})

    def complete(*words: str) -> list[str]:
        shell = BashComplete(cli, {}, "partita", "_PARTITA_COMPLETE")
        return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]

    where = ["-b", broker.bootstrap]
    assert complete("consume", *where, "or") == ["orders", "orders-old"]
    assert complete("topics", "describe", *where, "") == ["__consumer_offsets", "orders", "orders-old", "payments"]
    assert complete("groups", "why", *where, "b") == complete("consume", *where, "-g", "") == ["billing"]
    assert complete("consume", "-b", "127.0.0.1:1", "or") == complete("consume", "-X", "bad", "or") == []


def test_groups_are_described_and_managed(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "2")
    run("produce", "t", "--partition", "0", stdin="\n".join("0123456789"))
    assert run("groups", "list") == "no groups\n"
    assert run("groups", "lag") == "no groups\n"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("t", 0): 4, ("t", 1): 0})
    assert lines(run("groups", "list"))[1][:2] == ["g", "Empty"]
    assert lines(run("groups", "lag"))[1] == ["g", "Empty", "0", "2", "6", "0"]
    described = run("groups", "describe", "g").splitlines()
    assert described[0].startswith("g  Empty, 0 members, coordinator 1")
    assert described[2].split() == ["t", "0", "4", "10", "6", "-", "-", "-"]
    plan = run("groups", "reset-offsets", "g", "--to-earliest", "--topic", "t:0")
    assert plan.splitlines()[1].split() == ["t", "0", "4", "0"]
    assert "nothing has changed; --execute would move 1 offset" in plan
    assert "moved 1 offset of g" in run(
        "groups", "reset-offsets", "g", "--to-offset", "2", "--topic", "t:0", "--execute"
    )
    (group,) = json.loads(run("groups", "describe", "g", "--json"))
    assert [row["committed_offset"] for row in group["offsets"]] == [2, 0]
    assert run("groups", "delete-offsets", "g", "--topic", "t:1") == "deleted 1 offset of g\n"
    assert "has committed nothing for u" in run("groups", "delete-offsets", "g", "--topic", "u", code=1)
    assert run("groups", "delete", "g") == "deleted g\n"
    assert "there is no group 'g'" in run("groups", "describe", "g", code=1)


def test_a_streams_group_is_described_with_topology_and_tasks(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "2")
    run("produce", "t", "--partition", "0", stdin="1\n2\n3\n")
    run("produce", "t", "--partition", "1", stdin="4\n")
    StreamsApplication(broker.bootstrap, "app", "t").join()
    assert lines(run("groups", "list"))[1] == ["app", "Stable", "streams", "streams"]
    assert lines(run("groups", "lag"))[1] == ["app", "Stable", "1", "2", "2", "0"]
    head, topology, _, *rows = run("groups", "describe", "app").splitlines()
    assert head.startswith("app  Stable, 1 member, streams protocol at epoch 3 (assignment 3, topology 1), coordinator")
    assert topology == "  subtopology 0 reads t; keeps app-changelog"
    assert [row.split()[:6] for row in rows] == [
        ["t", "0", "1", "3", "2", "app-client"],
        ["t", "1", "1", "1", "0", "app-client"],
    ]
    members = run("groups", "describe", "app", "--members")
    assert all(word in members for word in ("process-1", "localhost:7000", "active 0(0,1)", "app-client"))
    (group,) = json.loads(run("groups", "describe", "app", "--json"))
    assert group["members"][0]["assignment"] == {"t": [0, 1]}
    assert group["topology"][0]["changelog_topics"] == ["app-changelog"]
    (look,) = json.loads(run("groups", "watch", "app", "--looks", "1", "--json"))["groups"]
    assert (look["state"], list(look["members"].values())) == ("Stable", ["app-client"])
    explained = run("groups", "why", "app")
    assert "app-client joined: the group's first member." in explained
    assert "Epoch 3 has 1 member for 2 partitions" in explained


def test_a_reset_goes_through_a_file(run: Run, broker: Broker, tmp_path: Path) -> None:
    run("topics", "create", "t", "-p", "2")
    run("produce", "t", "--partition", "1", stdin="a\nb\nc\n")
    exported = run("groups", "reset-offsets", "g", "--to-latest", "--topic", "t", "--export")
    assert exported == "t,0,0\nt,1,3\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported)
    told = json.loads(run("groups", "reset-offsets", "g", "--from-file", str(file), "--execute", "--json"))
    assert told["executed"] is True
    assert [move["after"] for move in told["moves"]] == [0, 3]
    run("groups", "reset-offsets", "g", "--shift-by", "-1", "--execute")
    run("groups", "reset-offsets", "g", "--by-duration", "PT1H", "--execute", "--topic", "t:1")
    (group,) = json.loads(run("groups", "describe", "g", "--json"))
    assert [row["committed_offset"] for row in group["offsets"]] == [0, 0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give exactly one of --to-earliest"),
        (["--to-earliest", "--to-latest"], "give exactly one of"),
        (["--to-datetime", "tomorrow"], "is no date and time"),
        (["--by-duration", "1 day"], "is no duration"),
        (["--to-earliest", "--topic", "t:x"], "expected TOPIC or TOPIC:0,1"),
        (["--to-earliest", "--topic", "t", "--all-topics"], "cannot be combined"),
        (["--to-earliest"], "has committed nothing; name topics to reset"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(run: Run, words: list[str], told: str) -> None:
    assert told in run("groups", "reset-offsets", "g", *words, code=2)


def test_a_group_with_members_is_shown_and_left_alone(run: Run, broker: Broker) -> None:
    run("topics", "create", "t", "-p", "2")
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", client_id="reader") as consumer:
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)
        assert "g  Stable, 1 member, assignor range" in run("groups", "describe", "g")
        assert lines(run("groups", "describe", "g", "--members"))[2][:5] == ["reader", "-", "/127.0.0.1", "2", "t(0,1)"]
        refused = run("groups", "reset-offsets", "g", "--to-earliest", "--topic", "t", "--execute", code=1)
        assert "stop its members first" in refused
        assert "NON_EMPTY_GROUP" in run("groups", "delete", "g", code=1)


def test_records_are_deleted(run: Run) -> None:
    run("topics", "create", "t", "-p", "1")
    run("produce", "t", stdin="a\nb\nc\n")
    assert lines(run("topics", "delete-records", "t:0", "--before", "2"))[1] == ["t", "0", "2"]
    assert lines(run("topics", "delete-records", "t"))[1] == ["t", "0", "3"]


def test_without_a_broker_the_message_says_what_to_do() -> None:
    result = CliRunner().invoke(cli, ["topics", "list", "-b", "127.0.0.1:1"], env={})
    assert result.exit_code == 1
    assert "no broker answers at 127.0.0.1:1" in result.output
    assert "partita broker" in result.output
