"""Golden vectors of Kafka's client-side assignors as inputs of ours."""

import gzip
import json
from pathlib import Path
from typing import Any

from partita.assignors.interface import Assignment, Subscription, TopicMetadata, TopicPartition
from partita.protocol.primitives import MalformedRequest, Reader

Vector = dict[str, Any]
"""One round of a golden vector, as its JSON says it."""
Claims = dict[str, tuple[list[TopicPartition], int]]
VECTORS = Path(__file__).parents[2] / "vectors"


def load(name: str) -> list[Vector]:
    """The vectors of the assignor `name`, one call or one sequence of rounds each."""
    with gzip.open(VECTORS / f"assignors-{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def metadata(round_: Vector) -> TopicMetadata:
    return TopicMetadata(round_["topics"], round_.get("racks") or {})


def subscriptions(round_: Vector) -> dict[str, Subscription]:
    return {
        member["id"]: Subscription(
            topics=member["topics"],
            user_data=None if member.get("user_data") is None else bytes.fromhex(member["user_data"]),
            owned_partitions=[(t, p) for t, ps in (member.get("owned") or {}).items() for p in ps],
            generation_id=-1 if member.get("generation") is None else member["generation"],
            rack_id=member.get("rack"),
            group_instance_id=member.get("instance_id"),
        )
        for member in round_["members"]
    }


def by_topic(assignment: Assignment) -> dict[str, dict[str, list[int]]]:
    """{member: {topic: [partitions]}} with the members that got nothing left in."""
    result: dict[str, dict[str, list[int]]] = {}
    for member, partitions in assignment.items():
        topics = result.setdefault(member, {})
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(partition)
    return result


def measures(round_: Vector, assignment: Assignment, claims: Claims) -> dict[str, int]:
    """What the vectors measure of a sticky answer. `claims`: {member: ([(topic, partition)], generation)}."""
    topics = {member["id"]: set(member["topics"]) for member in round_["members"]}
    newest: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member, (partitions, generation) in claims.items():
        for partition in dict.fromkeys(partitions):
            newest.setdefault(partition, []).append((generation, member))
    old = {}
    for partition, claimants in newest.items():
        best = max(generation for generation, _ in claimants)
        holders = [member for generation, member in claimants if generation == best]
        if len(holders) == 1 and partition[0] in topics[holders[0]] and partition[0] in round_["topics"]:
            old[partition] = holders[0]
    owner = {partition: member for member, partitions in assignment.items() for partition in partitions}
    everything = {
        (topic, number) for topic in set().union(*topics.values()) for number in range(round_["topics"].get(topic, 0))
    }
    old = {partition: member for partition, member in old.items() if partition in everything}
    loads = {member: len(assignment.get(member, ())) for member in topics}
    holds = {member: {topic for topic, _ in assignment.get(member, ())} for member in topics}
    return {
        "kept": sum(owner.get(partition) == member for partition, member in old.items()),
        "moved": sum(owner.get(partition) != member for partition, member in old.items()),
        "fresh": sum(partition not in old for partition in owner),
        "unassigned": len(everything - owner.keys()),
        "spread": max(loads.values()) - min(loads.values()),
        "improvable": sum(
            loads[a] >= loads[b] + 2 and not holds[a].isdisjoint(topics[b]) for a in topics for b in topics
        ),
    }


def claims(round_: Vector, name: str) -> Claims:
    """{member: ([(topic, partition)], generation)} as the assignor `name` reads it, existing partitions only."""
    result = {}
    for member in round_["members"]:
        if name == "sticky":
            data = member["user_data"]
            pairs, generation = read_user_data(bytes.fromhex(data)) if data else ([], -1)
        else:
            pairs = [(t, p) for t, ps in (member["owned"] or {}).items() for p in ps]
            generation = member["generation"]
            if generation is None:
                data = bytes.fromhex(member["user_data"] or "")
                generation = int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else -1
        result[member["id"]] = ([(t, p) for t, p in pairs if 0 <= p < round_["topics"].get(t, 0)], generation)
    return result


def read_user_data(data: bytes) -> tuple[list[TopicPartition], int]:
    """Sticky user data, read plainly and apart from the assignor's own reader."""
    reader = Reader(data)
    try:
        groups = [(reader.string(), [reader.int32() for _ in range(reader.int32())]) for _ in range(reader.int32())]
    except MalformedRequest:
        return [], -1
    pairs = [(topic, number) for topic, numbers in groups for number in numbers]
    return pairs, reader.int32() if reader.remaining() >= 4 else -1
