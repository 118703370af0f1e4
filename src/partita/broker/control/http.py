"""The control verbs and the notes over HTTP, on loopback only, for tests that are not in Python.

`POST /control/<verb>` with the arguments as a JSON object, `GET /notes?since=N` as JSON lines, `GET /nodes`, and
`GET /metrics` for Prometheus. All but the metrics and `GET /health` ask for the token: `Authorization: Bearer <token>`.
Browsers are turned away: a request with an Origin, or for another host name, is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
from typing import TYPE_CHECKING, Any

from partita.broker.control.fault import Fault
from partita.broker.control.verbs import Control, ControlError

if TYPE_CHECKING:
    from partita.broker.running import RunningBroker

JSON, PROMETHEUS = "application/json", "text/plain; version=0.0.4; charset=utf-8"
BODY_BYTES_MAX = 64 * 1024
HEAD_LINES_MAX = 100
ANSWER_WITHIN_SECONDS = 30.0
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_FORM_TYPES = frozenset({"text/plain", "multipart/form-data"})
"""What a page of another site may send without asking; form-urlencoded, which it may too, is what curl says."""
_ONCE = frozenset({"authorization", "host", "content-length", "content-type", "origin"})
_OPEN = frozenset({"/health", "/metrics"})
"""What needs no token: what is asked by machines that only watch."""
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    413: "Content Too Large",
}


class HttpError(Exception):
    """A request that is answered with `status` and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class AdminEndpoint:
    """Listens for one broker, and does what it is told by whoever has the token."""

    def __init__(self, running: RunningBroker, token: str) -> None:
        self._token = token
        self._cluster = running.cluster
        self._metrics = running.metrics
        self._control = Control(running)
        self._server: asyncio.Server | None = None

    async def listen(self, port: int) -> int:
        """Start; return the port. Raises OSError when it is taken."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, limit=BODY_BYTES_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            status, body, kind = await asyncio.wait_for(self._answer(reader), ANSWER_WITHIN_SECONDS)
        except HttpError as error:
            status, body, kind = error.status, json.dumps({"error": str(error)}), JSON
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            status, body, kind = 400, json.dumps({"error": f"bad request: {error}"}), JSON
        content = body.encode() + b"\n"
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content)
        try:
            await writer.drain()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, str, str]:
        method, _, rest = (await reader.readline()).decode("latin-1").partition(" ")
        target = rest.partition(" ")[0]
        headers = await _read_headers(reader)
        size = _checked_size(headers)
        path, _, query = target.partition("?")
        if path not in _OPEN:
            self._check_token(headers.get("authorization", ""))
        body = await reader.readexactly(size)
        if method == "GET" and path == "/notes":
            since = int(query.removeprefix("since=") or 0)
            return 200, "\n".join(json.dumps(note) for note in self._cluster.notes.since(since)), JSON
        if method == "GET" and path == "/health":
            return 200, json.dumps({"ok": True}), JSON
        if method == "GET" and path == "/metrics":
            return 200, self._metrics.text().removesuffix("\n"), PROMETHEUS
        if method == "GET" and path == "/nodes":
            return 200, json.dumps(self._nodes()), JSON
        if method == "POST" and path.startswith("/control/"):
            return 200, json.dumps(await self._call(path.removeprefix("/control/"), body)), JSON
        raise HttpError(
            404, f"{method} {path}: there are POST /control/<verb>, GET /notes, /nodes, /metrics and /health"
        )

    def _check_token(self, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token.encode()):
            raise HttpError(401, "send the token that the broker printed at its start: Authorization: Bearer <token>")

    def _nodes(self) -> list[dict[str, Any]]:
        return [
            {"node": node.node_id, "host": node.endpoint.host, "port": node.endpoint.port, "alive": node.is_alive}
            for node in self._cluster.nodes.values()
        ]

    async def _call(self, verb: str, body: bytes) -> dict[str, Any]:
        """Control waits for the loop, so it is called on another thread."""
        method = None if verb.startswith("_") else getattr(Control, verb, None)
        if method is None:
            verbs = [name for name in vars(Control) if not name.startswith("_")]
            raise HttpError(404, f"no verb {verb}; there are {', '.join(verbs)}")
        given = json.loads(body or b"{}")
        if not isinstance(given, dict):
            raise HttpError(400, f"{verb}: the body is a JSON object with the arguments")
        try:
            inspect.signature(method).bind(self._control, **given)
            result = await self._cluster.loop.run_in_executor(None, lambda: method(self._control, **given))
        except (TypeError, ControlError, ValueError, TimeoutError) as error:
            raise HttpError(400, f"{verb}: {error}") from None
        return {"ok": True, "result": result.number if isinstance(result, Fault) else result}


async def _read_headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(HEAD_LINES_MAX):
        line = (await reader.readline()).decode("latin-1").strip()
        if not line:
            return headers
        name, _, value = line.partition(":")
        name = name.strip().lower()
        if name in headers and name in _ONCE:
            raise HttpError(400, f"two {name} headers")
        headers[name] = value.strip()
    raise HttpError(413, f"more than {HEAD_LINES_MAX} header lines")


def _checked_size(headers: dict[str, str]) -> int:
    if "origin" in headers or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HttpError(403, "this endpoint is not for browsers")
    if headers.get("content-type", "").partition(";")[0].strip().lower() in _FORM_TYPES:
        raise HttpError(400, "a body is JSON: Content-Type: application/json")
    host = headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in _LOOPBACK_NAMES:
        raise HttpError(403, f"this endpoint is for {', '.join(_LOOPBACK_NAMES)} only")
    size = int(headers.get("content-length", "0"))
    if not 0 <= size <= BODY_BYTES_MAX:
        raise HttpError(413, f"a body has at most {BODY_BYTES_MAX} bytes")
    return size
