"""Client quotas of a cluster: how much users, client ids and addresses may use."""

from __future__ import annotations

from collections.abc import Mapping

from partita.admin.asking import Connected, ask_controller, ask_decided
from partita.admin.missing_rights import needs
from partita.admin.results import ClientQuota
from partita.errors import error_for
from partita.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from partita.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from partita.security.quotas import CLIENT_ID, DEFAULT, EXACT, IP, USER


def entity(*, user: str | None, client_id: str | None, ip: str | None) -> dict[str, str | None]:
    """The entity of these names: None is the default of a type, an empty name leaves the type out."""
    named = {USER: user, CLIENT_ID: client_id, IP: ip}
    return {kind: name for kind, name in named.items() if name != ""}


@needs(cluster="ALTER_CONFIGS")
async def alter_client_quotas(
    self: Connected,
    quotas: Mapping[str, float | None],
    *,
    user: str | None = "",
    client_id: str | None = "",
    ip: str | None = "",
    validate_only: bool = False,
) -> None:
    """Set quotas of a user, a client id, both, or an address: {"producer_byte_rate": 1_000_000}; None removes one.

    None as a name is the default. Raises InvalidRequestError.
    """
    whose = entity(user=user, client_id=client_id, ip=ip)
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in whose.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    answer: AlterClientQuotasResponse = await ask_controller(
        self.cluster, request, lambda a: [each.error_code for each in a.entries]
    )
    for each in answer.entries:
        if each.error_code:
            raise error_for(each.error_code, each.error_message)


@needs(cluster="DESCRIBE_CONFIGS")
async def describe_client_quotas(
    self: Connected, *, user: str | None = "", client_id: str | None = "", ip: str | None = "", strict: bool = False
) -> list[ClientQuota]:
    """All quotas, or those whose entities have these names (None: the default); with `strict`, and no others."""
    whose = entity(user=user, client_id=client_id, ip=ip)
    components = [
        ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
        for kind, name in whose.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer = await ask_decided(self.cluster, request)
    return [
        ClientQuota(
            {part.entity_type: part.entity_name for part in found.entity},
            {value.key: value.value for value in found.values},
        )
        for found in answer.entries or ()
    ]
