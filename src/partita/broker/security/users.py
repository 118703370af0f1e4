"""Users who log in with a password: the users of the start for PLAIN, and SCRAM credentials in the catalogue.

Credentials are those that AlterUserScramCredentials stores: enough to check a password and not enough to log in.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from partita.broker.topics.catalogue import TopicCatalogue
from partita.secret import Secret
from partita.security.scram import HASHES, ITERATIONS_MIN, Credential, credential_of, salted_password

CREDENTIALS, BROKER_SECRET = "scram", "security"
"""Kinds of catalogue entries."""
_MADE_UP = "made-up-salts"
_SALT_BYTES = 16
_BITS_OF_A_TEXT = 130
_TEXT = re.compile(rb"[0-9a-z]{23,26}")
_SHAPES_MAX = 16
"""As many different shapes are drawn from, the commonest."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Shape(NamedTuple):
    """The visible form of a credential at a login. Without a length the salt is text, as Kafka's tools make it."""

    salt_bytes: int | None
    iterations: int


KAFKAS = Shape(None, ITERATIONS_MIN)
"""130 random bits written to base 36: 25 or 26 bytes, seldom fewer. (Kafka: ScramFormatter.secureRandomBytes)"""


def shape_of(salt: bytes, iterations: int) -> Shape:
    """The shape of a credential with this salt."""
    return Shape(None if _TEXT.fullmatch(salt) else len(salt), iterations)


class Users:
    """The users of one broker process; all its nodes and listeners share them."""

    def __init__(self, catalogue: TopicCatalogue, given: Mapping[str, Secret] | None = None) -> None:
        self._catalogue = catalogue
        self.plain: dict[str, Secret] = dict(given or {})
        """Passwords for PLAIN, on listeners without a list of their own."""
        self._secret = b""
        self._shapes: dict[str, Counter[Shape]] = {mechanism: Counter() for mechanism in HASHES}
        """Numbers of users per mechanism and shape."""

    def prepare(self, *, with_scram: bool) -> None:
        """Let the users of the start log in by SCRAM too. Costs some milliseconds per user. Raises StorageError."""
        if not with_scram:
            return
        kept = self._catalogue.kept.get(BROKER_SECRET, {}).get(_MADE_UP)
        if kept is None:
            kept = os.urandom(32).hex()
            self._catalogue.keep(BROKER_SECRET, {_MADE_UP: kept})
        self._secret = bytes.fromhex(kept)
        self._shapes = {mechanism: Counter() for mechanism in HASHES}
        for key, entry in self._catalogue.kept.get(CREDENTIALS, {}).items():
            shape = shape_of(bytes.fromhex(entry["salt"]), int(entry["iterations"]))
            self._shapes[key.partition("/")[0]][shape] += 1
        for user, password in self.plain.items():
            self.set_password(user, password)

    def set_password(self, user: str, password: Secret, *, iterations: int = ITERATIONS_MIN) -> None:
        """Let the user log in with this password, by PLAIN and SCRAM. Raises StorageError."""
        self.plain[user] = password
        salt = os.urandom(_SALT_BYTES)
        salted = {mechanism: salted_password(mechanism, password, salt, iterations) for mechanism in HASHES}
        self.store(
            {(user, mechanism): credential_of(mechanism, salted[mechanism], salt, iterations) for mechanism in HASHES}
        )

    def replace(self, wanted: Mapping[str, Secret], *, but: Collection[str] = ()) -> None:
        """Let these users log in, and none of the former ones except `but`; open connections stay.

        Costs some milliseconds for each password that is new. Raises StorageError.
        """
        for user in self.plain.keys() - wanted.keys() - set(but):
            self.remove(user)
        for user, password in wanted.items():
            if user not in but and self.plain.get(user) != password:
                self.set_password(user, password)

    def remove(self, user: str) -> None:
        """Remove the user's credentials; open connections stay. Raises StorageError."""
        self.plain.pop(user, None)
        self.store({(user, mechanism): None for mechanism in HASHES if self.credential(user, mechanism) is not None})

    def store(self, credentials: Mapping[tuple[str, str], Credential | None]) -> None:
        """Set SCRAM credentials by (user, mechanism), all with one write; None removes one. Raises StorageError."""
        before = {key: self.credential(*key) for key in credentials}
        self._catalogue.keep(
            CREDENTIALS,
            {
                f"{mechanism}/{user}": None if credential is None else credential_entry(credential)
                for (user, mechanism), credential in credentials.items()
            },
        )
        for (user, mechanism), credential in credentials.items():
            self._count(mechanism, before[user, mechanism], -1)
            self._count(mechanism, credential, 1)

    def credential(self, user: str, mechanism: str) -> Credential | None:
        """Return the stored credential of this user for a SCRAM mechanism."""
        entry = self._catalogue.kept.get(CREDENTIALS, {}).get(f"{mechanism}/{user}")
        return None if entry is None else credential_from(entry)

    def credentials(self) -> Iterator[tuple[str, str, int]]:
        """(User, mechanism, iterations) of everything stored."""
        for key, entry in self._catalogue.kept.get(CREDENTIALS, {}).items():
            mechanism, _, user = key.partition("/")
            yield user, mechanism, int(entry["iterations"])

    def of(self, mechanism: str) -> Callable[[str], Credential]:
        """Finds the credential of a user; for an unknown one it makes one up that no password fits.

        It looks like those of the users there are, and for a name it is always the same, so that its salt and its
        iterations do not show who exists. (SE-P05)
        """

        def find(user: str) -> Credential:
            known = self.credential(user, mechanism)
            noise = self.noise(mechanism, user)
            shape = _drawn(noise, self._shapes[mechanism].most_common(_SHAPES_MAX))
            made_up = Credential(_salt(noise, shape), noise, noise, shape.iterations)
            return known or made_up

        return find

    def noise(self, mechanism: str, name: str) -> bytes:
        """The bytes that a credential is made up of: always the same for a name, and secret."""
        return hmac.digest(self._secret, f"{mechanism}/{name}".encode(), HASHES[mechanism])

    def _count(self, mechanism: str, credential: Credential | None, by: int) -> None:
        if credential is not None:
            shape, shapes = shape_of(credential.salt, credential.iterations), self._shapes[mechanism]
            shapes[shape] += by
            if not shapes[shape]:
                del shapes[shape]


