"""CreateDelegationToken: a token for the caller, or by right for another owner. (Kafka: KafkaApis; KIP-373)"""

from __future__ import annotations

import asyncio
from typing import Any

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import InHandler
from partita.broker.api.served import CHANGES_MAX, Served
from partita.broker.handlers._delegation_tokens import check_enabled, check_login
from partita.broker.security.delegation_tokens import Token, issued
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from partita.security.principals import KafkaPrincipal
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    CreateDelegationTokenRequest,
    rights=(InHandler("for another owner: CREATE_TOKENS on the USER", "DELEGATION_TOKEN_AUTHORIZATION_FAILED"),),
    elements_max=CHANGES_MAX,
)


def handle(ctx: RequestContext, request: CreateDelegationTokenRequest) -> Answer:
    """Compute the credential of the token's logins beside the loop; answer the token once it is durable."""
    owner = ctx.principal
    if request.owner_principal_name:
        owner = KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)
    tokens = ctx.delegation_tokens
    renewers = [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.renewers]
    try:
        check_login(ctx)
        _check_owner(ctx, owner)
        asked_ms = request.max_lifetime_ms
        token = issued(tokens.new_id(), owner, ctx.principal, renewers, asked_ms, tokens.now_ms(), tokens.lifetimes)
        check_enabled(ctx)
        tokens.check_room(ctx.principal)
    except Refused as why:
        return _refused(owner, ctx.principal, why)
    return _kept(ctx, token, ctx.run_beside(lambda: tokens.credentials(token.token_id)))


def _check_owner(ctx: RequestContext, owner: KafkaPrincipal) -> None:
    asking = ctx.asking
    if owner == ctx.principal or asking is None:
        return
    if not asking.may(Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        raise Refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, f"CREATE_TOKENS on {owner} is needed")


async def _kept(
    ctx: RequestContext, token: Token, credentials: asyncio.Future[dict[str, Any]]
) -> CreateDelegationTokenResponse:
    tokens = ctx.delegation_tokens
    made = await credentials
    try:
        tokens.check_room(token.requester)  # others may have come meanwhile
    except Refused as why:
        return _refused(token.owner, token.requester, why)
    tokens.add(token, made)
    durable = ctx.durable()
    if durable is not None:
        await durable
    return _response(token, tokens.hmac_of(token.token_id), ErrorCode.NONE)


def _refused(owner: KafkaPrincipal, requester: KafkaPrincipal, why: Refused) -> CreateDelegationTokenResponse:
    at_ms = 0 if why.code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else -1
    return _response(Token("", owner, requester, (), at_ms, at_ms, at_ms), b"", why.code)


def _response(token: Token, hmac: bytes, code: ErrorCode) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.ends_ms,
        token_id=token.token_id,
        hmac=hmac,
    )
