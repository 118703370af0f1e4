"""The user's cache directory, and small programs that are written into it once and started from there."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The `partita` folder of the user's cache directory; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partita"


def cached_program(name: str, text: str) -> Path:
    """The path of an executable file with this text, written only when it differs. Raises OSError.

    `name` may have folders in front, all below the `partita` folder of the user's cache directory.
    """
    program = cache_folder() / name
    if not program.is_file() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_name(f"{program.name}.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(program)
    return program
