"""AlterConfigs: replace all own settings of a resource while running; unnamed ones go back to their defaults.

(Kafka: ConfigAdminManager. Older tools send this where newer ones send IncrementalAlterConfigs.)
"""

from __future__ import annotations

from functools import partial

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.config import (
    TopicConfig,
    broker_option,
    check_elsewhere,
    check_together,
    parse,
    parse_topic_settings,
)
from partita.broker.handlers._configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    NeedsOnResources,
    change_broker,
    change_group,
    change_subscription,
    changed_options,
    check_broker_name,
    each_alone,
    group_settings,
    refuse_nulls,
    subscription_settings,
    topic_named,
    unknown_type,
)
from partita.broker.options import Value
from partita.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from partita.security.rights.operations import Operation

API = Served(AlterConfigsRequest, rights=(NeedsOnResources(Operation.ALTER_CONFIGS, "responses"),))


def handle(ctx: RequestContext, request: AlterConfigsRequest) -> Steps[Answer]:
    """Replace all settings of each resource; those that the request does not name go back to their defaults."""
    alter = partial(_alter, ctx, validate_only=request.validate_only)
    response = AlterConfigsResponse(
        responses=(yield from each_alone(request.resources, alter, AlterConfigsResourceResponse))
    )
    return ctx.when_durable(response)


def _alter(ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    refuse_nulls([config.name for config in resource.configs if config.value is None])
    if resource.resource_type == TOPIC:
        topic = topic_named(ctx, resource.resource_name)
        of_topic = parse_topic_settings({config.name: config.value for config in resource.configs})
        check_together(TopicConfig(ctx.config, of_topic))
        if not validate_only:
            ctx.catalogue.configure(topic, of_topic)
    elif resource.resource_type == BROKER:
        check_broker_name(ctx, resource.resource_name)
        changes: dict[str, Value] = dict.fromkeys(changed_options(ctx, resource.resource_name))
        for config in resource.configs:
            option = broker_option(config.name)
            if option is None:
                check_elsewhere(config.name, config.value)
            changes[config.name] = config.value if option is None else parse(option, config.value)
        change_broker(ctx, resource.resource_name, changes, validate_only=validate_only)
    elif resource.resource_type == GROUP:
        group_settings(ctx, resource.resource_name)
        settings = {config.name: config.value for config in resource.configs}
        change_group(ctx, resource.resource_name, settings, validate_only=validate_only)
    elif resource.resource_type == CLIENT_METRICS:
        subscription_settings(ctx, resource.resource_name)
        given = {config.name: config.value for config in resource.configs}
        change_subscription(ctx, resource.resource_name, given, validate_only=validate_only)
    else:
        raise unknown_type(resource.resource_type)