def _drawn(noise: bytes, shapes: Iterable[tuple[Shape, int]]) -> Shape:
    """One of the shapes, each as often as users have it.

    The longest run wins that each begins with `noise`, so that a new user changes the draw of few other names.
    """
    found, best = KAFKAS, -math.inf
    for shape, count in shapes:
        number = int.from_bytes(hashlib.sha256(noise + repr(tuple(shape)).encode()).digest()[:8])
        score = count / -math.log((number + 1) / (2**64 + 2))
        if score > best:
            found, best = shape, score
    return found


def _salt(noise: bytes, shape: Shape) -> bytes:
    """A salt of this shape. It says nothing about the keys, which are the noise itself."""
    if shape.salt_bytes is not None:
        return hashlib.shake_256(b"salt" + noise).digest(shape.salt_bytes)
    return salt_like_kafkas(noise)


def salt_like_kafkas(noise: bytes) -> bytes:
    """A salt as Kafka's tools make it, of what is random already."""
    number, text = int.from_bytes(hashlib.shake_256(b"text" + noise).digest(17)) >> (17 * 8 - _BITS_OF_A_TEXT), ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text.encode()


def credential_entry(credential: Credential) -> dict[str, Any]:
    """A credential as the catalogue keeps it."""
    return {
        "salt": credential.salt.hex(),
        "stored": credential.stored_key.hex(),
        "server": credential.server_key.hex(),
        "iterations": credential.iterations,
    }


def credential_from(entry: Mapping[str, Any]) -> Credential:
    """A credential that the catalogue kept."""
    salt, stored, server = (bytes.fromhex(entry[part]) for part in ("salt", "stored", "server"))
    return Credential(salt, stored, server, int(entry["iterations"]))
