"""Write the pictures of docs/dashboard.md: the pages over a cluster made up for it, as Chromium shows them.

Usage: dashboard_pictures.py. Needs chromium and playwright, and changes nothing but docs/dashboard-*.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
PICTURES = (
    ("overview", "/", "light", 1000, 640),
    ("group", "/groups/billing", "light", 1000, 900),
    ("why", "/groups/workers/why", "dark", 1000, 660),
)
"""Name, page, colours, width and height."""


def main() -> None:
    """Take every picture."""
    from playwright.sync_api import sync_playwright

    from partita.dashboard.access import Access
    from partita.dashboard.app import create_app
    from partita.dashboard.site import Site
    from partita.dashboard.sources import Sources
    from support.dashboard.gallery import gallery
    from support.dashboard.server import CHROMIUM, Served
    from support.dashboard.story import story

    world = gallery()
    sources = Sources(lambda group: story() if group == "workers" else (), lambda: "Read from the broker's notes.")
    site = Site(world.observed, Access(), sources=sources)
    with Served(lambda: create_app(site)) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, path, scheme, width, height in PICTURES:
            context = browser.new_context(viewport={"width": width, "height": height})
            page = context.new_page()
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.goto(served.url + path)
            page.locator("#fresh", has_text="updated").wait_for()
            page.screenshot(path=ROOT / "docs" / f"dashboard-{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
