"""Several clusters in one dashboard: a first page that lists them, and under each name all pages of that cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from partita.dashboard.access import Access, Gate
from partita.dashboard.app import Lifespan
from partita.dashboard.models.overview import Overview, overview
from partita.dashboard.site import STATIC, Site, environment


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster of the list; `overview` is its first page."""

    name: str
    path: str
    cluster_id: str | None
    trouble: str | None
    seen_ms: int
    overview: Overview


def rows_of(sites: Sequence[Site]) -> list[ClusterRow]:
    """The clusters in the order of the command line."""
    return [
        ClusterRow(
            site.cluster,
            f"{site.prefix}/",
            site.observed.cluster_id,
            site.observed.trouble,
            site.observed.seen_ms,
            overview(site.rows),
        )
        for site in sites
    ]


def create_app_of(
    sites: Sequence[Site], apps: Sequence[Starlette], access: Access, lifespan: Lifespan | None = None
) -> Starlette:
    """The application over those of each site, which lie under `site.prefix`."""
    templates = environment()

    async def first_page(request: Request) -> Response:
        return HTMLResponse(templates.get_template("clusters.html").render(clusters=rows_of(sites)))

    async def healthy(request: Request) -> Response:
        return JSONResponse({"ok": True})

    async def ready(request: Request) -> Response:
        """Answer whether every cluster is reached now."""
        troubles = {site.cluster: site.observed.trouble for site in sites}
        are_ready = all(site.observed.seen_ms > 0 and not site.observed.trouble for site in sites)
        return JSONResponse({"ok": are_ready, "trouble": troubles}, 200 if are_ready else 503)

    return Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
            Route("/", first_page),
            Route("/healthz", healthy),
            Route("/readyz", ready),
            *(Mount(site.prefix, app) for site, app in zip(sites, apps, strict=True)),
        ],
        middleware=[Middleware(Gate, access=access)],
        lifespan=lifespan,
    )
