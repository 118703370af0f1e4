"""The dashboard in a real Chromium: it renders without an error, stays at home, lives, fits a phone, and can be read.

Left out where no Chromium is installed; the summary says so.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from partita import Admin, Broker, Consumer
from partita.dashboard.access import Access
from partita.dashboard.app import create_app
from partita.dashboard.serve import in_background
from partita.dashboard.site import Site
from partita.dashboard.sources import Sources
from partita.observe.history import RebalanceSeen
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller
from support.dashboard.gallery import gallery
from support.dashboard.server import CHROMIUM, Served
from support.dashboard.story import story
from support.dashboard.world import FakeCluster, member

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.browser
PATHS = (
    "/", "/groups", "/groups/workers", "/groups/workers/why", "/groups/workers/why?by=member", "/groups/workers/why/4",
    "/topics", "/topics/orders", "/transactions", "/nodes",
)  # fmt: skip
CONTRAST = """() => {
  const rgb = (text) => { const c = text.match(/[\\d.]+/g).map(Number); return { c: c.slice(0, 3), a: c[3] ?? 1 }; };
  const lum = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const over = (below, layer) => below.map((v, i) => v * (1 - layer.a) + layer.c[i] * layer.a);
  const under = (e) => {
    const layers = [];
    for (; e && !(layers.at(-1)?.a === 1); e = e.parentElement) {
      const background = rgb(getComputedStyle(e).backgroundColor);
      if (background.a) layers.push(background);
    }
    return layers.reverse().reduce(over, [255, 255, 255]);
  };
  const found = [];
  for (const e of document.querySelectorAll("body *:not(svg *)")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!own || !box.width || style.visibility === "hidden" || box.right < 0 || e.closest(".plot")) continue;
    const [a, b] = [lum(rgb(style.color).c), lum(under(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    if (ratio >= (large ? 3 : 4.5)) continue;
    found.push(`${ratio.toFixed(2)} ${e.className} ${e.textContent.trim().slice(0, 20)}`);
  }
  return found;
}"""
"""What on a page has less contrast than WCAG AA asks for."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what went wrong in it: errors on the console, requests that failed or left this host, dialogs."""
    context = browser.new_context(**{"viewport": {"width": 1000, "height": 800}, **options})
    page = context.new_page()
    wrong: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", dismiss)
    page.on("request", lambda asked: None if "//127.0.0.1:" in asked.url else wrong.append(f"left: {asked.url}"))
    yield page, wrong
    context.close()


def is_fresh(page: Page) -> None:
    """Wait until the stream has brought something."""
    page.locator("#fresh", has_text=re.compile("^updated")).wait_for(timeout=60_000)


@pytest.fixture(scope="module")
def shown() -> Iterator[Served]:
    """The dashboard over the story of three workers, with hostile names beside them."""
    world = gallery()
    world.log("audit", 0, 50)
    evil = "\"'\u202e<img src=x onerror=alert(2)>"
    world.group("<script>alert(1)</script>", {("audit", 0): 0}, [member(evil, ("audit", 0))])
    world.look()
    sources = Sources(lambda group: story() if group == "workers" else (), lambda: "From the story.")
    with Served(lambda: create_app(Site(world.observed, Access(), sources=sources))) as served:
        yield served


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")], ids=["a light desktop", "a dark phone"])
def test_every_page_renders_fits_and_can_be_read(browser: Browser, shown: Served, width: int, scheme: str) -> None:
    with opened(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as (page, wrong):
        for path in PATHS:
            page.goto(shown.url + path)
            is_fresh(page)
            wide, client = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert wide <= client, f"{path} is {wide} px wide on a screen of {client}"
            assert page.evaluate(CONTRAST) == [], path
        assert wrong == []


def test_names_of_attackers_stay_text(browser: Browser, shown: Served) -> None:
    with opened(browser) as (page, wrong):
        page.goto(shown.url + "/groups?sort=name")
        page.get_by_text("<script>alert(1)</script>").click()
        is_fresh(page)
        assert page.locator("h1").inner_text() == "<script>alert(1)</script>"
        assert "\\u202e" in page.locator(".card h3").inner_text()
        assert page.locator("#page img").count() == 0
        assert wrong == []


def test_owners_can_be_told_apart_without_colours(browser: Browser, shown: Served) -> None:
    """Emulated: total colour blindness, and the two frequent kinds."""
    with opened(browser) as (page, _):
        page.goto(shown.url + "/groups/workers/why")
        session = page.context.new_cdp_session(page)
        keys = page.locator(".legend .key svg")
        for kind in ("achromatopsia", "deuteranopia", "protanopia"):
            session.send("Emulation.setEmulatedVisionDeficiency", {"type": kind})
            looks = [keys.nth(number).screenshot() for number in range(keys.count())]
            assert len(looks) == 4
            assert all(a != b for a, b in itertools.combinations(looks, 2)), kind


def test_a_stretch_of_the_timeline_is_zoomed_by_dragging(browser: Browser, shown: Served) -> None:
    with opened(browser) as (page, wrong):
        page.goto(shown.url + "/groups/workers/why")
        box = page.locator("svg.timeline").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60)
        page.mouse.up()
        page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
        assert page.locator("svg.timeline a.mark").count() == 1
        assert wrong == []


def test_the_page_works_by_keyboard(browser: Browser, shown: Served) -> None:
    with opened(browser) as (page, _):
        page.goto(shown.url + "/groups")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#page') !== null")


def watching(broker: Broker, joined_at: list[float]) -> Served:
    """The dashboard on a broker; `joined_at` takes the instants at which it was seen that somebody joined."""

    def make() -> Any:
        observed = Observed(broker.bootstrap)
        poller = ClusterPoller({"bootstrap.servers": broker.bootstrap}, observed)
        keep = observed.history.saw_rebalance

        def saw(seen: RebalanceSeen) -> None:
            joined_at.append(perf_counter())
            keep(seen)

        observed.history.saw_rebalance = saw  # type: ignore[method-assign]  # the instant is noted beside it
        return create_app(Site(observed, Access()), lifespan=in_background(poller.run))

    return Served(make)


@pytest.mark.partita(nodes=2, topics={"orders": 4})
def test_a_page_lives_among_a_thousand_groups_and_survives_its_server(browser: Browser, partita_broker: Broker) -> None:
    """Issue 17 item 3: live without reload, 1,000 groups without a slow page, server lost and regained."""
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        for number in range(1_000):
            admin.alter_group_offsets(f"team-{number:04}", {("orders", number % 4): 0})
        admin.alter_group_offsets("billing", {("orders", 0): 0})
    joined_at: list[float] = []
    with watching(partita_broker, joined_at) as served, opened(browser) as (page, wrong):
        page.goto(served.url + "/groups")
        page.get_by_text("1,001 groups").wait_for(timeout=60_000)
        took = [_seconds(page, f"{served.url}/groups?page=1")]
        while min(took) >= 0.2 and len(took) < 30:
            took.append(_seconds(page, f"{served.url}/groups?page={len(took)}"))
        assert min(took) < 0.2, f"the quickest of {len(took)} pages took {min(took) * 1000:.0f} ms"
        page.goto(served.url + "/groups/billing")
        page.get_by_text("Nobody is in this group now").wait_for()
        with joined(partita_broker, "cashier"):
            page.get_by_role("heading", name="cashier").wait_for(timeout=60_000)
            assert perf_counter() - joined_at[0] < 30, "drawn without a reload, soon after it was seen"
            assert wrong == []
            served.stop()
            page.get_by_text("server lost").wait_for(timeout=60_000)
            assert page.get_by_role("heading", name="cashier").is_visible(), "what was seen stays"
            served.start()
            is_fresh(page)
        page.get_by_text("Nobody is in this group now").wait_for(timeout=60_000)


def test_paused_pages_stay_as_they_are(browser: Browser) -> None:
    world = FakeCluster()
    world.log("t", 0, 10)
    world.group("g", {("t", 0): 4})
    world.look()
    with Served(lambda: create_app(world.site())) as served, opened(browser) as (page, wrong):
        page.goto(served.url + "/groups/g")
        lag = page.locator(".figures dd").first
        is_fresh(page)

        def grow(end: int) -> None:
            world.log("t", 0, end)
            world.pass_s(1)
            served.on_loop(world.look)

        grow(20)
        page.locator(".figures dd", has_text="16").first.wait_for()
        page.get_by_role("button", name="Pause").click()
        grow(30)
        page.get_by_role("button", name="Resume").wait_for()
        assert lag.inner_text().startswith("16")
        page.get_by_role("button", name="Resume").click()
        grow(40)
        page.locator(".figures dd", has_text="36").first.wait_for()
        assert wrong == []


def _seconds(page: Page, url: str) -> float:
    began = perf_counter()
    answer = page.request.get(url)
    assert answer.ok
    return perf_counter() - began


@contextmanager
def joined(broker: Broker, client_id: str) -> Iterator[None]:
    """A member of the group billing, polling in a thread of its own until the block ends."""
    is_over, is_in = threading.Event(), threading.Event()

    def work() -> None:
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="billing", client_id=client_id) as consumer:
            consumer.subscribe(["orders"])
            while not is_over.is_set():
                consumer.poll(0.05)
                if consumer.assignment():
                    is_in.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert is_in.wait(60)
    try:
        yield
    finally:
        is_over.set()
        thread.join(60)
