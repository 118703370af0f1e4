"""ApiVersions: which APIs we serve, at which versions. (Kafka: ApiVersionsRequest, ApiVersionManager.)"""

from __future__ import annotations

import re
from functools import cache

from partita.broker.api.apis import API_VERSIONS, SERVED
from partita.broker.api.context import RequestContext
from partita.broker.api.features import features, features_epoch
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

API = Served(ApiVersionsRequest)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FEATURES_FROM, _ZERO_BASED_FEATURES_FROM, _TARGET_FROM = 3, 4, 5
_NO_NODE = -1
_SOFTWARE_CHARACTERS_MAX = 256


def handle(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """From version 3 on the client names its software, from 5 on the broker it means; nonsense is refused."""
    named = (request.client_software_name, request.client_software_version)
    if ctx.version >= 3 and not all(_SOFTWARE.fullmatch(name) for name in named):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if ctx.version >= 3:
        ctx.connection.software = (named[0][:_SOFTWARE_CHARACTERS_MAX], named[1][:_SOFTWARE_CHARACTERS_MAX])
    if ctx.version >= _TARGET_FROM and (error := _target_error(ctx, request)):
        return ApiVersionsResponse(error_code=error)
    response = ApiVersionsResponse(api_keys=[_row(a.key, a.advertised_min, a.max_version) for a in SERVED.values()])
    if ctx.version >= _FEATURES_FROM:
        _tell_features(ctx, response)
    return response


@cache
def _row(key: int, lowest: int, highest: int) -> ApiVersion:
    """One row. All answers share it: every client asks on every connection, and making its rows is most of the work."""
    return ApiVersion(api_key=key, min_version=lowest, max_version=highest)


def _target_error(ctx: RequestContext, request: ApiVersionsRequest) -> ErrorCode:
    """A client that means another cluster or node has old metadata, or an address has moved (KIP-1242)."""
    if (request.cluster_id is None) != (request.node_id == _NO_NODE):
        return ErrorCode.INVALID_REQUEST
    meant, this = (request.cluster_id, request.node_id), (ctx.catalogue.cluster_id, ctx.node_id)
    return ErrorCode.NONE if request.cluster_id is None or meant == this else ErrorCode.REBOOTSTRAP_REQUIRED


def _tell_features(ctx: RequestContext, response: ApiVersionsResponse) -> None:
    """Add the features in force by level, without level 0; and the supported ones, without a lowest level of 0 for
    clients that do not know it."""
    found = features(ctx.config, ctx.catalogue)
    response.finalized_features_epoch = features_epoch(ctx.catalogue)
    response.supported_features = [
        SupportedFeatureKey(name=f.name, min_version=f.lowest, max_version=f.highest)
        for f in found
        if f.lowest or ctx.version >= _ZERO_BASED_FEATURES_FROM
    ]
    response.finalized_features = [
        FinalizedFeatureKey(name=f.name, max_version_level=f.level, min_version_level=f.level) for f in found if f.level
    ]


def unsupported_version() -> ApiVersionsResponse:
    """Return version 0 of the answer for a client of the future: this API's versions, so that it can ask again."""
    own = SERVED[API_VERSIONS]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[_row(own.key, own.min_version, own.max_version)],
    )
