"""Source of OAUTHBEARER tokens: the user's function, a token endpoint, a file, or unsecured claims for tests.

One `TokenSource` serves all connections of a client. A token whose end is known is renewed in the background before it
ends; one without an end is fetched again at each login. (KIP-255, KIP-768; security.md 10.)
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from partita.errors import AuthenticationError
from partita.net.config import backoff_ms
from partita.secret import Secret
from partita.security.oauthbearer import BearerToken
from partita.security.settings import SaslSettings, TokenEndpoint, TokenRefresh

log = logging.getLogger("partita.net")

_ATTEMPTS_MAX = 5
_RETRY_AFTER_S = 10
_ANSWER_BYTES_MAX = 1 << 20
_UNSECURED_LIFE_S = 3_600
Later: TypeAlias = Callable[[float, Callable[[], object]], asyncio.TimerHandle]
_MILLISECONDS_FROM = 10**11
"""Ends of tokens above this are milliseconds since 1970, as Java and the AWS signer count them."""


class TokenSource:
    """Hands out the current token, fetching one when there is none, and renews it in the background until closed.

    Belongs to one event loop. `later(seconds, callback)` sets a timer; by default the loop's.
    """

    def __init__(
        self, settings: SaslSettings, wall_s: Callable[[], float] = time.time, later: Later | None = None
    ) -> None:
        self._settings = settings
        self._wall_s = wall_s
        self._later = later
        self._token: BearerToken | None = None
        self._renew_at_s = 0.0
        self._fetching: asyncio.Task[BearerToken] | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def token(self) -> BearerToken:
        """A token that is good for a login now. Raises AuthenticationError with the cause when there is none."""
        now = self._wall_s()
        if self._token is not None and now < self._renew_at_s:
            return self._token
        try:
            return await asyncio.shield(self._begin_fetch())
        except AuthenticationError:
            if self._token is not None and self._is_alive(self._token):
                return self._token
            raise

    def close(self) -> None:
        """Renew no more."""
        self._is_closed = True
        if self._renewal is not None:
            self._renewal.cancel()
        if self._fetching is not None:
            self._fetching.cancel()

    def _is_alive(self, token: BearerToken) -> bool:
        return token.expires_at_s is None or self._wall_s() < token.expires_at_s

    def _begin_fetch(self) -> asyncio.Task[BearerToken]:
        """The fetch under way, begun if there is none."""
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        return self._fetching

    def _fetched(self, fetch: asyncio.Task[BearerToken]) -> None:
        """Set the timer for the next renewal, or for another attempt while the old token lives."""
        if self._is_closed or fetch.cancelled():
            return
        error, token, now = fetch.exception(), self._token, self._wall_s()
        if token is None or token.expires_at_s is None or not self._is_alive(token):
            return
        wait_s = self._renew_at_s - now
        if error is not None:
            wait_s = _RETRY_AFTER_S
            left_s = token.expires_at_s - now
            log.warning("the OAUTHBEARER token could not be renewed and ends in %.0f s: %s", left_s, error)
        if self._renewal is not None:
            self._renewal.cancel()
        later = self._later or asyncio.get_running_loop().call_later
        self._renewal = later(max(0.0, wait_s), self._begin_fetch)

    async def _fetch(self) -> BearerToken:
        settings = self._settings
        if settings.token_provider is not None:
            token = await _provided(settings.token_provider)
        elif settings.token_endpoint is not None:
            token = await _from_endpoint(settings.token_endpoint)
        else:
            token = unsecured(settings.unsecured_claims, self._wall_s())
        if settings.extensions and not token.extensions:
            token = BearerToken(token.token, token.expires_at_s, settings.extensions)
        now = self._wall_s()
        if token.expires_at_s is not None and token.expires_at_s <= now:
            raise AuthenticationError(
                f"the OAUTHBEARER token that was provided ended {now - token.expires_at_s:.0f} s ago: "
                "the provider must return a fresh one, or this machine's clock is wrong"
            )
        self._token, self._renew_at_s = token, renew_at_s(now, token.expires_at_s, settings.token_refresh)
        return token


def renew_at_s(
    now_s: float,
    expires_at_s: float | None,
    refresh: TokenRefresh,
    uniform: Callable[[float, float], float] = random.uniform,
) -> float:
    """When a token fetched now is renewed. A token without an end is fetched again at each login."""
    if expires_at_s is None:
        return now_s
    life = expires_at_s - now_s
    due = now_s + life * (refresh.window_factor + uniform(0.0, refresh.window_jitter))
    if life > refresh.min_period_s + refresh.buffer_s:
        due = max(now_s + refresh.min_period_s, min(due, expires_at_s - refresh.buffer_s))
    return due


def unsecured(claims: Any, now_s: float) -> BearerToken:
    """A token without a signature, as brokers in tests accept it. Claims are those of the JAAS line.

    It is issued at a whole second: a broker that counts milliseconds refuses one that begins a part of one later.
    """
    ends = now_s + _UNSECURED_LIFE_S
    body = {"iat": int(now_s), "exp": ends, **claims}
    parts = (_b64url(json.dumps(part).encode()) for part in ({"alg": "none"}, body))
    return BearerToken(Secret(".".join(parts) + "."), ends)


async def _provided(provider: Any) -> BearerToken:
    """Call the user's provider in whichever form it has: ours, aiokafka's, kafka-python's, confluent-kafka's."""
    call = provider if callable(provider) else provider.token
    try:
        given = _call(call) if inspect.iscoroutinefunction(call) else await asyncio.to_thread(_call, call)
        if inspect.isawaitable(given):
            given = await given
        extensions = getattr(provider, "extensions", None)
        return _as_token(given, extensions() if callable(extensions) else {})
    except AuthenticationError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise AuthenticationError(f"sasl_oauth_token_provider raised {type(error).__name__}: {error}") from error


def _call(provider: Callable[..., Any]) -> Any:
    """confluent-kafka's callback takes its configuration text; the others take nothing."""
    try:
        wanted = [
            parameter
            for parameter in inspect.signature(provider).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        wanted = []
    return provider("") if wanted else provider()


def _as_token(given: Any, extensions: Any) -> BearerToken:
    if isinstance(given, BearerToken):
        return given
    parts = given if isinstance(given, tuple) else (given,)
    text = parts[0]
    if not isinstance(text, str | Secret) or not text:
        raise AuthenticationError(
            "sasl_oauth_token_provider must return a token, or (token, end in seconds since 1970), "
            f"not {type(text).__name__}"
        )
    ends = float(parts[1]) if len(parts) > 1 and parts[1] is not None else None
    if ends is not None and ends > _MILLISECONDS_FROM:
        ends /= 1000
    if len(parts) > 3 and isinstance(parts[3], dict):
        extensions = parts[3]
    return BearerToken(text if isinstance(text, Secret) else Secret(text), ends, dict(extensions or {}))


async def _from_endpoint(endpoint: TokenEndpoint) -> BearerToken:
    if endpoint.url.startswith("file:"):
        return await asyncio.to_thread(_from_file, endpoint.url)
    for attempt in range(_ATTEMPTS_MAX):
        try:
            return await asyncio.to_thread(_post, endpoint)
        except (urllib.error.URLError, OSError, ValueError) as error:
            code = error.code if isinstance(error, urllib.error.HTTPError) else 0
            is_transient = not isinstance(error, ValueError) and (code >= 500 or code == 0)
            if not is_transient or attempt == _ATTEMPTS_MAX - 1:
                raise AuthenticationError(_refused(endpoint, error)) from None
        wait_ms = backoff_ms(endpoint.retry_backoff_ms, endpoint.retry_backoff_max_ms, attempt, random.uniform)
        await asyncio.sleep(wait_ms / 1000)
    raise AssertionError("the last attempt returns or raises")


def _from_file(url: str) -> BearerToken:
    path = Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise AuthenticationError(
            f"sasl_oauthbearer_token_endpoint_url: cannot read {path}: {error.strerror}"
        ) from None
    if not text:
        raise AuthenticationError(f"sasl_oauthbearer_token_endpoint_url: {path} is empty")
    return BearerToken(Secret(text), None)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The client secret goes to the host that was configured and to no other."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


def _post(endpoint: TokenEndpoint) -> BearerToken:
    form = {"grant_type": "client_credentials"}
    if endpoint.scope:
        form["scope"] = endpoint.scope
    user, secret = endpoint.client_id, endpoint.client_secret.reveal()
    if endpoint.urlencodes_header:
        user, secret = urllib.parse.quote_plus(user), urllib.parse.quote_plus(secret)
    basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
    headers = {"Accept": "application/json", "Authorization": f"Basic {basic}"}
    request = urllib.request.Request(endpoint.url, urllib.parse.urlencode(form).encode(), headers)
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(request, timeout=endpoint.timeout_ms / 1000) as answer:
        told = json.loads(answer.read(_ANSWER_BYTES_MAX))
    token = told.get("access_token") if isinstance(told, dict) else None
    if not isinstance(token, str) or not token:
        raise ValueError("the answer has no access_token")
    life = told.get("expires_in")
    ends = time.time() + float(life) if isinstance(life, int | float | str) and str(life) else None
    return BearerToken(Secret(token), ends)


def _refused(endpoint: TokenEndpoint, error: Exception) -> str:
    what = str(error)
    if isinstance(error, urllib.error.HTTPError):
        body = error.read(2_000).decode(errors="replace")
        try:
            what = f"{error.code} {json.loads(body).get('error', '')}".strip()
        except (ValueError, AttributeError):
            what = f"{error.code} {error.reason}"
        if 300 <= error.code < 400:
            what += " (redirects are not followed, since the client secret would go along)"
    return f"the token endpoint {endpoint.url} answered {what} for client id {endpoint.client_id!r}"


def _b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
