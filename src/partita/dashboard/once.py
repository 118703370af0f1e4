"""All pages as one file without scripts: a report for a build, or to send to others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from markupsafe import Markup, escape

from partita.dashboard.models.cluster import nodes_page, topic_list, topic_page, transactions_page
from partita.dashboard.models.group import group_page
from partita.dashboard.models.overview import overview
from partita.dashboard.models.rows import GroupRow, group_list
from partita.dashboard.models.why import generation_page, why_page
from partita.dashboard.site import STATIC, Page, Site

GROUPS_MAX, TOPICS_MAX, GENERATIONS_MAX = 100, 100, 10
"""Limits of the file: groups (those that need attention first), topics, and rebalances of each group."""
_SCRIPT = re.compile(r"<script type=\"application/json\".*?</script>", re.S)
_ID = re.compile(r" id=\"(?!own\d|nobody\")[^\"]*\"")
_LINK = re.compile(r" href=\"(/[^\"]*|\?[^\"]*)\"")


def report(site: Site) -> str:
    """Return the file. Links lead to other parts of it; names of anything left out are plain text."""
    pages = dict(_pages(site))
    parts = []
    for path, page in pages.items():
        text = _ID.sub("", _SCRIPT.sub("", site.fragment(page, path)))
        text = _LINK.sub(lambda found: _link(found, pages), text)
        parts.append(f'<section class="column sheet" id="{escape(path)}">{text}</section>')
    return site.sheet("".join(parts), Markup((STATIC / "style.css").read_text(encoding="utf-8")))


def _link(found: re.Match[str], pages: dict[str, Page]) -> str:
    return f' href="#{found[1]}"' if unescape(found[1]) in pages else ""


def _pages(site: Site) -> Iterator[tuple[str, Page]]:
    seen = site.observed
    yield "/", Page("Overview", "overview.html", overview(site.rows))
    yield "/groups", Page("Groups", "groups.html", group_list(site.rows, {}))
    for row in _worst(site):
        model = group_page(site.rows, row.group_id)
        if model is not None:
            yield row.path, Page(row.group_id, "group.html", model)
            yield from _why(site, row)
    listed = topic_list(site.readers, {})
    yield "/topics", Page("Topics", "topics.html", listed)
    for topic in listed.topics[:TOPICS_MAX]:
        found = topic_page(site.readers, topic.name)
        if found is not None:
            yield topic.path, Page(topic.name, "topic.html", found)
    yield "/transactions", Page("Transactions", "transactions.html", transactions_page(seen))
    yield "/nodes", Page("Nodes", "nodes.html", nodes_page(seen))


def _worst(site: Site) -> list[GroupRow]:
    rows = site.rows.all().values()
    return sorted(rows, key=lambda row: (row.rank, -(row.lag or 0), row.group_id))[:GROUPS_MAX]


def _why(site: Site, row: GroupRow) -> Iterator[tuple[str, Page]]:
    model = why_page(site.observed, site.accounts, row.group_id, {}, site.sources.described())
    if model is None or not model.rebalances:
        return
    yield model.path, Page(f"Why {row.group_id} rebalanced", "why.html", model)
    for one in model.rebalances[:GENERATIONS_MAX]:
        page = generation_page(site.observed, site.accounts, row.group_id, one.generation)
        if page is not None:
            yield one.path, Page(f"{row.group_id}, generation {one.generation}", "generation.html", page)
