"""DescribeConfigs: settings of topics and of the broker, with where each value comes from. (Kafka: ConfigHelper.)"""

from __future__ import annotations

from collections.abc import Iterable

from partita.broker.config import BROKER_OPTIONS, TOPIC_OPTIONS, BrokerConfig, as_text, broker_value
from partita.broker.context import RequestContext
from partita.broker.options import Option
from partita.broker.topics import Topic
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER = 2, 4
TOPIC_SOURCE, DYNAMIC_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = 1, 3, 4, 5
_WITHOUT_DEFAULT = frozenset({"log.roll.jitter.ms"})
"""Of the options that only Kafka's brokers have, those it has no default for."""


def handle(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(ctx, resource, request.include_synonyms) for resource in request.resources]
    )


def _describe(ctx: RequestContext, resource: DescribeConfigsResource, synonyms: bool) -> DescribeConfigsResult:
    keys = resource.configuration_keys
    wanted = None if keys is None else set(keys)
    if resource.resource_type == TOPIC:
        topic = ctx.catalogue.get(resource.resource_name)
        if topic is None:
            return _refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {resource.resource_name} not found")
        rows = [_topic_row(ctx.config, topic, o, synonyms) for o in _chosen(TOPIC_OPTIONS.values(), wanted)]
    elif resource.resource_type == BROKER:
        name = resource.resource_name
        if name not in ("", *(str(node_id) for node_id in ctx.cluster.nodes)):
            expected = f"expected {ctx.node.node_id} or empty string, but received {name}"
            return _refused(resource, ErrorCode.INVALID_REQUEST, f"Unexpected broker id, {expected}")
        options = _chosen(BROKER_OPTIONS.values(), wanted)
        rows = [_broker_row(ctx.config, o, synonyms) for o in options if name or o.name in ctx.config.dynamic]
        unknown = (key for key in ctx.config.dynamic if key not in BROKER_OPTIONS and (wanted is None or key in wanted))
        rows += [_unknown_row(key, synonyms) for key in unknown]
    else:
        return _refused(resource, ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")
    return DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name, configs=rows
    )


def _chosen(options: Iterable[Option], wanted: set[str] | None) -> Iterable[Option]:
    """The options asked for; internal ones only by name."""
    return (o for o in options if (not o.name.startswith("internal.") if wanted is None else o.name in wanted))


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


def _below(config: BrokerConfig, option: Option) -> list[DescribeConfigsSynonym]:
    """The broker's options a topic option falls back to; one without a value is no place to fall back to."""
    if option.synonym in BROKER_OPTIONS:
        return [layer for layer in _layers(config, BROKER_OPTIONS[option.synonym]) if layer.value is not None]
    if option.synonym is None or option.synonym in _WITHOUT_DEFAULT:
        return []
    return [DescribeConfigsSynonym(name=option.synonym, value=as_text(option.default), source=DEFAULT_SOURCE)]


def _broker_row(config: BrokerConfig, option: Option, synonyms: bool) -> DescribeConfigsResourceResult:
    layers = _layers(config, option)
    return _row(option, layers[0].value, layers[0].source, layers if synonyms else [], read_only=not option.changeable)


def _unknown_row(name: str, synonyms: bool) -> DescribeConfigsResourceResult:
    """An option nobody knows might be a secret: its value is not told."""
    only = DescribeConfigsSynonym(name=name, value=None, source=DYNAMIC_SOURCE)
    return DescribeConfigsResourceResult(
        name=name,
        value=None,
        read_only=True,
        config_source=DYNAMIC_SOURCE,
        is_sensitive=True,
        synonyms=[only] if synonyms else [],
        documentation=None,
    )


def _layers(config: BrokerConfig, option: Option) -> list[DescribeConfigsSynonym]:
    """Every place that gives the option a value, the one that counts first."""
    layers = []
    places = ((config.dynamic, DYNAMIC_SOURCE), (config.given, STATIC_SOURCE), (config.defaults, DEFAULT_SOURCE))
    for values, source in places:
        if option.name in values:
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
        documentation=None,
    )
