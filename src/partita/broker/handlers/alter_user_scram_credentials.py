"""AlterUserScramCredentials: set and delete SCRAM credentials, one result per user. (Kafka: ScramControlManager.)

The client sends a salted password; the stored form checks passwords and cannot log in. Users succeed or fail alone.
Open connections stay unchanged; the next login counts.

Deviation: Partita refuses an empty salt or salted password with UNACCEPTABLE_CREDENTIAL, where Kafka stores the one and
answers UNKNOWN_SERVER_ERROR to the other.
"""

from __future__ import annotations

from collections import Counter

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import Needs
from partita.broker.api.served import CHANGES_MAX, Errors, Served
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from partita.security.rights.operations import Operation, ResourceType
from partita.security.scram import ITERATIONS_MIN, NUMBERS, STORED_ITERATIONS_MAX, Credential, credential_of

API = Served(
    AlterUserScramCredentialsRequest,
    rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),),
    elements_max=CHANGES_MAX,
    errors=Errors(says_once=True),
)

_MECHANISMS = {number: mechanism for mechanism, number in NUMBERS.items()}


def handle(ctx: RequestContext, request: AlterUserScramCredentialsRequest) -> Steps[AlterUserScramCredentialsResponse]:
    """Store the valid changes with one write; the hashes of many are computed in slices."""
    asked: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    times = Counter(each.name for each in asked)
    changes: dict[tuple[str, str], Credential | None] = {}
    refused: dict[str, Refused] = {}
    for each in asked:
        yield None
        try:
            mechanism = _mechanism(each.name, each.mechanism)
            if times[each.name] > 1:
                raise Refused(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            if isinstance(each, ScramCredentialDeletion) and ctx.users.credential(each.name, mechanism) is None:
                raise Refused(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
            changes[each.name, mechanism] = (
                _credential(each, mechanism) if isinstance(each, ScramCredentialUpsertion) else None
            )
        except Refused as why:
            refused.setdefault(each.name, why)
    ctx.users.store(changes)
    response = AlterUserScramCredentialsResponse(results=[_result(user, refused.get(user)) for user in times])
    durable: AlterUserScramCredentialsResponse = yield from settled(ctx.when_durable(response))
    return durable


def _mechanism(user: str, number: int) -> str:
    if not user:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = _MECHANISMS.get(number)
    if mechanism is None:
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return mechanism


def _credential(asked: ScramCredentialUpsertion, mechanism: str) -> Credential:
    if asked.iterations < ITERATIONS_MIN:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if asked.iterations > STORED_ITERATIONS_MAX:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    salt, salted = bytes(asked.salt), bytes(asked.salted_password)
    if not salt:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt must not be empty")
    if not salted:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
    return credential_of(mechanism, salted, salt, asked.iterations)


def _result(user: str, refused: Refused | None) -> AlterUserScramCredentialsResult:
    code, text = (ErrorCode.NONE, None) if refused is None else (refused.code, str(refused))
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=text)
