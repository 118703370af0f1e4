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
    """The options with an effect: those in the section's table and, of a client, in the table for all clients."""
    sections = (title, "All clients") if title in CLIENTS else (title,)
    tables = "".join(PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for section in sections)
    return set(re.findall(r"^\| `([^`]+)` \|", tables, re.M))
