"""Options of topics, brokers and groups: describe and change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from partita.admin.results import ConfigEntry, ConfigResource
from partita.admin.topics import as_text
from partita.errors import error_for
from partita.net.cluster import Cluster
from partita.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

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
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_DEFAULT_SOURCE = 5


async def describe_configs(
    cluster: Cluster, kind: Kind, name: str, names: Iterable[str] | None, *, documentation: bool
) -> list[ConfigEntry]:
    """The options of one topic, broker or group, sorted by name; all of them, or those named."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=RESOURCE_TYPES[kind],
                resource_name=name,
                configuration_keys=None if names is None else list(names),
            )
        ],
        include_documentation=documentation,
    )

    async def once() -> DescribeConfigsResponse:
        answer = await cluster.request(_node(kind, name), request)
        for result in answer.results:
            if result.error_code:
                raise error_for(result.error_code, result.error_message)
        return answer

    answer = await cluster.retry(once)
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


async def alter_configs(
    cluster: Cluster,
    kind: Kind,
    name: str,
    *,
    set_to: Mapping[str, str | int | bool | None],
    delete: Iterable[str],
    append: Mapping[str, str],
    subtract: Mapping[str, str],
    validate_only: bool,
) -> None:
    """Change the options named, all of them or none. Raises InvalidConfigError."""
    changes = [
        *(AlterableConfig(name=key, config_operation=_SET, value=as_text(value)) for key, value in set_to.items()),
        *(AlterableConfig(name=key, config_operation=_DELETE, value=None) for key in delete),
        *(AlterableConfig(name=key, config_operation=_APPEND, value=value) for key, value in append.items()),
        *(AlterableConfig(name=key, config_operation=_SUBTRACT, value=value) for key, value in subtract.items()),
    ]
    resource = AlterConfigsResource(resource_type=RESOURCE_TYPES[kind], resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)

    async def once() -> None:
        answer = await cluster.request(_node(kind, name), request)
        for result in answer.responses:
            if result.error_code:
                raise error_for(result.error_code, result.error_message)

    await cluster.retry(once)


async def list_config_resources(cluster: Cluster, kinds: Iterable[str] | None) -> list[ConfigResource]:
    """Return the resources of these kinds (None: of all) that have options."""
    wanted = [_number(kind) for kind in ([] if kinds is None else dict.fromkeys(kinds))]
    request = ListConfigResourcesRequest(resource_types=wanted)

    async def once() -> ListConfigResourcesResponse:
        answer = await cluster.request(None, request)
        if answer.error_code:
            raise error_for(answer.error_code, "listing what has options")
        return answer

    answer = await cluster.retry(once)
    found = (ConfigResource(_LISTED.get(r.resource_type, "unknown"), r.resource_name) for r in answer.config_resources)
    return sorted(found, key=lambda resource: (resource.kind, resource.name))


def _number(kind: str) -> int:
    for number, name in _LISTED.items():
        if name == kind:
            return number
    raise ValueError(f"kinds are {', '.join(_LISTED.values())}, not {kind!r}")


def _node(kind: Kind, name: str) -> int | None:
    """Return the node to ask: a broker's own options only itself can give, all others any broker."""
    return int(name) if kind == "broker" and name else None
