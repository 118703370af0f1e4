"""What AlterConfigs and IncrementalAlterConfigs check and do alike. (Kafka: ConfigAdminManager.)

Topic settings change at once; of the broker's only those that Kafka can change while running.

A broker option nobody knows is kept, as Kafka keeps it: it has no use here, and is described without its value.

Deviation: with several nodes in one process, a broker option that is changed on one node changes on all of them;
Kafka keeps the options of each broker apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from partita.broker.config import ConfigError, broker_option
from partita.broker.groups.settings import parsed, settings_of
from partita.broker.options import Value
from partita.broker.requests.context import RequestContext
from partita.broker.topics.catalogue import Topic, name_problem
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Kinds of resources."""


class _Config(Protocol):
    name: str


class _Resource(Protocol):
    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[_Config]: ...


Resource = TypeVar("Resource", bound=_Resource)
Answered = TypeVar("Answered")


def each_alone(
    resources: Sequence[Resource], alter: Callable[[Resource], None], kind: Callable[..., Answered]
) -> list[Answered]:
    """Alter the resources and answer how it went: each succeeds or fails alone and as a whole."""
    answers = []
    asked = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        code, message = ErrorCode.NONE, None
        try:
            if asked[resource.resource_type, resource.resource_name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            if len({config.name for config in resource.configs}) != len(resource.configs):
                raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
            alter(resource)
        except Refused as refused:
            code, message = refused.code, str(refused)
        except ConfigError as error:
            is_topic = resource.resource_type == TOPIC
            code, message = (ErrorCode.INVALID_CONFIG if is_topic else ErrorCode.INVALID_REQUEST), str(error)
        answers.append(
            kind(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return answers


def group_settings(ctx: RequestContext, group_id: str) -> dict[str, str]:
    """The settings that a group has of its own, as text. Raises Refused without a group id."""
    if not group_id:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    return {name: str(value) for name, value in settings_of(ctx.catalogue, group_id).items()}


def change_group(
    ctx: RequestContext, group_id: str, settings: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Replace the settings that a group has of its own. Raises Refused."""
    try:
        values = parsed(ctx.config, settings)
    except ConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not validate_only:
        ctx.groups.group_configured(group_id, values)


def refuse_nulls(names: Sequence[str]) -> None:
    """Raise Refused when any setting came without a value."""
    if names:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(names)}")


def unknown_type(resource_type: int) -> Refused:
    """The refusal of a resource type that has no settings."""
    return Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def topic_named(ctx: RequestContext, name: str) -> Topic:
    """The topic whose settings are to change; raise Refused when there is none."""
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    topic = ctx.catalogue.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return topic


def check_broker_name(ctx: RequestContext, name: str) -> None:
    """Raise Refused unless `name` is a node of this process or empty, the whole cluster."""
    if name in ("", *(str(node_id) for node_id in ctx.cluster.nodes)):
        return
    if not name.removeprefix("-").isdigit():
        raise Refused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    raise Refused(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {ctx.node_id}, but received {name}")


def changed_options(ctx: RequestContext, broker: str) -> dict[str, Value]:
    """The options changed while running: the whole cluster's, whose name is empty, or a node's."""
    return ctx.config.of_nodes if broker else ctx.config.cluster_wide


def change_broker(ctx: RequestContext, broker: str, changes: Mapping[str, Value], *, validate_only: bool) -> None:
    """Change broker options (None: back to what there was); raise Refused for those that cannot change."""
    asked = (broker_option(name) for name, value in changes.items() if value is not None)
    fixed = [option.name for option in asked if option is not None and not option.changeable]
    if fixed:
        listed = ", ".join(fixed)
        raise Refused(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{listed}]")
    if ctx.services.guards is not None:
        ctx.services.guards.check(changes)
    if not validate_only:
        for name, value in changes.items():
            if value is not None or name in changed_options(ctx, broker):
                ctx.catalogue.configure_broker(name, value, of_nodes=bool(broker))
