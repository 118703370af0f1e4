"""DescribeDelegationToken: one's own tokens, those one renews or asked for, and others by right. (Kafka: KafkaApis.)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import InHandler
from partita.broker.api.served import Served
from partita.broker.handlers._delegation_tokens import check_enabled, check_login
from partita.broker.security.delegation_tokens import Token, is_shown
from partita.broker.topics.checks import Refused
from partita.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from partita.security.principals import KafkaPrincipal
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DescribeDelegationTokenRequest,
    rights=(
        InHandler(
            "to be owner, requester or renewer; else DESCRIBE on the DELEGATION_TOKEN, or DESCRIBE_TOKENS on the "
            "USER who owns it",
            "left out",
        ),
    ),
)


def handle(ctx: RequestContext, request: DescribeDelegationTokenRequest) -> Answer | Steps[Answer]:
    """Null asks for the tokens of all owners, an empty list for none."""
    try:
        check_login(ctx)
        check_enabled(ctx)
    except Refused as why:
        return DescribeDelegationTokenResponse(error_code=why.code)
    return _answer(ctx, request)


def _answer(ctx: RequestContext, request: DescribeDelegationTokenRequest) -> Steps[DescribeDelegationTokenResponse]:
    tokens, asking = ctx.delegation_tokens, ctx.asking
    owners = None
    if request.owners is not None:
        owners = set()
        for each in request.owners:
            yield None
            owners.add(KafkaPrincipal(each.principal_type, each.principal_name))

    def has_right(token: Token) -> bool:
        return asking is None or (
            asking.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, is_logged=False)
            or asking.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner), is_logged=False)
        )

    shown = []
    for token in tokens.every():
        yield None
        if is_shown(token, ctx.principal, owners, has_right):
            shown.append(_described(token, tokens.hmac_of(token.token_id)))
    return DescribeDelegationTokenResponse(tokens=shown)


def _described(token: Token, hmac: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.ends_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in token.renewers
        ],
    )
