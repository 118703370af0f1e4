"""The log of a long-running command: on stderr, as lines for people or as JSON."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from partita.cli.terminal import PrintableFormatter
from partita.lazy import later

if TYPE_CHECKING:
    import datetime
    import json
else:
    datetime = later("datetime")
    json = later("json")

LEVELS = ("debug", "info", "warning", "error")
TEXT, JSON = "text", "json"
OURS = "partita"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message; an event's kind and values; a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line. Values that are not plain are written as text."""
        line: dict[str, object] = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if hasattr(record, "event"):
            line["event"] = record.event
            line["fields"] = getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to_stderr(level: str, form: str) -> None:
    """Write what Partita logs from this level on, and warnings of others; `form` is "text" or "json"."""
    handler = logging.StreamHandler(sys.stderr)
    text = PrintableFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if form == JSON else text)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(OURS).setLevel(level.upper())
