"""What connections that do nothing cost a broker that speaks TLS, in a process of its own."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.broker.process import BrokerProcess
from support.broker.secured import SecuredRaw
from support.certificates import Certificates, client_hello

COUNT = 400
WARM_UP = 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process holds")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def broker(certificates: Certificates) -> Iterator[BrokerProcess]:
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(certificates.issue("localhost")),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with BrokerProcess(*(f"--set={name}={value}" for name, value in settings.items())) as process:
        yield process


def each_kib(broker: BrokerProcess, connect: Callable[[], socket.socket]) -> float:
    """How many KiB each of many such connections takes, once the first ones have warmed the process up."""
    with ExitStack() as stack:
        for _ in range(WARM_UP):
            stack.enter_context(connect())
        before = broker.resident_kib()
        for _ in range(COUNT):
            stack.enter_context(connect())
        return (broker.resident_kib() - before) / COUNT


@pytest.mark.case("SE-A25")
def test_a_thousand_idle_connections_take_less_than_40_mib(broker: BrokerProcess, certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=certificates.ca)

    def connect() -> socket.socket:
        raw = SecuredRaw(broker.port, tls=context)
        assert raw.handshake("SCRAM-SHA-256").error_code == 0
        return raw.socket

    of_openssl = 0 if ssl.OPENSSL_VERSION_INFO < (3, 1) else 17  # what newer ones hold more of their own
    assert each_kib(broker, connect) < 40 + of_openssl


@pytest.mark.case("SE-P08")
def test_half_a_handshake_takes_less_than_32_kib(broker: BrokerProcess, certificates: Certificates) -> None:
    """As long as the first record is not whole, OpenSSL has not begun, and the kernel keeps what has arrived."""
    hello = client_hello(ssl.create_default_context(cafile=certificates.ca))

    def connect() -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", broker.port), timeout=60)
        peer.sendall(hello[:-1])
        return peer

    assert each_kib(broker, connect) < 16
