"""The stuck records of a share group: delivery counts from `__share_group_state`, on any broker.

A leader stores what was released, timed out or done, not what members hold now.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import partita
from partita.admin.results import Result
from partita.group import partition_for
from partita.lazy import later
from partita.protocol.primitives import MalformedRequest

if TYPE_CHECKING:
    from partita.admin import Admin
    from partita.cli.address import Address
    from partita.share.coordinator import coordinator, log_records, model
else:
    coordinator = later("partita.share.coordinator.coordinator")
    log_records = later("partita.share.coordinator.log_records")
    model = later("partita.share.coordinator.model")

STATE_TOPIC = "__share_group_state"
POLL_S = 0.5
STATES = {0: "available", 2: "acknowledged", 4: "archived"}
DONE = ("acknowledged", "archived")


@dataclass(frozen=True, slots=True)
class Delivered(Result):
    """Records `first` to `last` with their stored state: available, acknowledged or archived."""

    first: int
    last: int
    state: str
    delivery_count: int


@dataclass(frozen=True, slots=True)
class SharePartition(Result):
    """A share partition as its leader stored it. `waits_at` is its first record that is not done."""

    topic: str
    partition: int
    start_offset: int
    waits_at: int
    records: list[Delivered]

    @property
    def sentences(self) -> list[str]:
        """The records that were given back or given up, and those that are done but not passed yet."""
        name = f"{self.topic}-{self.partition}"
        found = [_sentence(name, one) for one in self.records if one.state != "acknowledged"]
        ahead = sum(one.last - one.first + 1 for one in self.records if one.state in DONE and one.first > self.waits_at)
        if ahead:
            done = "1 later record is" if ahead == 1 else f"{ahead} later records are"
            found.append(f"{name} waits at record {self.waits_at}; {done} done")
        return found


def _sentence(name: str, one: Delivered) -> str:
    one_only = one.first == one.last
    who = f"record {one.first} of {name} was" if one_only else f"records {one.first} to {one.last} of {name} were"
    times = "once" if one.delivery_count == 1 else f"{one.delivery_count} times"
    return f"{who} delivered {times}, {'given up' if one.state == 'archived' else 'not done'}"


def seen(topic: str, partition: int, state: model.ShareState) -> SharePartition:
    """Return what the stored state says of the partition. Pure."""
    waits_at = state.start_offset
    for batch in state.batches:
        if STATES.get(batch.state) in DONE and batch.first <= waits_at <= batch.last:
            waits_at = batch.last + 1
    records = [Delivered(b.first, b.last, STATES.get(b.state, str(b.state)), b.delivery_count) for b in state.batches]
    return SharePartition(topic, partition, state.start_offset, waits_at, records)


def share_partitions(admin: Admin, address: Address, group_id: str) -> list[SharePartition]:
    """Return the stored share partitions of the group. Raises KafkaError if the topic cannot be read."""
    topics = {topic.name: topic for topic in admin.list_topics(include_internal=True)}
    if STATE_TOPIC not in topics:
        return []
    count = topics[STATE_TOPIC].partitions
    places, numbers = {}, set()
    for row in admin.group_lag(group_id):
        if row.topic in topics:
            topic_id = topics[row.topic].topic_id
            numbers.add(partition_for(f"{group_id}:{topic_id}:{row.partition}", count))
            key = model.ShareKey(group_id, base64.urlsafe_b64decode(topic_id + "=="), row.partition)
            places[key] = (row.topic, row.partition)
    states = _read(address, numbers).states if numbers else {}
    return [seen(*place, states[key]) for key, place in places.items() if key in states]


def _read(address: Address, numbers: Iterable[int]) -> coordinator.ShareCoordinator:
    """Replay these partitions of the topic up to their ends of now; what cannot be understood is left out."""
    shard = coordinator.ShareCoordinator(coordinator.ShareConfig(), lambda topic_id: 0)
    partitions = [(STATE_TOPIC, number) for number in sorted(numbers)]
    with partita.Consumer(address.client_options(auto_offset_reset="earliest", enable_auto_commit=False)) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(place) < end for place, end in ends.items()):
            for record in consumer.poll(POLL_S):
                try:
                    shard.replay(log_records.Record(record.key or b"", record.value), record.offset)
                except MalformedRequest:
                    continue
    return shard
