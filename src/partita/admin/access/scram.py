"""SCRAM credentials of a cluster and their iterations. Passwords are salted here and never sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from partita.admin.results import raise_failures
from partita.admin.topics import ask_controller
from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from partita.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
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


async def alter_scram_users(
    cluster: Cluster, wanted: Mapping[str, ScramUser], remove: Iterable[tuple[str, str]]
) -> None:
    """Set and remove credentials. Raises KafkaError or SomeFailed for those that are refused."""
    upsertions = [await asyncio.to_thread(_upsertion, name, user) for name, user in wanted.items()]
    deletions = [ScramCredentialDeletion(name=user, mechanism=_number(mechanism)) for user, mechanism in remove]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    answer: AlterUserScramCredentialsResponse = await ask_controller(
        cluster, request, lambda a: [result.error_code for result in a.results]
    )
    failures: dict[str, KafkaError] = {
        result.user: error_for(result.error_code, result.error_message)
        for result in answer.results
        if result.error_code
    }
    raise_failures(failures, len(answer.results))


async def describe_scram_users(cluster: Cluster, users: Iterable[str] | None) -> list[ScramCredential]:
    """The credentials of these users, or of all; a user without one is left out."""
    names = None if users is None else [UserName(name=name) for name in dict.fromkeys(users)]
    answer: DescribeUserScramCredentialsResponse = await ask_controller(
        cluster, DescribeUserScramCredentialsRequest(users=names), lambda a: [a.error_code]
    )
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
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
        raise ValueError(f"mechanism must be one of {', '.join(NUMBERS)}, not {mechanism!r}")
    return NUMBERS[mechanism]
