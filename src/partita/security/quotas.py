"""Quotas as values: entities, precedence and checks. (KIP-13, 124, 546, 599, 612)

An entity is what a quota is for: a user, a client id, both, or an address. None as a name stands for the default.
Mirrors ClientQuotaControlManager, ClientQuotasImage and ClientQuotaManager of Apache Kafka. (security.md 16)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import isfinite
from typing import NamedTuple, TypeAlias

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER, CONSUMER, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION, CONNECTION = "controller_mutation_rate", "connection_creation_rate"
KEYS: dict[str, frozenset[str]] = {
    USER: frozenset({PRODUCER, CONSUMER, REQUEST, MUTATION}),
    IP: frozenset({CONNECTION}),
}
"""The quotas that entities of a kind can have; those of client ids are those of users."""
_WHOLE = frozenset({PRODUCER, CONSUMER, CONNECTION})
_FRACTION_MIN = 1e-6
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""Meaning of a filter's component: this name, the default, any name."""

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Pairs of type and name, in order of their types."""


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity of these pairs, in whatever order."""
    return tuple(sorted(dict(parts).items()))


def entity_problem(parts: Sequence[tuple[str, str | None]]) -> str | None:
    """Why the pairs are no entity, in Kafka's words; None when they are one."""
    if not parts:
        return "Invalid empty client quota entity"
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    names = dict(parts)
    if IP in names and len(names) > 1:
        return "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
    address = names.get(IP)
    return None if address is None or _is_address(address) else f"{address} is not a valid IP or resolvable host."


def _is_address(text: str) -> bool:
    """Deviation: Partita refuses a quota of a host name, where Kafka looks the name up while it answers."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def value_problem(entity: Entity, key: str, value: float) -> str | None:
    """Why the entity cannot have this quota, in Kafka's words; None when it can."""
    if (problem := key_problem(entity, key)) is not None:
        return problem
    if not isfinite(value):
        return f"Quota {key} must be a finite number"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    if key in _WHOLE and abs(value - round(min(value, 2.0**62))) > _FRACTION_MIN:
        return f"{key} cannot be a fractional value."
    return None


def key_problem(entity: Entity, key: str) -> str | None:
    """Why the entity has no quota of this name, in Kafka's words; None when it has."""
    kind = IP if dict(entity).keys() == {IP} else USER
    return None if key in KEYS[kind] else f"Invalid configuration key {key}"


class Component(NamedTuple):
    """One condition of a filter: a type, how its name is meant, and the name."""

    kind: str
    match: int
    name: str | None = None


class UnknownEntityType(ValueError):
    """A filter asks for a type of entity that there is not."""


def check_filter(components: Sequence[Component]) -> None:
    """Raises ValueError, or UnknownEntityType, with Kafka's text for a filter that means nothing."""
    seen: set[str] = set()
    for component in components:
        if not component.kind:
            raise ValueError("Invalid empty entity type.")
        if component.kind in seen:
            raise ValueError(f"Entity type {component.kind} cannot appear more than once in the filter.")
        if component.kind not in (USER, CLIENT_ID, IP):
            raise UnknownEntityType(f"Unsupported entity type {component.kind}")
        if component.match not in (EXACT, DEFAULT, SPECIFIED):
            raise ValueError(f"Unknown match type {component.match}")
        if component.match == EXACT and component.name is None:
            raise ValueError("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if component.match != EXACT and component.name is not None:
            match = "DEFAULT" if component.match == DEFAULT else "SPECIFIED"
            raise ValueError(f"Request specified MATCH_TYPE_{match}, but also specified a match string.")
        seen.add(component.kind)
    if IP in seen and len(seen) > 1:
        raise ValueError(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )


def is_selected(entity: Entity, components: Sequence[Component], *, strict: bool) -> bool:
    """Whether a filter means the entity. `strict`: it must have no other types than those asked for."""
    names = dict(entity)
    if strict and names.keys() != {component.kind for component in components}:
        return False
    return all(
        component.kind in names
        and (
            component.match == SPECIFIED
            or names[component.kind] == (component.name if component.match == EXACT else None)
        )
        for component in components
    )


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota that applies: its limit, and the user and client id that share it, empty where all do."""

    value: float
    shared_by: tuple[str, str]


class QuotaTable:
    """All quotas, by entity."""

    def __init__(self) -> None:
        self._values: dict[Entity, dict[str, float]] = {}

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def of(self, entity: Entity) -> Mapping[str, float]:
        """The quotas of the entity itself."""
        return self._values.get(entity, {})

    def set(self, entity: Entity, values: Mapping[str, float]) -> None:
        """Replace the quotas of the entity; without any it is gone."""
        if values:
            self._values[entity] = dict(values)
        else:
            self._values.pop(entity, None)

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The quota that counts, the first found of Kafka's eight kinds of entity; None without one."""
        both, of_user, of_client = (user, client_id), (user, ""), ("", client_id)
        candidates: tuple[tuple[Entity, tuple[str, str]], ...] = (
            (((CLIENT_ID, client_id), (USER, user)), both),
            (((CLIENT_ID, None), (USER, user)), both),
            (((USER, user),), of_user),
            (((CLIENT_ID, client_id), (USER, None)), both),
            (((CLIENT_ID, None), (USER, None)), both),
            (((USER, None),), of_user),
            (((CLIENT_ID, client_id),), of_client),
            (((CLIENT_ID, None),), of_client),
        )
        for entity, shared_by in candidates:
            value = self._values.get(entity, {}).get(key)
            if value is not None:
                return Limit(value, shared_by)
        return None

    def limit_of_address(self, address: str) -> float | None:
        """Connections per second that the address may open; None without a quota."""
        for name in (address, None):
            value = self._values.get(((IP, name),), {}).get(CONNECTION)
            if value is not None:
                return value
        return None
