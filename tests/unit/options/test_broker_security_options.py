"""Each option of a secured listener has an effect: with it the listener is another one, or refuses another setting."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.x509 import load_pem_x509_certificate
from jwt.algorithms import RSAAlgorithm

from partita import Broker
from partita.broker.config import BrokerConfig, ConfigError, ListenerConfig
from partita.broker.security.guards import SaslListener
from partita.broker.security.server_tls import load
from partita.broker.security.tokens import SignedTokens, UnsecuredTokens
from partita.broker.security.users import Users
from partita.broker.wire.listeners import listeners
from partita.secret import Secret
from partita.security.sasl_server import TokenRefused
from support.broker.options_page import honoured, is_of_security
from support.certificates import Certificates

Given: TypeAlias = Mapping[str, object]
ANY_TOKEN = {
    "sasl.oauthbearer.allow.unverified.audience": True,
    "sasl.oauthbearer.allow.unverified.issuer": True,
}
SHOWN_AT_LISTENERS = {
    "connection.failed.authentication.delay.ms", "connections.max.reauth.ms",
    "delegation.token.expiry.check.interval.ms", "delegation.token.expiry.time.ms", "delegation.token.max.lifetime.ms",
    "delegation.token.secret.key", "inter.broker.listener.name",
    "listener.security.protocol.map", "partita.login.bytes.per.ip", "sasl.enabled.mechanisms", "sasl.jaas.config",
    "sasl.oauthbearer.allow.unverified.audience", "sasl.oauthbearer.allow.unverified.issuer",
    "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url", "ssl.allow.dn.changes",
    "ssl.client.auth", "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.keystore.location", "ssl.keystore.password", "ssl.principal.mapping.rules", "ssl.truststore.location",
}  # fmt: skip
"""Options that the tests of listeners, with clients that connect and log in, change and see."""
TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def context(certificates: Certificates, given: Given) -> object:
    """The TLS context of a listener, or why there is none."""
    options: dict[str, Any] = {"ssl.keystore.location": str(certificates.issue("localhost")), **given}
    try:
        made = load(ListenerConfig(BrokerConfig(options), "SSL"), "SSL").context
    except ConfigError as error:
        return str(error)
    suites = tuple(suite["name"] for suite in made.get_ciphers())
    return made.minimum_version, made.maximum_version, suites, len(made.get_ca_certs())


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    with Broker() as broker:
        known = broker.running.services.users()
        known.plain["alice"] = Secret("secret")
        yield known


def sasl(users: Users, given: Given) -> object:
    """What a SASL listener of these options is, or why there is none."""
    config = BrokerConfig({"listeners": "SASL_PLAINTEXT://192.0.2.1:9092", "sasl.enabled.mechanisms": "PLAIN", **given})
    try:
        made = SaslListener(listeners(config, 1)[0], config, users)
    except ConfigError as error:
        return str(error)
    return made.mechanisms, made.receive_bytes_max


def claims(given: Given) -> object:
    """Who an unsigned token is for."""
    body = {"sub": "alice", "email": "alice@example.org", "exp": time.time() + 60}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, body))
    token = b".".join(parts).decode() + "."
    return UnsecuredTokens(ListenerConfig(BrokerConfig(given), "SASL_PLAINTEXT")).check(token).user


TLS: dict[str, object] = {
    "ssl.cipher.suites": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ssl.enabled.protocols": "TLSv1.3",
}


@pytest.mark.parametrize(("name", "value"), TLS.items())
def test_an_option_of_tls_makes_another_context(certificates: Certificates, name: str, value: object) -> None:
    assert context(certificates, {name: value}) != context(certificates, {})


def test_whom_a_listener_trusts_is_a_file_with_a_password_or_a_text(certificates: Certificates) -> None:
    store = certificates.folder / "trusted.p12"
    authority = load_pem_x509_certificate(certificates.ca.read_bytes())
    store.write_bytes(
        serialize_java_truststore([PKCS12Certificate(authority, b"ca")], BestAvailableEncryption(b"of the store"))
    )
    in_store = {"ssl.truststore.location": str(store), "ssl.truststore.password": "of the store"}
    as_text = {"ssl.truststore.certificates": certificates.ca.read_text()}
    assert context(certificates, in_store) == context(certificates, as_text) != context(certificates, {})
    refusal = context(certificates, {**in_store, "ssl.truststore.password": "another"})
    assert str(refusal).startswith("ssl.truststore.password does not open ")


SASL: dict[str, object] = {
    "partita.allow.plain.without.tls": True,
    "sasl.server.callback.handler.class": "com.example.Handler",
    "sasl.server.max.receive.size": 1_000,
}


@pytest.mark.parametrize(("name", "value"), SASL.items())
def test_an_option_of_sasl_makes_another_listener(users: Users, name: str, value: object) -> None:
    anyway = {} if name == "partita.allow.plain.without.tls" else {"partita.allow.plain.without.tls": True}
    assert sasl(users, {**anyway, name: value}) != sasl(users, anyway)


def test_the_claim_that_names_the_user_is_an_option() -> None:
    assert (claims({}), claims({"sasl.oauthbearer.sub.claim.name": "email"})) == ("alice", "alice@example.org")


TOKENS = {"sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.jwks.endpoint.refresh.ms"}


def test_signed_tokens_and_keys_have_ages() -> None:
    """A token ends by its end and the skew; keys are read again when they are old enough."""
    key = generate_private_key(65537, 2048)
    public = {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": "one", "use": "sig"}
    token = jwt.encode({"sub": "alice", "exp": time.time() - 60}, key, "RS256", {"kid": "one"})
    asked: list[str] = []

    def read(url: str) -> bytes:
        asked.append(url)
        return json.dumps({"keys": [public]}).encode()

    def looked_twice(given: Given) -> tuple[SignedTokens, int]:
        options = {"sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys", **ANY_TOKEN, **given}
        tokens = SignedTokens(ListenerConfig(BrokerConfig(options), "SASL_SSL"), read)
        asked.clear()

        async def look() -> None:
            for _ in range(2):
                await (tokens.prepare(asyncio.get_running_loop()) or asyncio.sleep(0))

        asyncio.run(look())
        return tokens, len(asked)

    assert looked_twice({"sasl.oauthbearer.clock.skew.seconds": 90})[0].check(token).user == "alice"
    with pytest.raises(TokenRefused):
        looked_twice({"sasl.oauthbearer.clock.skew.seconds": 30})[0].check(token)
    assert looked_twice({})[1] == 1
    assert looked_twice({"sasl.oauthbearer.jwks.endpoint.refresh.ms": 0})[1] == 2


def test_each_security_option_that_counts_is_shown_here_or_by_a_client_of_a_listener() -> None:
    trusting = {"ssl.truststore.certificates", "ssl.truststore.password"}
    here = {*TLS, *SASL, *TOKENS, *trusting, "sasl.oauthbearer.sub.claim.name"}
    assert {name for name in honoured("Broker") if is_of_security(name)} == here | SHOWN_AT_LISTENERS
    files = [
        *TESTS.glob("e2e/test_broker_*.py"),
        *TESTS.glob("unit/broker/**/*.py"),
        *TESTS.glob("support/broker/*.py"),
    ]
    text = "".join(path.read_text() for path in files).replace("__", ".")
    assert [name for name in SHOWN_AT_LISTENERS if name not in text] == []
