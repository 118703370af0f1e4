"""`partita migrate`: settings and programs of users go from protocol to protocol, on real processes and sockets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from partita import Broker
from partita.cli.stories.migrate import migrate
from partita.errors import KafkaError
from support.clients.broker import until

QUICK = [
    f"--set=group.{kind}.{name}"
    for kind in ("consumer", "share")
    for name in ("min.heartbeat.interval.ms=500", "heartbeat.interval.ms=500", "assignment.interval.ms=0")
]
SHORT = "from partita.migrate import lab\nlab.QUIET_S = lab.STEADY_S = 0.3\nfrom partita.cli.main import main\nmain()"
"""The command, with less rest between its deeds."""
SETTINGS = """
group.id=billing
auto.offset.reset=earliest
session.timeout.ms=20000
heartbeat.interval.ms=500
auto.commit.interval.ms=600000
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
sasl.mechanism=PLAIN
"""
PAGE = Path(__file__).parents[2] / "docs" / "consumer-protocol.md"
(OF_THE_PAGE,) = re.findall(r"test_migrate.py runs it -->\n```python\n(.*?)```", PAGE.read_text(), re.S)
PROGRAM = OF_THE_PAGE.replace(
    "settings = {", 'settings = {**({"heartbeat.interval.ms": 500} if sys.argv[2] == "classic" else {}), '
)
CHECKING = "assert message is None or message.error() or message.value() in (b'a', b'b')"
STUBBORN = "import os, pathlib; signal.signal(15, lambda *_: pathlib.Path('told').write_text(f'{os.getpid()}.'))"
TWO_MEMBERS = """
import os, signal
from confluent_kafka import Consumer

signal.signal(signal.SIGTERM, signal.default_int_handler)
settings = {"group.id": "billing", "auto.offset.reset": "earliest", "heartbeat.interval.ms": 500}
consumers = [Consumer({**settings, "bootstrap.servers": os.environ["MIGRATE_BOOTSTRAP"]}) for _ in range(2)]
for consumer in consumers:
    consumer.subscribe(["orders"])
try:
    while True:
        for consumer in consumers:
            consumer.poll(0.05)
except KeyboardInterrupt:
    for consumer in consumers:
        consumer.close()
"""
WITHIN_S = 240


class Done(NamedTuple):
    """A run that has ended."""

    status: int
    output: str
    errors: str

    @property
    def report(self) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, Any]]]:
        """The JSON, and what was measured by (protocol, deed)."""
        told = json.loads(self.output)
        return told, {(one["protocol"], one["deed"]): one for one in told["runs"]}


class Runs:
    """Runs of the command at the same time, since most of each is waiting; they end with the tests of this file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._stack = ExitStack()

    def start(self, name: str, program: str, *arguments: str) -> None:
        """Begin a run, with PROGRAM at the end of the arguments standing for this one."""
        (self.folder / f"{name}.py").write_text(program)
        words = [word.replace("PROGRAM", f"{name}.py") for word in arguments]
        run = subprocess.Popen(
            [sys.executable, "-c", SHORT, "migrate", *QUICK, *words], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._running[name] = self._stack.enter_context(run)
        self._stack.callback(run.kill)

    def interrupt(self, name: str) -> None:
        """As Ctrl-C does, which a test that runs in the background does not get."""
        self._running[name].terminate()

    def done(self, name: str) -> Done:
        """Wait for its end."""
        run = self._running[name]
        output, errors = run.communicate(timeout=WITHIN_S)
        return Done(run.returncode, output, errors)

    def close(self) -> None:
        """End those that still run."""
        self._stack.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("migrate"))
    try:
        (runs.folder / "settings").write_text(SETTINGS)
        (runs.folder / "values").write_text("a\nb\n")
        session = [f"--set=group.{kind}.min.session.timeout.ms=6000" for kind in ("consumer", "share")]
        program = ["--", sys.executable, "PROGRAM", "{bootstrap}", "{protocol}"]
        runs.start("settings", "", "--settings", "settings", "--topic", "orders:4", *session, "--json")
        checking = PROGRAM.replace("message = consumer.poll(0.1)", f"message = consumer.poll(0.1)\n        {CHECKING}")
        runs.start("program", checking, "-t", "orders:3", "--records", "values", *program)
        runs.start("classic", TWO_MEMBERS, "-t", "orders:12", "--json", "--", sys.executable, "PROGRAM")
        runs.start("stubborn", PROGRAM.replace("signal.signal(signal.SIGTERM, signal.default_int_handler)", STUBBORN),
                   "-t", "orders:2", *program)  # fmt: skip
        yield runs
    finally:
        runs.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(migrate, [*QUICK, *arguments])


