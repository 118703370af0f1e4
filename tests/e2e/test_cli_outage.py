"""Issue 10, 6: the broker dies while a command reads up to an end: one line on standard error, and exit code 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer, Producer
from partita.cli.commands import cli
from partita.cli.records import patience
from partita.consumer.records import ConsumerRecords

BATCHES = 20
ONE_BATCH = ["--set", "max.partition.fetch.bytes=1", "--set", "max.poll.records=1"]


@pytest.fixture
def other() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.mark.parametrize(
    "words",
    [
        ["consume", "t", "-e", "--from", "earliest", *ONE_BATCH],
        ["consume", "t", "--idle", "0.3", "--from", "earliest", *ONE_BATCH],
        ["perf", "consume", "t", *ONE_BATCH],
        ["mirror", "t", "-e"],
    ],
    ids=["consume", "idle", "perf", "mirror"],
)
def test_a_broker_that_dies_midway_ends_the_command(
    words: list[str], other: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "UNREACHABLE_S", 0.3)
    broker = Broker()
    broker.start()
    try:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(BATCHES):
                producer.send("t", bytes(200_000), partition=0).result()
        polled = Consumer.poll

        def poll(self: Consumer, *args: Any, **options: Any) -> ConsumerRecords:
            records = polled(self, *args, **options)
            if records:
                broker.stop()
            return records

        monkeypatch.setattr(Consumer, "poll", poll)
        more = ["--to", other.bootstrap] if words[0] == "mirror" else []
        result = CliRunner().invoke(cli, [*words, *more, "-b", broker.bootstrap])
    finally:
        broker.stop()
    assert result.exit_code == 1, result.output
    # A lookup that is under way when the broker dies may be what tells of it.
    told = ("no broker could be reached for", "did not finish in time")
    assert any(words in result.stderr for words in told), result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["mirror", "t", "-e"], ["perf", "produce", "t", "-n", "1000000000"]], ids=" ".join)
def test_a_broker_that_takes_nothing_more_ends_the_command(
    words: list[str], other: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer logs neither the outage nor each lost record, and nothing is sent after the first failure."""
    soon = {"delivery.timeout.ms": 300, "request.timeout.ms": 150}
    monkeypatch.setattr(f"partita.cli.records.{words[0]}.patient_for", lambda *_: soon)
    target = Broker()
    target.start()
    try:
        target.create_topics({"t": 1})
        other.produce("t", *map(str, range(10)))
        sent, stops = Producer.send, [target.stop]

        def send(self: Producer, *args: Any, **options: Any) -> Any:
            future = sent(self, *args, **options)
            if stops:
                future.result(10)
                stops.pop()()
            return future

        monkeypatch.setattr(Producer, "send", send)
        ends = ["-b", other.bootstrap, "--to"] if words[0] == "mirror" else ["-b"]
        result = CliRunner().invoke(cli, [*words, *ends, target.bootstrap])
    finally:
        target.stop()
    assert result.exit_code == 1, result.output
    assert "not delivered within 300 ms" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_broker_that_dies_while_a_group_settles_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "UNREACHABLE_S", 0.3)
    broker = Broker()
    broker.start()
    broker.create_topics({"t": 2})
    polled = Consumer.poll

    def poll(self: Consumer, *args: Any, **options: Any) -> ConsumerRecords:
        broker.stop()
        return polled(self, *args, **options)

    monkeypatch.setattr(Consumer, "poll", poll)
    result = CliRunner().invoke(cli, ["perf", "group", "t", "-m", "3", "-b", broker.bootstrap])
    assert result.exit_code == 1, result.output
    assert "no broker could be reached for" in result.stderr
    assert len(result.stderr.splitlines()) == 1
