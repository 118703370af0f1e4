"""SCRAM-SHA-256 and SCRAM-SHA-512 as Kafka speaks them, both sides. (RFC 5802, RFC 7677; Kafka: ScramFormatter.)

User and password go as plain UTF-8 bytes, without SASLprep and without channel binding. Nonces and salts are passed
in. The slow step, `salted_password`, is a function of its own so that callers can run it in a thread.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field

from partita.secret import Secret
from partita.security.errors import SaslError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The mechanisms as requests about credentials number them."""
ITERATIONS_MIN = 4_096
"""Fewer make a stolen credential cheap to guess: no broker stores them, and no client accepts them."""
STORED_ITERATIONS_MAX = 16_384
"""More cost each client too much; no broker stores them."""
CLIENT_ITERATIONS_MAX = 1_000_000
NONCE_LENGTH_MAX = 1_024

_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_RESERVED = rf"(?:m={_VALUE},)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_CLIENT_FIRST = re.compile(rf"(n,(?:a=({_NAME}))?,)({_RESERVED}n=({_NAME}),r=({_PRINTABLE})({_EXTENSIONS}))")
_SERVER_FIRST = re.compile(rf"{_RESERVED}r=({_PRINTABLE}),s=({_BASE64}),i=([0-9]{{1,10}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(rf"(c=({_BASE64}),r=({_PRINTABLE}){_EXTENSIONS}),p=({_BASE64})")
_SERVER_FINAL = re.compile(rf"(?:e=({_VALUE})|v=({_BASE64})){_EXTENSIONS}")


@dataclass(frozen=True, slots=True)
class Credential:
    """A broker's verifier for a password: enough to check it, not enough to log in."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """A client's first message. `gs2_header` is what its last message must bind to; `bare` is signed."""

    gs2_header: str
    bare: str
    user: str
    nonce: str
    authorization_id: str
    extensions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """A server's first message; `nonce` is the client's followed by the server's."""

    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """A client's last message; `without_proof` is signed."""

    without_proof: str
    channel_binding: bytes
    nonce: str
    proof: bytes


def parse_client_first(message: str) -> ClientFirst:
    """Read a client's first message as Kafka does. Raises SaslError."""
    found = _CLIENT_FIRST.fullmatch(message)
    if found is None:
        raise SaslError("not a SCRAM client's first message")
    header, authorization_id, bare, user, nonce, extensions = found.groups()
    pairs = dict(part.split("=", 1) for part in extensions.split(",") if part)
    return ClientFirst(header, bare, unescape(user), nonce, unescape(authorization_id or ""), pairs)


def parse_server_first(message: str) -> ServerFirst:
    """Read a server's first message as Kafka does. Raises SaslError."""
    found = _SERVER_FIRST.fullmatch(message)
    if found is None:
        raise SaslError("the broker's first SCRAM message is malformed")
    nonce, salt, iterations = found.groups()
    count = int(iterations)
    if not 0 < count < 2**31:
        raise SaslError(f"the broker's SCRAM iteration count {iterations} is out of range")
    return ServerFirst(nonce, base64.b64decode(salt), count)


def parse_client_final(message: str) -> ClientFinal:
    """Read a client's last message as Kafka does. Raises SaslError."""
    found = _CLIENT_FINAL.fullmatch(message)
    if found is None:
        raise SaslError("not a SCRAM client's final message")
    without_proof, binding, nonce, proof = found.groups()
    return ClientFinal(without_proof, base64.b64decode(binding), nonce, base64.b64decode(proof))


def parse_server_final(message: str) -> tuple[str | None, bytes | None]:
    """(error, signature) of a server's last message; one of the two is None. Raises SaslError."""
    found = _SERVER_FINAL.fullmatch(message)
    if found is None:
        raise SaslError("the broker's final SCRAM message is malformed")
    error, signature = found.groups()
    return error, None if signature is None else base64.b64decode(signature)


def escape(name: str) -> str:
    """A user name as it travels: `=` and `,` are written as `=3D` and `=2C`."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescape(name: str) -> str:
    """The inverse of `escape`."""
    return name.replace("=2C", ",").replace("=3D", "=")


def salted_password(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    """PBKDF2 of the password: milliseconds to seconds of CPU, so run it in a thread."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.reveal().encode(), salt, iterations)


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
    """Return the verifier that a broker stores for a salted password."""
    return Credential(
        salt, _hash(mechanism, _client_key(mechanism, salted)), _server_key(mechanism, salted), iterations
    )


class ScramClient:
    """One login. Call `first`, then `challenged` and `final` with the server's answer, then `finish`."""

    def __init__(self, mechanism: str, user: str, nonce: str, *, is_delegation_token: bool = False) -> None:
        self.mechanism = mechanism
        self._nonce = nonce
        self._bare = f"n={escape(user)},r={nonce}{',tokenauth=true' if is_delegation_token else ''}"
        self._server_first = ""
        self._signature = b""

    def first(self) -> bytes:
        """The first message to the server."""
        return f"n,,{self._bare}".encode()

    def challenged(self, message: bytes) -> ServerFirst:
        """Check the server's first message: nonce, salt, iterations. Raises SaslError when it cannot be trusted."""
        self._server_first = _text(message)
        challenge = parse_server_first(self._server_first)
        if not challenge.nonce.startswith(self._nonce) or not (
            len(self._nonce) < len(challenge.nonce) <= NONCE_LENGTH_MAX
        ):
            raise SaslError("the broker's SCRAM nonce does not extend ours: it is not to be trusted")
        if challenge.iterations < ITERATIONS_MIN:
            raise SaslError(
                f"SCRAM iteration count {challenge.iterations} is below {ITERATIONS_MIN}: "
                "the broker is not to be trusted"
            )
        if challenge.iterations > CLIENT_ITERATIONS_MAX:
            raise SaslError(
                f"SCRAM iteration count {challenge.iterations} is above {CLIENT_ITERATIONS_MAX}: "
                "the broker asks for minutes of CPU and is not to be trusted"
            )
        return challenge

    def final(self, challenge: ServerFirst, salted: bytes) -> bytes:
        """The last message to the server: the proof that we know the password."""
        without_proof = f"c={_b64(b'n,,')},r={challenge.nonce}"
        signed = f"{self._bare},{self._server_first},{without_proof}".encode()
        key = _client_key(self.mechanism, salted)
        proof = _xor(key, _hmac(self.mechanism, _hash(self.mechanism, key), signed))
        self._signature = _hmac(self.mechanism, _server_key(self.mechanism, salted), signed)
        return f"{without_proof},p={_b64(proof)}".encode()

    def finish(self, message: bytes) -> None:
        """Check that the server knows the password too. Raises SaslError."""
        error, signature = parse_server_final(_text(message))
        if error is not None:
            raise SaslError(f"the broker ended the SCRAM exchange: {error[:100]}")
        if signature is None or not hmac.compare_digest(signature, self._signature):
            raise SaslError("the broker could not prove that it knows the password")


def server_first(first: ClientFirst, server_nonce: str, salt: bytes, iterations: int) -> str:
    """A broker's answer to a client's first message."""
    return f"r={first.nonce}{server_nonce},s={_b64(salt)},i={iterations}"


def server_final(mechanism: str, credential: Credential, first: ClientFirst, challenge: str, final: ClientFinal) -> str:
    """A broker's answer to a client's last message. Raises SaslError when the proof is wrong.

    Deviation: Partita requires `c=` to be the header of the client's first message (RFC 5802), where Kafka takes any
    (SE-D10).
    """
    nonce = challenge[2:].partition(",")[0]
    if final.nonce != nonce:
        raise SaslError("the nonce of the final message is not the one that was given")
    if final.channel_binding != first.gs2_header.encode():
        raise SaslError("the final message binds to another first message")
    signed = f"{first.bare},{challenge},{final.without_proof}".encode()
    expected = _hmac(mechanism, credential.stored_key, signed)
    if len(final.proof) != len(expected):
        raise SaslError("the proof has the wrong length")
    key = _xor(final.proof, expected)
    if not hmac.compare_digest(_hash(mechanism, key), credential.stored_key):
        raise SaslError("the proof is wrong")
    return f"v={_b64(_hmac(mechanism, credential.server_key, signed))}"


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslError("a SCRAM message is not UTF-8") from None


def _client_key(mechanism: str, salted: bytes) -> bytes:
    return _hmac(mechanism, salted, b"Client Key")


def _server_key(mechanism: str, salted: bytes) -> bytes:
    return _hmac(mechanism, salted, b"Server Key")


def _hmac(mechanism: str, key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, HASHES[mechanism])


def _hash(mechanism: str, text: bytes) -> bytes:
    return hashlib.new(HASHES[mechanism], text).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _b64(raw: bytes) -> str:
    return binascii.b2a_base64(raw, newline=False).decode()
