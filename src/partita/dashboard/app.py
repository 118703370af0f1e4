"""The routes of the dashboard. Every page exists as HTML, as JSON (`.json`) and as a stream of itself (`.live`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from partita.dashboard.access import Gate
from partita.dashboard.models.cluster import nodes_page, topic_list, topic_page, transactions_page
from partita.dashboard.models.group import group_page
from partita.dashboard.models.overview import overview
from partita.dashboard.models.rows import group_list
from partita.dashboard.models.why import generation_page, why_page
from partita.dashboard.site import STATIC, Page, Site
from partita.dashboard.words import unslug
from partita.http.routes import PROMETHEUS
from partita.now import Clock
from partita.observe.metrics import metrics_text
from partita.system_clock import SystemClock

Build = Callable[[Site, Request], Page | None]
Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]
CLOSES_WITHIN_S = 1.0
LOOKS_UP_S = 0.2
"""A stream that waits for news looks this often whether the server is being stopped."""


def overview_page(site: Site, request: Request) -> Page:
    """`/`"""
    return Page("Overview", "overview.html", overview(site.rows))


def groups_page(site: Site, request: Request) -> Page:
    """`/groups`"""
    return Page("Groups", "groups.html", group_list(site.rows, request.query_params))


def one_group_page(site: Site, request: Request) -> Page | None:
    """`/groups/{group}`"""
    name = unslug(request.path_params["group"])
    model = group_page(site.rows, name)
    return None if model is None else Page(name, "group.html", model, group=name)


def why(site: Site, request: Request) -> Page | None:
    """`/groups/{group}/why`"""
    name = unslug(request.path_params["group"])
    model = why_page(site.observed, site.accounts, name, dict(request.query_params), site.sources.described())
    return None if model is None else Page(f"Why {name} rebalanced", "why.html", model, group=name)


def generation(site: Site, request: Request) -> Page | None:
    """`/groups/{group}/why/{generation}`"""
    name = unslug(request.path_params["group"])
    model = generation_page(site.observed, site.accounts, name, request.path_params["generation"])
    return None if model is None else Page(f"{name}, generation {model.account.generation}", "generation.html", model)


def topics_page(site: Site, request: Request) -> Page:
    """`/topics`"""
    return Page("Topics", "topics.html", topic_list(site.readers, request.query_params))


def one_topic_page(site: Site, request: Request) -> Page | None:
    """`/topics/{topic}`"""
    name = unslug(request.path_params["topic"])
    model = topic_page(site.readers, name)
    return None if model is None else Page(name, "topic.html", model)


PAGES: tuple[tuple[str, Build], ...] = (
    ("/", overview_page),
    ("/groups", groups_page),
    ("/groups/{group}", one_group_page),
    ("/groups/{group}/why", why),
    ("/groups/{group}/why/{generation:int}", generation),
    ("/topics", topics_page),
    ("/topics/{topic}", one_topic_page),
    (
        "/transactions",
        lambda site, request: Page("Transactions", "transactions.html", transactions_page(site.observed)),
    ),
    ("/nodes", lambda site, request: Page("Nodes", "nodes.html", nodes_page(site.observed))),
)


def create_app(
    site: Site,
    *,
    lifespan: Lifespan | None = None,
    more: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application. `lifespan` starts and stops what fills the site's observer; `more` are routes that ask Kafka."""
    routes: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC), name="static"), *more]
    clock = SystemClock()
    for path, build in PAGES:
        routes += _three(site, path, build, clock)
    routes += [Route("/healthz", _healthy), Route("/readyz", _readiness(site)), Route("/metrics", _metrics(site))]
    handlers: dict[Any, Any] = {404: _not_found}
    # Among several clusters the one gate stands before all of them.
    gate = [] if site.prefix else [Middleware(Gate, access=site.access)]
    return Starlette(routes=routes, middleware=gate, lifespan=lifespan, exception_handlers=handlers)


def _three(site: Site, path: str, build: Build, clock: Clock) -> list[BaseRoute]:
    stem = "/overview" if path == "/" else path

    def page_of(request: Request) -> Page | None:
        page = build(site, request)
        if page is not None and page.group is not None:
            site.observed.view(page.group, clock.now().wall_ms)
        return page

    def address(request: Request, suffix: str) -> str:
        raw = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1").partition("?")[0]
        query = f"?{request.url.query}" if request.url.query else ""
        raw = raw.removeprefix(site.prefix)
        return ("/overview" if raw == "/" else raw) + suffix + query

    async def as_html(request: Request) -> Response:
        page = page_of(request)
        if page is None:
            return _not_found_page(request)
        return HTMLResponse(site.html(page, request.url.path, address(request, ".live")))

    async def as_json(request: Request) -> Response:
        page = page_of(request)
        if page is None:
            return JSONResponse({"error": "not found"}, 404)
        return Response(site.json(page), media_type="application/json")

    async def as_stream(request: Request) -> Response:
        if page_of(request) is None:
            return _not_found_page(request)
        closing = anyio.Event()
        events = _events(site, request, page_of, closing)
        return EventSourceResponse(events, ping=15, shutdown_event=closing, shutdown_grace_period=CLOSES_WITHIN_S)

    return [
        Route(f"{stem}.json", as_json),
        Route(f"{stem}.live", as_stream),
        Route(path, as_html),
    ]


async def _events(
    site: Site, request: Request, page_of: Callable[[Request], Page | None], closing: anyio.Event
) -> AsyncIterator[ServerSentEvent]:
    """Yield the page's live part whenever it has changed, until the server closes.

    A reader that comes back names its last event in the header Last-Event-ID, and is not sent the same again.
    """
    seen, path = site.observed, request.url.path.removesuffix(".live")
    had = request.headers.get("last-event-id", "")
    while not closing.is_set():
        version = seen.version
        event_id = f"{seen.boot}-{version}"
        page = page_of(request)
        if page is None:
            return
        if event_id != had:
            yield ServerSentEvent(site.fragment(page, path), id=event_id)
            had = event_id
        while seen.version == version and not closing.is_set():
            await seen.wait_for_change(version, LOOKS_UP_S)


async def _healthy(request: Request) -> Response:
    return JSONResponse({"ok": True})


def _readiness(site: Site) -> Callable[[Request], Any]:
    async def ready(request: Request) -> Response:
        """Answer whether the cluster has been seen, and is reached now."""
        seen = site.observed
        is_ready = seen.seen_ms > 0 and seen.trouble is None
        return JSONResponse({"ok": is_ready, "trouble": seen.trouble}, 200 if is_ready else 503)

    return ready


def _metrics(site: Site) -> Callable[[Request], Any]:
    async def metrics(request: Request) -> Response:
        """Answer Prometheus."""
        return Response(metrics_text(site.observed), media_type=PROMETHEUS)

    return metrics


async def _not_found(request: Request, error: Exception) -> Response:
    return _not_found_page(request)


def _not_found_page(request: Request) -> Response:
    return PlainTextResponse("there is no such page, or what it shows does not exist any more\n", 404)
