"""A broker with a listener of each of Kafka's four protocols, and raw logins of every kind."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partita import Broker
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from partita.secret import Secret
from partita.security import scram
from support.broker.raw import Raw
from support.certificates import Certificates

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
PASSWORD = "alice's; =secret"
DELAY_MS = 150
NONCE = "0123456789abcdef"


class SecuredRaw(Raw):
    """A raw client that can log in."""

    def handshake(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        answer: SaslHandshakeResponse = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return answer

    def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        answer: SaslAuthenticateResponse = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        return answer

    def log_in(self, user: str = "alice", password: str = PASSWORD) -> SaslAuthenticateResponse:
        """Handshake and token of PLAIN."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(plain(user, password))

    def log_in_by_scram(
        self, mechanism: str = "SCRAM-SHA-256", user: str = "alice", password: str = PASSWORD
    ) -> SaslAuthenticateResponse:
        """The whole exchange as our client makes it; the answer to its last message."""
        assert self.handshake(mechanism).error_code == 0
        client = scram.ScramClient(mechanism, user, NONCE)
        first = self.authenticate(client.first())
        if first.error_code:
            return first
        challenge = client.challenged(bytes(first.auth_bytes))
        salted = scram.salted_password(mechanism, Secret(password), challenge.salt, challenge.iterations)
        last = self.authenticate(client.final(challenge, salted))
        if not last.error_code:
            client.finish(bytes(last.auth_bytes))
        return last

    def serves(self) -> bool:
        """Whether the broker tells this client of the cluster."""
        return bool(self.ask(MetadataRequest(topics=[]), 12).brokers)


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    """A token of PLAIN."""
    return f"{authorization_id}\0{user}\0{password}".encode()


class Secured:
    """The broker, its certificates, and clients of its listeners."""

    def __init__(self, broker: Broker, certificates: Certificates) -> None:
        self.broker = broker
        self.certificates = certificates

    def port(self, listener: str) -> int:
        """Where this listener listens."""
        return int(self.broker.bootstrap_by(listener).rpartition(":")[2])

    def raw(self, listener: str, certificate: Path | None = None) -> SecuredRaw:
        """A raw client, over TLS where the listener speaks it."""
        has_tls = listener.endswith("SSL")
        return SecuredRaw(self.port(listener), tls=self.trusting(certificate) if has_tls else None)

    def trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        """A client's context that trusts the authority, and shows a certificate if one is given."""
        context = ssl.create_default_context(cafile=self.certificates.ca)
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def options(self, listener: str, **more: Any) -> dict[str, Any]:
        """Settings for our clients."""
        host = self.broker.bootstrap_by(listener).replace("127.0.0.1", "localhost")
        given: dict[str, Any] = {"bootstrap_servers": host, "security_protocol": listener}
        if listener.endswith("SSL"):
            given["ssl_ca_location"] = str(self.certificates.ca)
        return {**given, **more}


@contextmanager
def secured(folder: Path, *, mechanisms: str = MECHANISMS, **config: object) -> Iterator[Secured]:
    """A broker with four listeners; user alice has a password for PLAIN; SCRAM users are set by `set_scram`."""
    certificates = Certificates(folder)
    options: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "advertised.listeners": ",".join(f"{name}://localhost:0" for name in LISTENERS),
        "sasl.enabled.mechanisms": mechanisms,
        "ssl.keystore.location": str(certificates.issue("localhost")),
        "ssl.truststore.location": str(certificates.ca),
        "connection.failed.authentication.delay.ms": DELAY_MS,
        **{name.replace("__", "."): value for name, value in config.items()},
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        options.setdefault(
            f"listener.name.{listener}.plain.sasl.jaas.config",
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}" user_bob="bob";',
        )
    with Broker(options) as broker:
        yield Secured(broker, certificates)


def set_scram(broker: Broker, user: str = "alice", password: str = PASSWORD, iterations: int = 4096) -> None:
    """Give a user SCRAM credentials of both kinds, besides what AlterUserScramCredentials does."""
    users = broker.running.services.users()
    salt = b"0123456789abcdef"
    made = {
        (user, mechanism): scram.credential_of(
            mechanism, scram.salted_password(mechanism, Secret(password), salt, iterations), salt, iterations
        )
        for mechanism in scram.HASHES
    }
    broker.run(lambda: users.store(made))


def took(begin: float) -> float:
    """Milliseconds since then."""
    return (time.monotonic() - begin) * 1000
