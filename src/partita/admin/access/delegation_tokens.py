"""Delegation tokens of a cluster: logins that are lent for a while and taken back. (KIP-48)"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from partita.admin.asking import Connected, ask_decided
from partita.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from partita.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from partita.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
)
from partita.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token: log in with `token_id` as user, `password`, a SCRAM mechanism and `sasl_scram_tokenauth=True`.

    Owner, requester and renewers are principals, as "User:alice"; times are milliseconds since 1970.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    """The principal that asked for the token; the owner itself with a broker before Kafka 3.3."""
    renewers: tuple[str, ...]
    """Principals that may renew and expire the token, besides its owner."""
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    """Time at which the token ends unless it is renewed."""
    max_timestamp_ms: int
    """Time at which the token ends in any case."""

    @property
    def password(self) -> str:
        """The password of a login: the HMAC in base64."""
        return base64.b64encode(self.hmac).decode()


async def create_delegation_token(
    self: Connected, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = -1
) -> DelegationToken:
    """Create a token for ourselves, or for another `owner`; principals are "User:alice" or just "alice".

    It lives `max_lifetime_ms` at most, and unless it is renewed only for delegation.token.expiry.time.ms of the broker.
    Raises DelegationTokenRequestNotAllowedError over a connection that is not logged in, or is by a token.
    """
    renewing = [_principal(each) for each in ([renewers] if isinstance(renewers, str) else renewers)]
    owner_type, owner_name = (None, None) if owner is None else _principal(owner)
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewing],
        max_lifetime_ms=max_lifetime_ms,
    )
    answer = await ask_decided(self.cluster, request)
    owned_by = f"{answer.principal_type}:{answer.principal_name}"
    asked_by = f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
    return DelegationToken(
        answer.token_id,
        bytes(answer.hmac),
        owned_by,
        asked_by if answer.token_requester_principal_name else owned_by,
        tuple(f"{kind}:{name}" for kind, name in renewing),
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
    )


async def renew_delegation_token(
    self: Connected, token: DelegationToken | bytes | str, *, renew_period_ms: int = -1
) -> int:
    """Let a token live so much longer from now on (-1: the broker's default); return when it ends then.

    The token is given as such, by its HMAC, or by its password. Raises DelegationTokenNotFoundError.
    """
    request = RenewDelegationTokenRequest(hmac=_hmac_of(token), renew_period_ms=renew_period_ms)
    answer = await ask_decided(self.cluster, request)
    return answer.expiry_timestamp_ms


async def expire_delegation_token(
    self: Connected, token: DelegationToken | bytes | str, *, expiry_period_ms: int = -1
) -> int:
    """End a token in so many milliseconds (-1: remove it at once); return when it ends.

    The token is given as such, by its HMAC, or by its password. Raises DelegationTokenNotFoundError.
    """
    request = ExpireDelegationTokenRequest(hmac=_hmac_of(token), expiry_time_period_ms=expiry_period_ms)
    answer = await ask_decided(self.cluster, request)
    return answer.expiry_timestamp_ms


async def describe_delegation_tokens(self: Connected, owners: Iterable[str] | None = None) -> list[DelegationToken]:
    """The tokens of these owners, or all, as far as we may see them: our own, those we renew, and by right."""
    named = None if owners is None else [_principal(each) for each in ([owners] if isinstance(owners, str) else owners)]
    request = DescribeDelegationTokenRequest(
        owners=None
        if named is None
        else [DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in named]
    )
    answer = await ask_decided(self.cluster, request)
    found = [
        DelegationToken(
            each.token_id,
            bytes(each.hmac),
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type or each.principal_type}:"
            f"{each.token_requester_principal_name or each.principal_name}",
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in answer.tokens
    ]
    return sorted(found, key=lambda token: (token.issue_timestamp_ms, token.token_id))


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not (name if colon else kind):
        raise ValueError(f"a principal is written User:alice, or alice, not {text!r}")
    return (kind, name) if colon else ("User", text)


def _hmac_of(token: DelegationToken | bytes | str) -> bytes:
    if isinstance(token, DelegationToken):
        return token.hmac
    if isinstance(token, bytes):
        return token
    try:
        return base64.b64decode(token, validate=True)
    except binascii.Error:
        raise ValueError("a token's HMAC is given as bytes or in base64, and this text is not base64") from None
