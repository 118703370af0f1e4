"""AlterConfigs: replace all own settings of a resource while running; what is not named goes back to its default.

(Kafka: ConfigAdminManager. Older tools ask this where newer ones ask IncrementalAlterConfigs.)
"""

from __future__ import annotations

from functools import partial

from partita.broker.config import broker_option, parse, parse_topic_settings
from partita.broker.handlers._configs import (
    BROKER,
    GROUP,
    TOPIC,
    change_broker,
    change_group,
    changed_options,
    check_broker_name,
    each_alone,
    group_settings,
    refuse_nulls,
    topic_named,
    unknown_type,
)
from partita.broker.options import Value
from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(ctx: RequestContext, request: AlterConfigsRequest) -> Answer:
    """Replace all settings of each resource; what the request does not name goes back to its default."""
    alter = partial(_alter, ctx, validate_only=request.validate_only)
    response = AlterConfigsResponse(responses=each_alone(request.resources, alter, AlterConfigsResourceResponse))
    return ctx.when_durable(response)


def _alter(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    refuse_nulls([config.name for config in resource.configs if config.value is None])
    if resource.resource_type == TOPIC:
        topic = topic_named(ctx, resource.resource_name)
        of_topic = parse_topic_settings({config.name: config.value for config in resource.configs})
        if not validate_only:
            ctx.catalogue.configure(topic, of_topic)
    elif resource.resource_type == BROKER:
        check_broker_name(ctx, resource.resource_name)
        changes: dict[str, Value] = dict.fromkeys(changed_options(ctx, resource.resource_name))
        for config in resource.configs:
            option = broker_option(config.name)
            changes[config.name] = config.value if option is None else parse(option, config.value)
        change_broker(ctx, resource.resource_name, changes, validate_only=validate_only)
    elif resource.resource_type == GROUP:
        group_settings(ctx, resource.resource_name)
        settings = {config.name: config.value for config in resource.configs}
        change_group(ctx, resource.resource_name, settings, validate_only=validate_only)
    else:
        raise unknown_type(resource.resource_type)
