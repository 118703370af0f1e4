"""RenewDelegationToken: owner and renewers let a token live longer. (Kafka: DelegationTokenControlManager.)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import InHandler
from partita.broker.api.served import Served
from partita.broker.handlers._delegation_tokens import check_enabled, check_login
from partita.broker.security.delegation_tokens import renewed
from partita.broker.topics.checks import Refused
from partita.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

API = Served(
    RenewDelegationTokenRequest, rights=(InHandler("to be owner or renewer", "DELEGATION_TOKEN_OWNER_MISMATCH"),)
)


def handle(ctx: RequestContext, request: RenewDelegationTokenRequest) -> Answer:
    """The new end is answered once it is durable."""
    tokens, expires_ms = ctx.delegation_tokens, -1
    try:
        check_login(ctx)
        expires_ms = 0
        check_enabled(ctx)
        token = tokens.find(bytes(request.hmac))
        token = renewed(token, ctx.principal, request.renew_period_ms, tokens.now_ms(), tokens.lifetimes)
    except Refused as why:
        return RenewDelegationTokenResponse(error_code=why.code, expiry_timestamp_ms=expires_ms)
    tokens.change(token)
    return ctx.when_durable(RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms))
