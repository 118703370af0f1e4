"""In front of a SASL listener's dispatcher: nothing is served before a client has logged in. (security.md 6 and 12.)

Each connection gets a session of its own at its first frame. Once the login is done, and lasts as long as the
connection, the dispatcher takes the session's place, so that requests cost nothing more. The rules are in
`partita.security.sasl_server`; here are the frames, the delay of refusals and the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from struct import Struct

from partita.broker.api.apis import API_VERSIONS, SERVED
from partita.broker.security.guards import SaslListener
from partita.broker.security.login_log import LoginLog
from partita.broker.wire.contract import Answerer, Chunks, ConnectionHandle, Parked
from partita.broker.wire.memo import Recall
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import REQUEST_BYTES_MIN, encode_response, read_request_header
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from partita.protocol.primitives import Buffer, MalformedRequest
from partita.security.errors import SaslError
from partita.security.principals import USER, KafkaPrincipal
from partita.security.sasl_server import (
    OAUTHBEARER,
    Answer,
    BearerServer,
    Mechanism,
    Said,
    State,
    Verb,
    lifetime_ms,
    verb,
)

RENEWED_AT_MOST_EVERY_SECONDS = 1.0
RENEWED_TOO_OFTEN_MAX = 10
_LENGTH = Struct(">i")
_SAID = {
    API_VERSIONS: Said.VERSIONS,
    SaslHandshakeRequest.API_KEY: Said.HANDSHAKE,
    SaslAuthenticateRequest.API_KEY: Said.AUTHENTICATE,
}
_ALREADY_LOGGED_IN = "SaslAuthenticate request received after successful authentication"


class SaslGate:
    """Answers the first frame of each connection, by giving it a session."""

    frame_bytes_min = REQUEST_BYTES_MIN

    def __init__(self, inner: Answerer, listener: SaslListener, loop: asyncio.AbstractEventLoop, log: LoginLog) -> None:
        self.inner = inner
        self.memo = inner.memo
        self.listener = listener
        self.loop = loop
        self.log = log
        self.frame_bytes_max = listener.receive_bytes_max

    def dispatch(self, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        """Let a new session answer, this frame and all later ones. Raises MalformedRequest."""
        session = SaslSession(self, connection)
        connection.answer_with(session)
        return session.dispatch(connection, frame)

    def complain(self, client_host: str, reason: str) -> None:
        """Log why a connection is closed; at a limited rate."""
        self.inner.complain(client_host, reason)


class SaslSession:
    """One connection's way to its login, and to the next one when re-authentication is on."""

    def __init__(self, gate: SaslGate, connection: ConnectionHandle) -> None:
        self._gate = gate
        self._inner = gate.inner
        self.memo = gate.memo
        self.frame_bytes_max = gate.frame_bytes_max
        self.frame_bytes_min = gate.frame_bytes_min
        self._connection = connection
        self._state = State.START
        self._mechanism: Mechanism | None = None
        self._mechanism_name = ""
        self._is_raw = False
        """Tokens come without headers, after a handshake of version 0."""
        self._is_renewal = False
        self._logged_in_at = float("-inf")
        self._renewed_too_often = 0
        self._ends_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def complain(self, client_host: str, reason: str) -> None:
        """Log why a connection is closed; at a limited rate."""
        self._inner.complain(client_host, reason)

    def dispatch(self, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        """Answer one frame. Raises MalformedRequest when the connection has to be closed."""
        if self._is_raw and self._state is State.HANDSHAKEN:
            return self._step(bytes(frame), self._bare)
        if self._has_ended() and bytes(frame[:2]) != _HANDSHAKE_KEY:
            raise MalformedRequest("the login has ended and was not renewed")
        api_key, version, correlation_id, _, reader = read_request_header(frame)
        said = _SAID.get(api_key, Said.OTHER)
        what = verb(self._state, said)
        if what is Verb.SERVE:
            return self._inner.dispatch(connection, frame)
        if what is Verb.TELL:
            return self._tell_versions(connection, frame)
        if what is Verb.CLOSE:
            raise MalformedRequest(f"request {api_key} came {self._where()}")
        api = SERVED[api_key]
        if not api.min_version <= version <= api.max_version:
            raise MalformedRequest(f"version {version} of request {api_key} is not served")
        reader.allow(api.elements_max)
        request = api.request.read(reader, version)

        def encode(answer: SaslHandshakeResponse | SaslAuthenticateResponse) -> Chunks:
            return encode_response(api_key, version, correlation_id, answer)

        if isinstance(request, SaslHandshakeRequest):
            return self._handshake(what, request.mechanism, version, encode)
        assert isinstance(request, SaslAuthenticateRequest), "no other API is read here"
        if what is Verb.DENY:
            denied = SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_ALREADY_LOGGED_IN)
            return encode(denied)
        return self._step(bytes(request.auth_bytes), lambda *said: encode(_as_response(*said)))

    def _has_ended(self) -> bool:
        return self._ends_at is not None and self._state is State.DONE and self._gate.loop.time() >= self._ends_at

    # -- before the login -----------------------------------------------------------------------------------------

    def _tell_versions(self, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        """The same table as after the login; a client that was refused it may ask again."""
        answer = self._inner.dispatch(connection, frame)
        if isinstance(answer, list) and b"".join(answer)[8:10] == b"\0\0":  # length, correlation id, error code
            self._state = State.VERSIONED
        return answer

    def _handshake(
        self, what: Verb, mechanism: str, version: int, encode: Callable[[SaslHandshakeResponse], Chunks]
    ) -> Chunks | Parked:
        refused = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        offered = self._gate.listener.mechanisms
        if what is Verb.DENY_AND_CLOSE:
            return self._close_with(encode(refused), 0)
        if what is Verb.RENEW:
            if self._gate.loop.time() - self._logged_in_at < RENEWED_AT_MOST_EVERY_SECONDS:
                self._renewed_too_often += 1
                if self._renewed_too_often >= RENEWED_TOO_OFTEN_MAX:
                    return self._close_with(encode(refused), 0)
                return encode(refused)
            self._is_renewal = True
            if mechanism != self._mechanism_name and mechanism in offered:
                self._gate.log.failed(
                    self._connection, self._gate.listener.listener.name, mechanism, self._connection.principal.name,
                    f"a login by {self._mechanism_name} cannot be renewed by another mechanism",
                )  # fmt: skip
                self._state = State.DOOMED
                return encode(SaslHandshakeResponse(mechanisms=list(offered)))
        if mechanism not in offered:
            answer = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(offered))
            return self._refuse(encode(answer), mechanism, "", "the mechanism is not enabled")
        self._mechanism_name = mechanism
        self._mechanism = self._gate.listener.mechanism(mechanism)
        self._is_raw = version == 0
        self.frame_bytes_min = 0 if self._is_raw else self._gate.frame_bytes_min
        self._state = State.HANDSHAKEN
        return encode(SaslHandshakeResponse(mechanisms=list(offered)))

    # -- the mechanism's messages ---------------------------------------------------------------------------------

    def _step(self, message: bytes, encode: Encode) -> Chunks | Parked:
        """Let the mechanism answer, once the keys are there that it needs."""
        tokens = self._gate.listener.tokens
        waiting = tokens.prepare(self._gate.loop) if tokens and self._mechanism_name == OAUTHBEARER else None
        if waiting is None:
            return self._answer(message, encode)
        parked = Parked(holds_back=True)

        def go_on(_: object) -> None:
            outcome = self._answer(message, encode)
            if isinstance(outcome, Parked):
                parked.closes = True
                outcome.on_done = lambda: parked.finish(outcome.chunks)
            else:
                parked.finish(outcome)

        waiting.add_done_callback(go_on)
        return parked

    def _answer(self, message: bytes, encode: Encode) -> Chunks | Parked:
        mechanism = self._mechanism
        assert mechanism is not None, "chosen by the handshake"
        try:
            answer = mechanism.step(message)
            if answer.user is not None:
                return encode(answer, self._log_in(answer.user, answer), None)
            return encode(answer, 0, None)
        except SaslError as error:
            text = str(error)
            if self._is_renewal:
                text = text.replace("failed during authentication", "failed during re-authentication")
            reason = mechanism.reason if isinstance(mechanism, BearerServer) and mechanism.reason else text
            chunks = [] if self._is_raw else encode(Answer(b""), 0, text)
            return self._refuse(chunks, self._mechanism_name, mechanism.user, reason)

    def _log_in(self, user: str, answer: Answer) -> int:
        """The login is done; return how long it lasts in milliseconds. Raises SaslError for another user's renewal."""
        connection, gate = self._connection, self._gate
        principal = KafkaPrincipal(USER, user)
        if self._is_renewal and principal != connection.principal:
            old = connection.principal
            raise SaslError(
                f"Cannot change principals during re-authentication from {old.type}.{old.name}: "
                f"{principal.type}.{principal.name}"
            )
        self._mechanism = None
        self._state = State.DONE
        self._is_raw = False
        self.frame_bytes_min = gate.frame_bytes_min
        self.frame_bytes_max = self._inner.frame_bytes_max
        self._logged_in_at = gate.loop.time()
        connection.identify(principal, is_lent=answer.is_lent)
        gate.log.logged_in(connection, gate.listener.listener.name, self._mechanism_name)
        lasts_ms = lifetime_ms(gate.listener.longest_ms[self._mechanism_name], answer.ends_s, time.time())
        if not lasts_ms:
            connection.answer_with(self._inner)
        else:
            self._arm(lasts_ms)
        return lasts_ms

    def _arm(self, lasts_ms: int) -> None:
        """The login ends in so many milliseconds; then no frame is answered from memory either."""
        loop = self._gate.loop
        if self._timer is None:
            self._connection.on_close(self._disarm)
        else:
            self._timer.cancel()
        self._ends_at = loop.time() + lasts_ms / 1000
        self._timer = loop.call_at(self._ends_at, self._end)

    def _end(self) -> None:
        self._connection.recall = Recall(self.memo, _ALWAYS)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # -- refusals -------------------------------------------------------------------------------------------------

    def _refuse(self, chunks: Chunks, mechanism: str, user: str, reason: str) -> Parked:
        """Log the failure; answer and close after the delay, which grows with the failures of an address."""
        gate = self._gate
        delay = gate.log.failed(self._connection, gate.listener.listener.name, mechanism, user, reason)
        return self._close_with(chunks, delay)

    def _close_with(self, chunks: Chunks, delay: float) -> Parked:
        self._state = State.DOOMED
        parked = Parked(holds_back=True, closes=True)
        self._gate.loop.call_later(delay, parked.finish, chunks)
        return parked

    def _bare(self, answer: Answer, lasts_ms: int, error: str | None) -> Chunks:
        """An answer without a header."""
        return [_LENGTH.pack(len(answer.message)), answer.message]

    def _where(self) -> str:
        return f"in the middle of a login ({self._state.name.lower()})"


Encode = Callable[[Answer, int, str | None], Chunks]
"""Makes a frame of the mechanism's answer, the lifetime in milliseconds, and the error's text (None: no error)."""
_HANDSHAKE_KEY = SaslHandshakeRequest.API_KEY.to_bytes(2, "big")


class _Always:
    active = True


_ALWAYS = _Always()


def _as_response(answer: Answer, lasts_ms: int, error: str | None) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE if error is None else ErrorCode.SASL_AUTHENTICATION_FAILED,
        error_message="" if error is None else error,
        auth_bytes=answer.message,
        session_lifetime_ms=lasts_ms,
    )
