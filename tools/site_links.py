"""A hook of the site's generator: links that leave `docs/` go to the repository, or become plain text without one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The text of a page, with links that the site can follow. Raises FileNotFoundError for one that leads nowhere."""
    folder = Path(page.file.abs_src_path).parent
    return OUTSIDE.sub(lambda found: _link(folder, found[1], found[2]), markdown)


def _link(folder: Path, text: str, target: str) -> str:
    name, _, anchor = target.partition("#")
    path = (folder / name).resolve()
    if not path.exists():
        raise FileNotFoundError(f"{folder.name}: {target} leads nowhere")
    if path.is_relative_to(ROOT / "docs"):
        return f"[{text}]({target})"
    address = repository()
    inside = path.relative_to(ROOT).as_posix() + (f"#{anchor}" if anchor else "")
    return f"[{text}]({address}/blob/main/{inside})" if address else text


def repository() -> str | None:
    """Where the sources are published, as the project's metadata says."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    found: str | None = next((urls[name] for name in ("Source", "Repository") if name in urls), None)
    return found
