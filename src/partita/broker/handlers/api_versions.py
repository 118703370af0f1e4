"""ApiVersions: which APIs we serve, at which versions. (Kafka: ApiVersionsRequest, ApiVersionManager.)"""

from __future__ import annotations

import re

from partita.broker.requests.apis import API_VERSIONS, SERVED, TABLE
from partita.broker.requests.context import RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """From version 3 on the client names its software; a nonsense name is refused."""
    named = (request.client_software_name, request.client_software_version)
    if ctx.version >= 3 and not all(_SOFTWARE.fullmatch(name) for name in named):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    rows = [ApiVersion(api_key=a.key, min_version=a.advertised_min, max_version=a.max_version) for a in TABLE]
    return ApiVersionsResponse(api_keys=rows)


def unsupported_version() -> ApiVersionsResponse:
    """What a client of the future gets, at version 0: the versions of this very API, so that it can ask again."""
    own = SERVED[API_VERSIONS]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=own.key, min_version=own.min_version, max_version=own.max_version)],
    )
