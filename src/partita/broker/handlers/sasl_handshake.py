"""SaslHandshake where nobody has to log in, or has done so: refused, and the connection stays. (Kafka: KafkaApis.)

On a SASL listener `partita.broker.security.gate` answers it.
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(ctx: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse; no mechanism is told."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
