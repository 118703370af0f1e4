"""Access to the dashboard: accepted host names, the token where there is one, and requests of other sites refused.

An ASGI layer before the routes. It also puts the headers on every answer that let a browser load nothing from outside
and run no script but ours.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::", ""})
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths without a token: they only say whether the cluster is reached."""
COOKIE = "partita_dashboard"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Access:
    """`host` is where the dashboard listens. With a `token`, every page asks for it."""

    host: str = "127.0.0.1"
    token: str | None = None
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    """The proof that a form was sent from a page of ours."""

    def __post_init__(self) -> None:
        if not self.is_local and not self.token:
            raise ValueError(
                f"every client that reaches {self.host} could read all groups: give a token as well (--token)"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the dashboard."""
        return self.host in LOOPBACK

    def answers_to(self, host_header: str) -> bool:
        """Whether a Host header names this dashboard. A wildcard address, which needs a token, answers to any name."""
        name = host_header.rpartition(":")[0] if not host_header.endswith("]") and ":" in host_header else host_header
        return self.host in WILDCARDS or name.strip("[]").lower() in {*LOOPBACK, self.host.lower()}

    def is_token(self, given: str) -> bool:
        """Whether this is the token, compared in constant time."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def is_form_token(self, given: str) -> bool:
        """Whether a form carries the token of our pages."""
        return hmac.compare_digest(given.encode(), self.form_token.encode())


class Gate:
    """Refuses requests that must not reach the routes."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, **({} if "cache-control" in headers else NO_STORE)}.items():
                    headers[name] = value
            await send(message)

        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, method = Headers(scope=scope), scope["method"]
        host = headers.get("host", "")
        if not self._access.answers_to(host):
            return PlainTextResponse("this dashboard does not answer to that host name\n", 403)
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return PlainTextResponse("pages of other sites are refused\n", 403)
        is_navigation = method == "GET" and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_navigation:
            return PlainTextResponse("pages of other sites are refused\n", 403)
        if self._access.token is None or scope["path"] in OPEN_PATHS:
            return None
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None if the request has the token; a token in the address moves into a cookie."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        if scheme.lower() == "bearer" and self._access.is_token(bearer.strip()):
            return None
        if cookie is not None and self._access.is_token(cookie.value):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(name == "token" and self._access.is_token(value) for name, value in query):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
            answer = RedirectResponse("/" + path.lstrip("/") + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(COOKIE, self._access.token or "", httponly=True, samesite="strict", path="/")
            return answer
        return PlainTextResponse("give the token once: open this address with ?token=... behind it\n", 401)
