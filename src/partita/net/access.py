"""How the connections of one client are made trustworthy: TLS contexts and the login, shared by all of them."""

from __future__ import annotations

import ssl

from partita.net.login import Login
from partita.net.tls import TlsContexts
from partita.security.settings import Security


class Access:
    """Made once per client. Raises ConfigError when a file that the options name is of no use."""

    def __init__(self, security: Security) -> None:
        self.security = security
        self.login = None if security.sasl is None else Login(security.sasl)
        self._tls = None if security.tls is None else TlsContexts(security.tls)

    def tls_context(self) -> ssl.SSLContext | None:
        """The context for the next connection; None for plain text."""
        return None if self._tls is None else self._tls.context()

    def close(self) -> None:
        """End what runs beside the connections: the renewal of a token."""
        if self.login is not None:
            self.login.close()
