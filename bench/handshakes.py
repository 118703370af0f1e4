"""Hostile handshakes beside a canary: `python bench/handshakes.py [--only TEXT]`, one JSON line per attack.

The attackers come by listeners with TLS and SASL, the canary by a plain one of the same broker. Each line is as those
of `attacks.py`. Ends with status 1 if an answer of the canary was refused, or if its p99 exceeds 100 ms.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attacks import survives
from harness import Server, process, wait_for_port
from hostile import Attack

from partita.designs.zookeeper.ports import free_ports
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from support.broker.secured import SecuredRaw, plain
from support.certificates import Certificates, client_hello

USERS = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice='secret';"
SECONDS = 3.0


class Gates:
    """The ports of the attacked listeners, and the attackers' sockets."""

    def __init__(self, tls_port: int, login_port: int, context: ssl.SSLContext) -> None:
        self.tls_port = tls_port
        self.login_port = login_port
        self.context = context
        self.hello = client_hello(context)
        self._sockets: list[socket.socket] = []

    def connect(self, port: int) -> socket.socket:
        """A connection that is closed when the attack is over."""
        peer = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._sockets.append(peer)
        return peer

    def login(self) -> SecuredRaw:
        """A client of the listener that asks for a login without TLS."""
        raw = SecuredRaw(self.login_port)
        self._sockets.append(raw.socket)
        return raw

    def close(self) -> None:
        """Close what the attack left open."""
        for peer in self._sockets:
            peer.close()


def half_hellos(gates: Gates) -> Attack:
    """800 peers send all but the last byte of a TLS hello, and stop."""
    yield
    for _ in range(800):
        gates.connect(gates.tls_port).sendall(gates.hello[:-1])
    time.sleep(SECONDS)


def whole_hellos(gates: Gates) -> Attack:
    """500 peers send a whole hello at once and do not go on."""
    peers = [gates.connect(gates.tls_port) for _ in range(500)]
    yield
    for peer in peers:
        peer.sendall(gates.hello)
    time.sleep(SECONDS)


def slowloris(gates: Gates) -> Attack:
    """300 peers send their hello byte by byte."""
    peers = [gates.connect(gates.tls_port) for _ in range(300)]
    yield
    end, at = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for peer in peers:
            peer.sendall(gates.hello[at : at + 1])
        at += 1


def giant_frames(gates: Gates) -> Attack:
    """Frames of 2 GB and of 512 KiB are announced before any login, with 64 KiB of each."""
    yield
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for size in (0x7FFFFFFF, 524_288):
            with suppress(OSError):
                gates.connect(gates.login_port).sendall(struct.pack(">i", size) + bytes(65_536))


def handshakes_that_stop(gates: Gates) -> Attack:
    """800 peers choose a mechanism and say nothing more."""
    yield
    for _ in range(800):
        gates.login().handshake("SCRAM-SHA-512")
    time.sleep(SECONDS / 3)


def wrong_passwords(gates: Gates) -> Attack:
    """Logins with a wrong password, one connection after the other, without waiting for their late refusals."""
    yield
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        raw = gates.login()
        raw.handshake("PLAIN")
        raw.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "wrong")), 2)


def listed_users(gates: Gates) -> Attack:
    """First messages of SCRAM for thousands of made-up users."""
    yield
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        count += 1
        raw = gates.login()
        raw.handshake("SCRAM-SHA-256")
        assert raw.authenticate(f"n,,n=user{count},r=nonce".encode()).error_code == 0, "nobody is told who exists"


def handshake_storm(gates: Gates) -> Attack:
    """Whole TLS handshakes, one after the other."""
    yield
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        gates.context.wrap_socket(gates.connect(gates.tls_port), server_hostname="localhost").close()


ATTACKS: dict[str, Callable[[Gates], Attack]] = {
    attack.__name__.replace("_", " "): attack
    for attack in (
        half_hellos, whole_hellos, slowloris, handshake_storm, giant_frames, handshakes_that_stop, wrong_passwords,
        listed_users,
    )
}  # fmt: skip


@contextmanager
def broker() -> Iterator[tuple[Server, Gates]]:
    """A broker with a plain listener for the canary and two for attackers."""
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        certificates = Certificates(Path(folder))
        shown = certificates.issue("localhost")
        open_port, tls_port, login_port = free_ports(3)
        settings = {
            "listeners": f"OPEN://127.0.0.1:{open_port},SECURE://127.0.0.1:{tls_port},LOGIN://127.0.0.1:{login_port}",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,SECURE:SASL_SSL,LOGIN:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "ssl.keystore.location": str(shown),
            "listener.name.secure.plain.sasl.jaas.config": USERS,
            "listener.name.login.plain.sasl.jaas.config": USERS,
        }
        given = [f"--set={name}={value}" for name, value in settings.items()]
        with process([sys.executable, "-m", "partita.cli.main", "broker", "--memory", *given]) as child:
            wait_for_port(login_port)
            context = ssl.create_default_context(cafile=certificates.ca)
            yield Server("partita", child.pid, open_port), Gates(tls_port, login_port, context)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    only = parser.parse_args().only
    failed = []
    for name, attack in ATTACKS.items():
        if only in name:
            with broker() as (server, gates):
                if not survives(server, f"handshakes: {name}", attack(gates), gates.close):
                    failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
