"""Requests and responses of an HTTP server, and the table of its paths. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

JSON = "application/json"
JSON_LINES = "application/jsonl"
EVENTS = "text/event-stream"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
BELOW = "/*"
"""End of the path of a route for everything below it."""


class HttpError(Exception):
    """A request that is answered with `status`, a reason, and perhaps more headers."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers


class Request(NamedTuple):
    """One request. Names of headers are in lower case; a header that came twice has its last value."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


class Response(NamedTuple):
    """A response. Content in pieces is sent as it is produced; between two pieces the loop does other work.

    The client must take the whole response in time or, if it `is_live` and may last for ever, each piece.
    """

    content: str | AsyncIterator[str]
    kind: str = JSON
    status: int = HTTPStatus.OK
    is_live: bool = False


Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class Route(NamedTuple):
    """A method and a path, and who answers. A path that ends in `/*` stands for all below it; GET serves HEAD, too."""

    method: str
    path: str
    answer: Answer

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def serves(self, path: str) -> bool:
        """Whether it stands for this path."""
        if self.path.endswith(BELOW):
            return path.startswith(self.path.removesuffix("*"))
        return path == self.path


def find(routes: Sequence[Route], request: Request) -> Answer:
    """The answering coroutine. Raises HttpError: 404 says which paths there are, 405 which methods the path has."""
    of_path = [route for route in routes if route.serves(request.path)]
    if not of_path:
        raise HttpError(HTTPStatus.NOT_FOUND, f"no {request.path}; there are {', '.join(map(str, routes))}")
    method = "GET" if request.method == "HEAD" else request.method
    for route in of_path:
        if route.method == method:
            return route.answer
    allowed = ", ".join(dict.fromkeys(name for route in of_path for name in _methods(route)))
    raise HttpError(
        HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} has no {request.method}; it has {allowed}", allow=allowed
    )


def _methods(route: Route) -> tuple[str, ...]:
    return ("GET", "HEAD") if route.method == "GET" else (route.method,)
