"""What the broker refuses, warns about and lets go of: peers that never read, browsers, odd numbers, open doors."""

from __future__ import annotations

import logging
import socket

import pytest

from partita import Broker
from partita.broker.control.verbs import CLOCK_AHEAD_MS_MAX, ControlError
from partita.broker.storage.upkeep import Upkeep
from partita.broker.wire.server import CLOSE_TICKS_MAX, Server
from partita.protocol.messages.metadata import MetadataRequest
from support.broker.raw import Raw

HOST = "Host: 127.0.0.1\r\n"


def let_pass(server: Server, ticks: int) -> None:
    """Do what a server does in so many seconds."""
    for _ in range(ticks):
        server._on_tick()


def asked(port: int, *headers: str) -> int:
    """The status of a request for the nodes with these headers."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(("GET /nodes HTTP/1.1\r\n" + "".join(headers) + "\r\n").encode())
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
        assert asked(broker.running.admin_port or 0, *headers) == status


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
