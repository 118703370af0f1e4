"""SCRAM credentials of a cluster and their iterations. Passwords are salted here and never sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from partita.admin.asking import Connected, ask_decided, ask_for_each
from partita.admin.missing_rights import needs
from partita.admin.results import raise_failures
from partita.admin.topics import names_of
from partita.errors import error_for
from partita.options import not_one_of
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from partita.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from partita.secret import Secret
from partita.security.scram import ITERATIONS_MIN, NUMBERS, salted_password

_SALT_BYTES = 16
_MECHANISMS = {number: mechanism for mechanism, number in NUMBERS.items()}


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user's new password; `mechanism` is SCRAM-SHA-256 or SCRAM-SHA-512, 4096 to 16384 iterations."""

    password: str | Secret
    mechanism: str = "SCRAM-SHA-512"
    iterations: int = ITERATIONS_MIN

    def __repr__(self) -> str:
        return f"ScramUser(password=***, mechanism={self.mechanism!r}, iterations={self.iterations})"


class ScramCredential(NamedTuple):
    """A credential without its secrets, as a cluster reports it."""

    user: str
    mechanism: str
    iterations: int


@needs(cluster="ALTER")
async def alter_scram_users(
    self: Connected, set: Mapping[str, ScramUser] | None = None, *, remove: Iterable[tuple[str, str]] = ()
) -> None:
    """Let users log in with new passwords, and remove credentials, each a pair of user and mechanism.

    Passwords are salted here, in a thread, and not sent. Open connections stay as they are.
    """
    upsertions = [await asyncio.to_thread(_upsertion, name, user) for name, user in (set or {}).items()]
    deletions = [ScramCredentialDeletion(name=user, mechanism=_number(mechanism)) for user, mechanism in remove]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    await ask_for_each(self.cluster, request, lambda a: ((result.user, result) for result in a.results))


@needs(cluster="DESCRIBE")
async def describe_scram_users(self: Connected, users: Iterable[str] | None = None) -> list[ScramCredential]:
    """The SCRAM credentials of users, or of all; a user without one is left out."""
    names = None if users is None else [UserName(name=name) for name in names_of(users)]
    answer = await ask_decided(self.cluster, DescribeUserScramCredentialsRequest(users=names))
    failures = {
        result.user: error_for(result.error_code, result.error_message)
        for result in answer.results
        if result.error_code not in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND)
    }
    raise_failures(failures, len(answer.results))
    return sorted(
        ScramCredential(result.user, _MECHANISMS.get(info.mechanism, str(info.mechanism)), info.iterations)
        for result in answer.results
        for info in result.credential_infos
    )


def _upsertion(name: str, user: ScramUser) -> ScramCredentialUpsertion:
    number, salt = _number(user.mechanism), os.urandom(_SALT_BYTES)
    password = user.password if isinstance(user.password, Secret) else Secret(user.password)
    salted = salted_password(user.mechanism, password, salt, user.iterations)
    return ScramCredentialUpsertion(
        name=name, mechanism=number, iterations=user.iterations, salt=salt, salted_password=salted
    )


def _number(mechanism: str) -> int:
    if mechanism not in NUMBERS:
        raise ValueError(not_one_of(NUMBERS, mechanism, "mechanism"))
    return NUMBERS[mechanism]
