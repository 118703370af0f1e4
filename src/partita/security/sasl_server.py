"""The broker's side of a SASL login: allowed requests per state, and the mechanisms' exchanges.

Mirrors SaslServerAuthenticator. Nothing here reads a clock or a socket: nonces, users and checked
tokens are passed in. (security.md 6 to 10 and 12.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from partita.secret import Secret
from partita.security import oauthbearer, plain, scram
from partita.security.errors import SaslError

PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER = MECHANISMS = (
    "PLAIN",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "OAUTHBEARER",
)
"""Served mechanisms, by Kafka's names."""


class State(Enum):
    """State of a connection."""

    START = auto()
    """Nothing was asked yet."""
    VERSIONED = auto()
    """It has received the supported versions."""
    HANDSHAKEN = auto()
    """A mechanism is chosen and its messages go back and forth, the first time or again."""
    DONE = auto()
    """It is logged in."""
    DOOMED = auto()
    """Whatever comes next closes it."""


class Said(Enum):
    """Kind of request during a login."""

    VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    OTHER = auto()


class Verb(Enum):
    """Action on a request."""

    SERVE = auto()
    """Let the broker answer it."""
    TELL = auto()
    """Let the broker answer with the versions; once."""
    BEGIN = auto()
    """Choose the mechanism."""
    STEP = auto()
    """Give the message to the mechanism."""
    RENEW = auto()
    """Choose the mechanism again, if re-authentication is on."""
    DENY = auto()
    """Answer ILLEGAL_SASL_STATE; the connection stays."""
    DENY_AND_CLOSE = auto()
    """Answer ILLEGAL_SASL_STATE and close."""
    CLOSE = auto()
    """Close without an answer."""


# fmt: off
ANSWERS: dict[State, tuple[Verb, Verb, Verb, Verb]] = {
    #                 VERSIONS    HANDSHAKE            AUTHENTICATE  OTHER
    State.START:      (Verb.TELL,  Verb.BEGIN,          Verb.CLOSE,   Verb.CLOSE),
    State.VERSIONED:  (Verb.CLOSE, Verb.BEGIN,          Verb.CLOSE,   Verb.CLOSE),
    State.HANDSHAKEN: (Verb.CLOSE, Verb.DENY_AND_CLOSE, Verb.STEP,    Verb.CLOSE),
    State.DONE:       (Verb.SERVE, Verb.RENEW,          Verb.DENY,    Verb.SERVE),
    State.DOOMED:     (Verb.CLOSE, Verb.CLOSE,          Verb.CLOSE,   Verb.CLOSE),
}
# fmt: on


def verb(state: State, said: Said) -> Verb:
    """Return the action on such a request in this state."""
    return ANSWERS[state][list(Said).index(said)]


@dataclass(frozen=True, slots=True)
class Claims:
    """Content of an accepted token: its principal and its expiry, in seconds since 1970."""

    user: str
    ends_s: float


class TokenRefused(Exception):
    """A bearer token is not accepted; the text is the reason for the log and never part of the token."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The mechanism's answer to a message; `user` is set with the last one of a successful login."""

    message: bytes
    user: str | None = None
    ends_s: float | None = None
    """When what was shown ends, in seconds since 1970; None where it does not."""
    is_lent: bool = False
    """A delegation token was shown."""


class Mechanism(Protocol):
    """One login by one mechanism."""

    user: str
    """Claimed identity of the peer, for the log; nothing is proved before `Answer.user` is set."""

    def step(self, message: bytes) -> Answer:
        """Answer the peer's next message. Raises SaslError with the text to send to the peer."""
        ...


class PlainServer:
    """PLAIN: one message."""

    def __init__(self, users: Mapping[str, Secret]) -> None:
        self._users = users
        self.user = ""

    def step(self, message: bytes) -> Answer:
        """Check user and password. Raises SaslError."""
        self.user = message[1:].partition(b"\0")[0].decode(errors="replace") if message[:1] == b"\0" else ""
        return Answer(b"", plain.authenticate(message, self._users))


class Lent(NamedTuple):
    """A login with a delegation token: the credential, its owner, and its end in seconds since 1970."""

    credential: scram.Credential
    owner: str
    ends_s: float | None


SCRAM_BYTES_MAX = 16 * 1024
"""The longest message of a SCRAM exchange that is read."""


