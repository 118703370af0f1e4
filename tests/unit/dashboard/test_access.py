"""Who is answered: host names, origins, tokens; and what every answer tells the browser."""

from __future__ import annotations

import pytest

from partita.dashboard.access import COOKIE, Access
from support.dashboard.world import FakeCluster

WITH_TOKEN = Access("0.0.0.0", "s3cret")


def status(path: str = "/groups", access: Access | None = None, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return FakeCluster().client(access).get(path, headers=named).status_code


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "localhost", "[::1]:8080", "LOCALHOST:1"])
def test_loopback_names_are_answered(host: str) -> None:
    assert status(host=host) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "127.0.0.2"])
def test_other_names_are_refused_so_that_no_site_can_rebind_its_own(host: str) -> None:
    assert status(host=host) == 403


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://127.0.0.1:8080"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
    ],
)
def test_pages_of_other_sites_are_refused_and_links_are_not(headers: dict[str, str], code: int) -> None:
    assert status("/groups", None, **headers) == code


def test_a_public_address_demands_a_token() -> None:
    with pytest.raises(ValueError, match="give a token as well"):
        Access("0.0.0.0")
    assert Access("127.0.0.1").token is None


def test_without_the_token_nothing_is_shown() -> None:
    for path in ("/", "/groups", "/groups.json", "/groups.live", "/static/style.css", "/groups?token=wrong"):
        assert status(path, WITH_TOKEN) == 401
    assert status("/groups", WITH_TOKEN, authorization="Bearer wrong") == 401
    assert status("/groups", WITH_TOKEN, cookie=f"{COOKIE}=wrong") == 401


def test_probes_need_no_token() -> None:
    assert status("/healthz", WITH_TOKEN) == 200
    assert status("/readyz", WITH_TOKEN) == 503


def test_the_token_is_taken_from_a_header_or_a_cookie() -> None:
    assert status("/groups", WITH_TOKEN, authorization="Bearer s3cret") == 200
    assert status("/groups", WITH_TOKEN, cookie=f"{COOKIE}=s3cret") == 200


def test_a_token_in_the_address_moves_into_a_cookie() -> None:
    answer = FakeCluster().client(WITH_TOKEN).get("/groups?q=a%26b&token=s3cret")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/groups?q=a%26b"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_a_redirect_never_leads_to_another_host() -> None:
    answer = FakeCluster().client(WITH_TOKEN).get("//evil.example/x?token=s3cret")
    assert answer.headers.get("location", "/") in ("/evil.example/x", "/", "/x")


def test_every_answer_keeps_the_browser_at_home() -> None:
    client = FakeCluster().client()
    for path in ("/", "/groups.json", "/nothing-here", "/static/app.js"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/groups").headers["cache-control"] == "no-store"
