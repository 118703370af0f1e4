"""What the broker refuses, warns about and lets go of: peers that never read, browsers, odd numbers, open doors."""

from __future__ import annotations

import logging
import socket

import pytest
from click.testing import CliRunner

from partita import Broker
from partita.broker.control.verbs import CLOCK_AHEAD_MS_MAX, ControlError
from partita.broker.embedded import StartError
from partita.broker.launch import banner
from partita.broker.reading.fetch_sessions import EXPIRES_MS
from partita.broker.storage.upkeep import Upkeep
from partita.broker.wire.server import CLOSE_TICKS_MAX, Server
from partita.cli.commands import cli
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.metadata import MetadataRequest
from support.broker.raw import Raw

HOST = "Host: 127.0.0.1\r\n"


def let_pass(server: Server, ticks: int) -> None:
    """Do what a server does in so many seconds."""
    for _ in range(ticks):
        server._on_tick()


def asked(port: int, *headers: str, what: str = "GET /nodes") -> int:
    """The status of a request with these headers."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
        peer.sendall((f"{what} HTTP/1.1\r\n" + "".join(headers) + "\r\n").encode())
        return int(peer.recv(100).split()[1])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((HOST,), 200),
        ((HOST, "Sec-Fetch-Site: same-origin\r\n"), 200),
        (("Host: evil.example\r\n", HOST), 400),
        ((HOST, "Sec-Fetch-Site: cross-site\r\n"), 403),
        ((HOST, "Content-Type: text/plain\r\n"), 400),
        ((HOST, "Content-Type: multipart/form-data; boundary=x\r\n"), 400),
        ((HOST, "Content-Type: application/json\r\n"), 200),
    ],
)
def test_the_control_endpoint_turns_browsers_and_double_headers_away(headers: tuple[str, ...], status: int) -> None:
    """Posture, D."""
    with Broker(admin_port=0) as broker:
        token = f"Authorization: Bearer {broker.admin_token}\r\n"
        assert asked(broker.running.admin_port or 0, *headers, token) == status


@pytest.mark.parametrize(
    ("what", "is_open"),
    [
        ("GET /nodes", False),
        ("GET /notes?since=0", False),
        ("POST /control/clear_faults", False),
        ("POST /control/no_such_verb", False),
        ("GET /elsewhere", False),
        ("GET /health", True),
        ("GET /metrics", True),
    ],
)
def test_whoever_lacks_the_token_may_only_watch(what: str, is_open: bool) -> None:
    """Posture, D: any local process reaches the port; a name that does not exist is not told from one that does."""
    with Broker(admin_port=0, admin_token="open sesame") as broker:
        port = broker.running.admin_port or 0
        wrong = ("", "Bearer", "Bearer open", "Bearer open sesame!", "Basic open sesame", "open sesame")
        for value in wrong:
            header = f"Authorization: {value}\r\n" if value else ""
            assert asked(port, HOST, header, what=what) == (200 if is_open else 401)
        right = "Authorization: Bearer open sesame\r\n"
        assert asked(port, HOST, right, right, what=what) == 400, "two of them"
        assert asked(port, HOST, right, what=what) == (404 if "such" in what or "elsewhere" in what else 200)


SECURED = (
    {"authorizer.class.name": "standard", "super.users": "User:admin"},
    {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-256"},
)


@pytest.mark.parametrize("config", SECURED, ids=["authorizer", "SASL"])
def test_the_metrics_of_a_secured_broker_ask_for_the_token(config: dict[str, object]) -> None:
    """They name topics, which the broker keeps from those who may not see them."""
    with Broker(config, admin_port=0, admin_token="open sesame") as broker:
        port = broker.running.admin_port or 0
        right = "Authorization: Bearer open sesame\r\n"
        assert asked(port, HOST, what="GET /metrics") == asked(port, HOST, what="HEAD /metrics") == 401
        assert asked(port, HOST, right, what="GET /metrics") == 200
        assert [asked(port, HOST, what=f"GET /{path}") for path in ("health", "ready")] == [200, 200]


def test_each_broker_makes_up_a_token_of_its_own() -> None:
    """Posture, D."""
    with Broker(admin_port=0) as one, Broker(admin_port=0) as other:
        assert len({one.admin_token, other.admin_token}) == 2
        assert min(len(one.admin_token), len(other.admin_token)) > 20
        assert f"token {one.admin_token}" in "\n".join(banner(one.running))
        assert one.admin_token not in "\n".join(banner(one.running, shows_token=False))


def test_an_empty_token_is_no_token() -> None:
    with pytest.raises(StartError, match="the admin token is empty"), Broker(admin_port=0, admin_token=" "):
        pass


def test_the_commands_send_the_token_or_say_how(monkeypatch: pytest.MonkeyPatch) -> None:
    """Posture, D: by option or environment, as `groups trace` and `groups watch` take it."""
    with Broker(admin_port=0) as broker:
        watch = ["groups", "watch", "-b", broker.bootstrap, "--admin-port", str(broker.running.admin_port)]
        refused = CliRunner().invoke(cli, [*watch, "--looks", "1"])
        assert refused.exit_code == 1
        assert "give it with --admin-token or PARTITA_ADMIN_TOKEN" in refused.output
        given = CliRunner().invoke(cli, [*watch, "--looks", "1", "--admin-token", broker.admin_token, "--json"])
        assert given.exit_code == 0, given.output
        monkeypatch.setenv("PARTITA_ADMIN_TOKEN", broker.admin_token)
        assert CliRunner().invoke(cli, [*watch, "--looks", "1", "--json"]).exit_code == 0


@pytest.mark.parametrize("ms", [True, 1.5, float("inf"), float("nan"), CLOCK_AHEAD_MS_MAX + 1, 10**30])
def test_odd_numbers_do_not_move_the_clock(ms: float) -> None:
    """Posture, D."""
    with Broker() as broker, pytest.raises(ControlError, match="ms must be a whole number"):
        broker.control.advance_clock(ms)  # type: ignore[arg-type]  # what JSON brings


def test_a_peer_that_never_reads_is_let_go_after_its_connection_should_have_closed() -> None:
    """C6, H11: unsent bytes must not keep a closing connection for ever."""
    with Broker() as broker, Raw(broker.port) as raw:
        broker.run(lambda: [broker.cluster.create_topic(f"t{number}", 20, 1) for number in range(100)])
        server = broker.running.servers[1][0]
        for _ in range(100):
            raw.send(MetadataRequest(topics=None), 1)
        (connection,) = broker.run(lambda: list(server.connections))
        while not broker.run(lambda: connection._writing_paused):
            pass
        broker.run(connection.close)
        broker.run(lambda: let_pass(server, CLOSE_TICKS_MAX // 2))
        assert broker.run(lambda: connection in server.connections), "it has time to read"
        broker.run(lambda: let_pass(server, CLOSE_TICKS_MAX))
        broker.run(lambda: None)
        assert not broker.run(lambda: server.connections)


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_listening_beyond_loopback_is_warned_about(host: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Posture, D, H31."""
    with caplog.at_level(logging.WARNING, "partita.broker"), Broker(host=host):
        pass
    assert ("nobody has to log in" in caplog.text) is warned


