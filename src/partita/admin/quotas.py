"""Client quotas of a cluster: how much users, client ids and addresses may use."""

from __future__ import annotations

from collections.abc import Mapping

from partita.admin.results import ClientQuota
from partita.admin.topics import ask_controller
from partita.errors import error_for
from partita.net.cluster import Cluster
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
    DescribeClientQuotasResponse,
)
from partita.security.quotas import CLIENT_ID, DEFAULT, EXACT, IP, USER


def entity(*, user: str | None, client_id: str | None, ip: str | None) -> dict[str, str | None]:
    """The entity of these names: None is the default of a type, an empty name leaves the type out."""
    named = {USER: user, CLIENT_ID: client_id, IP: ip}
    return {kind: name for kind, name in named.items() if name != ""}


async def alter(
    cluster: Cluster, whose: Mapping[str, str | None], quotas: Mapping[str, float | None], *, validate_only: bool
) -> None:
    """Set quotas of one entity; None removes one. Raises InvalidRequestError for an invalid quota."""
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in whose.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    answer: AlterClientQuotasResponse = await ask_controller(
        cluster, request, lambda a: [each.error_code for each in a.entries]
    )
    for each in answer.entries:
        if each.error_code:
            raise error_for(each.error_code, each.error_message)


async def describe(cluster: Cluster, whose: Mapping[str, str | None], *, strict: bool) -> list[ClientQuota]:
    """The quotas of entities that have these names; with `strict`, of no other types."""
    components = [
        ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
        for kind, name in whose.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer: DescribeClientQuotasResponse = await ask_controller(cluster, request, lambda a: [a.error_code])
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    return [
        ClientQuota(
            {part.entity_type: part.entity_name for part in found.entity},
            {value.key: value.value for value in found.values},
        )
        for found in answer.entries or ()
    ]
