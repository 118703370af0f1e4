"""Golden vectors of Kafka's client-side assignors as inputs of ours."""

import gzip
import json
from pathlib import Path

from partita.assignors.interface import Subscription, TopicMetadata

VECTORS = Path(__file__).parents[1] / "vectors"


def load(name):
    """The vectors of the assignor `name`, one call or one sequence of rounds each."""
    with gzip.open(VECTORS / f"assignors-{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def metadata(round_):
    return TopicMetadata(round_["topics"], round_.get("racks") or {})


def subscriptions(round_):
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


def by_topic(assignment):
    """{member: {topic: [partitions]}} with the members that got nothing left in."""
    result = {}
    for member, partitions in assignment.items():
        topics = result.setdefault(member, {})
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(partition)
    return result
