"""The page of options as a test reads it: what counts there, and which options of the broker are about security."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "options.md").read_text()
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
    """The options that a table of the page does not mark as without effect."""
    table = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|(.*)$", table, re.M)
    return {name for name, told in rows if "(*no effect here*)" not in told}
