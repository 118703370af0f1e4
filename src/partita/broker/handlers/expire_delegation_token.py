"""ExpireDelegationToken: owner and renewers end a token, at once or later. (Kafka: DelegationTokenControlManager.)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import InHandler
from partita.broker.api.served import Served
from partita.broker.handlers._delegation_tokens import check_enabled, check_login
from partita.broker.security.delegation_tokens import expired
from partita.broker.topics.checks import Refused
from partita.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

API = Served(
    ExpireDelegationTokenRequest, rights=(InHandler("to be owner or renewer", "DELEGATION_TOKEN_OWNER_MISMATCH"),)
)


def handle(ctx: RequestContext, request: ExpireDelegationTokenRequest) -> Answer:
    """The end is answered once it is durable; open connections stay."""
    tokens, now_ms, expires_ms = ctx.delegation_tokens, ctx.now().wall_ms, -1
    try:
        check_login(ctx)
        expires_ms = 0
        check_enabled(ctx)
        found = tokens.find(bytes(request.hmac))
        token = expired(found, ctx.principal, request.expiry_time_period_ms, now_ms)
    except Refused as why:
        return ExpireDelegationTokenResponse(error_code=why.code, expiry_timestamp_ms=expires_ms)
    if token is not None:
        tokens.change(token)
    elif found is not None:
        tokens.remove(found)
    return ctx.when_durable(
        ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms if token is None else token.expires_ms)
    )
