"""IncrementalAlterConfigs: set, delete, append to, subtract from settings. (Kafka: ConfigAdminManager.)"""

from __future__ import annotations

from functools import partial

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.config import (
    TOPIC_OPTIONS,
    BrokerConfig,
    TopicConfig,
    as_text,
    broker_option,
    broker_value,
    check_elsewhere,
    check_together,
    items_of,
    parse,
    unknown_name,
)
from partita.broker.groups.settings import OPTIONS
from partita.broker.handlers._configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    NeedsOnResources,
    change_broker,
    change_group,
    change_subscription,
    check_broker_name,
    check_logger_node,
    each_alone,
    group_settings,
    refuse_nulls,
    subscription_settings,
    topic_named,
    unknown_type,
)
from partita.broker.handlers._loggers import APPEND, DELETE, SET, SUBTRACT, change_levels
from partita.broker.options import LIST, Option, Value
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from partita.security.rights.operations import Operation

API = Served(IncrementalAlterConfigsRequest, rights=(NeedsOnResources(Operation.ALTER_CONFIGS, "responses"),))

VALUE_BYTES_MAX = 32_767
"""The longest text that every version of DescribeConfigs can carry."""


def handle(ctx: RequestContext, request: IncrementalAlterConfigsRequest) -> Steps[Answer]:
    """Change the named settings of each resource and leave the others alone."""
    alter = partial(_alter, ctx, validate_only=request.validate_only)
    results = yield from each_alone(request.resources, alter, AlterConfigsResourceResponse)
    return ctx.when_durable(IncrementalAlterConfigsResponse(responses=results))


def _alter(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    refuse_nulls([c.name for c in resource.configs if c.value is None and c.config_operation != DELETE])
    if resource.resource_type == TOPIC:
        topic = topic_named(ctx, resource.resource_name)
        settings = dict(topic.config.own)
        for config in resource.configs:
            if config.config_operation == DELETE:
                settings.pop(config.name, None)
                continue
            option = TOPIC_OPTIONS.get(config.name)
            if option is None:
                raise unknown_name(config.name, TOPIC_OPTIONS)
            current = settings.get(option.name, broker_value(option, ctx.config))
            settings[option.name] = _new_value(option, config, current)
        check_together(TopicConfig(ctx.config, settings))
        if not validate_only:
            ctx.catalogue.configure(topic, settings)
    elif resource.resource_type == BROKER:
        check_broker_name(ctx, resource.resource_name)
        changes = {config.name: _of_broker(ctx.config, config) for config in resource.configs}
        change_broker(ctx, resource.resource_name, changes, validate_only=validate_only)
    elif resource.resource_type == GROUP:
        _alter_group(ctx, resource, validate_only=validate_only)
    elif resource.resource_type == CLIENT_METRICS:
        _alter_subscription(ctx, resource, validate_only=validate_only)
    elif resource.resource_type == BROKER_LOGGER:
        check_logger_node(ctx, resource.resource_name)
        change_levels(resource.configs, validate_only=validate_only)
    else:
        raise unknown_type(resource.resource_type)


def _alter_group(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    settings: dict[str, str | None] = {**group_settings(ctx, resource.resource_name)}
    for config in resource.configs:
        if config.config_operation == DELETE:
            settings.pop(config.name, None)
        elif config.config_operation == SET or config.name not in OPTIONS:
            settings[config.name] = config.value
        else:
            _new_value(OPTIONS[config.name], config, None)
    change_group(ctx, resource.resource_name, settings, validate_only=validate_only)


def _alter_subscription(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    settings = subscription_settings(ctx, resource.resource_name)
    for config in resource.configs:
        if config.config_operation == DELETE:
            settings.pop(config.name, None)
        elif config.config_operation == SET:
            settings[config.name] = config.value
        else:
            verb = "APPEND" if config.config_operation == APPEND else "SUBTRACT"
            message = f"Can't {verb} to key {config.name} because its type is not LIST."
            raise Refused(ErrorCode.INVALID_CONFIG, message)
    change_subscription(ctx, resource.resource_name, settings, validate_only=validate_only)


def _of_broker(settings: BrokerConfig, config: AlterableConfig) -> Value:
    """Return the new value of a broker option; None restores its value of the start."""
    if config.config_operation == DELETE:
        return None
    option = broker_option(config.name)
    if option is not None:
        return _new_value(option, config, settings.with_prefix("", option.name))
    if config.config_operation == SET:
        check_elsewhere(config.name, config.value)
        return config.value
    raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown config name: {config.name}")


def _new_value(option: Option, config: AlterableConfig, current: Value) -> Value:
    """Return the option's new value after SET, APPEND or SUBTRACT."""
    operation = config.config_operation
    if operation == SET:
        return parse(option, config.value)
    if operation not in (APPEND, SUBTRACT):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown config operation {operation}")
    if option.kind != LIST:
        verb = "append" if operation == APPEND else "subtract"
        message = f"Config value {verb} is not allowed for config key: {config.name}"
        raise Refused(ErrorCode.INVALID_CONFIG, message)
    assert isinstance(current, tuple), "a list option holds a tuple"
    text = config.value or ""
    if operation == SUBTRACT:
        gone = frozenset(items_of(text))
        return tuple(item for item in current if item not in gone)
    # What follows the items that are there is an item, also an empty text; commas at the end hold none.
    given = parse(option, (text.rstrip(", ") if text.strip() else "," if option.choices else text))
    assert isinstance(given, tuple), "a list option parses to a tuple"
    longer = tuple(dict.fromkeys((*current, *given)))
    if len((as_text(longer) or "").encode()) > VALUE_BYTES_MAX:
        message = f"{config.name} would be longer than {VALUE_BYTES_MAX} bytes, which no client could be told"
        raise Refused(ErrorCode.INVALID_CONFIG, message)
    return longer
