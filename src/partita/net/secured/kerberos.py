"""SASL GSSAPI, a client's side: Kerberos 5 by the system's library, through the package `gssapi`. (RFC 4752)

The ticket is the user's affair: kinit, a keytab or a credential cache, as for every Kerberos program. No security
layer is agreed on, as with Kafka's own clients; TLS protects the connection.
"""

from __future__ import annotations

import importlib
from typing import Any

from partita.errors import AuthenticationError
from partita.options import ConfigError

_NO_LAYER = b"\x01\x00\x00\x00"
"""No integrity, no encryption by GSSAPI; largest wrapped message 0."""


def load_library() -> Any:
    """The package `gssapi`. Raises ConfigError when it is not installed or finds no Kerberos library."""
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"sasl_mechanism GSSAPI needs: pip install 'partita[gssapi]', and the system's Kerberos library ({error})"
        ) from None


class KerberosClient:
    """One login at one broker. Each step may ask the key distribution centre, so it belongs in a thread."""

    def __init__(self, service: str, host: str) -> None:
        self._library = load_library()
        self._who = f"{service}@{host}"
        self._is_done = False
        target = self._library.Name(self._who, self._library.NameType.hostbased_service)
        self._context = self._library.SecurityContext(name=target, usage="initiate")

    @property
    def is_done(self) -> bool:
        """Whether the last message has been made; the broker's answer to it carries nothing more."""
        return self._is_done

    def step(self, answer: bytes | None) -> bytes:
        """The next message for the broker's last one; None begins. Raises AuthenticationError."""
        try:
            if self._context.complete:
                return self._security_layer(answer or b"")
            return self._context.step(answer) or b""
        except self._library.exceptions.GSSError as error:
            raise AuthenticationError(
                f"Kerberos gave no way to {self._who}: {error}. Is there a ticket (kinit), and is "
                "sasl_kerberos_service_name the first part of the broker's principal?"
            ) from None

    def _security_layer(self, offered: bytes) -> bytes:
        layers = self._context.unwrap(offered).message
        if not layers or not layers[0] & 1:
            raise AuthenticationError(f"{self._who} insists on a security layer of GSSAPI, which Kafka never has")
        self._is_done = True
        whole = _NO_LAYER + str(self._context.initiator_name).encode()
        return bytes(self._context.wrap(whole, False).message)
