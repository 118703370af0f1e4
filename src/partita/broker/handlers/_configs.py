"""The common checks and changes of AlterConfigs and IncrementalAlterConfigs. (Kafka: ConfigAdminManager.)

Topic settings change at once; of the broker's only those that Kafka can change while running.

An unknown broker option is kept, as Kafka keeps it: it has no use here, and is described without its value. Values
that Kafka refuses are refused, also for those of its options that Partita has no use for.

Deviation: Partita changes a broker option on all nodes of its process, where Kafka keeps the options of each broker
apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import REFUSED_WITH, Verdict, completed, part_refused
from partita.broker.client_metrics.subscriptions import change as keep_subscription
from partita.broker.client_metrics.subscriptions import subscriptions
from partita.broker.config import LISTENER_PREFIX, ConfigError, broker_option
from partita.broker.groups.settings import parsed, printed, settings_of
from partita.broker.options import FIXED_ELSEWHERE, Option, Value
from partita.broker.topics.catalogue import Topic, name_problem
from partita.broker.topics.checks import Refused, stored
from partita.protocol.error_codes import ErrorCode
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Kinds of resources."""
_NEEDED_ON = {
    TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP,
    BROKER: ResourceType.CLUSTER, BROKER_LOGGER: ResourceType.CLUSTER, CLIENT_METRICS: ResourceType.CLUSTER,
}  # fmt: skip

_NEVER_ZERO = frozenset(
    {"log.retention.ms", "max.connections", "max.connections.per.ip", "max.connection.creation.rate"}
)
"""What no change while running may set to zero: records would go at once, or no client could take it back."""
_CLUSTER_WIDE = (".max.connections", ".max.connection.creation.rate", ".num.network.threads")
"""Options of a listener that the whole cluster can have."""


class NeedsOnResources(NamedTuple):
    """Each resource needs a right: on the topic, on the group, or for the others on the cluster."""

    operation: Operation
    answers: str
    """The list of the response that the refused resources are added to."""

    def __call__(self, asking: Asking, request: Any) -> Verdict | None:
        kept: list[Any] = []
        out: dict[ErrorCode, list[Any]] = defaultdict(list)
        for resource in request.resources:
            kind = _NEEDED_ON.get(resource.resource_type)
            names = (resource.resource_name,) if kind in (ResourceType.TOPIC, ResourceType.GROUP) else ()
            if kind is None or asking.may(self.operation, kind, *names):
                kept.append(resource)
            else:
                out[REFUSED_WITH[kind]].append(resource)
        request.resources = []
        answers = self.answers
        parts = [part_refused(asking, request, code, "resources", each, answers) for code, each in out.items()]
        request.resources = kept
        if not parts:
            return None
        entries = [entry for part in parts for entry in getattr(part.answer, answers)]
        if kept:
            return completed(entries, answers)
        whole = parts[0].answer
        setattr(whole, answers, entries)
        return Verdict(whole)

    @property
    def needed(self) -> str:
        """In words, for the documents."""
        return f"{self.operation.name} on the TOPIC, the GROUP, or for brokers and loggers on the CLUSTER"

    @property
    def outcome(self) -> str:
        """The form of a refusal, for the documents."""
        return "TOPIC_, GROUP_ or CLUSTER_AUTHORIZATION_FAILED for it"


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
) -> Steps[list[Answered]]:
    """Alter the resources and return the results: each succeeds or fails alone and as a whole."""
    answers = []
    asked = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        yield None
        code, message = ErrorCode.NONE, None
        try:
            if asked[resource.resource_type, resource.resource_name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            if len({config.name for config in resource.configs}) != len(resource.configs):
                raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
            with stored():
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
    return {name: printed(value) for name, value in settings_of(ctx.catalogue, group_id).items()}


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


def subscription_settings(ctx: RequestContext, name: str) -> dict[str, str | None]:
    """The settings of a subscription to metrics of clients. Raises Refused without a name."""
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    return dict(subscriptions(ctx.catalogue).get(name, {}))


def change_subscription(
    ctx: RequestContext, name: str, settings: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Replace the settings of a subscription. Raises Refused."""
    keep_subscription(ctx.catalogue, name, settings, validate_only=validate_only)
    if ctx.services.client_metrics.made is not None:
        ctx.services.client_metrics.made.subscriptions_changed()


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


def check_logger_node(ctx: RequestContext, name: str) -> None:
    """Raise Refused unless `name` is a node of this process."""
    if not name.removeprefix("-").isdigit():
        raise Refused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name not in map(str, ctx.cluster.nodes):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {ctx.node_id}, but received {name}")


def changed_options(ctx: RequestContext, broker: str) -> dict[str, Value]:
    """The options changed while running: the whole cluster's, whose name is empty, or a node's."""
    return ctx.config.of_nodes if broker else ctx.config.cluster_wide


def _is_fixed(option: Option | None) -> bool:
    return option is not None and not option.changeable


def change_broker(ctx: RequestContext, broker: str, changes: Mapping[str, Value], *, validate_only: bool) -> None:
    """Change broker options (None: back to what there was); raise Refused for those that cannot change."""
    asked = [name for name, value in changes.items() if value is not None]
    fixed = [name for name in asked if name in FIXED_ELSEWHERE or _is_fixed(broker_option(name))]
    if fixed:
        listed = ", ".join(fixed)
        raise Refused(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{listed}]")
    for name in asked:
        value = changes[name]
        if isinstance(value, int) and ((value == 0 and name in _NEVER_ZERO) or (value < 1 and name == "log.roll.ms")):
            raise Refused(ErrorCode.INVALID_REQUEST, f"Invalid {name} {value}")
    of_listeners = [name for name in asked if name.startswith(LISTENER_PREFIX) and not broker]
    of_one_node = [name for name in of_listeners if not name.endswith(_CLUSTER_WIDE)]
    if of_one_node:
        message = "Cannot update these configs at default cluster level, broker id must be specified"
        raise Refused(ErrorCode.INVALID_REQUEST, f"{message}: [{', '.join(of_one_node)}]")
    if ctx.guards is not None:
        ctx.guards.check(changes)
    if not validate_only:
        known = changed_options(ctx, broker)
        kept = {name for name in known if _is_fixed(broker_option(name))}
        new = {n: value for n, value in changes.items() if n not in kept and (value is not None or n in known)}
        ctx.catalogue.configure_broker(new, of_nodes=bool(broker))
