"""The commands of the command line that came last, on Apache Kafka; every record is counted where records flow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Consumer, Producer, TopicPartition
from partita.cli.commands import cli
from support.clients.broker import until
from support.kafka.node import KafkaNode, run_tool, settle

pytestmark = pytest.mark.conformance

Run = Callable[..., str]
_numbers = count()


@pytest.fixture(scope="module")
def admin(kafka: KafkaNode) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    """A new topic with two partitions."""
    name = f"cli-{next(_numbers)}"
    admin.create_topic(name, 2)
    settle(admin)
    return name


@pytest.fixture
def run(kafka: KafkaNode) -> Run:
    """Run a command on Kafka; return standard output. `told` must be among what it printed."""

    def call(*words: str, stdin: str | None = None, code: int = 0, told: str = "") -> str:
        result = CliRunner().invoke(cli, [*words, "-b", kafka.bootstrap], input=stdin)
        assert result.exit_code == code, result.output
        assert told in result.output
        return result.stdout

    return call


def fill(kafka: KafkaNode, topic: str, records: int) -> None:
    """Records 0, 1, 2 ... by turns to partitions 0 and 1, with key k<number> and the timestamp <number> s."""
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for number in range(records):
            producer.send(topic, str(number), f"k{number}", partition=number % 2, timestamp=number * 1000)


def values(bootstrap: str, topic: str, wanted: int, group: str | None = None) -> list[tuple[int, bytes]]:
    """All records of a topic, or what a group has left, as (partition, value), in the order of each partition."""
    found: list[tuple[int, bytes]] = []
    with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, number) for number in consumer.partitions_for(topic)])
        ends = consumer.end_offsets(list(consumer.assignment()))
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            found += [(record.partition, record.value) for record in consumer.poll(1.0)]
    assert len(found) == wanted
    return sorted(found, key=lambda pair: pair[0])


def test_a_format_string_prints_each_record_once(run: Run, kafka: KafkaNode, topic: str) -> None:
    fill(kafka, topic, 20)
    lines = run("consume", topic, "--from", "earliest", "-e", "-f", r"%t/%p@%o %k %s %T\n").splitlines()
    assert sorted(lines) == sorted(f"{topic}/{n % 2}@{n // 2} k{n} {n} {n * 1000}" for n in range(20))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--from", "earliest", "-p", "1"], [1, 3, 5, 7, 9]),
        (["-p", "0", "--offset", "3"], [6, 8]),
        (["--last", "2"], [6, 7, 8, 9]),
        (["--from", "-1", "-p", "0"], [8]),
        (["--from", "1970-01-01T00:00:07"], [7, 8, 9]),
        (["--from", "@3000", "--to", "@6000"], [3, 4, 5]),
        (["--from", "1h ago"], []),
        (["--from", "1", "--to", "3", "-p", "0"], [2, 4]),
        (["--from", "earliest", "--grep", "k[12]$"], [1, 2]),
    ],
)
def test_reading_starts_and_ends_where_one_says(
    run: Run, kafka: KafkaNode, topic: str, words: Sequence[str], expected: list[int]
) -> None:
    fill(kafka, topic, 10)
    ends = [] if "--to" in words else ["--until-end"]
    assert sorted(map(int, run("consume", topic, *words, *ends).split())) == expected


def test_an_idle_end_and_a_maximum_lose_nothing_in_a_group(run: Run, kafka: KafkaNode, topic: str) -> None:
    fill(kafka, topic, 50)
    words = ["consume", topic, "-g", f"{topic}-group", "--from", "earliest", "--idle", "2"]
    patient = [*words[:-1], "60"]
    first = run(*patient, "--max", "17").split()
    second = run(*patient, "--max", "33").split()
    assert len(first) == 17
    assert sorted(map(int, first + second)) == list(range(50))
    assert run(*words) == ""


def test_transactions_end_where_their_records_end(run: Run, kafka: KafkaNode, topic: str) -> None:
    """The last offsets of both partitions are markers; aborted records are left out where one asks for that."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for commits in (True, False):
        producer.begin_transaction()
        for number in range(4):
            producer.produce(topic, b"yes" if commits else b"no", partition=number % 2)
        producer.flush(30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    words = ["consume", topic, "--from", "earliest", "-e"]
    assert sorted(run(*words).split()) == ["no"] * 4 + ["yes"] * 4
    assert run(*words, "--set", "isolation.level=read_committed").split() == ["yes"] * 4
    copied = run("mirror", topic, "--prefix", "tx.", "-e", told="copied 4 records of 1 topic")
    assert copied == ""
    assert [value for _, value in values(kafka.bootstrap, f"tx.{topic}", 4)] == [b"yes"] * 4


def test_reading_never_creates_a_topic(run: Run) -> None:
    run("consume", "typo", "-e", code=1, told="there is no topic named typo")
    run("perf", "produce", "typo", "-n", "1", code=1, told="there is no topic")
    run("perf", "consume", "typo", code=1, told="there is no topic named typo")
    assert "typo" not in run("topics", "list").split()


@pytest.mark.parametrize("way", ["to Kafka", "from Kafka"])
def test_a_mirror_copies_every_record_and_translates_offsets(
    run: Run, kafka: KafkaNode, admin: Admin, topic: str, way: str
) -> None:
    """The source has lost its first records, so offsets differ; the group goes on at the same record."""
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as ours:
        source, target = (ours, admin) if way == "to Kafka" else (admin, ours)
        here, there = broker.bootstrap, kafka.bootstrap
        if way == "to Kafka":
            ours.create_topic(topic, 2)
        else:
            here, there = there, here
        with Producer(bootstrap_servers=here) as producer:
            for number in range(1000):
                producer.send(topic, str(number), f"k{number}", partition=number % 2, headers=[("h", b"\xff")])
        source.delete_records({(topic, 0): 100})
        source.alter_group_offsets(f"{topic}-readers", {(topic, 0): 150, (topic, 1): 500})
        mirror = ["mirror", topic, "--to", there, "--prefix", "m.", "--group", f"{topic}-m"]
        words = [*mirror, "--translate", f"{topic}-readers", "-e", "-b", here]
        result = CliRunner().invoke(cli, words)
        assert (result.exit_code, result.stderr) == (0, "copied 900 records of 1 topic\n"), result.output
        kept = [(n % 2, b"%d" % n) for n in (*range(200, 1000, 2), *range(1, 1000, 2))]
        assert values(there, f"m.{topic}", 900) == kept
        committed = {(o.topic, o.partition): o.offset for o in target.group_offsets(f"{topic}-readers")}
        assert committed == {(f"m.{topic}", 0): 50, (f"m.{topic}", 1): 500}
        left = values(there, f"m.{topic}", 350, f"{topic}-readers")
        assert left == [(0, b"%d" % n) for n in range(300, 1000, 2)]
        again = CliRunner().invoke(cli, words)
        assert again.stderr == "copied 0 records of 1 topic\n"


def test_speed_is_measured(run: Run, kafka: KafkaNode, topic: str) -> None:
    sent = json.loads(run("perf", "produce", topic, "-n", "3000", "--size", "10", "--json"))
    assert sent["records"] == 3000
    assert 0 < sent["ack_ms_p50"] <= sent["ack_ms_p99"] <= sent["ack_ms_max"]
    assert all(len(value) == 10 for _, value in values(kafka.bootstrap, topic, 3000))
    assert json.loads(run("perf", "consume", topic, "--json"))["records"] == 3000
    assert json.loads(run("perf", "consume", topic, "-n", "5", "--json"))["records"] == 5
    measured = json.loads(run("perf", "group", topic, "--members", "2", "--group", f"{topic}-perf", "--json"))
    assert (measured["members"], measured["partitions"]) == (2, 2)
    assert f"{topic}-perf" not in run("groups", "list")


def test_the_cluster_is_described(run: Run, kafka: KafkaNode, admin: Admin, topic: str) -> None:
    lines = run("cluster", "--versions").splitlines()
    assert lines[0].startswith("cluster MkU3OEVBNTcwNTJENDM2Qk, 1 broker, ")
    assert lines[2].split()[:3] == ["1", "127.0.0.1", str(kafka.port)]
    assert lines[2].split()[-1] == "controller"
    told = json.loads(run("cluster", "--json", "--versions"))
    topics = admin.describe_topics([t.name for t in admin.list_topics(include_internal=True)])
    assert told["topics"] == len(topics)
    assert told["partitions"] == told["leads"]["1"] == sum(len(t.partitions) for t in topics)
    served = {row["name"]: (row["min_version"], row["max_version"]) for row in told["api_versions"]["1"]}
    assert served["Heartbeat"] == (0, 4)
    assert not any(name.isdigit() for name in served)


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        ("topic", "retention.ms", "1000"),
        ("broker", "log.cleaner.threads", "2"),
        ("group", "consumer.session.timeout.ms", "46000"),
    ],
)
def test_options_are_shown_and_changed(run: Run, topic: str, kind: str, option: str, value: str) -> None:
    name = {"topic": topic, "broker": "1", "group": f"{topic}-group"}[kind]
    get, change = ["config", "get", kind, name], ["config", "set", kind, name]

    def shown() -> dict[str, Any]:
        (entry,) = json.loads(run(*get, option, "--json"))
        return dict(entry)

    before = shown()
    assert before["is_default"]
    said = f"{kind} {name}: would change 1 option\n"
    assert run(*change, f"{option}={value}", "--dry-run") == said
    assert shown() == before
    run(*change, f"{option}={value}")
    until(lambda: shown()["value"] == value, "it is set")
    assert [line.split()[:2] for line in run(*get).splitlines() if option in line] == [[option, value]]
    run(*change, "--unset", option)
    until(lambda: shown()["is_default"], "it is the default again")
    run(*get, "no.such.option", code=1, told=f"{kind} {name} has no option no.such.option")


