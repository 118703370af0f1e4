"""SASL GSSAPI against a stand-in for the package `gssapi`: the order and content of the messages (security.md 11).

No key distribution centre takes part: what the system's Kerberos library does is not tested here.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from partita.consumer.config import ConsumerConfig
from partita.errors import AuthenticationError
from partita.net.secured.login import Login
from partita.options import ConfigError
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from partita.protocol.messages.sasl_handshake import SaslHandshakeResponse
from partita.security.settings import SaslSettings
from support.loops import in_loop


class GSSError(Exception):
    pass


class Context:
    """Two steps of tokens, then wrapped messages, which are marked with w( ... )."""

    made: ClassVar[list[str]] = []
    refuses = False

    def __init__(self, name: str, usage: str) -> None:
        assert usage == "initiate"
        self.made.append(name)
        self.complete = False
        self.initiator_name = "alice@EXAMPLE.COM"
        self._steps = 0

    def step(self, token: bytes | None) -> bytes | None:
        if self.refuses:
            raise GSSError("No Kerberos credentials available")
        assert token == (None if self._steps == 0 else b"server token")
        self._steps += 1
        self.complete = self._steps == 2
        return b"client token" if self._steps == 1 else None

    def unwrap(self, message: bytes) -> Any:
        return SimpleNamespace(message=message[2:-1])

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        assert not encrypt
        return SimpleNamespace(message=b"w(" + message + b")")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[Context]:
    def name(text: str, kind: str) -> str:
        assert kind == "hostbased"
        return text

    fake: Any = SimpleNamespace(
        Name=name,
        NameType=SimpleNamespace(hostbased_service="hostbased"),
        SecurityContext=Context,
        exceptions=SimpleNamespace(GSSError=GSSError),
    )
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    monkeypatch.setattr(Context, "made", [])
    return Context


class Broker:
    """A link to a broker that answers by a script and keeps what it was sent."""

    address = "broker.example:9093"

    def __init__(self, *answers: bytes) -> None:
        self.versions = {17: (0, 1), 36: (0, 2)}
        self.answers = list(answers)
        self.got: list[bytes] = []

    async def send(self, message: Any, version: int | None = None) -> Any:
        if not isinstance(message, SaslAuthenticateRequest):
            return SaslHandshakeResponse(mechanisms=["GSSAPI"])
        self.got.append(bytes(message.auth_bytes))
        return SaslAuthenticateResponse(auth_bytes=self.answers.pop(0), session_lifetime_ms=60_000)


@in_loop
async def test_the_messages_of_a_login(library: type[Context]) -> None:
    broker = Broker(b"server token", b"w(\x07\x00\xff\xff)", b"")
    assert await Login(SaslSettings("GSSAPI", kerberos_service="kafka")).log_in(broker) == 60_000
    assert library.made == ["kafka@broker.example"]
    assert broker.got == [b"client token", b"", b"w(\x01\x00\x00\x00alice@EXAMPLE.COM)"]


@in_loop
async def test_a_missing_ticket_is_told_with_what_to_do(
    library: type[Context], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "refuses", True)
    with pytest.raises(AuthenticationError, match=r"kafka@broker.example: No Kerberos credentials.*\(kinit\)"):
        await Login(SaslSettings("GSSAPI")).log_in(Broker())


@in_loop
async def test_a_broker_that_insists_on_a_security_layer_is_refused(library: type[Context]) -> None:
    with pytest.raises(AuthenticationError, match="insists on a security layer"):
        await Login(SaslSettings("GSSAPI")).log_in(Broker(b"server token", b"w(\x04\x00\xff\xff)"))


def test_without_the_package_the_client_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install 'partita\[gssapi\]'"):
        Login(SaslSettings("GSSAPI"))


@pytest.mark.parametrize(
    ("options", "service"),
    [
        ({}, "kafka"),
        ({"sasl.kerberos.service.name": "broker"}, "broker"),
        ({"sasl.jaas.config": "a.Krb5LoginModule required useTicketCache=true serviceName='in-line';"}, "in-line"),
    ],
)
def test_the_service_name_comes_from_the_option_or_the_jaas_line(options: dict[str, str], service: str) -> None:
    values = ConsumerConfig.of(
        {"bootstrap.servers": "b:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", **options}
    ).values
    assert values["security"].sasl == SaslSettings("GSSAPI", kerberos_service=service)
