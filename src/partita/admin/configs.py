"""Options of topics, brokers and groups: describe and change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, TypeVar

from partita.admin.asking import Connected, named_node
from partita.admin.missing_rights import needs
from partita.admin.results import ConfigEntry, ConfigResource
from partita.admin.topics import as_text, names_of
from partita.errors import error_for
from partita.options import not_one_of
from partita.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from partita.protocol.primitives import Message, Request

R = TypeVar("R", bound=Message)
Kind: TypeAlias = Literal["topic", "broker", "group"]
RESOURCE_TYPES: dict[Kind, int] = {"topic": 2, "broker": 4, "group": 32}
SOURCES = {
    1: "topic",
    2: "broker (dynamic)",
    3: "all brokers (dynamic)",
    4: "broker (static)",
    5: "default",
    6: "broker loggers",
    8: "group",
}
_LISTED = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
_DEFAULT_SOURCE = 5


@needs(topic="DESCRIBE_CONFIGS", group="DESCRIBE_CONFIGS", cluster="DESCRIBE_CONFIGS")
async def describe_configs(
    self: Connected, kind: Kind, name: str, names: Iterable[str] | None = None, *, documentation: bool = False
) -> list[ConfigEntry]:
    """Options of a topic, a broker (by node id, as text) or a group; all of them, or those named.

    `kind` is "topic", "broker" or "group".
    """
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=_type_of(kind),
                resource_name=name,
                configuration_keys=None if names is None else names_of(names),
            )
        ],
        include_documentation=documentation,
    )

    answer = await _ask(self, kind, name, request)
    _check(answer.results)
    return [_entry(config) for result in answer.results for config in sorted(result.configs, key=lambda c: c.name)]


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    source = SOURCES.get(config.config_source, "unknown")
    return ConfigEntry(
        config.name,
        config.value,
        source,
        config.config_source == _DEFAULT_SOURCE,
        config.is_sensitive,
        config.read_only,
        config.documentation,
    )


@needs(topic="ALTER_CONFIGS", group="ALTER_CONFIGS", cluster="ALTER_CONFIGS")
async def alter_configs(
    self: Connected,
    kind: Kind,
    name: str,
    set_to: Mapping[str, str | int | bool | None] | None = None,
    *,
    delete: Iterable[str] = (),
    append: Mapping[str, str] | None = None,
    subtract: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> None:
    """Set options, take them back to their defaults (`delete`), or change list options item by item.

    Options not named stay as they are. Raises InvalidConfigError; with `validate_only` nothing else happens.
    """
    removed = dict.fromkeys(names_of(delete))
    changes = [
        AlterableConfig(name=key, config_operation=operation, value=as_text(value))
        for operation, values in enumerate((set_to, removed, append, subtract))  # by Kafka's numbers
        for key, value in (values or {}).items()
    ]
    resource = AlterConfigsResource(resource_type=_type_of(kind), resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    _check((await _ask(self, kind, name, request)).responses)


@needs(cluster="DESCRIBE_CONFIGS")
async def list_config_resources(self: Connected, kinds: Iterable[str] | None = None) -> list[ConfigResource]:
    """Resources with options: of kinds "topic", "broker", "broker_logger", "client_metrics", "group", or of all."""
    wanted = [_number(kind) for kind in ([] if kinds is None else names_of(kinds))]
    request = ListConfigResourcesRequest(resource_types=wanted)

    async def once() -> ListConfigResourcesResponse:
        answer = await self.cluster.request(None, request)
        if answer.error_code:
            raise error_for(answer.error_code, "listing what has options")
        return answer

    answer = await self.cluster.retry(once)
    found = (ConfigResource(_LISTED.get(r.resource_type, "unknown"), r.resource_name) for r in answer.config_resources)
    return sorted(found, key=lambda resource: (resource.kind, resource.name))


def _type_of(kind: Kind) -> int:
    if kind not in RESOURCE_TYPES:
        raise ValueError(not_one_of(RESOURCE_TYPES, kind, "kind"))
    return RESOURCE_TYPES[kind]


def _number(kind: str) -> int:
    for number, name in _LISTED.items():
        if name == kind:
            return number
    raise ValueError(not_one_of(_LISTED.values(), kind, "kind"))


async def _ask(self: Connected, kind: Kind, name: str, request: Request[R]) -> R:
    """Ask a broker about its own options, which only itself can give; ask any about all others."""
    is_of_broker = kind == "broker" and name
    if is_of_broker and not name.isdecimal():
        raise ValueError(f"a broker is named by its node id, such as '1', not {name!r}")

    async def once() -> R:
        node = await named_node(self.cluster, int(name)) if is_of_broker else None
        return await self.cluster.request(node, request)

    return await self.cluster.retry(once)


def _check(results: Iterable[DescribeConfigsResult | AlterConfigsResourceResponse]) -> None:
    """Raise a result's error. It is not worth another request: a missing topic would cost the whole timeout."""
    for result in results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message)
