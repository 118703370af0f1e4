"""The control verbs, the notes, the metrics and the broker's health over HTTP, on loopback only.

`POST /control/<verb>` with the arguments as a JSON object, `GET /notes?since=N` as JSON lines (with `follow=true`, or
for clients that accept `text/event-stream`, as server-sent events that go on), `GET /nodes`, `GET /metrics` for
Prometheus, `GET /health` and `GET /ready` for supervisors. All but the last three ask for the token:
`Authorization: Bearer <token>`; so does `/metrics`, which names topics, where clients log in or an authorizer decides.
Browsers are turned away: a request with an Origin, or for another host name, is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from partita.broker.control.fault import Fault
from partita.broker.control.verbs import Control, ControlError
from partita.http.process import process_text
from partita.http.routes import EVENTS, JSON_LINES, PROMETHEUS, HttpError, Request, Response, Route
from partita.http.server import HttpServer

if TYPE_CHECKING:
    from partita.broker.running import RunningBroker

HOST = "127.0.0.1"
NOTES_PER_PIECE = 100
ALIVE_EVERY_SECONDS = 15.0
"""Longest silence towards a follower of notes: so both notice when the other has gone."""
_LOOPBACK_NAMES = (HOST, "localhost", "[::1]")
_FORM_TYPES = frozenset({"text/plain", "multipart/form-data"})
"""Content types that a page of another site may send without asking; curl's default form-urlencoded is one more."""
_OPEN, _NAMES_TOPICS = frozenset({"/health", "/ready", "/metrics"}), "/metrics"
"""Paths without a token, for machines that only watch; and the one of them that names topics."""
CONTROL = "/control/"


class AdminEndpoint:
    """Listens for one broker, and carries out requests that have the token."""

    def __init__(self, running: RunningBroker, token: str) -> None:
        self._token = token
        self._running = running
        self._control = Control(running)
        routes = (
            Route("POST", f"{CONTROL}*", self._call),
            Route("GET", "/notes", self._notes),
            Route("GET", "/nodes", self._nodes),
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/health", self._health),
            Route("GET", "/ready", self._ready),
        )
        self._server = HttpServer(routes, self._check)

    async def listen(self, port: int) -> int:
        """Start; return the port. Raises OSError when it is taken."""
        return await self._server.listen(HOST, port)

    def close(self) -> None:
        """Stop listening, and close the open connections."""
        self._server.close()

    def _check(self, request: Request) -> None:
        """Refuse browsers, foreign names and requests without the token, so that they learn no paths."""
        headers = request.headers
        if "origin" in headers or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HttpError(HTTPStatus.FORBIDDEN, "this endpoint is not for browsers")
        if headers.get("content-type", "").partition(";")[0].strip().lower() in _FORM_TYPES:
            raise HttpError(HTTPStatus.BAD_REQUEST, "a body is JSON: Content-Type: application/json")
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name not in _LOOPBACK_NAMES:
            raise HttpError(HTTPStatus.FORBIDDEN, f"this endpoint is for {', '.join(_LOOPBACK_NAMES)} only")
        is_open = request.path in _OPEN
        if not is_open or (request.path == _NAMES_TOPICS and self._is_secured):
            self._check_token(headers.get("authorization", ""))
        if not is_open and self._running.is_closing:
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "the broker is stopping")

    @property
    def _is_secured(self) -> bool:
        """Whether access is restricted: clients log in, or an authorizer decides what they see."""
        services = self._running.services
        return services.rights is not None or (services.guards is not None and bool(services.guards.sasl))

    def _check_token(self, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token.encode()):
            what = "send the token that the broker printed at its start: Authorization: Bearer <token>"
            raise HttpError(HTTPStatus.UNAUTHORIZED, what, **{"www-authenticate": "Bearer"})

    async def _notes(self, request: Request) -> Response:
        given = request.query.get("since", "0")
        follows = EVENTS in request.headers.get("accept", "") or request.query.get("follow", "false") != "false"
        last = request.headers.get("last-event-id") if follows else None
        try:
            since = int(given) if last is None else int(last) + 1
        except ValueError:
            what = f"since is the number of a note, not {(last or given)[:100]!r}"
            raise HttpError(HTTPStatus.BAD_REQUEST, what) from None
        return (
            Response(self._events(since), EVENTS, is_live=True) if follows else Response(self._lines(since), JSON_LINES)
        )

    async def _events(self, since: int) -> AsyncIterator[str]:
        """Notes as server-sent events, numbered as notes are; a reader that is too slow misses the oldest."""
        notes = self._running.cluster.notes
        came = asyncio.Event()
        end = notes.listen(lambda note: came.set())
        try:
            while True:
                came.clear()
                found = notes.since(since)[:NOTES_PER_PIECE]
                if found:
                    since = found[-1]["seq"] + 1
                    yield "".join(f"id: {note['seq']}\ndata: {json.dumps(note)}\n\n" for note in found)
                    continue
                try:
                    async with asyncio.timeout(ALIVE_EVERY_SECONDS):
                        await came.wait()
                except TimeoutError:
                    yield ": nothing new\n\n"
        finally:
            end()

    async def _lines(self, since: int) -> AsyncIterator[str]:
        notes = self._running.cluster.notes.since(since)
        for start in range(0, len(notes), NOTES_PER_PIECE):
            yield "".join(f"{json.dumps(note)}\n" for note in notes[start : start + NOTES_PER_PIECE])

    async def _nodes(self, request: Request) -> Response:
        nodes = [
            {"node": node.node_id, "host": node.endpoint.host, "port": node.endpoint.port, "alive": node.is_alive}
            for node in self._running.cluster.nodes.values()
        ]
        return Response(json.dumps(nodes))

    async def _metrics(self, request: Request) -> Response:
        text = await self._running.metrics.text_in_slices()
        return Response(text + await asyncio.to_thread(process_text), PROMETHEUS)

    async def _health(self, request: Request) -> Response:
        health = self._running.health()
        return Response(json.dumps(health._asdict()), status=200 if health.ok else 503)

    async def _ready(self, request: Request) -> Response:
        health = self._running.health()
        return Response(json.dumps(health._asdict()), status=200 if health.is_ready else 503)

    async def _call(self, request: Request) -> Response:
        """Control waits for the loop, so it is called on another thread."""
        verb = request.path.removeprefix(CONTROL)
        method = None if verb.startswith("_") else getattr(Control, verb, None)
        if method is None:
            verbs = [name for name in vars(Control) if not name.startswith("_")]
            raise HttpError(HTTPStatus.NOT_FOUND, f"no verb {verb}; there are {', '.join(verbs)}")
        try:
            given = json.loads(request.body or b"{}")
        except ValueError as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"{verb}: the body is no JSON: {error}") from None
        if not isinstance(given, dict):
            raise HttpError(HTTPStatus.BAD_REQUEST, f"{verb}: the body is a JSON object with the arguments")
        loop = self._running.cluster.loop
        try:
            inspect.signature(method).bind(self._control, **given)
            result: Any = await loop.run_in_executor(None, lambda: method(self._control, **given))
        except (TypeError, ControlError, ValueError, TimeoutError) as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"{verb}: {error}") from None
        return Response(json.dumps({"ok": True, "result": result}, default=_number))


def _number(fault: Fault) -> int:
    """A fault as JSON: its number."""
    return fault.number
