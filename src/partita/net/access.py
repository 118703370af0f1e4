"""Security of the connections of one client: TLS contexts and the login, shared by all of them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.security.meaning import Security

if TYPE_CHECKING:
    from partita.net.secured import login, tls
    from partita.security.settings import SaslSettings, TlsSettings
else:
    login = later("partita.net.secured.login")
    tls = later("partita.net.secured.tls")


class Access:
    """Made once per client. Raises ConfigError when a file that the options name is of no use."""

    def __init__(self, security: Security) -> None:
        self.security = security
        self.login = None if security.sasl is None else _login(security.sasl)
        self._tls = None if security.tls is None else _tls(security.tls)

    def tls_context(self) -> ssl.SSLContext | None:
        """The context for the next connection; None for plain text."""
        return None if self._tls is None else self._tls.context()

    def close(self) -> None:
        """End the work beside the connections: the renewal of a token."""
        if self.login is not None:
            self.login.close()


def _login(settings: SaslSettings) -> login.Login:
    """Loads what logs in when it is needed: HTTP and hashes take as long to load as the rest of a client."""
    return login.Login(settings)


def _tls(settings: TlsSettings) -> tls.TlsContexts:
    """Loads what reads certificates when it is needed: files and archives are no part of a client in plain text."""
    return tls.TlsContexts(settings)
