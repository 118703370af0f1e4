"""IncrementalAlterConfigs: set, delete, append to, subtract from settings while running. (Kafka: ConfigAdminManager.)

Topic settings change at once; of the broker's only those that Kafka can change while running.
"""

from __future__ import annotations

from collections.abc import Mapping

from partita.broker.config import BROKER_OPTIONS, TOPIC_OPTIONS, ConfigError, broker_value, parse, unknown_name
from partita.broker.context import RequestContext
from partita.broker.options import LIST, Option, Value
from partita.broker.topic_admin import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def handle(ctx: RequestContext, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Each resource succeeds or fails alone and as a whole."""
    responses = []
    for resource in request.resources:
        code, message = ErrorCode.NONE, None
        try:
            _alter(ctx, resource, validate_only=request.validate_only)
        except Refused as refused:
            code, message = refused.code, str(refused)
        except ConfigError as error:
            code, message = ErrorCode.INVALID_CONFIG, str(error)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


def _alter(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if resource.resource_type == TOPIC:
        topic = ctx.catalogue.get(resource.resource_name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {resource.resource_name} not found")
        settings = dict(topic.config.own)
        for config in resource.configs:
            option = _option(config.name, TOPIC_OPTIONS)
            current = settings.get(option.name, broker_value(option, ctx.config))
            _put(settings, option, _new_value(option, config, current))
        if not validate_only:
            ctx.catalogue.configure(topic, settings)
    elif resource.resource_type == BROKER:
        _alter_broker(ctx, resource, validate_only=validate_only)
    else:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")


def _alter_broker(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    changes: dict[str, Value] = {}
    for config in resource.configs:
        option = _option(config.name, BROKER_OPTIONS)
        if not option.changeable:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {option.name}")
        changes[option.name] = _new_value(option, config, ctx.config.get(option.name))
    if not validate_only:
        for name, value in changes.items():
            ctx.catalogue.configure_broker(name, value)


def _option(name: str, options: Mapping[str, Option]) -> Option:
    option = options.get(name)
    if option is None:
        raise unknown_name(name, options)
    return option


def _put(settings: dict[str, Value], option: Option, value: Value) -> None:
    if value is None:
        settings.pop(option.name, None)
    else:
        settings[option.name] = value


def _new_value(option: Option, config: AlterableConfig, current: Value) -> Value:
    """What the option becomes; None gives it back its default."""
    operation = config.config_operation
    if operation == DELETE:
        return None
    if config.value is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}")
    if operation == SET:
        return parse(option, config.value)
    if operation not in (APPEND, SUBTRACT):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown config operation {operation}")
    if option.kind != LIST:
        verb = "append" if operation == APPEND else "subtract"
        raise ConfigError(f"Config value {verb} is not allowed for config key: {config.name}")
    given = parse(option, config.value)
    assert isinstance(given, tuple), "a list option parses to a tuple"
    assert isinstance(current, tuple), "a list option holds a tuple"
    if operation == SUBTRACT:
        return tuple(item for item in current if item not in given)
    return current + tuple(item for item in given if item not in current)
