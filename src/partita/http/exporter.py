"""The metrics of clients for Prometheus: a port, in a thread of its own, that serves the page of all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Protocol

from partita.http.process import process_text
from partita.http.routes import PROMETHEUS, HttpError, Request, Response, Route
from partita.http.server import HttpServer
from partita.net.loop_thread import LoopThread

log = logging.getLogger("partita.http")

START_WITHIN_SECONDS = 10.0


class HasMetrics(Protocol):
    """A consumer, producer, admin client or embedded broker, blocking or asyncio."""

    def metrics_text(self) -> str:
        """Its metrics in Prometheus' text format."""
        ...


class MetricsServer:
    """Serves `GET /metrics` and `GET /health`. Make one with `serve_metrics`; `close` it, or use it in a with block."""

    def __init__(self, clients: Iterable[HasMetrics]) -> None:
        self.clients: list[HasMetrics] = list(clients)
        """Clients whose metrics are served; may be changed at any time."""
        self.port = 0
        self.host = ""
        self._silent: set[int] = set()
        """The clients whose failure has been logged."""
        self._server = HttpServer(
            (Route("GET", "/metrics", self._metrics), Route("GET", "/health", _health)), _refuse_pages
        )
        self._thread: LoopThread | None = None

    @property
    def url(self) -> str:
        """Address of the page for Prometheus."""
        return f"http://{self.host}:{self.port}/metrics"

    def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the address cannot be had."""
        self._thread = LoopThread("partita-metrics")
        try:
            self.port = self._thread.run(self._server.listen(host, port), START_WITHIN_SECONDS)
        except BaseException:
            self.close()
            raise
        self.host = host

    def close(self) -> None:
        """Stop serving. May be called again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.call(self._server.close)
            thread.stop()

    def text(self) -> str:
        """The page: the metrics of the clients and of this process.

        A client whose metrics cannot be read is left out, and logged once.
        """
        texts = []
        for client in list(self.clients):
            try:
                texts.append(client.metrics_text())
            except Exception as error:
                if id(client) not in self._silent:
                    self._silent.add(id(client))
                    log.warning("the metrics of %s are left out: %s", type(client).__name__, error)
        return joined([*texts, process_text()])

    async def _metrics(self, request: Request) -> Response:
        text = await asyncio.get_running_loop().run_in_executor(None, self.text)
        return Response(text, PROMETHEUS)

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve_metrics(port: int, *clients: HasMetrics, host: str = "127.0.0.1") -> MetricsServer:
    """Serve the metrics of these clients at `http://host:port/metrics` until the result is closed; 0 picks a port.

    It runs in a thread of its own and waits for no client. Raises OSError when the address is not available. Anyone
    who reaches the port can read client ids and names of topics; nothing else is served.
    """
    server = MetricsServer(clients)
    server.start(host, port)
    return server


def joined(texts: Iterable[str]) -> str:
    """One page of several: a family stands in one piece, as Prometheus asks. Of two equal series the first counts."""
    families: dict[str, dict[str, str]] = {}
    family: dict[str, str] = {}
    for line in (line for text in texts for line in text.splitlines()):
        if line.startswith("# HELP "):
            family = families.setdefault(line.split(" ", 3)[2], {})
        key = line.rpartition(" ")[0] if not line.startswith("# ") else line.split(" ", 2)[1]
        family.setdefault(key, line)
    return "".join(f"{line}\n" for family in families.values() for line in family.values())


async def _health(request: Request) -> Response:
    return Response('{"ok": true}')


def _refuse_pages(request: Request) -> None:
    if "origin" in request.headers:
        raise HttpError(HTTPStatus.FORBIDDEN, "this endpoint is not for browsers")