class ScramServer:
    """SCRAM: two messages. An unknown user fails at the second one, as a wrong password does.

    Deviation: Partita fails a SCRAM login of an unknown user at its last message, after a made-up salt, where Kafka
    refuses the first message and so reveals which users exist (SE-P05).

    Deviation: Partita refuses SCRAM messages of more than 16 KiB, where Kafka takes up to
    `sasl.server.max.receive.size`.
    """

    def __init__(
        self,
        mechanism: str,
        find: Callable[[str], scram.Credential],
        nonce: str,
        find_token: Callable[[str], Lent] | None = None,
    ) -> None:
        """`find` makes up a credential, always the same one, for a user that does not exist.

        `find_token` does so for an id of a delegation token; without it there are no tokens.
        """
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._first: scram.ClientFirst | None = None
        self._challenge = ""
        self.user = ""

    def step(self, message: bytes) -> Answer:
        """Challenge the peer, then check its proof. Raises SaslError."""
        if len(message) > SCRAM_BYTES_MAX:
            raise SaslError(self._invalid())
        try:
            text = message.decode()
            return self._begin(text) if self._first is None else self._finish(self._first, text)
        except UnicodeDecodeError:
            raise SaslError(self._invalid()) from None
        except _Told as told:
            raise SaslError(str(told)) from None
        except SaslError:
            raise SaslError(self._invalid()) from None

    def _begin(self, text: str) -> Answer:
        first = scram.parse_client_first(text)
        self.user = first.user
        if first.authorization_id and first.authorization_id != first.user:
            raise _Told("Authentication failed: Client requested an authorization id that is different from username")
        if _is_lent(first) and self._find_token is None:
            raise SaslError("there are no delegation tokens without delegation.token.secret.key")
        credential = self._found(first).credential
        self._challenge = scram.server_first(first, self._nonce, credential.salt, credential.iterations)
        self._first = first
        return Answer(self._challenge.encode())

    def _finish(self, first: scram.ClientFirst, text: str) -> Answer:
        final = scram.parse_client_final(text)
        found = self._found(first)
        proof = scram.server_final(self._mechanism, found.credential, first, self._challenge, final)
        return Answer(proof.encode(), found.owner, found.ends_s, _is_lent(first))

    def _found(self, first: scram.ClientFirst) -> Lent:
        if self._find_token is not None and _is_lent(first):
            return self._find_token(first.user)
        return Lent(self._find(first.user), first.user, None)

    def _invalid(self) -> str:
        return invalid_credentials(self._mechanism)


class BearerServer:
    """OAUTHBEARER: a token; one that is not accepted is refused in two steps, as RFC 7628 has it."""

    def __init__(self, check: Callable[[str], Claims]) -> None:
        """`check` says what an accepted token claims, and raises TokenRefused for any other."""
        self._check = check
        self._refused = ""
        self.user = ""
        self.reason = ""
        """Why the token was not accepted, for the log."""

    def step(self, message: bytes) -> Answer:
        """Check the token, or end a login that was refused. Raises SaslError."""
        if self._refused:
            raise SaslError(self._refused)
        try:
            first = oauthbearer.parse_client_message(message)
        except SaslError:
            raise SaslError(invalid_credentials(OAUTHBEARER)) from None
        try:
            claims = self._check(first.token.reveal())
        except TokenRefused as refused:
            self.reason = str(refused)
            self._refused = '{"status":"invalid_token"}'
            return Answer(self._refused.encode())
        self.user = claims.user
        if first.authorization_id and first.authorization_id != claims.user:
            raise SaslError(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id}) that is "
                f"different from the token's principal name ({claims.user})"
            )
        return Answer(b"", claims.user, claims.ends_s)


def _is_lent(first: scram.ClientFirst) -> bool:
    return first.extensions.get("tokenauth", "").lower() == "true"


class _Told(Exception):
    """Refuse with a text that is sent to the peer."""


def invalid_credentials(mechanism: str) -> str:
    """Kafka's words for a login that failed for whatever reason."""
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


def lifetime_ms(longest_ms: int, ends_s: float | None, now_s: float) -> int:
    """Lifetime of a login: until `connections.max.reauth.ms` or the token's end; 0: as long as the connection."""
    left = None if ends_s is None else max(1, int((ends_s - now_s) * 1000))
    if longest_ms <= 0:
        return left or 0
    return longest_ms if left is None else min(longest_ms, left)
