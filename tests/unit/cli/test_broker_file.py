"""`partita broker --config`: what counts first, what is refused and how, and what is shipped (issue 17, item 5)."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from partita.broker.bootstrap_topics import WantedTopic
from partita.broker.config import ConfigError
from partita.broker.launch import BrokerSettings
from partita.cli import broker as command
from partita.cli.service import serving
from partita.cli.service.broker_file import TABLES, read_broker_file
from partita.cli.variables import TOKEN_VARIABLE

SERVICE = Path(__file__).parents[3] / "docs" / "service"
TEXT = """
[broker]
data-dir = "d"
durability = "os"
nodes = 2
tls = true
acl = ["allow User:alice read topic a", "allow User:bob write topic b"]
log-level = "error"

[options]
num.partitions = 3
"log.retention.ms" = "5"
group.max.size = 7
super.users = "User:admin"

[users]
alice = "${env:ALICE}"

[topics.orders]
partitions = 6
options.retention.ms = 1000
options.cleanup.policy = ["compact", "delete"]
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[BrokerSettings, dict[str, str]]]:
    """What a call would start."""
    found: list[tuple[BrokerSettings, dict[str, str]]] = []

    async def serve(settings: BrokerSettings, users: Any, *, prints: bool) -> None:
        found.append((settings, {} if users is None else users()))

    monkeypatch.setattr(serving, "_serve", serve)
    monkeypatch.setattr(serving, "log_to_stderr", lambda level, form: found.append((level, form)))
    return found


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--memory"],
        ["--port", "0", "--memory", "--memory"],
        ["--port=19092", "--host", "localhost", "--port", "0092"],
        ["--host=::1", "--data-dir", "new=1"],
        ["--data-dir=old", "--port", "65535"],
        ["--host", "--memory"],
    ],
)
def test_usual_options_are_read_as_click_reads_them(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    found: list[BrokerSettings] = []
    monkeypatch.setattr(command, "run", lambda settings, *_: found.append(settings))
    assert CliRunner().invoke(command.broker, words).exit_code == 0
    assert [serving.plain(words, {})] == found


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["--nodes", "2"], ["--set", "a=b"], ["--config", "c"], ["broker"], ["--"], ["--memory=1"]),
        *(["--port"], ["--port", "-1"], ["--port", "65536"], ["--port", "9" * 5000], ["--port", "x"], ["--port="]),
        *(["--data-dir", "file"], ["--data-dir", "d", "--memory"], ["--host", ""], ["--por", "1"], ["-h"]),
    ],
)
def test_everything_else_is_left_to_click(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert serving.plain(words, {}) is None


@pytest.mark.parametrize("name", ["PARTITA_BROKER_NODES", TOKEN_VARIABLE, "_PARTITA_COMPLETE"])
def test_variables_are_left_to_click(name: str) -> None:
    assert serving.plain([], {"PATH": ""}) is not None
    assert serving.plain([], {name: "1"}) is None


def call(path: Path, *words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(command.broker, ["--config", str(path), *words], env=env)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALICE", "secret of alice")
    file = tmp_path / "broker.toml"
    file.write_text(TEXT)
    return file


def test_everything_in_a_file_arrives(path: Path, started: list[Any]) -> None:
    result = call(path)
    assert result.exit_code == 0, result.output
    log, (settings, users) = started
    assert log == ("error", "text")
    assert (settings.data_dir, settings.durability, settings.nodes, settings.tls) == ("d", "os", 2, True)
    assert settings.acls == ("allow User:alice read topic a", "allow User:bob write topic b")
    assert settings.options == {
        "num.partitions": 3, "log.retention.ms": "5", "group.max.size": 7, "super.users": "User:admin",
    }  # fmt: skip
    assert (dict(settings.users), users) == ({"alice": "secret of alice"},) * 2
    own = {"retention.ms": 1000, "cleanup.policy": ["compact", "delete"]}
    assert settings.topics == (WantedTopic("orders", 6, -1, own),)
    assert (settings.port, settings.host) == (9092, "127.0.0.1"), "the defaults"


@pytest.mark.parametrize(
    ("words", "variables", "nodes"),
    [
        ([], {}, 2),
        ([], {"PARTITA_BROKER_NODES": "3"}, 3),
        (["--nodes", "4"], {"PARTITA_BROKER_NODES": "3"}, 4),
        (["--nodes", "4"], {}, 4),
    ],
)
def test_the_command_line_counts_first_then_the_environment_then_the_file(
    path: Path, started: list[Any], words: list[str], variables: dict[str, str], nodes: int
) -> None:
    assert call(path, *words, env=variables).exit_code == 0
    assert started[-1][0].nodes == nodes


def test_set_and_the_environment_change_single_options_of_the_file(path: Path, started: list[Any]) -> None:
    more = {"PARTITA_BROKER_SETTINGS": "num.partitions=9 group.max.size=8"}
    assert call(path, env=more).exit_code == 0
    assert started[-1][0].options["num.partitions"] == "9"
    assert call(path, "--set", "num.partitions=4", env=more).exit_code == 0
    options = started[-1][0].options
    assert (options["num.partitions"], options["group.max.size"], options["log.retention.ms"]) == ("4", 7, "5")


def test_memory_on_the_command_line_takes_the_place_of_the_files_directory(path: Path, started: list[Any]) -> None:
    assert call(path, "--memory").exit_code == 0
    assert started[-1][0].data_dir is None
    assert "cannot be combined" in call(path, "--memory", "--data-dir", "e").output
    path.write_text("[broker]\nmemory = true\n")
    assert call(path, "--data-dir", "e").exit_code == 0
    assert started[-1][0].data_dir == "e"


def test_users_of_a_file_on_the_command_line_take_the_place_of_the_table(path: Path, started: list[Any]) -> None:
    users = path.with_name("users")
    users.write_text("bob=b\n")
    assert call(path, "--users", str(users)).exit_code == 0
    assert started[-1][1] == {"bob": "b"}


def test_users_are_read_again_from_the_file_as_it_is_then(path: Path) -> None:
    """SIGHUP."""
    file = read_broker_file(str(path), command.COMMAND_KEYS)
    users = command._Users(None, file)
    path.write_text('[users]\ncarol = "c"\n')
    assert users.read() == {"carol": "c"}


LISTENERS = """
[listeners.INTERNAL]
bind = "127.0.0.1:9092"
advertised = "broker:9092"
[listeners.OUT]
bind = "0.0.0.0:9093"
advertised = "kafka.example.com:9093"
protocol = "SASL_SSL"
options.ssl.keystore.location = "server.pem"
options.sasl.enabled.mechanisms = ["PLAIN", "SCRAM-SHA-256"]
"""


def test_tables_of_listeners_become_kafkas_options(path: Path) -> None:
    path.write_text(LISTENERS)
    assert read_broker_file(str(path), ()).options == {
        "listeners": "INTERNAL://127.0.0.1:9092,OUT://0.0.0.0:9093",
        "advertised.listeners": "INTERNAL://broker:9092,OUT://kafka.example.com:9093",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,OUT:SASL_SSL",
        "listener.name.out.ssl.keystore.location": "server.pem",
        "listener.name.out.sasl.enabled.mechanisms": ["PLAIN", "SCRAM-SHA-256"],
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[broker\n", "broker.toml: Expected ']'"),
        ("[brokr]\n", "unknown table: brokr; did you mean broker?"),
        ("options = 3\n", "options is a table, as in [options], and not 3"),
        ("[broker]\ndata_dir = 'x'\n", "unknown key of [broker]: data_dir; did you mean data-dir?"),
        ("[broker]\nset = 'x'\n", "unknown key of [broker]: set"),
        ("[broker]\nport = 'x'\n", "[broker] port: 'x' is not a valid integer"),
        ("[broker]\nport = 70000\n", "[broker] port: 70000 is not in the range 0<=x<=65535"),
        ("[broker]\ndurability = 'fast'\n", "[broker] durability: 'fast' is not one of 'memory', 'os', 'sync'"),
        ("[broker]\ntls = 'no'\n", "[broker] tls: 'no' is neither true nor false"),
        ("[broker]\nacl = 'allow all'\n", "[broker] acl: 'allow all' is no list"),
        ("[broker]\nadmin-token = '${env:NO_SUCH}'\n", "NO_SUCH"),
        ("[options]\nnum.partitons = 3\n", "Unknown configuration num.partitons; did you mean num.partitions?"),
        ("[options]\nnum.partitions = 0\n", "must be at least 1"),
        ("[options]\nnum.partitions = true\n", "Not a number of type INT"),
        ("[listeners]\nA = '127.0.0.1:1'\n", "listeners.A is a table"),
        ("[listeners.A]\n", '[listeners.A] needs bind, such as bind = "127.0.0.1:9092"'),
        ("[listeners.A]\nbnd = 'x'\n", "unknown key of [listeners.A]: bnd; did you mean bind?"),
        ("[listeners.A]\nbind = 'x:1'\nprotocol = 'SSSL'\n", "protocol of [listeners.A]: SSSL; did you mean SSL?"),
        ("[listeners.A]\nbind = 'x:1'\noptions.ssl.keystor.type = 'PEM'\n", "listener.name.a.ssl.keystor.type"),
        ("[listeners.A]\nbind = 'x:1'\n[options]\nlisteners = 'B://x:1'\n", "listeners is in [options], and"),
        ("[listeners.A]\nbind = 'x:1'\n[broker]\nport = 1\n", "listeners take the place of host and port"),
        ("[listeners.A]\nbind='x:1'\nadvertised='y:1'\n[listeners.B]\nbind='x:2'\n", "each needs one"),
        ("[users]\nalice = 5\n", "the password of [users] alice is no text"),
        ("[topics.a]\npartition = 3\n", "unknown key of [topics.a]: partition; did you mean partitions?"),
        ("[topics.a]\npartitions = '3'\n", "partitions of [topics.a] is a whole number, not '3'"),
        ("[topics.a]\noptions.retention.s = 3\n", "Unknown topic config name: retention.s; did you mean retention.ms?"),
        ("[broker]\nusers = 'U'\n[users]\nalice = 'x'\n", "there is a table [users]; give one"),
        ("\xff", "broker.toml: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_nearest_name(
    text: str, told: str, path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    users = path.with_name("users")
    users.write_text("bob=b\n")
    path.write_bytes(text.replace("'U'", f"'{users}'").encode("latin-1"))
    result = call(path)
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith(f"partita broker: {path}: ")
    assert told in line
    assert started == []


def test_a_nearer_port_does_not_quietly_replace_listeners(path: Path, started: list[Any]) -> None:
    path.write_text(LISTENERS)
    assert f"[listeners] of {path} replaces --host and --port" in call(path, "--port", "1").output
    path.write_text("[broker]\nport = 1\n")
    assert call(path, "--set", "listeners=A://127.0.0.1:2").exit_code == 0
    assert started[-1][0].options == {"listeners": "A://127.0.0.1:2"}


def test_the_printed_configuration_is_one_that_says_the_same(path: Path, started: list[Any]) -> None:
    printed = call(path, "--nodes", "3", "--set", "ssl.key.password=hush", "--print-config")
    assert printed.exit_code == 0, printed.output
    assert started == []
    for line in (
        'nodes = 3  # command line', 'durability = "os"  # file', 'log-format = "text"  # default',
        '"num.partitions" = "3"  # file', '"ssl.key.password" = "***"  # --set', '"alice" = "***"',
        "# admin-token is not given",
    ):  # fmt: skip
        assert line in printed.output
    assert "secret of alice" not in printed.output
    assert "hush" not in printed.output
    assert tomllib.loads(printed.output).keys() <= set(TABLES)
    path.write_text(printed.output)
    again = call(path, "--print-config")
    assert values(again.output) == values(printed.output)


def values(text: str) -> list[str]:
    return [line.partition("  # ")[0] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "nodes=1"], "Unknown configuration nodes"),
        (["--set", "listeners=x"], "must be NAME://HOST:PORT"),
        (["--assignor", "no.such:Thing"], "the assignor 'no.such:Thing' cannot be found"),
        (["--port", "70000"], "70000"),
    ],
)
def test_printing_checks_what_a_start_checks(words: list[str], told: str, path: Path) -> None:
    path.write_text("")
    result = call(path, *words, "--print-config")
    assert result.exit_code == 2
    assert told in result.output


def test_the_shipped_configuration_is_valid_and_says_nothing_that_does_not_exist(tmp_path: Path) -> None:
    shipped = SERVICE / "broker.toml"
    result = call(shipped, "--print-config")
    assert result.exit_code == 0, result.output
    assert 'durability = "sync"  # file' in result.output
    lines = shipped.read_text().splitlines()
    commented = [re.sub(r"^# ", "", line) if re.match(r"# (\[|[\w.-]+ = )", line) else line for line in lines]
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("admin=a\nalice=b\n")
    everything = tmp_path / "broker.toml"
    text = "\n".join(commented).replace("/etc/partita/secrets.properties", str(secrets))
    bind = 'bind = "127.0.0.1:9092"'
    everything.write_text(text.replace(bind, f'{bind}\nadvertised = "localhost:9092"'))
    result = call(everything, "--print-config")
    assert result.exit_code == 0, result.output
    assert '"listener.name.external.ssl.keystore.type" = "PEM"' in result.output


def test_the_unit_runs_the_command_with_options_that_exist(tmp_path: Path) -> None:
    unit = (SERVICE / "partita.service").read_text()
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    words = start.split()
    assert words[1:2] == ["broker"]
    known = {name for param in command.broker.params for name in param.opts}
    assert {word for word in words if word.startswith("--")} <= known
    for directive in ("ExecReload=/bin/kill -HUP $MAINPID", "RestartPreventExitStatus=2", "LimitNOFILE=65536"):
        assert directive in unit
    if shutil.which("systemd-analyze"):
        here = unit.replace("/opt/partita/bin/partita", "/bin/true").replace("User=partita", "User=root")
        checked = tmp_path / "partita.service"
        checked.write_text(here.replace("Group=partita", "Group=root"))
        done = subprocess.run(["systemd-analyze", "verify", str(checked)], capture_output=True, text=True)
        complaints = [line for line in done.stderr.splitlines() if "partita.service" in line]
        assert complaints == [], done.stderr


def test_topics_are_created_unless_they_exist(tmp_path: Path) -> None:
    import asyncio

    from partita.broker.launch import start_broker

    async def story(*topics: WantedTopic) -> dict[str, tuple[int, Any]]:
        running = await start_broker(BrokerSettings(data_dir=str(tmp_path / "d"), topics=topics))
        found = {t.name: (len(t.partitions), t.config.own.get("retention.ms")) for t in running.cluster.catalogue}
        await running.stop()
        return found

    first = [WantedTopic("a", 3, -1, {"retention.ms": "5"}), WantedTopic("b")]
    assert asyncio.run(story(*first)) == {"a": (3, 5), "b": (1, None)}
    assert asyncio.run(story(WantedTopic("a", 9), WantedTopic("c"))) == {"a": (3, 5), "b": (1, None), "c": (1, None)}


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        (WantedTopic("a b"), "topic a b: Topic name is invalid"),
        (WantedTopic("a", 0), "topic a: Number of partitions"),
        (WantedTopic("a", replication=3), "only 1 broker"),
        (WantedTopic("a", settings={"retention.ms": "x"}), "topic a: Invalid value x"),
        (WantedTopic("a", 20_000), "20000 partitions are too many"),
        (WantedTopic("x.y"), "its name collides with that of x_y"),
    ],
)
def test_topics_that_cannot_be_are_refused_together(topic: WantedTopic, told: str) -> None:
    from partita import Broker
    from partita.broker.bootstrap_topics import create_wanted

    with Broker() as broker:

        def create(wanted: Iterable[WantedTopic]) -> None:
            create_wanted(broker.cluster, wanted)

        with pytest.raises(ConfigError, match=re.escape(told)):
            broker.run(lambda: create([WantedTopic("x_y"), topic]))
        assert broker.run(lambda: broker.cluster.catalogue.get("x_y")) is None
