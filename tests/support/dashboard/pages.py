"""Reads a page as strictly as a browser with our Content-Security-Policy would."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Checker(HTMLParser):
    """Reads a page strictly enough to find what does not close, and collects what could do harm."""

    VOID = frozenset({"meta", "link", "input", "img", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.inline: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.inline.append(f"{tag} {name}")
            if name in ("src", "href", "action") and not re.match(r"/(?!/)|#|\?", value or ""):
                self.outside.append(f"{tag} {value}")
        given = dict(attrs)
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.inline.append("script")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> Checker:
    """The page, if all its elements close and nothing in it is inline code or leads to another host."""
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert (checker.open, checker.inline, checker.outside) == ([], [], [])
    return checker
