"""The SASL login of a connection: handshake, the messages of the mechanism, the answer to each. (security.md 6 to 12.)

One `Login` belongs to a client and is shared by its connections: it caches the salted password and the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any, Protocol

from partita.errors import AuthenticationError
from partita.net.errors import Disconnected
from partita.net.secured.kerberos import KerberosClient, load_library
from partita.net.secured.tokens import TokenSource
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest
from partita.secret import Secret
from partita.security import oauthbearer, plain
from partita.security.errors import SaslError
from partita.security.scram import ScramClient, salted_password
from partita.security.settings import SaslSettings


class Link(Protocol):
    """One connection to a broker, for a login: its name in messages, the versions served, one request at a time."""

    versions: dict[int, tuple[int, int]]

    @property
    def address(self) -> str:
        """host:port."""
        ...

    async def send(self, message: Any, version: int | None = None) -> Any:
        """Send one request and return its answer; without `version` at the highest one that both sides speak."""
        ...


_HANDSHAKE_VERSION = 1
_MESSAGE_LENGTH_MAX = 300


class Login:
    """Logs connections in. Belongs to one event loop. Raises ConfigError when the mechanism's library is missing."""

    def __init__(self, settings: SaslSettings) -> None:
        self.settings = settings
        self._tokens = TokenSource(settings) if settings.mechanism == "OAUTHBEARER" else None
        self._salted: tuple[tuple[Secret, bytes, int], bytes] | None = None
        if settings.mechanism == "GSSAPI":
            load_library()

    def close(self) -> None:
        """Renew no token any more: the client is closed."""
        if self._tokens is not None:
            self._tokens.close()

    async def log_in(self, connection: Link) -> int:
        """Log in, or renew the login; return the session's lifetime in milliseconds, 0 when it has no limit.

        Raises AuthenticationError when the broker refuses or cannot be trusted, Disconnected when it goes away.
        """
        await self._handshake(connection)
        try:
            if self.settings.mechanism == "PLAIN":
                answer = await self._say(connection, plain.client_message(*self.settings.login))
            elif self._tokens is not None:
                answer = await self._bearer(connection, self._tokens)
            elif self.settings.mechanism == "GSSAPI":
                answer = await self._kerberos(connection)
            else:
                answer = await self._scram(connection)
        except SaslError as error:
            raise AuthenticationError(f"{connection.address}: {error}") from None
        return max(0, answer.session_lifetime_ms)

    async def _handshake(self, connection: Link) -> None:
        mechanism, address = self.settings.mechanism, connection.address
        if not connection.versions.get(SaslAuthenticateRequest.API_KEY):
            raise AuthenticationError(
                f"{address} does not serve SaslAuthenticate: it has no SASL listener, or is older than Kafka 1.0"
            )
        low, high = connection.versions.get(SaslHandshakeRequest.API_KEY, (0, 0))
        if not low <= _HANDSHAKE_VERSION <= high:
            raise AuthenticationError(f"{address} speaks only the SASL handshake of Kafka before 1.0")
        answer = await connection.send(SaslHandshakeRequest(mechanism=mechanism), _HANDSHAKE_VERSION)
        match answer.error_code:
            case ErrorCode.NONE:
                return
            case ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(_printable(name) for name in answer.mechanisms[:20]) or "none"
                raise AuthenticationError(
                    f"{address} does not offer SASL mechanism {mechanism}; it offers {offered}. Set sasl_mechanism"
                )
            case ErrorCode.ILLEGAL_SASL_STATE:
                raise AuthenticationError(
                    f"{address} does not ask for SASL: set security_protocol to PLAINTEXT or SSL (or use its SASL port)"
                )
            case code:
                raise AuthenticationError(f"{address} answered the SASL handshake with error {code}")

    async def _scram(self, connection: Link) -> SaslAuthenticateResponse:
        user, password = self.settings.login
        is_token = self.settings.is_delegation_token
        client = ScramClient(self.settings.mechanism, user, secrets.token_urlsafe(18), is_delegation_token=is_token)
        answer = await self._say(connection, client.first())
        challenge = client.challenged(bytes(answer.auth_bytes))
        salted = await self._salted_password(password, challenge.salt, challenge.iterations)
        answer = await self._say(connection, client.final(challenge, salted))
        client.finish(bytes(answer.auth_bytes))
        return answer

    async def _salted_password(self, password: Secret, salt: bytes, iterations: int) -> bytes:
        """Computed in a thread, since heartbeats share the loop, and kept: reconnecting must not compute it again."""
        made_of = (password, salt, iterations)
        if self._salted is not None and self._salted[0] == made_of:
            return self._salted[1]
        salted = await asyncio.to_thread(salted_password, self.settings.mechanism, *made_of)
        self._salted = (made_of, salted)
        return salted

    async def _bearer(self, connection: Link, tokens: TokenSource) -> SaslAuthenticateResponse:
        answer = await self._say(connection, oauthbearer.client_message(await tokens.token()))
        if not answer.auth_bytes:
            return answer
        reason = oauthbearer.failure(bytes(answer.auth_bytes))
        with contextlib.suppress(AuthenticationError, Disconnected):
            await self._say(connection, b"\x01")
        raise AuthenticationError(f"{connection.address} refused the OAUTHBEARER token: {reason}")

    async def _kerberos(self, connection: Link) -> SaslAuthenticateResponse:
        host = connection.address.rpartition(":")[0].strip("[]")
        client = KerberosClient(self.settings.kerberos_service, host)
        answer = await self._say(connection, await asyncio.to_thread(client.step, None))
        while not client.is_done:
            answer = await self._say(connection, await asyncio.to_thread(client.step, bytes(answer.auth_bytes)))
        return answer

    async def _say(self, connection: Link, message: bytes) -> SaslAuthenticateResponse:
        answer: SaslAuthenticateResponse = await connection.send(SaslAuthenticateRequest(auth_bytes=message))
        if answer.error_code == ErrorCode.NONE:
            return answer
        settings = self.settings
        kind = "delegation token" if settings.is_delegation_token else "user"
        who = f" of {kind} {settings.user!r}" if settings.user else ""
        reason = _printable(answer.error_message or ErrorCode(answer.error_code).name)
        raise AuthenticationError(f"{connection.address} refused the login{who} by {settings.mechanism}: {reason}")


def _printable(text: str) -> str:
    """A broker's text, cut to `_MESSAGE_LENGTH_MAX` and without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[:_MESSAGE_LENGTH_MAX])
