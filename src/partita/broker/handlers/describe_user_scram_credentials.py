"""DescribeUserScramCredentials: users with SCRAM credentials, and their iterations. (Kafka: ScramImage.)

Neither salts nor keys are sent.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from partita.security.rights.operations import Operation, ResourceType
from partita.security.scram import NUMBERS

API = Served(
    DescribeUserScramCredentialsRequest,
    rights=(Needs(Operation.DESCRIBE, ResourceType.CLUSTER),),
    errors=Errors(also_in_items=True),
)


def handle(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    """Null or no users ask for all."""
    known: dict[str, list[CredentialInfo]] = defaultdict(list)
    for user, mechanism, iterations in ctx.users.credentials():
        known[user].append(CredentialInfo(mechanism=NUMBERS[mechanism], iterations=iterations))
    asked = [each.name for each in request.users or ()]
    times = Counter(asked)
    results = []
    for name in times or known:
        yield None
        results.append(_result(name, known.get(name, []), times[name]))
    return DescribeUserScramCredentialsResponse(results=results)


def _result(user: str, found: list[CredentialInfo], times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    elif not found:
        code, text = ErrorCode.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {user}"
    else:
        return DescribeUserScramCredentialsResult(user=user, error_message="", credential_infos=found)
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=text)


def finish_error(
    answer: DescribeUserScramCredentialsResponse, request: DescribeUserScramCredentialsRequest, version: int
) -> DescribeUserScramCredentialsResponse:
    """Kafka names no user."""
    for result in answer.results:
        result.user = ""
    return answer
