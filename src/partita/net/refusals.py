"""Why a broker cannot be reached securely, in words that name the cure. (security.md 19.)

A certain cause is raised as `TlsError` or `AuthenticationError`. A failure that a restarting broker could also have
caused is `Suspected`: retriable, and reported after it has happened several times in a row.
"""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING

from partita.errors import AuthenticationError, KafkaError, TlsError
from partita.net.errors import Disconnected

if TYPE_CHECKING:
    from datetime import datetime

SUSPICIONS_MAX = 3
_TLS_ALERT = b"\x15\x03"
_PEER_LOOK_S = 3.0
_EXPIRED, _HOST_MISMATCH, _IP_MISMATCH = 10, 62, 64


class Suspected(Disconnected):
    """A connection ended in a way that wrong security options cause; `explanation` says which."""

    def __init__(self, message: str, explanation: AuthenticationError) -> None:
        super().__init__(message)
        self.explanation = explanation


def is_tls_alert(head: bytes) -> bool:
    """True if a plain request was answered by a TLS alert."""
    return head.startswith(_TLS_ALERT)


def speaks_tls(address: str, protocol: str) -> TlsError:
    """The broker answered plain text with a TLS alert."""
    wanted = "SASL_SSL" if protocol.startswith("SASL") else "SSL or SASL_SSL"
    return TlsError(f"{address} speaks TLS, and security_protocol is {protocol}: set it to {wanted}")


def speaks_text(head: bytes) -> bool:
    """True if an answer begins with letters, as those of web, mail and SSH servers do; an answer of Kafka cannot."""
    return len(head) >= 4 and head[:4].isascii() and head[:4].decode().isprintable()


def no_broker(address: str, head: bytes) -> Disconnected:
    """The error for an answer in another protocol."""
    begin = head.split(b"\r")[0].decode("ascii", "replace")
    return Disconnected(f"{address} is no Kafka broker: what it answers begins with {begin!r}")


def closed_before_answer(address: str, protocol: str, cause: Exception | None) -> KafkaError:
    """The broker closed a connection that was never answered a request."""
    if isinstance(cause, ssl.SSLError):
        reason = (cause.reason or "alert").lower().replace("_", " ")
        reason = reason.partition("alert ")[2] or reason
        return TlsError(
            f"{address} refused our certificate ({reason}): set ssl_keystore_location, or ssl_certificate_location"
        )
    message = f"{address} closed the connection before it answered"
    if protocol.endswith("SSL"):
        text = f"{address} closed the connection right after the TLS handshake: it may require a client certificate"
        return Suspected(message, TlsError(f"{text} (set ssl_keystore_location, or ssl_certificate_location)"))
    text = f"{address} closed the connection without an answer: it may expect TLS"
    text += "" if protocol.startswith("SASL") else " or SASL"
    return Suspected(message, TlsError(f"{text}, while security_protocol is {protocol}"))


def closed_after_first_request(address: str, protocol: str) -> AuthenticationError:
    """The broker answered ApiVersions and closed the connection at the first other request."""
    return AuthenticationError(
        f"{address} closed the connection after our first request: it may require SASL, "
        f"while security_protocol is {protocol}"
    )


def handshake_failed(host: str, port: int, protocol: str, error: Exception) -> KafkaError:
    """The TLS handshake failed. Blocks up to some seconds for a look at the peer's certificate: call it in a thread."""
    address = f"{host}:{port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(_untrusted(host, port, error))
    reason = getattr(error, "reason", None) or ""
    if "ALERT" in reason:
        if "PROTOCOL_VERSION" in reason:
            return TlsError(f"{address} speaks none of the TLS versions in ssl_enabled_protocols")
        return closed_before_answer(address, protocol, error)
    text = f"{address} does not speak TLS, and security_protocol is {protocol}: is this the port for "
    text += "SASL_PLAINTEXT or PLAINTEXT?"
    if reason in ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return TlsError(text)
    return Suspected(f"{address} ended the TLS handshake: {error}", TlsError(text))


def _untrusted(host: str, port: int, error: ssl.SSLCertVerificationError) -> str:
    address = f"{host}:{port}"
    names, issuer, ended = _look_at(host, port)
    if error.verify_code == _EXPIRED:
        when = f" on {ended:%Y-%m-%d}" if ended else ""
        now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        return (
            f"the certificate of {address} ended{when} (now is {now} UTC): "
            "the broker needs a new one, or this machine's clock is wrong"
        )
    if error.verify_code in (_HOST_MISMATCH, _IP_MISMATCH) or "match" in (error.verify_message or "").lower():
        shown = f" for {', '.join(names)}" if names else " for another name"
        return (
            f"{address} shows a certificate{shown}: connect by one of these names, "
            "or have the broker advertise one of them"
        )
    signer = f"{issuer!r}, which is" if issuer else "an authority that is"
    return (
        f"the certificate of {address} is signed by {signer} none of the trusted authorities "
        f"({error.verify_message}). Name its PEM file in ssl_ca_location"
    )


def _look_at(host: str, port: int) -> tuple[list[str], str, datetime | None]:
    """Names, issuer and end of the peer's certificate, unverified; empty where they cannot be had."""
    try:
        from cryptography import x509

        pem = ssl.get_server_certificate((host, port), timeout=_PEER_LOOK_S)
        certificate = x509.load_pem_x509_certificate(pem.encode())
        try:
            extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = [str(name.value) for name in extension]
        except x509.ExtensionNotFound:
            names = []
        return names[:10], certificate.issuer.rfc4514_string(), certificate.not_valid_after_utc
    except (ImportError, OSError, ValueError):
        return [], "", None
