"""SaslAuthenticate where nobody has to log in, or has done so: refused, and the connection stays. (Kafka: KafkaApis.)

On a SASL listener `partita.broker.security.gate` answers it.
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(ctx: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse, in Kafka's words."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
