"""`partita groups watch`, `consume` and `doctor` as a user runs them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer, Producer
from partita.cli.commands import cli


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(10):
                producer.send("numbers", b"%d" % number, key=b"k", headers=[("h", b"x")])
        yield broker


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_watch_shows_state_members_and_lag(broker: Broker) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["numbers"])
        got = 0
        while got < 10:
            got += len(consumer.poll(timeout=1.0))
        consumer.commit({("numbers", 0): 4})
        (line,) = run("groups", "watch", "-b", broker.bootstrap, "--looks", "1", "--json").splitlines()
    (group,) = json.loads(line)["groups"]
    assert (group["group_id"], group["state"], group["lag"]) == ("readers", "Stable", 6)
    assert len(group["members"]) == 1


def test_watch_says_from_the_log_why_a_group_rebalanced(broker: Broker) -> None:
    words = ["groups", "watch", "readers", "-b", broker.bootstrap, "--every", "0.1", "--looks", "600", "--json"]
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="readers", client_id="one") as consumer:
        consumer.subscribe(["numbers"])
        while not consumer.assignment():
            consumer.poll(timeout=0.1)
        with subprocess.Popen(
            [sys.executable, "-u", "-m", "partita.cli.main", *words], stdout=subprocess.PIPE
        ) as popen:
            assert popen.stdout is not None
            assert json.loads(popen.stdout.readline())["news"] == []
            consumer.close()
            news = next(found for line in popen.stdout if (found := json.loads(line)["news"]))
            popen.terminate()
    assert news[0]["text"].endswith("one left, and the group is empty now")


def test_watch_draws_without_a_terminal(broker: Broker) -> None:
    assert "no groups" in run("groups", "watch", "-b", broker.bootstrap, "--looks", "1")


def test_watch_says_how_to_get_notes(broker: Broker) -> None:
    said = run("groups", "watch", "-b", broker.bootstrap, "--admin-port", "1", "--looks", "1", code=1)
    assert "start the broker with --admin-port 1" in said


def test_consume_to_the_end_without_a_group(broker: Broker) -> None:
    said = run("consume", "numbers", "-b", broker.bootstrap, "--from", "earliest", "--until-end")
    assert said.split() == [str(number) for number in range(10)]


def test_consume_in_a_group_commits_what_it_printed(broker: Broker) -> None:
    group = ("consume", "numbers", "-b", broker.bootstrap, "--from", "earliest", "--group", "g")
    first = [json.loads(line) for line in run(*group, "--max", "4", "--json").splitlines()]
    assert [(r["offset"], r["value"], r["headers"]) for r in first] == [(n, str(n), [["h", "x"]]) for n in range(4)]
    assert run(*group, "--until-end").split() == ["4", "5", "6", "7", "8", "9"]


def test_consume_of_a_missing_topic_says_so(broker: Broker) -> None:
    said = run("consume", "nothing", "-b", broker.bootstrap, "--set", "allow.auto.create.topics=false", code=1)
    assert "no topic named nothing" in said


def test_consume_refuses_an_unknown_option(broker: Broker) -> None:
    said = run("consume", "numbers", "-b", broker.bootstrap, "--set", "fetch.min.byte=1", code=2)
    assert "fetch" in said


def test_doctor_names_every_part() -> None:
    found = json.loads(run("doctor", "--json"))
    assert {"Python", "compiled parts"} <= {finding["what"] for finding in found}
    assert all(finding["is_good"] for finding in found if finding["is_needed"])


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_consume_leaves_its_group_when_it_is_told_to_stop(broker: Broker, signum: signal.Signals) -> None:
    words = ["consume", "numbers", "-b", broker.bootstrap, "--from", "earliest", "--group", "g"]
    with subprocess.Popen([sys.executable, "-u", "-m", "partita.cli.main", *words], stdout=subprocess.PIPE) as popen:
        assert popen.stdout is not None
        assert [popen.stdout.readline() for _ in range(10)] == [b"%d\n" % number for number in range(10)]
        popen.send_signal(signum)
        assert popen.wait(60) == 0
    assert broker.control.members("g") == {}


def test_top_shows_what_waits_and_why_a_group_rebalanced(broker: Broker) -> None:
    """dashboard.md section 3: the same table and the same words as the pages, live in the terminal."""
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["numbers"])
        got = 0
        while got < 10:
            got += len(consumer.poll(timeout=1.0))
        consumer.commit({("numbers", 0): 4})
        said = run("top", "-b", broker.bootstrap, "--looks", "2", "--every", "0.1")
        (line,) = run("top", "-b", broker.bootstrap, "--looks", "1", "--json").splitlines()
    (row,) = [line for line in said.splitlines() if line.startswith("readers  ")][-1:]
    assert row.split()[:4] == ["readers", "Stable", "1", "6"]
    (group,) = json.loads(line)["groups"]
    assert (group["group_id"], group["members"], group["lag"]) == ("readers", 1, 6)
    assert group["last_rebalance"] in row
    assert group["rebalances_per_hour"] == 1, "table and JSON agree"
    assert row.partition(group["last_rebalance"])[0].split()[-1] == "1", "those before the start count, too"


@pytest.mark.parametrize("words", [["top"], ["groups", "watch"]], ids=" ".join)
def test_what_shows_groups_live_ends_with_130_at_a_ctrl_c(broker: Broker, words: list[str]) -> None:
    """Finding 20 of a newcomer: the page says 130, and it was 0."""
    command = [sys.executable, "-u", "-m", "partita.cli.main", *words, "-b", broker.bootstrap, "--every", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as popen:
        assert popen.stdout is not None
        assert popen.stdout.readline()
        popen.send_signal(signal.SIGINT)
        assert popen.wait(60) == 130
