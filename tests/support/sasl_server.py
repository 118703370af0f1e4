"""The broker's side of SASL for tests of the clients: answers that `WireServer` gives, with room for lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from partita.secret import Secret
from partita.security import oauthbearer, plain, scram
from partita.security.errors import SaslError

FAILED = 58
SALT = b"a salt of sixteen"


class SaslAnswers:
    """Call it as `WireServer`'s answer. It serves one connection at a time; `tell` may change each auth answer."""

    def __init__(
        self,
        users: dict[str, str],
        *,
        mechanisms: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
        iterations: int = 4_096,
        lifetime_ms: int = 0,
        tokens: tuple[str, ...] = (),
        tell: Callable[[str], str] = lambda text: text,
        then: Callable[[int, int, Any], Any] = lambda key, version, request: None,
    ) -> None:
        self.users = {user: Secret(password) for user, password in users.items()}
        self.mechanisms = mechanisms
        self.iterations = iterations
        self.lifetime_ms = lifetime_ms
        self.tokens = tokens
        self.tell = tell
        self.then = then
        self.logins = 0
        self.extensions: dict[str, str] = {}
        self._mechanism = ""
        self._scram: tuple[scram.ClientFirst, str] | None = None

    def __call__(self, key: int, version: int, request: Any) -> Any:
        if isinstance(request, SaslHandshakeRequest):
            self._mechanism, self._scram = request.mechanism, None
            code = 0 if request.mechanism in self.mechanisms else 33
            return SaslHandshakeResponse(error_code=code, mechanisms=list(self.mechanisms))
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(bytes(request.auth_bytes))
        return self.then(key, version, request)

    def _authenticate(self, message: bytes) -> SaslAuthenticateResponse:
        try:
            if self._mechanism == "PLAIN":
                plain.authenticate(message, self.users)
                return self._welcome(b"")
            if self._mechanism == "OAUTHBEARER":
                return self._bearer(message)
            return self._step_of_scram(message.decode())
        except SaslError as error:
            return SaslAuthenticateResponse(error_code=FAILED, error_message=str(error))

    def _welcome(self, proof: bytes) -> SaslAuthenticateResponse:
        self.logins += 1
        return SaslAuthenticateResponse(auth_bytes=proof, session_lifetime_ms=self.lifetime_ms)

    def _bearer(self, message: bytes) -> SaslAuthenticateResponse:
        if message == b"\x01":
            return SaslAuthenticateResponse(error_code=FAILED, error_message='{"status":"invalid_token"}')
        first = oauthbearer.parse_client_message(message)
        self.extensions = dict(first.extensions)
        if first.token.reveal() in self.tokens:
            return self._welcome(b"")
        return SaslAuthenticateResponse(auth_bytes=self.tell('{"status":"invalid_token"}').encode())

    def _step_of_scram(self, message: str) -> SaslAuthenticateResponse:
        if self._scram is None:
            first = scram.parse_client_first(message)
            self.extensions = first.extensions
            challenge = scram.server_first(first, "the-server", SALT, self.iterations)
            self._scram = first, challenge
            return SaslAuthenticateResponse(auth_bytes=self.tell(challenge).encode())
        first, challenge = self._scram
        password = self.users.get(first.user, Secret("nobody"))
        salted = scram.salted_password(self._mechanism, password, SALT, self.iterations)
        credential = scram.credential_of(self._mechanism, salted, SALT, self.iterations)
        final = scram.parse_client_final(message)
        proof = scram.server_final(self._mechanism, credential, first, challenge, final)
        return self._welcome(self.tell(proof).encode())
