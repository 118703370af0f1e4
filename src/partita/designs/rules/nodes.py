"""The paths of Kafka's nodes in ZooKeeper, and the JSON of each. (Kafka 0.8.2: ZkUtils, TopicCount)"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from partita.designs.rules.requests import Answer, Children, Get, Node
from partita.group import partition_for

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
SLOTS = "/coordinators/slots"
EPOCHS = "/coordinators/epochs"
SLOT_COUNT = 50


@dataclass(frozen=True, slots=True)
class Registration:
    """A consumer's registration: topic -> number of streams."""

    streams: Mapping[str, int]

    def threads(self, member: str, topic: str) -> list[str]:
        """The ids of the streams that read `topic`."""
        return [f"{member}-{number}" for number in range(self.streams.get(topic, 0))]


def broker(broker_id: int) -> str:
    """The node of a live broker; ephemeral."""
    return f"{BROKERS}/{broker_id}"


def topic(name: str) -> str:
    """The node of a topic's partitions."""
    return f"{TOPICS}/{name}"


def members(group: str) -> str:
    """The parent of a group's registrations."""
    return f"/consumers/{group}/ids"


def member(group: str, name: str) -> str:
    """The node of a consumer's registration; ephemeral."""
    return f"{members(group)}/{name}"


def owner(group: str, name: str, partition: int) -> str:
    """The node of a partition's owner. Ephemeral in design 1; in design 2 the plan, persistent."""
    return f"/consumers/{group}/owners/{name}/{partition}"


def offset(group: str, name: str, partition: int) -> str:
    """The node of a partition's committed offset, as decimal text."""
    return f"/consumers/{group}/offsets/{name}/{partition}"


def generation(group: str) -> str:
    """The node of design 2's generation of a group."""
    return f"/consumers/{group}/generation"


def slot(number: int) -> str:
    """The node of the coordinator that serves a slot of groups; ephemeral."""
    return f"{SLOTS}/{number}"


def epoch(number: int) -> str:
    """The node that counts a slot's changes of hands: its version guards every plan."""
    return f"{EPOCHS}/{number}"


def broker_json(host: str, port: int, at_ms: int) -> str:
    """The content of a broker's node."""
    fields = {"jmx_port": -1, "timestamp": str(at_ms), "host": host, "version": 1, "port": port}
    return json.dumps(fields, separators=(",", ":"))


def topic_json(leaders: Sequence[int]) -> str:
    """The content of a topic's node: one replica for each partition."""
    partitions = {str(number): [leader] for number, leader in enumerate(leaders)}
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def partitions_in(content: str) -> int:
    """How many partitions a topic's node names."""
    return len(json.loads(content)["partitions"])


def registration_json(registration: Registration, at_ms: int) -> str:
    """The content of a consumer's node."""
    fields = {"version": 1, "subscription": dict(registration.streams), "pattern": "static", "timestamp": str(at_ms)}
    return json.dumps(fields, separators=(",", ":"))


def registration_in(content: str) -> Registration:
    """Return the registration in a consumer's node."""
    return Registration({str(name): int(count) for name, count in json.loads(content)["subscription"].items()})


def tree(ask: Callable[[Get | Children], Answer], path: str = "") -> Iterator[str]:
    """Yield a line for each node below `path`: its path, the session that an ephemeral one ends with, its data."""
    names = ask(Children(path or "/"))
    # Shorter names first: so partition 10 comes after 9. A node may go before it is read.
    for name in sorted(names if isinstance(names, tuple) else (), key=lambda name: (len(name), name)):
        below = f"{path}/{name}"
        node = ask(Get(below))
        if isinstance(node, Node):
            kind = f"ephemeral {node.session:#x}" if node.session else "persistent"
            yield f"{below:<33} {kind:<27} {node.data}".rstrip()
            yield from tree(ask, below)


def slot_of(group: str) -> int:
    """Return the slot of a group, chosen as today's brokers choose a partition of `__consumer_offsets`."""
    return partition_for(group, SLOT_COUNT)


def java_hash(text: str) -> int:
    """Java's String.hashCode, signed, 32 bits."""
    value = 0
    raw = text.encode("utf-16-be")
    for at in range(0, len(raw), 2):
        unit = int.from_bytes(raw[at : at + 2], "big")
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
