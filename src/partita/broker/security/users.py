"""Who may log in with a password: the users of the start for PLAIN, and SCRAM credentials in the catalogue.

Credentials are what AlterUserScramCredentials stores: enough to check a password and not enough to log in.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from partita.broker.topics.catalogue import TopicCatalogue
from partita.secret import Secret
from partita.security.scram import HASHES, ITERATIONS_MIN, Credential, credential_of, salted_password

CREDENTIALS, BROKER_SECRET = "scram", "security"
"""Kinds of what the catalogue keeps."""
_MADE_UP = "made-up-salts"
_SALT_BYTES = 16


class Users:
    """The users of one broker process; all its nodes and listeners share them."""

    def __init__(self, catalogue: TopicCatalogue, given: Mapping[str, Secret] | None = None) -> None:
        self._catalogue = catalogue
        self.plain: dict[str, Secret] = dict(given or {})
        """Passwords for PLAIN, on listeners without a list of their own."""
        self._secret = b""

    def prepare(self, *, with_scram: bool) -> None:
        """Let the users of the start log in by SCRAM too. Costs some milliseconds per user. Raises StorageError."""
        if not with_scram:
            return
        kept = self._catalogue.kept.get(BROKER_SECRET, {}).get(_MADE_UP)
        if kept is None:
            kept = os.urandom(32).hex()
            self._catalogue.keep(BROKER_SECRET, {_MADE_UP: kept})
        self._secret = bytes.fromhex(kept)
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
        """Let the user log in no more; open connections stay. Raises StorageError."""
        self.plain.pop(user, None)
        self.store({(user, mechanism): None for mechanism in HASHES if self.credential(user, mechanism) is not None})

    def store(self, credentials: Mapping[tuple[str, str], Credential | None]) -> None:
        """Set SCRAM credentials by (user, mechanism), all with one write; None removes one. Raises StorageError."""
        self._catalogue.keep(
            CREDENTIALS,
            {
                f"{mechanism}/{user}": None if credential is None else _entry(credential)
                for (user, mechanism), credential in credentials.items()
            },
        )

    def credential(self, user: str, mechanism: str) -> Credential | None:
        """What is stored of this user's password for a SCRAM mechanism."""
        entry = self._catalogue.kept.get(CREDENTIALS, {}).get(f"{mechanism}/{user}")
        return None if entry is None else _credential(entry)

    def credentials(self) -> Iterator[tuple[str, str, int]]:
        """(User, mechanism, iterations) of everything stored."""
        for key, entry in self._catalogue.kept.get(CREDENTIALS, {}).items():
            mechanism, _, user = key.partition("/")
            yield user, mechanism, int(entry["iterations"])

    def of(self, mechanism: str) -> Callable[[str], Credential]:
        """Finds the credential of a user; for an unknown one it makes one up that no password fits.

        What is made up for a name is always the same, so that nobody can tell by its salt who exists. (SE-P05)
        """

        def find(user: str) -> Credential:
            known = self.credential(user, mechanism)
            noise = hmac.digest(self._secret, f"{mechanism}/{user}".encode(), HASHES[mechanism])
            return known or Credential(noise[:_SALT_BYTES], noise, noise, ITERATIONS_MIN)

        return find


def _entry(credential: Credential) -> dict[str, Any]:
    return {
        "salt": credential.salt.hex(),
        "stored": credential.stored_key.hex(),
        "server": credential.server_key.hex(),
        "iterations": credential.iterations,
    }


def _credential(entry: Mapping[str, Any]) -> Credential:
    salt, stored, server = (bytes.fromhex(entry[part]) for part in ("salt", "stored", "server"))
    return Credential(salt, stored, server, int(entry["iterations"]))
