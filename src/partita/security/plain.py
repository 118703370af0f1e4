"""SASL PLAIN: one message with user and password, and how a broker checks it. (RFC 4616; Kafka: PlainSaslServer.)"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from partita.secret import Secret
from partita.security.errors import SaslError

_NOBODY = Secret("\x00 an unknown user is compared with this, so that it takes as long as a known one")


def client_message(user: str, password: Secret) -> bytes:
    """The only message of a client: no authorization id, the user, the password."""
    return b"\0" + user.encode() + b"\0" + password.reveal().encode()


def authenticate(message: bytes, users: Mapping[str, Secret]) -> str:
    """The user that a client's message proves. Raises SaslError with Kafka's text."""
    try:
        parts = message.decode().split("\0", 4)
    except UnicodeDecodeError:
        raise SaslError("Authentication failed: the SASL/PLAIN response is not UTF-8") from None
    if len(parts) != 3:
        raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
    authorization_id, user, password = parts
    if not user:
        raise SaslError("Authentication failed: username not specified")
    if not password:
        raise SaslError("Authentication failed: password not specified")
    expected = users.get(user, _NOBODY).reveal().encode()
    is_right = hmac.compare_digest(_digest(expected), _digest(password.encode()))
    if not is_right or user not in users:
        raise SaslError("Authentication failed: Invalid username or password")
    if authorization_id and authorization_id != user:
        raise SaslError("Authentication failed: Client requested an authorization id that is different from username")
    return user


def _digest(text: bytes) -> bytes:
    """Equal lengths, so that the comparison takes the same time for every password."""
    return hmac.digest(b"partita", text, "sha256")
