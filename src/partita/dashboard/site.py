"""The parts shared by all pages: the observer's state, templates that escape, and the user's permissions."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from partita.dashboard import charts, timeline, words
from partita.dashboard.access import Access
from partita.dashboard.models.accounts import Accounts
from partita.dashboard.models.cluster import Readers
from partita.dashboard.models.rows import SPARK_MS, GroupRows
from partita.dashboard.sources import NO_SOURCES, Sources
from partita.observe.observed import Observed
from partita.wording import count, printable

HERE = Path(__file__).parent
STATIC = HERE / "static"


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """One page: its title, its template, and its contents. `group` is the group on view."""

    title: str
    template: str
    model: Any
    """A frozen dataclass of `partita.dashboard.models`; templates and JSON read the same fields."""
    group: str | None = None


class Site:
    """Renders pages as HTML, as the part of it that changes, and as JSON."""

    def __init__(
        self,
        observed: Observed,
        access: Access,
        *,
        sources: Sources = NO_SOURCES,
        allow_actions: bool = False,
        has_control: bool = False,
        shows_records: bool = False,
        cluster: str = "",
    ) -> None:
        self.observed = observed
        self.sources = sources
        self.accounts = Accounts(observed, sources.facts_of)
        self.rows = GroupRows(observed, self.accounts)
        self.readers = Readers(observed)
        self.access = access
        self.allow_actions = allow_actions
        self.has_control = has_control
        self.shows_records = shows_records
        self.cluster = cluster
        """Its name where the dashboard shows several; its pages lie under it."""
        self.prefix = f"/clusters/{words.slug(cluster)}" if cluster else ""
        self._templates = environment()

    def html(self, page: Page, path: str, live: str | None) -> str:
        """The whole page; `live` is the address of its stream, None for a page that stays as it is."""
        return self._render(page, "base.html", path, live)

    def fragment(self, page: Page, path: str) -> str:
        """Return the content of the page's live part."""
        return self._render(page, "fragment.html", path, None)

    def sheet(self, parts: str, style: Markup) -> str:
        """One file with everything in it; `parts` are fragments."""
        return self._templates.get_template("sheet.html").render(seen=self.observed, parts=Markup(parts), style=style)

    def json(self, page: Page) -> str:
        """The page's model, with the cluster and the time at which it was looked at."""
        seen = self.observed
        head = {"cluster_id": seen.cluster_id, "seen_ms": seen.seen_ms, "trouble": seen.trouble}
        return json.dumps({**head, **dataclasses.asdict(page.model)}, default=_plain)

    def _render(self, page: Page, layout: str, path: str, live: str | None) -> str:
        text = self._templates.get_template(page.template).render(
            page=page,
            model=page.model,
            title=page.title,
            layout=layout,
            path=path.removeprefix(self.prefix),
            live=live,
            cluster=self.cluster,
            seen=self.observed,
            actions=self.allow_actions,
            has_control=self.allow_actions and self.has_control,
            shows_records=self.shows_records,
            is_explained=self.sources is not NO_SOURCES,
            form_token=self.access.form_token,
            since_ms=max(self.observed.seen_ms - SPARK_MS, self.observed.history.began_ms or 0),
        )
        # Pages link to each other from the root. Quotes in text of others are escaped, so only our links match.
        return text.replace('="/', f'="{self.prefix}/') if self.prefix else text


def _plain(value: object) -> Any:
    assert isinstance(value, Enum), f"{value!r} is no plain value"
    return value.value


def environment() -> Environment:
    """Templates that escape, with our filters."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.filters.update(
        number=words.number, rate=words.rate, span=words.span, behind=words.behind, ago=words.ago, count=count,
        slug=words.slug, clock=timeline.clock, stamp=timeline.stamp,
    )  # fmt: skip
    made.globals.update(
        sparkline=charts.sparkline, lag_chart=charts.lag_chart, phase_bar=charts.phase_bar, timeline=timeline.draw,
        data=_data, raw=Markup.escape,
    )  # fmt: skip
    return made


def _harmless(value: Any) -> Any:
    """Text of clients without control characters and marks that turn its direction; escaping comes after this."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _data(value: object) -> Markup:
    """JSON for a script element of type application/json, from which no text can break out."""
    return Markup(json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