def test_the_clock_that_is_advanced_runs_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page on testing promises that what becomes due happens before the call returns."""
    calls: list[int] = []
    retain = Upkeep.retain_now

    def counted(self: Upkeep) -> int:
        calls.append(1)
        return retain(self)

    with Broker() as broker:
        monkeypatch.setattr(Upkeep, "retain_now", counted)
        broker.control.advance_clock(5_000)
        assert calls == [1]


def test_the_clock_that_is_advanced_ends_fetch_sessions() -> None:
    """H26: a session that was not used for two minutes is over."""
    with Broker() as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 1})
        wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1)])]
        opened = raw.ask(FetchRequest(max_wait_ms=0, topics=wanted, session_epoch=0), 11)
        going_on = FetchRequest(max_wait_ms=0, session_id=opened.session_id, session_epoch=1)
        broker.control.advance_clock(EXPIRES_MS - 60_000)
        assert raw.ask(going_on, 11).error_code == 0
        broker.control.advance_clock(EXPIRES_MS)
        going_on.session_epoch = 2
        assert raw.ask(going_on, 11).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_clock_that_is_advanced_expires_offsets_and_forgets_their_group() -> None:
    """S24: after `offsets.retention.minutes` a group without members has neither offsets nor a name."""
    week_ms = 7 * 86_400_000
    with Broker() as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 1})
        raw.find("g")
        assert raw.commit("g", 7) == 0
        broker.control.advance_clock(week_ms - 60_000)
        assert raw.committed("g") == 7
        broker.control.advance_clock(2 * week_ms)
        assert raw.committed("g") == -1
        assert [group.group_id for group in raw.ask(ListGroupsRequest(), 4).groups] == []
