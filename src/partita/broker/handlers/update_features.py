"""UpdateFeatures: put levels of features in force, all that a request names or none. (Kafka: FeatureControlManager)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.features import METADATA_VERSION, Feature, features, set_levels
from partita.broker.api.needs import Needs
from partita.broker.api.served import CHANGES_MAX, Errors, Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    UpdateFeaturesRequest,
    rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),),
    elements_max=CHANGES_MAX,
    errors=Errors(has_items=False, says_why=True),
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_ONE_ERROR_FROM = 2


def handle(ctx: RequestContext, request: UpdateFeaturesRequest) -> Steps[Answer]:
    """The first update that cannot be ends the request. A feature that is named twice gets its last level."""
    found = {feature.name: feature for feature in features(ctx.config, ctx.catalogue)}
    controller = ctx.cluster.controller or ctx.node
    problem = None
    for update in request.feature_updates:
        yield None
        problem = problem or _problem(found.get(update.feature), update, controller.node_id)
    if problem is not None:
        message = f"The update failed for all features since the following feature had an error: {problem}"
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=message)
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    changed = {name: level for name, level in levels.items() if level != found[name].level}
    if changed and not request.validate_only:
        set_levels(ctx.catalogue, changed)
    each = [UpdatableFeatureResult(feature=name, error_message=ErrorCode.NONE.name) for name in levels]
    results = each if ctx.version < _ONE_ERROR_FROM else []
    return ctx.when_durable(UpdateFeaturesResponse(error_message=None, results=results))


def _problem(feature: Feature | None, update: FeatureUpdateKey, node_id: int) -> str | None:
    """Why the level cannot be put in force, in Kafka's words."""
    level, why = update.max_version_level, None
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        why = "The controller does not support the given upgrade type."
    elif level < 0:
        why = "A feature version cannot be less than 0."
    elif feature is None and level == 0:
        why = f"Feature {update.feature} not found."
    elif feature is None:
        why = f"Local controller {node_id} does not support this feature."
    elif not feature.lowest <= level <= feature.highest:
        why = f"Local controller {node_id} only supports versions {feature.lowest}-{feature.highest}"
    elif level < feature.level and update.upgrade_type == UPGRADE:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    elif level > feature.level and update.upgrade_type != UPGRADE:
        why = "Can't downgrade to a newer version."
    elif level < feature.level and feature.name == METADATA_VERSION:
        return _kept_metadata(feature, update)
    return None if why is None else f"Invalid update version {level} for feature {update.feature}. {why}"


def _kept_metadata(feature: Feature, update: FeatureUpdateKey) -> str:
    why = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if update.upgrade_type == SAFE_DOWNGRADE
        else "Unsafe metadata downgrade is not supported in this version."
    )
    return f"Unsupported {feature.name} downgrade from {feature.level} to {update.max_version_level}. {why}"
