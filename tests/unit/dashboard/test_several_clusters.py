"""Several clusters in one dashboard: each under its name, one gate before all."""

from __future__ import annotations

import re

from starlette.testclient import TestClient

from partita.dashboard.access import Access
from partita.dashboard.app import create_app
from partita.dashboard.several import create_app_of
from partita.dashboard.site import Site
from support.dashboard.pages import checked
from support.dashboard.world import FakeCluster, member


def two(access: Access) -> tuple[TestClient, FakeCluster, FakeCluster]:
    worlds = FakeCluster(), FakeCluster()
    for world, name in zip(worlds, ("billing", 'href="/x'), strict=True):
        world.log("orders", 0, 100)
        world.group(name, {("orders", 0): 90}, [member("till-1", ("orders", 0))])
        world.look()
    sites = [Site(world.observed, access, cluster=name) for world, name in zip(worlds, ("live", "static"), strict=True)]
    app = create_app_of(sites, [create_app(site) for site in sites], access)
    return TestClient(app, base_url="http://127.0.0.1", follow_redirects=False), *worlds


def test_every_link_of_a_page_stays_in_its_cluster() -> None:
    client, *_ = two(Access())
    first = client.get("/")
    checked(first.text)
    assert "The only group is fine" in first.text
    for prefix in ("/clusters/live", "/clusters/static"):
        for path in ("/", "/groups", "/topics", "/topics/orders", "/transactions", "/nodes"):
            answer = client.get(prefix + path)
            assert answer.status_code == 200, prefix + path
            text = answer.text
            checked(text)
            addresses = re.findall(r'(?:href|src|action|connect)="(/[^"]*)"', text)
            assert all(address.startswith(prefix + "/") for address in addresses), addresses
            assert f'hx-sse:connect="{prefix}{"/overview" if path == "/" else path}.live"' in text
            for address in {address for address in addresses if not address.endswith(".live")}:
                assert client.get(address).status_code == 200, address
    assert '"billing"' in client.get("/clusters/live/groups.json").text
    assert "partita_group_lag_records" in client.get("/clusters/static/metrics").text


def test_names_of_attackers_are_not_taken_for_links() -> None:
    client, *_ = two(Access())
    text = client.get("/clusters/static/groups").text
    assert "href=&#34;/x" in text
    assert "&#34;/clusters" not in text


def test_one_token_opens_all_of_them_and_health_needs_none() -> None:
    client, live, _ = two(Access("0.0.0.0", "secret"))
    for path in ("/", "/clusters/live/", "/clusters/live/groups.json", "/clusters/live/healthz"):
        assert client.get(path).status_code == 401, path
    assert client.get("/clusters/live/groups", headers={"Authorization": "Bearer secret"}).status_code == 200
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    live.observed.trouble = "gone"
    assert client.get("/readyz").json() == {"ok": False, "trouble": {"live": "gone", "static": None}}