def test_settings_go_through_all_three_protocols(runs: Runs) -> None:
    done = runs.done("settings")
    assert done.status == 1, done
    told, measured = done.report
    assert told["problems"] == [
        "refused, so change first: session.timeout.ms, heartbeat.interval.ms, auto.offset.reset"
    ]
    crashes = {protocol: measured[protocol, "a member crashes"] for protocol in ("classic", "consumer", "share")}
    assert crashes["classic"]["session_ms"] > 0
    for protocol, crash in crashes.items():
        assert measured[protocol, "nothing happens"]["session_ms"] == 0
        assert measured[protocol, "a member leaves"]["session_ms"] == 0
        if crash["session_ms"]:  # on a busy machine a new member may have got no partition yet, so none waits for it
            assert 15_000 < crash["session_ms"] <= 20_000, "the session is the setting's, which its group took over"
            assert crash["longest_ms"] >= crash["session_ms"]
            assert crash["paused"] >= 1
    assert measured["classic, then consumer", "members are replaced one by one"]["session_ms"] == 0
    assert crashes["consumer"]["again"] or not crashes["consumer"]["session_ms"], "read after the last commit"
    assert all(one["partitions"] == 4 for one in told["runs"])


def test_a_program_of_another_client_goes_to_the_consumer_protocol(runs: Runs) -> None:
    """The one on the page, which here checks that it gets the records of the file."""
    done = runs.done("program")
    assert done.status == 0, done
    assert "nothing stands in the way" in done.output
    rows = [line for line in done.output.splitlines() if line.startswith(("a member", "members are", "nothing happ"))]
    assert len(rows) == 9
    assert sum("of it the session" in row for row in rows) in (1, 2)  # as above


def test_a_program_that_stays_with_the_classic_protocol_is_told_so(runs: Runs) -> None:
    """Each process has two members, whose sessions end at the same time."""
    done = runs.done("classic")
    assert done.status == 1, done
    told, measured = done.report
    assert told["problems"] == [
        "consumer: the program formed a classic group; it has to take {protocol} or MIGRATE_PROTOCOL"
    ]
    assert {protocol for protocol, _ in measured} == {"classic"}
    crash = measured["classic", "a member crashes"]
    assert crash["session_ms"] <= crash["longest_ms"] < 2 * 40_000 < 2 * crash["session_ms"]


def test_what_is_interrupted_leaves_no_program_behind(runs: Runs) -> None:
    """Not even one that is being ended, and takes its time."""
    told = runs.folder / "told"
    until(lambda: told.exists() and told.read_text().endswith("."), "a program is being ended", WITHIN_S)
    runs.interrupt("stubborn")
    assert runs.done("stubborn").status == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text().rstrip(".")), 0)


@pytest.mark.partita(topics={"orders": 1})
def test_a_member_ends_with_the_lab_that_is_killed(partita_broker: Broker, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"bootstrap.servers={partita_broker.bootstrap}\ngroup.id=g\n")
    member = [sys.executable, "-m", "partita.migrate.member", "partita", "classic", str(config), "orders"]
    lab = [sys.executable, "-c", f"import subprocess; subprocess.Popen({member}); input()"]
    with subprocess.Popen(lab, stdin=subprocess.PIPE) as starting:
        until(lambda: len(partita_broker.control.members("g")) == 1, "the member is there", WITHIN_S)
        starting.kill()
    until(lambda: not partita_broker.control.members("g"), "the member has left", WITHIN_S)


def test_a_lab_that_does_not_open_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run("--topic", "no topic", "--json")
    assert isinstance(result.exception, KafkaError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("most", [10_000, 10_000_000])
def test_records_that_cannot_be_written_are_named(most: int, tmp_path: Path) -> None:
    """Those that the broker refuses, and those that the producer does."""
    (tmp_path / "values").write_bytes(b"x" * (2_000_000 if most > 2_000_000 else 20_000))
    result = run(f"--set=message.max.bytes={most}", "--records", str(tmp_path / "values"), "--", "sleep", "60")
    assert (result.exit_code, "records cannot be written: " in result.output) == (1, True), result.output


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-c", "raise SystemExit('no orders today')"], "ended with status 1: no orders today"),
        (["no-such-program"], "cannot start 'no-such-program': No such file or directory"),
        (["sleep", "60"], "no new member joined a group within 1 s; the program's output: no output"),
    ],
)
def test_a_program_that_does_not_read_is_shown_with_its_last_words(command: list[str], said: str) -> None:
    result = run("--within", "1", "-t", "orders", "--", *command)
    assert (result.exit_code, said in result.output) == (1, True), result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-t", "orders:x"], "--topic expects NAME or NAME:PARTITIONS such as orders:6, not 'orders:x'"),
        (["-X", "session"], "-X expects NAME=VALUE, not 'session'"),
        (["--set", "gg=1"], "--set: Unknown configuration gg"),
        (["--client", "jva"], "'jva' is not one of"),
        (["--settings", "no-such-file"], "does not exist"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_check_says_what_becomes_of_the_settings_and_runs_nothing() -> None:
    result = run("--check", "--to", "consumer", "-X", "partition.assignment.strategy=sticky")
    assert result.exit_code == 1
    assert "sticky becomes uniform" in result.stdout
    assert "running" not in result.output
    assert run("--check", "--to", "share", "-X", "max.poll.records=5").exit_code == 0
    twice = run("--check", "--json", "--to", "share", "--to", "share", "-X", "auto.offset.reset=earliest")
    assert len(json.loads(twice.stdout)["settings"]) == 1
