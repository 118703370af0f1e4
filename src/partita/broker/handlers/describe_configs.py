"""DescribeConfigs: settings of topics and of the broker, with where each value comes from. (Kafka: ConfigHelper.)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.client_metrics.subscriptions import OPTIONS as SUBSCRIPTION_OPTIONS
from partita.broker.client_metrics.subscriptions import subscriptions
from partita.broker.config import BROKER_OPTIONS, TOPIC_OPTIONS, BrokerConfig, as_text, broker_value
from partita.broker.groups.settings import OPTIONS as GROUP_OPTIONS
from partita.broker.groups.settings import Setting, printed, settings_of
from partita.broker.handlers._configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, NeedsOnResources
from partita.broker.handlers._loggers import levels
from partita.broker.options import MEANINGS, PASSWORD, Option
from partita.broker.topics.catalogue import Topic, name_problem
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from partita.security.rights.operations import Operation

API = Served(
    DescribeConfigsRequest,
    rights=(NeedsOnResources(Operation.DESCRIBE_CONFIGS, "results"),),
    deviation="Partita leaves out options of features that it lacks, where Kafka lists them",
)

TOPIC_SOURCE, NODE_SOURCE, CLUSTER_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = 1, 2, 3, 4, 5
LOGGER_SOURCE, SUBSCRIPTION_SOURCE, GROUP_SOURCE = 6, 7, 8
_INTERNAL = frozenset({
    "consumer.assignor.offload.enable", "group.consumer.assignor.offload.enable",
    "group.consumer.regex.refresh.interval.ms", "group.share.assignor.offload.enable",
    "producer.id.expiration.check.interval.ms", "share.assignor.offload.enable",
})  # fmt: skip
_WITHOUT_DEFAULT = frozenset({"log.roll.jitter.ms"})
"""Of the options that only Kafka's brokers have, those it has no default for."""


