"""SASL OAUTHBEARER messages, both sides. (RFC 7628, KIP-255; Kafka: OAuthBearerClientInitialResponse.)"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from partita.secret import Secret
from partita.security.errors import SaslError

_KEY = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_INITIAL = re.compile(r"n,(?:a=((?:[^,=\x00]|=2C|=3D)+))?,\x01((?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)*)\x01", re.DOTALL)
ERROR_LENGTH_MAX = 200
LIFETIME_S_MAX = 100 * 366 * 86_400


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token, when it ends (seconds since 1970; None: not known) and the SASL extensions that go with it."""

    token: Secret
    expires_at_s: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InitialResponse:
    """A client's first message as a broker reads it."""

    token: Secret
    authorization_id: str
    extensions: Mapping[str, str]


def client_message(bearer: BearerToken) -> bytes:
    """The first message of a client. Raises SaslError for an extension that the standard does not allow."""
    for key, value in bearer.extensions.items():
        if not _KEY.fullmatch(key) or key == "auth":
            raise SaslError(f"SASL extension {key!r} has an invalid name: only letters, and not 'auth'")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise SaslError(f"SASL extension {key!r} has a value with characters that are not allowed")
    extensions = "".join(f"\x01{key}={value}" for key, value in bearer.extensions.items())
    return f"n,,\x01auth=Bearer {bearer.token.reveal()}{extensions}\x01\x01".encode()


def parse_client_message(message: bytes) -> InitialResponse:
    """Read a client's first message. Raises SaslError."""
    try:
        found = _INITIAL.fullmatch(message.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise SaslError("not an OAUTHBEARER client's first message")
    pairs = dict(part.split("=", 1) for part in found[2].split("\x01") if part)
    scheme, _, token = pairs.pop("auth", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise SaslError("an OAUTHBEARER client's first message has no bearer token")
    if any(not _EXTENSION_VALUE.fullmatch(value) for value in pairs.values()):
        raise SaslError("an OAUTHBEARER extension has an invalid value")
    name = (found[1] or "").replace("=2C", ",").replace("=3D", "=")
    return InitialResponse(Secret(token.strip()), name, pairs)


def failure(challenge: bytes) -> str:
    """Return a broker's error challenge, shortened and made printable; its content is arbitrary."""
    text = challenge[: 4 * ERROR_LENGTH_MAX].decode(errors="replace")
    try:
        told = json.loads(text)
        text = ", ".join(f"{key} {value}" for key, value in told.items() if isinstance(value, str)) or text
    except (ValueError, AttributeError):
        pass
    return "".join(c if c.isprintable() else "?" for c in text)[:ERROR_LENGTH_MAX]


def unsecured_claims(token: str, now_s: float, *, user_claim: str = "sub", skew_s: float = 0) -> tuple[str, float]:
    """(User, end in seconds since 1970) of an unsigned token. Raises ValueError with the reason.

    Deviation: Partita checks `nbf` of an unsecured token, where Kafka ignores it.
    """
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise ValueError("not an unsigned token of three parts, the last one empty")
    header, claims = _json(parts[0]), _json(parts[1])
    if header.get("alg") != "none":
        raise ValueError("the token is signed, and no keys are configured")
    return checked_claims(claims, now_s, user_claim=user_claim, skew_s=skew_s)


def checked_claims(claims: Mapping[str, object], now_s: float, *, user_claim: str, skew_s: float) -> tuple[str, float]:
    """(User, end) of claims that hold now. Raises ValueError with the reason."""
    user, ends, begins = claims.get(user_claim), claims.get("exp"), claims.get("nbf", 0)
    if not isinstance(user, str) or not user.strip():
        raise ValueError(f"the claim {user_claim!r} names nobody")
    if isinstance(ends, bool) or not isinstance(ends, int | float):
        raise ValueError("the claim 'exp' is no time")
    if not now_s - skew_s < ends < now_s + LIFETIME_S_MAX:
        raise ValueError("it has expired, or ends in another century")
    if isinstance(begins, bool) or not isinstance(begins, int | float) or begins > now_s + skew_s:
        raise ValueError("it does not hold yet")
    return user, float(ends)


def _json(part: str) -> dict[str, object]:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        raise ValueError("a part of the token is not base64 of JSON") from None
    if not isinstance(found, dict):
        raise ValueError("a part of the token is no JSON object")
    return found