def test_lists_take_and_give_back_items(run: Run, topic: str) -> None:
    run("config", "set", "topic", topic, "--add", "cleanup.policy=compact")
    get = ["config", "get", "topic", topic, "cleanup.policy", "--json"]
    until(lambda: json.loads(run(*get))[0]["value"] == "delete,compact", "an item is added")
    run("config", "set", "topic", topic, "--remove", "cleanup.policy=delete")
    until(lambda: json.loads(run(*get))[0]["value"] == "compact", "an item is removed")
    run("config", "set", "topic", topic, "retention.ms=x", code=1, told="retention.ms")


def test_partitions_move_and_leaders_are_elected(run: Run, topic: str) -> None:
    assert run("partitions", "move", topic, "--to", "1") == "moved 2 partitions; 0 still being copied\n"
    assert run("partitions", "list") == "no partition is being moved\n"
    assert json.loads(run("partitions", "list", "--json")) == []
    assert run("partitions", "elect", f"{topic}:0") == "every partition has its preferred leader\n"
    assert run("partitions", "elect") == "every partition has its preferred leader\n"
    assert run("partitions", "elect", topic, "--unclean", "--json") == "[]\n"
    run("partitions", "move", topic, "--to", "9", code=1, told=f"{topic}-0")
    run("partitions", "cancel", topic, code=1, told="NO_REASSIGNMENT_IN_PROGRESS")