def handle(ctx: RequestContext, request: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    """The settings of each resource, with where each value comes from.

    Each resource is described once, however often it is named, so that a small request makes no huge answer in memory.
    """
    known: dict[tuple[int, str, tuple[str, ...]], DescribeConfigsResult] = {}
    results = []
    for resource in request.resources:
        yield None
        asked = (resource.resource_type, resource.resource_name, tuple(resource.configuration_keys or ()))
        result = known.get(asked)
        if result is None:
            result = known[asked] = _describe(ctx, resource, request.include_synonyms)
            if request.include_documentation:
                _document(result)
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _describe(ctx: RequestContext, resource: DescribeConfigsResource, synonyms: bool) -> DescribeConfigsResult:
    wanted = set(resource.configuration_keys or ()) or None
    if resource.resource_type == TOPIC:
        problem = name_problem(resource.resource_name)
        if problem is not None:
            return _refused(resource, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = ctx.catalogue.get(resource.resource_name)
        if topic is None:
            return _refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {resource.resource_name} not found")
        rows = [_topic_row(ctx.config, topic, o, synonyms) for o in _chosen(TOPIC_OPTIONS.values(), wanted)]
    elif resource.resource_type == BROKER:
        name = resource.resource_name
        if name not in ("", *(str(node_id) for node_id in ctx.cluster.nodes)):
            expected = f"expected {ctx.node_id} or empty string, but received {name}"
            return _refused(resource, ErrorCode.INVALID_REQUEST, f"Unexpected broker id, {expected}")
        rows = list(_broker_rows(ctx.config, wanted, synonyms) if name else _cluster_rows(ctx.config, wanted, synonyms))
    elif resource.resource_type == GROUP and not resource.resource_name:
        return _refused(resource, ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    elif resource.resource_type == GROUP:
        own = settings_of(ctx.catalogue, resource.resource_name)
        rows = [_group_row(ctx.config, own, o, synonyms) for o in _chosen(GROUP_OPTIONS.values(), wanted)]
    elif resource.resource_type == CLIENT_METRICS and not resource.resource_name:
        return _refused(resource, ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    elif resource.resource_type == CLIENT_METRICS:
        kept = subscriptions(ctx.catalogue).get(resource.resource_name, {})
        rows = [_subscription_row(kept, o, synonyms) for o in _chosen(SUBSCRIPTION_OPTIONS.values(), wanted)]
    elif resource.resource_type == BROKER_LOGGER:
        problem = _logger_problem(ctx, resource.resource_name)
        if problem is not None:
            return _refused(resource, ErrorCode.INVALID_REQUEST, problem)
        rows = [_logger_row(*each) for each in levels().items() if wanted is None or each[0] in wanted]
    else:
        return _refused(resource, ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")
    return DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name, configs=rows
    )


def _chosen(options: Iterable[Option], wanted: set[str] | None) -> Iterable[Option]:
    """The options asked for; internal ones only by name."""
    return (o for o in options if (not _is_internal(o.name) if wanted is None else o.name in wanted))


def _is_internal(name: str) -> bool:
    return name.startswith("internal.") or name in _INTERNAL


def _document(result: DescribeConfigsResult) -> None:
    for row in result.configs:
        row.documentation = MEANINGS.get(row.name)


def _refused(resource: DescribeConfigsResource, code: ErrorCode, message: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _topic_row(config: BrokerConfig, topic: Topic, option: Option, synonyms: bool) -> DescribeConfigsResourceResult:
    below = _below(config, option)
    fallback = as_text(broker_value(option, config))
    if option.name in topic.config.own:
        own = DescribeConfigsSynonym(
            name=option.name, value=as_text(topic.config.own[option.name]), source=TOPIC_SOURCE
        )
        return _row(option, own.value, TOPIC_SOURCE, [own, *below] if synonyms else [], read_only=False)
    source = below[0].source if below else DEFAULT_SOURCE
    return _row(option, fallback, source, below if synonyms else [], read_only=False)


def _group_row(
    config: BrokerConfig, settings: Mapping[str, Setting], option: Option, synonyms: bool
) -> DescribeConfigsResourceResult:
    """A setting of a group: its own, or the broker's. (Kafka: ConfigHelper.createGroupConfigEntry)"""
    layers = _below(config, option)
    if option.name in settings:
        own = DescribeConfigsSynonym(name=option.name, value=printed(settings[option.name]), source=GROUP_SOURCE)
        layers = [own, *layers]
    return _row(option, layers[0].value, layers[0].source, layers if synonyms else [], read_only=False)


def _subscription_row(kept: Mapping[str, str], option: Option, synonyms: bool) -> DescribeConfigsResourceResult:
    value = kept.get(option.name)
    if value is None:
        return _row(option, as_text(option.default), DEFAULT_SOURCE, [], read_only=False)
    own = DescribeConfigsSynonym(name=option.name, value=value, source=SUBSCRIPTION_SOURCE)
    return _row(option, value, SUBSCRIPTION_SOURCE, [own] if synonyms else [], read_only=False)


def _logger_problem(ctx: RequestContext, name: str) -> str | None:
    if not name:
        return "Broker id must not be empty"
    if not name.removeprefix("-").isdigit():
        return f"Broker id must be an integer, but it is: {name}"
    known = map(str, ctx.cluster.nodes)
    return None if name in known else f"Unexpected broker id, expected {ctx.node_id} but received {name}"


def _logger_row(name: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=level, config_source=LOGGER_SOURCE, documentation=None)


def _below(config: BrokerConfig, option: Option) -> list[DescribeConfigsSynonym]:
    """The broker's options a topic or group option falls back to; one without a value is no place to fall back to.

    A setting that only groups have falls back to its own default.
    """
    name = option.synonym or (option.name if option.name in GROUP_OPTIONS else None)
    if name in BROKER_OPTIONS:
        return _layers(config, BROKER_OPTIONS[name])
    if name is None or name in _WITHOUT_DEFAULT:
        return []
    return [DescribeConfigsSynonym(name=name, value=as_text(option.default), source=DEFAULT_SOURCE)]


def _broker_rows(
    config: BrokerConfig, wanted: set[str] | None, synonyms: bool
) -> Iterator[DescribeConfigsResourceResult]:
    """Yield all options of a node; unknown ones only when changed."""
    for option in _chosen(BROKER_OPTIONS.values(), wanted):
        yield _broker_row(option, _layers(config, option), synonyms)
    for name in config.dynamic:
        if name not in BROKER_OPTIONS and (wanted is None or name in wanted):
            yield _unknown_row(name, NODE_SOURCE if name in config.of_nodes else CLUSTER_SOURCE, synonyms)


def _cluster_rows(
    config: BrokerConfig, wanted: set[str] | None, synonyms: bool
) -> Iterator[DescribeConfigsResourceResult]:
    """Yield the options changed for the whole cluster, and no others."""
    for name, value in config.cluster_wide.items():
        if wanted is not None and name not in wanted:
            continue
        if name not in BROKER_OPTIONS:
            yield _unknown_row(name, CLUSTER_SOURCE, synonyms)
            continue
        layer = DescribeConfigsSynonym(name=name, value=as_text(value), source=CLUSTER_SOURCE)
        yield _broker_row(BROKER_OPTIONS[name], [layer], synonyms)


def _broker_row(option: Option, layers: list[DescribeConfigsSynonym], synonyms: bool) -> DescribeConfigsResourceResult:
    value, source = (layers[0].value, layers[0].source) if layers else (None, DEFAULT_SOURCE)
    return _row(option, value, source, layers if synonyms else [], read_only=not option.changeable)


def _unknown_row(name: str, source: int, synonyms: bool) -> DescribeConfigsResourceResult:
    """Return an unknown option without its value, which might be a secret."""
    only = DescribeConfigsSynonym(name=name, value=None, source=source)
    return DescribeConfigsResourceResult(
        name=name,
        value=None,
        read_only=True,
        config_source=source,
        is_sensitive=True,
        synonyms=[only] if synonyms else [],
        documentation=None,
    )


def _layers(config: BrokerConfig, option: Option) -> list[DescribeConfigsSynonym]:
    """Every place that gives the option a value, the one that counts first."""
    layers = []
    for values, source in (
        (config.of_nodes, NODE_SOURCE),
        (config.cluster_wide, CLUSTER_SOURCE),
        (config.given, STATIC_SOURCE),
        (config.defaults, DEFAULT_SOURCE),
    ):
        if values.get(option.name) is not None:
            layers.append(DescribeConfigsSynonym(name=option.name, value=as_text(values[option.name]), source=source))
    return layers


def _row(
    option: Option, value: str | None, source: int, synonyms: list[DescribeConfigsSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=option.name,
        value=value,
        read_only=read_only,
        config_source=source,
        synonyms=synonyms,
        config_type=option.kind,
        is_sensitive=option.kind == PASSWORD,
        documentation=None,
    )
