"""Bearer tokens that a listener accepts: unsigned ones, or those signed with a key of a JSON Web Key Set.

Keys are read from the configured address in a thread, kept, and read again when they are old or a token names one that
is not there. A token's own header never says where its key is. (security.md 10.)
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from partita.broker.config import ConfigError, ListenerConfig
from partita.lazy import later
from partita.security.oauthbearer import checked_claims, unsecured_claims
from partita.security.sasl_server import Claims, TokenRefused

if TYPE_CHECKING:
    import jwt
else:
    jwt = later("jwt")


log = logging.getLogger("partita.security")
SIGNATURES = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Signature algorithms of each key type; never HS*, whose key would be the public one."""
KEY_SET_BYTES_MAX = 1 << 20
READ_WITHIN_SECONDS = 10.0
KEYS_MAX = 100


class UnsecuredTokens:
    """Accepts unsigned tokens without any proof. For tests."""

    def __init__(self, config: ListenerConfig) -> None:
        self._user_claim = config.text("sasl.oauthbearer.sub.claim.name")

    def prepare(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None] | None:
        """Do nothing: there is nothing to read first."""
        return None

    def check(self, token: str) -> Claims:
        """Return the token's claims. Raises TokenRefused."""
        try:
            return Claims(*unsecured_claims(token, time.time(), user_claim=self._user_claim))
        except ValueError as error:
            raise TokenRefused(str(error)) from None


class SignedTokens:
    """Accepts tokens that a known key has signed, for the expected audience and by the expected issuer."""

    def __init__(self, config: ListenerConfig, read: Callable[[str], bytes] | None = None) -> None:
        """Raises ConfigError."""
        self.url = config.text("sasl.oauthbearer.jwks.endpoint.url")
        if not self.url.startswith(("https:", "file:")):
            raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url must begin with https: or file:, not {self.url!r}")
        try:
            import jwt  # noqa: F401 - asked for here, so that a start without it is refused in one line
        except ImportError:
            raise ConfigError("signed OAUTHBEARER tokens need: pip install 'partita[security]'") from None
        self._audience = config.list("sasl.oauthbearer.expected.audience")
        self._issuer = config.maybe("sasl.oauthbearer.expected.issuer")
        for claim, is_expected in (("audience", bool(self._audience)), ("issuer", self._issuer is not None)):
            if not is_expected and not config.bool(f"sasl.oauthbearer.allow.unverified.{claim}"):
                raise ConfigError(
                    f"tokens of {self.url} are accepted for any {claim}; set sasl.oauthbearer.expected.{claim}, "
                    f"or sasl.oauthbearer.allow.unverified.{claim}=true if that is meant"
                )
        self._skew_s = config.int("sasl.oauthbearer.clock.skew.seconds")
        self._user_claim = config.text("sasl.oauthbearer.sub.claim.name")
        self._refresh_s = config.int("sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000
        self._retry_s = config.int("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms") / 1000
        self._read = read or read_key_set
        self._keys: dict[str | None, tuple[Any, list[str]]] = {}
        self._looked_at = float("-inf")
        self._unknown = False
        self._reading: asyncio.Future[None] | None = None

    def prepare(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None] | None:
        """Return a future to await before a token is checked; None when the present keys are fresh enough."""
        age = time.monotonic() - self._looked_at
        if self._reading is None and (age >= self._refresh_s or (self._unknown and age >= self._retry_s)):
            self._unknown = False
            self._reading = asyncio.ensure_future(self._refresh(loop))
        return self._reading

    def check(self, token: str) -> Claims:
        """Return the token's claims. Raises TokenRefused."""
        try:
            header = jwt.get_unverified_header(token)
            key, algorithms = self._key(header.get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=list(self._audience) or None,
                issuer=self._issuer,
                leeway=self._skew_s,
                options={"require": ["exp"], "verify_aud": bool(self._audience), "verify_sub": False},
            )
            return Claims(*checked_claims(claims, time.time(), user_claim=self._user_claim, skew_s=self._skew_s))
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(str(error)) from None

    def _key(self, kid: object) -> tuple[Any, list[str]]:
        """The key of this id and the signatures it makes. Raises TokenRefused."""
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        key = self._keys.get(kid if isinstance(kid, str) else None)
        if key is None:
            self._unknown = True
            raise TokenRefused("no key of the key set signs such tokens")
        return key

    async def _refresh(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read the key set. A failure keeps the keys there are."""
        try:
            content = await loop.run_in_executor(None, self._read, self.url)
            self._keys = _keys_of(content)
        except (OSError, ValueError) as error:
            log.error("the key set %s cannot be read: %s", self.url, ascii(str(error))[:300])
        finally:
            self._looked_at = time.monotonic()
            self._reading = None


def _keys_of(content: bytes) -> dict[str | None, tuple[Any, list[str]]]:
    """Signature keys with their algorithms, by id. Raises ValueError."""
    found = json.loads(content)
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it is no JSON Web Key Set")
    keys: dict[str | None, tuple[Any, list[str]]] = {}
    for entry in listed[:KEYS_MAX]:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        algorithms = [name for name in SIGNATURES.get(str(entry.get("kty")), ()) if entry.get("alg", name) == name]
        if algorithms:
            with suppress(jwt.PyJWTError):
                keys[entry.get("kid")] = jwt.PyJWK(entry, algorithm=algorithms[0]).key, algorithms
    return keys


def read_key_set(url: str) -> bytes:
    """The bytes at the address, at most a mebibyte. Follows no redirect. Raises OSError."""
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(url, timeout=READ_WITHIN_SECONDS) as answer:
        content: bytes = answer.read(KEY_SET_BYTES_MAX + 1)
    if len(content) > KEY_SET_BYTES_MAX:
        raise OSError(f"it has more than {KEY_SET_BYTES_MAX} bytes")
    return content


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        """Refuse: the keys come from the address in the settings and from nowhere else."""


LIFETIME_S = 3_600


class UnsignedTokens:
    """Makes tokens for one user. Called, it returns a token and its end, as Partita and confluent-kafka ask for it."""

    def __init__(self, user: str, claim: str = "sub") -> None:
        """Set the user. `claim` is the one the broker reads the user from; `sub` gets the same."""
        self._user = user
        self.claims = ("sub",) if claim == "sub" else ("sub", claim)

    def __call__(self, config: str = "") -> tuple[str, float]:
        """(Token, end in seconds since 1970), good for an hour. `config` is what confluent-kafka passes."""
        now = time.time()
        ends = now + LIFETIME_S
        claims = {**dict.fromkeys(self.claims, self._user), "iat": now, "exp": ends}
        return f"{_part({'alg': 'none'})}.{_part(claims)}.", ends

    def for_aiokafka(self) -> Any:
        """An AbstractTokenProvider of aiokafka. Raises ImportError without aiokafka."""
        parent = import_module("aiokafka.abc").AbstractTokenProvider

        async def token(_: object) -> str:
            return self()[0]

        return type("UnsignedTokens", (parent,), {"token": token})()

    def for_kafka_python(self) -> Any:
        """An AbstractTokenProvider of kafka-python. Raises ImportError without kafka-python."""
        try:
            parent = import_module("kafka.net.sasl.oauth").AbstractTokenProvider
        except ImportError:  # kafka-python before 3
            parent = import_module("kafka.sasl.oauth").AbstractTokenProvider
        return type("UnsignedTokens", (parent,), {"token": lambda _: self()[0]})()


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
