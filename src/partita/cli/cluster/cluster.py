"""`partita cluster`: the brokers of a cluster, its controller, and what they serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import connected, json_option
from partita.cli.terminal import print_json, print_table, say
from partita.wording import count

if TYPE_CHECKING:
    from partita.admin import Admin
    from partita.admin.results import ApiVersionRange


@click.command()
@address_options
@click.option("--versions", is_flag=True, help="Show which versions of which API each broker serves.")
@json_option
def cluster(bootstrap: Address, versions: bool, as_json: bool) -> None:
    """Show the brokers of the cluster, its controller, and how many topics and partitions there are."""
    with connected(bootstrap) as admin:
        described = admin.describe_cluster()
        served = {node.id: admin.api_versions(node.id) for node in described.nodes} if versions else {}
        totals = _totals(admin)
    if as_json:
        ranges = {str(node): [row.as_json() for row in rows] for node, rows in served.items()}
        print_json({**described.as_json(), **totals, **({"api_versions": ranges} if versions else {})})
        return
    topics, partitions = count(totals["topics"], "topic"), count(totals["partitions"], "partition")
    say(f"cluster {described.cluster_id}, {count(len(described.nodes), 'broker')}, {topics}, {partitions}")
    print_table(
        ["broker", "host", "port", "rack", "leads", "role"],
        [
            (node.id, node.host, node.port, node.rack, totals["leads"].get(str(node.id), 0),
             "controller" if node.id == described.controller_id else "")
            for node in described.nodes
        ],
    )  # fmt: skip
    if versions:
        _print_versions(served)


def _totals(admin: Admin) -> dict[str, Any]:
    names = [topic.name for topic in admin.list_topics(include_internal=True)]
    parts = [part for topic in admin.describe_topics(names) for part in topic.partitions] if names else []
    leads: dict[str, int] = {}
    for part in parts:
        leads[str(part.leader)] = leads.get(str(part.leader), 0) + 1
    return {"topics": len(names), "partitions": len(parts), "leads": leads}


def _print_versions(served: dict[int, list[ApiVersionRange]]) -> None:
    """One table for brokers that serve the same."""
    seen: dict[tuple[tuple[int, str, int, int], ...], list[int]] = {}
    for node, rows in served.items():
        seen.setdefault(tuple((r.key, r.name, r.min_version, r.max_version) for r in rows), []).append(node)
    for table, nodes in seen.items():
        say(f"\n{'brokers' if len(nodes) > 1 else 'broker'} {', '.join(map(str, nodes))}")
        print_table(["key", "api", "versions"], [(key, name, f"{low}-{high}") for key, name, low, high in table])