def test_the_log_of_groups_is_read(run: Run, kafka: KafkaNode, topic: str) -> None:
    group = f"{topic}-logged"
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id=group, client_id="reader") as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.commit({TopicPartition(topic, 1): 7})
    run("groups", "delete", group)
    entries = [json.loads(line) for line in run("groups", "log", group, "--json").splitlines()]
    assert len({entry["partition"] for entry in entries}) == 1
    joined = next(entry for entry in entries if entry["type"] == "GroupMetadata" and entry["value"]["members"])
    (member,) = joined["value"]["members"]
    assert (member["client_id"], member["topics"]) == ("reader", [topic])
    assert member["assignment"] == [f"{topic}-0", f"{topic}-1"]
    commit = next(entry for entry in entries if entry["type"] == "OffsetCommit")
    assert (commit["key"]["partition"], commit["value"]["offset"]) == (1, 7)
    assert {entry["type"] for entry in entries if entry["is_tombstone"]} == {"GroupMetadata", "OffsetCommit"}
    assert f"{group}  {topic}-1 -> 7" in run("groups", "log", group)
    assert run("groups", "log", group, "--from", "latest") == ""


def test_the_log_of_newer_groups_is_read(run: Run, kafka: KafkaNode, admin: Admin, topic: str) -> None:
    """KIP-848 and share groups write records of their own; each is named, and none stops the reading."""
    fill(kafka, topic, 2)
    settings = {"bootstrap.servers": kafka.bootstrap, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "group.id": f"{topic}-848"})
    consumer.subscribe([topic])
    assert len(consumer.consume(2, 30)) == 2
    consumer.close()
    tool = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    admin.alter_configs("group", f"{topic}-share", {"share.auto.offset.reset": "earliest"})
    settle(admin)
    words = ["--bootstrap-server", kafka.bootstrap, "--topic", topic, "--group", f"{topic}-share"]
    done = run_tool(tool, *words, "--max-messages", "2", "--timeout-ms", "60000")
    assert "Processed a total of 2 messages" in done.stderr, done.stderr
    for group, expected in (
        (f"{topic}-848", {"ConsumerGroupMetadata", "ConsumerGroupCurrentMemberAssignment", "OffsetCommit"}),
        (f"{topic}-share", {"ShareGroupMetadata", "ShareGroupMemberMetadata"}),
    ):
        entries = [json.loads(line) for line in run("groups", "log", group, "--json").splitlines()]
        assert expected <= {entry["type"] for entry in entries}
        assert {entry["fault"] for entry in entries} == {""}


STORY = """\
# Members share on any Kafka; one closes, and a topic grows.
topic play-T 2
records play-T-0 5
one join play-T heartbeat_interval_ms=200 metadata_max_age_ms=1000
expect one owns play-T-0 play-T-1
two join play-T heartbeat_interval_ms=200
expect one owns play-T-0
expect members one two
two close
expect one owns play-T-0 play-T-1
one commit
expect committed play-T-0 5
add-partitions play-T 3
expect one owns play-T-0 play-T-1 play-T-2
one close
expect one ended
"""


def test_a_story_plays_and_takes_back_what_it_made(kafka: KafkaNode, admin: Admin, tmp_path: Path) -> None:
    file = tmp_path / "story.txt"
    file.write_text(STORY)
    done = CliRunner().invoke(cli, ["play", str(file), "--broker", kafka.bootstrap])
    assert done.exit_code == 0, done.output
    assert "play-T-2" in done.output
    until(lambda: "play-T" not in {topic.name for topic in admin.list_topics()}, "its topic is gone")
    file.write_text("# No.\ntopic play-T 1\nmove-coordinator\n")
    refused = CliRunner().invoke(cli, ["play", str(file), "--broker", kafka.bootstrap])
    assert "line 3: expected a verb for a broker, came 'move-coordinator'; no client can ask" in refused.output
