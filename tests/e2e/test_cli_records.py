"""`partita produce` and `consume` as a user runs them: bytes, positions, formats, mistakes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Producer
from partita.cli.commands import cli

Run = Callable[..., bytes]
BYTES = b"\xff\xfe\x00\n\r\x1b"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def run(broker: Broker) -> Run:
    """Run a command; return standard output. `told` must be on standard error."""

    def call(*words: str, stdin: bytes | str | None = None, code: int = 0, told: str = "") -> bytes:
        result = CliRunner().invoke(cli, [*words, "--bootstrap-server", broker.bootstrap], input=stdin)
        assert result.exit_code == code, result.output
        assert told in result.output
        return result.stdout_bytes

    return call


@pytest.fixture
def numbers(broker: Broker) -> None:
    """Topic t: offsets 0 to 4 in partition 0 at times 0 to 4 s, one record in partition 1 at 9 s."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin, Producer(bootstrap_servers=broker.bootstrap) as producer:
        admin.create_topic("t", 2)
        for number in range(5):
            producer.send("t", f"v{number}", f"k{number}", partition=0, timestamp=number * 1000)
        producer.send("t", "one", partition=1, timestamp=9000)


def test_bytes_survive_a_pipe_of_json(run: Run, broker: Broker) -> None:
    """C1."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("a", BYTES, b"\xfe", headers=[("h", b"\xfd"), ("n", None), ("t", b"text")], timestamp=7)
        producer.send("a", None, "tombstone", timestamp=8)
    lines = run("consume", "a", "--from", "earliest", "-e", "--json")
    run("produce", "b", "--json", stdin=lines)
    copied = run("consume", "b", "--from", "earliest", "-e", "--json")
    assert copied == lines.replace(b'"topic": "a"', b'"topic": "b"')
    first = json.loads(copied.splitlines()[0])
    assert (first["headers"][0], first["headers"][2]) == (["h", {"base64": "/Q=="}], ["t", "text"])


def test_a_raw_record_is_the_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(BYTES)
    run("produce", "raw", "--raw", str(file))
    assert run("consume", "raw", "--from", "earliest", "-e", "--raw") == BYTES


def test_delimiters_and_nulls_go_both_ways(run: Run) -> None:
    run("produce", "d", "-D", r"\0", "-K", "=", "-Z", "NULL", stdin=b"a=1\n2\0b=NULL\0NULL=3\0", told="3 records")
    assert run("consume", "d", "--from", "earliest", "-e", "-f", r"%k:%s\0", "-Z", "~") == b"a:1\n2\0b:~\0~:3\0"
    assert run("consume", "d", "--from", "earliest", "--max", "1", "-D", ";") == b"1\n2;"


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--from", "earliest", "-p", "0"], "v0 v1 v2 v3 v4"),
        (["-p", "0", "--offset", "3"], "v3 v4"),
        (["-p", "0", "-o", "-2"], "v3 v4"),
        (["-p", "0", "-o", "+3"], "v3 v4"),
        (["-p", "0", "-o", "s@3000"], "v3 v4"),
        (["-p", "0", "-o", "beginning", "-c", "2"], "v0 v1"),
        (["-p", "0", "-o", "start", "-X", "max.poll.records=1", "-X", "check_crcs=false", "-n", "1"], "v0"),
        (["-p", "0", "--from", "-2"], "v3 v4"),
        (["--last", "1", "-p", "0,1"], "one v4"),
        (["--from", "1970-01-01T00:00:02", "-p", "0"], "v2 v3 v4"),
        (["--from", "@2000", "--to", "@4000"], "v2 v3"),
        (["--from", "1", "--to", "3", "-p", "0"], "v1 v2"),
        (["--from", "1h ago"], ""),
        (["--from", "earliest", "--grep", "^k[12]"], "v1 v2"),
        (["--from", "earliest", "--grep", "on"], "one"),
    ],
)
def test_reading_starts_and_ends_where_one_says(run: Run, words: list[str], expected: str) -> None:
    ends = [] if "--to" in words else ["--until-end"]
    assert sorted(run("consume", "t", *words, *ends).decode().split()) == expected.split()


@pytest.mark.usefixtures("numbers")
def test_a_format_string_places_the_fields(run: Run) -> None:
    assert (
        run("consume", "t", "-p", "0", "-o", "2", "--max", "1", "-f", r"%t/%p@%o %k %s %T\n") == b"t/0@2 k2 v2 2000\n"
    )


@pytest.mark.usefixtures("numbers")
def test_topics_by_regular_expression_and_an_idle_end(run: Run) -> None:
    run("produce", "other", stdin="x\n")
    assert b"x" not in run("consume", "^t$", "--from", "earliest", "--idle", "0.3").split()
    assert len(run("consume", "^(t|other)", "--from", "earliest", "-g", "g", "--max", "7").split()) == 7
    run("consume", "^nothing", code=1, told="no topic matches ^nothing")


def test_an_idle_end_counts_from_the_join_of_a_group(run: Run, broker: Broker) -> None:
    """On Apache Kafka a group waits for 3 s for more members: `--idle 2` ended before the first record."""
    broker.create_topics({"empty": 1})
    broker.control.delay("JoinGroup", 700)
    began = time.monotonic()
    assert run("consume", "empty", "-g", "late", "--idle", "0.5") == b""
    assert time.monotonic() - began >= 1.2


def test_reading_never_creates_a_topic(run: Run) -> None:
    """C2."""
    for words in ([], ["--group", "g"], ["--until-end"]):
        run("consume", "typo", *words, code=1, told="there is no topic named typo")
    assert b"no topics yet" in run("topics", "list")


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize(
    ("words", "stdin", "code", "told"),
    [
        (["produce", "t", "-p", "9"], "x\n", 1, "topic t has 2 partitions, numbered from 0; there is no partition 9"),
        (["produce", "t", "--json"], '{"value": "", "partition": 2}\n', 1, "line 1: topic t has 2 partitions"),
        (["produce", "t", "--raw", "--json"], "", 2, "--raw cannot be combined"),
        (["consume", "t", "-p", "2"], None, 1, "there is no partition 2"),
        (["consume", "t", "-p", "x"], None, 2, "--partition expects numbers"),
        (["consume", "t", "--from", "soon"], None, 2, "'soon' is not a position"),
        (["consume", "t", "--from", "3", "--last", "1"], None, 2, "only one of --from"),
        (["consume", "t", "-e", "--to", "3"], None, 2, "--until-end and --to"),
        (["consume", "t", "-f", "%q"], None, 2, "unknown field %q"),
        (["consume", "t", "-f", "%s", "--json"], None, 2, "only one of --format"),
        (["consume", "t", "--grep", "("], None, 2, "unterminated"),
        (["consume", "t", "-g", "g", "--from", "1h ago"], None, 2, "a group starts at its committed offsets"),
        (["consume", "t", "-g", "g", "-p", "0"], None, 2, "a group assigns the partitions itself"),
        (["consume", "t", "-g", "g", "--to", "3"], None, 2, "--to does not work in a group"),
        (["consume", "t", "^u"], None, 2, "cannot be combined"),
        (["consume", "^("], None, 2, "is not a regular expression"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_once(run: Run, words: list[str], stdin: str | None, code: int, told: str) -> None:
    """C3 and its neighbours."""
    run(*words, stdin=stdin, code=code, told=told)


@pytest.mark.parametrize("words", [("produce", "typo"), ("perf", "produce", "typo")])
def test_a_topic_that_nobody_creates_is_told(words: tuple[str, ...]) -> None:
    with Broker(auto_create_topics_enable=False) as broker:
        result = CliRunner().invoke(cli, [*words, "-b", broker.bootstrap], input="x\n")
    assert result.exit_code == 1
    assert "create it with: partita topics create typo" in result.output


def test_several_names_go_on_after_a_failure(run: Run) -> None:
    """C4."""
    run("topics", "create", "b")
    created = run("topics", "create", "a", "b", "c", code=1, told="1 of 3 names failed")
    assert [line.split()[1] for line in created.decode().splitlines()] == ["a", "c"]
    deleted = run("topics", "delete", "a", "nothing", "c", code=1, told="there is no topic nothing")
    assert deleted == b"deleted a\ndeleted c\n"
    described = json.loads(run("topics", "describe", "x", "b", "--json", code=1).decode())
    assert [topic["name"] for topic in described] == ["b"]
    run("groups", "describe", "x", "y", code=1, told="2 of 2 names failed")
    run("groups", "delete", "x", "y", code=1, told="2 of 2 names failed")
    run("consume", "b", "--group", "g", "--from", "earliest", "--until-end")
    table = run("groups", "lag", "x", "g", code=1, told="there is no group 'x'").decode()
    assert [line.split()[0] for line in table.splitlines()] == ["GROUP", "g"]


def test_a_person_is_asked_before_something_is_deleted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """C5."""
    run("topics", "create", "t")
    monkeypatch.setattr("partita.cli.terminal.is_asked", lambda: True)
    run("topics", "delete", "t", stdin="n\n", code=1, told="Delete t with all records?")
    run("topics", "delete-records", "t", stdin="n\n", code=1, told="Delete all records of t?")
    run("groups", "delete", "g", stdin="n\n", code=1, told="Delete g with all committed offsets?")
    run("groups", "delete-offsets", "g", "--topic", "t", stdin="n\n", code=1, told="Delete the offsets of g for t?")
    assert run("topics", "delete", "t", "--yes") == b"deleted t\n"


def spawn(*words: str, stdout: int | IO[bytes], file_bytes: int = -1) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own, which may write files of at most `file_bytes`."""
    command = [sys.executable, "-m", "partita.cli.main", *words]
    limit = (file_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, timeout=60, env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )  # fmt: skip


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("words", [("consume", "t", "--from", "earliest", "-e"), ("topics", "list")])
def test_output_that_cannot_be_written_is_one_line(broker: Broker, tmp_path: Path, words: tuple[str, ...]) -> None:
    """C6."""
    with (tmp_path / "out").open("wb") as full:
        done = spawn(*words, "-b", broker.bootstrap, stdout=full, file_bytes=0)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, line) == (1, "partita: cannot write the output: File too large")


@pytest.mark.usefixtures("numbers")
def test_a_reader_that_has_seen_enough_is_no_error(broker: Broker) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = spawn("consume", "t", "--from", "earliest", "-e", "-b", broker.bootstrap, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_profiles_are_listed_and_used(
    run: Run, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("PARTITA_CONFIG", str(file))
    runner = CliRunner()
    assert "no profiles" in runner.invoke(cli, ["profiles"]).output
    file.write_text(f'[profiles.here]\nbootstrap = "{broker.bootstrap}"\nrequest.timeout.ms = 9000\n')
    run("topics", "create", "seen")
    assert broker.bootstrap in runner.invoke(cli, ["profiles"]).output
    assert "seen" in runner.invoke(cli, ["topics", "list", "--profile", "here"]).output
    assert json.loads(runner.invoke(cli, ["profiles", "--json"]).output)[0]["options"] == ["request.timeout.ms"]
