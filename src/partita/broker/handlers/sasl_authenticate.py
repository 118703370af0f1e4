"""SaslAuthenticate without a login, or after it: refused, and the connection stays. (Kafka: KafkaApis.)

On a SASL listener `partita.broker.checks.gate` answers it.
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.served import Errors, Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

API = Served(SaslAuthenticateRequest, errors=Errors(fields={"error_message": ""}))


def handle(ctx: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse, in Kafka's words."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
