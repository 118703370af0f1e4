"""Connections that may use delegation tokens."""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.security.principals import ANONYMOUS


def check_login(ctx: RequestContext) -> None:
    """Raise Refused unless the asker has logged in, by a certificate or SASL, and not with a token itself."""
    if ctx.connection.is_lent or ctx.principal == ANONYMOUS:
        raise Refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "a login of one's own is needed")


def check_enabled(ctx: RequestContext) -> None:
    """Raise Refused if there are no tokens here."""
    if not ctx.delegation_tokens.is_enabled:
        raise Refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation.token.secret.key is not set")
