"""Signed bearer tokens against a JSON Web Key Set, and the made-up ones of attackers. (SE-F06 to F12, SE-P10)"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from partita.broker.config import BrokerConfig, ConfigError, ListenerConfig
from partita.broker.security.tokens import SignedTokens, UnsecuredTokens
from partita.security.sasl_server import TokenRefused

KEY = generate_private_key(65537, 2048)
OTHER = generate_private_key(65537, 2048)
URL = "https://issuer.example/keys"
OPTIONS = {
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "issuer",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": 0,
}


def key_set(**keys: RSAPrivateKey) -> bytes:
    entries = [
        {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"} for kid, key in keys.items()
    ]
    return json.dumps({"keys": entries}).encode()


class Place:
    """Tokens checked against keys that a test can change; `asked` are the addresses that were read."""

    def __init__(self, **options: object) -> None:
        self.content = key_set(one=KEY)
        self.asked: list[str] = []
        config = ListenerConfig(BrokerConfig({**OPTIONS, **options}), "X")
        self.tokens = SignedTokens(config, self.read)

    def read(self, url: str) -> bytes:
        self.asked.append(url)
        if not self.content:
            raise OSError("no answer")
        return self.content

    def check(self, token: str) -> str:
        async def run() -> None:
            waiting = self.tokens.prepare(asyncio.get_running_loop())
            if waiting is not None:
                await waiting

        asyncio.run(run())
        return self.tokens.check(token).user


def claims(**changed: Any) -> dict[str, Any]:
    given = {"sub": "alice", "aud": "kafka", "iss": "issuer", "exp": time.time() + 60, **changed}
    return {name: value for name, value in given.items() if value is not None}


def signed(key: Any = KEY, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changed: Any) -> str:
    return jwt.encode(claims(**changed), key, algorithm, {"kid": "one", **(headers or {})})


@pytest.mark.case("SE-F06")
@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS384"])
def test_a_token_of_the_right_key_audience_and_issuer_is_accepted(algorithm: str) -> None:
    place = Place()
    assert place.check(signed(algorithm=algorithm)) == "alice"
    assert place.check(signed(exp=time.time() - 10)) == "alice", "within the skew of 30 s"
    assert place.asked == [URL], "the keys are kept"


UNCHECKED = {
    "audience": "sasl.oauthbearer.allow.unverified.audience",
    "issuer": "sasl.oauthbearer.allow.unverified.issuer",
}


@pytest.mark.parametrize(("claim", "unset"), [("audience", ""), ("issuer", None)])
def test_a_claim_that_is_not_checked_has_to_be_asked_for(claim: str, unset: str | None) -> None:
    with pytest.raises(ConfigError, match=f"accepted for any {claim}; set sasl.oauthbearer.expected.{claim}, or"):
        Place(**{f"sasl.oauthbearer.expected.{claim}": unset})
    allowed = {f"sasl.oauthbearer.expected.{claim}": unset, UNCHECKED[claim]: True}
    claims: dict[str, Any] = {claim[:3]: "other"}
    assert Place(**allowed).check(signed(**claims)) == "alice"


def _public() -> bytes:
    return KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _hmac_with_public_key() -> str:
    header, payload = signed().split(".")[:2]
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "one"}).encode()).decode().rstrip("=")
    assert header != head
    mac = hmac.new(_public(), f"{head}.{payload}".encode(), hashlib.sha256).digest()
    return f"{head}.{payload}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


@pytest.mark.case("SE-F07", "SE-F08", "SE-F09", "SE-F10", "SE-F11", "SE-F12", "SE-P10")
@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: signed(exp=time.time() - 40), id="expired beyond the skew"),
        pytest.param(lambda: signed(aud="else"), id="another audience"),
        pytest.param(lambda: signed(aud=None), id="no audience"),
        pytest.param(lambda: signed(iss="else"), id="another issuer"),
        pytest.param(lambda: signed(sub=None), id="no subject"),
        pytest.param(lambda: signed(exp=None), id="no end"),
        pytest.param(lambda: signed(nbf=time.time() + 60), id="not yet"),
        pytest.param(lambda: signed(headers={"kid": "two"}), id="unknown key"),
        pytest.param(lambda: signed(OTHER), id="another key"),
        pytest.param(lambda: signed()[:-6] + "AAAAAA", id="changed signature"),
        pytest.param(lambda: jwt.encode(claims(), "", "none", {"kid": "one"}), id="unsigned"),
        pytest.param(_hmac_with_public_key, id="HS256 with the public key"),
        pytest.param(
            lambda: signed(OTHER, headers={"jwk": json.loads(RSAAlgorithm.to_jwk(OTHER.public_key()))}), id="jwk"
        ),
        pytest.param(lambda: signed(OTHER, headers={"jku": "https://evil.example/keys"}), id="jku"),
        pytest.param(lambda: signed(OTHER, headers={"x5u": "https://evil.example/cert"}), id="x5u"),
        pytest.param(lambda: "x" * 500_000, id="no token"),
        pytest.param(lambda: "W1tbW1tbW1tb" * 20_000 + ".W1tb.W1tb", id="nested"),
        pytest.param(lambda: signed(sub=["alice"]), id="a list for a subject"),
    ],
)
def test_every_other_token_is_refused_and_asks_nobody_else(token: Callable[[], str]) -> None:
    place = Place()
    with pytest.raises(TokenRefused):
        place.check(token())
    assert set(place.asked) == {URL}


def test_a_new_key_is_found_and_a_key_set_that_cannot_be_read_keeps_the_old_one() -> None:
    place = Place()
    assert place.check(signed()) == "alice"
    place.content = key_set(one=KEY, two=OTHER)
    with pytest.raises(TokenRefused):
        place.check(signed(OTHER, headers={"kid": "two"}))
    assert place.check(signed(OTHER, headers={"kid": "two"})) == "alice"
    for broken in (b"", b"[]", b"{", b'{"keys": [{"kty": "oct", "k": "AAAA", "kid": "one"}]}'):
        place.content = broken
        with pytest.raises(TokenRefused):
            place.check(signed(headers={"kid": "three"}))
        if broken != b'{"keys": [{"kty": "oct", "k": "AAAA", "kid": "one"}]}':
            assert place.check(signed()) == "alice"


@pytest.mark.parametrize("url", ["http://issuer.example/keys", "ftp://x", "/etc/passwd"])
def test_keys_come_by_https_or_from_a_file(url: str) -> None:
    with pytest.raises(ConfigError, match="must begin with https: or file:"):
        Place(**{"sasl.oauthbearer.jwks.endpoint.url": url})


def test_an_unsigned_listener_takes_no_signed_token() -> None:
    tokens = UnsecuredTokens(ListenerConfig(BrokerConfig(), "X"))
    with pytest.raises(TokenRefused, match="three parts"):
        tokens.check(signed())
