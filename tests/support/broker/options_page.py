"""The pages of options as a test reads them: what counts there, and which options of the broker are about security."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "options.md").read_text() + (DOCS / "broker-options.md").read_text()
CLIENTS = ("Consumer", "Producer", "Admin")
OTHERS = frozenset(
    {
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "partita.allow.plain.without.tls",
        "partita.login.bytes.per.ip",
    }
)


def is_of_security(name: str) -> bool:
    return name.startswith(("ssl.", "sasl.", "delegation.")) or name in OTHERS


def honoured(title: str) -> set[str]:
    """The options with an effect: those in the section's list and, of a client, in the list for all clients.

    An item of the broker's list names the bounds of its option too; defaults of topics stand in a line below it.
    """
    sections = (title, "All clients") if title in CLIENTS else (title,)
    lists = "".join(PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for section in sections)
    items = re.findall(r"^- `([^`]+)` \(", lists, re.M)
    further = re.findall(r"(?:from|to) `([^`]+)` \(", lists)
    defaults = re.search("^Defaults of topics, .*", lists, re.M)
    return {*items, *further, *re.findall("`([^`]+)`", defaults[0] if defaults else "")}
