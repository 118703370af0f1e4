"""SaslHandshake without a login, or after it: refused, and the connection stays. (Kafka: KafkaApis.)

On a SASL listener `partita.broker.checks.gate` answers it.
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API = Served(SaslHandshakeRequest)


def handle(ctx: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse; no mechanism is listed."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
