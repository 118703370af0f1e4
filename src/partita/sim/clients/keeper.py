"""A client that keeps offsets by itself, in a group without members, and an administrator who ends some of them.

It commits with leader epochs, metadata and (in old versions) a retention, reads, deletes offsets, groups and a topic,
and also tries to delete what the consumers' group has. It connects for each request and waits for no answer: the rules
of `partita.sim.rules.offsets` and `partita.sim.rules.groups` judge what the broker answers.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.protocol.framing import encode_request
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.protocol.primitives import Message
from partita.sim.world.network import Link, Network, Way
from partita.sim.world.world import World

GROUP = "kept"
TOPICS = ("z0", "z1")
PARTITIONS = 2
_TOO_LONG = 5_000


class Keeper:
    """`ask` does one thing; `others` is the group of the consumers, `node` the one that coordinates both groups."""

    def __init__(self, world: World, network: Network, others: str, node: Callable[[], int]) -> None:
        self.name = "keeper"
        self._world = world
        self._network = network
        self._others = others
        self._node = node
        self.may_delete: Callable[[str], bool] = lambda group_id: True
        """Whether the consumers' group may be deleted now."""
        self._asked = 0

    def ask(self) -> None:
        """Choose what to do, and do it."""
        dice = self._world.dice
        what = dice.between(0, 99)
        if what < 45:
            self._commit()
        elif what < 75:
            self._fetch()
        elif what < 85:
            group_id = self._others if dice.chance(0.3) else GROUP
            self._delete_offsets(group_id, "t0" if group_id == self._others else dice.choice(TOPICS))
        elif what < 94:
            self._delete_group(self._others if dice.chance(0.5) else GROUP)
        else:
            self._delete_topic(dice.choice(TOPICS))

    def _commit(self) -> None:
        dice = self._world.dice
        version = dice.choice((2, 3, 4, 6, 8, 9))
        retention_ms = dice.choice((-1, 0, 3_000, 10_000, 3_000_000_000)) if version <= 4 else -1
        metadata = "m" * (_TOO_LONG if dice.chance(0.05) else dice.between(0, 3))
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=dice.between(0, 1_000),
                committed_leader_epoch=dice.between(-1, 3) if version >= 6 else -1,
                committed_metadata=metadata,
            )
            for partition in range(dice.between(1, PARTITIONS))
        ]
        topic = OffsetCommitRequestTopic(name=dice.choice(TOPICS), partitions=partitions)
        commit = OffsetCommitRequest(
            group_id=GROUP, generation_id_or_member_epoch=-1, retention_time_ms=retention_ms, topics=[topic]
        )
        self._send(commit, version)

    def _fetch(self) -> None:
        topics = [OffsetFetchRequestTopics(name=name, partition_indexes=list(range(PARTITIONS))) for name in TOPICS]
        asked = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        self._send(OffsetFetchRequest(groups=[asked]), 9)

    def _delete_offsets(self, group_id: str, topic: str) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=self._world.dice.between(0, PARTITIONS - 1))]
        gone = OffsetDeleteRequestTopic(name=topic, partitions=partitions)
        self._send(OffsetDeleteRequest(group_id=group_id, topics=[gone]), 0)

    def _delete_group(self, group_id: str) -> None:
        if group_id == GROUP or self.may_delete(group_id):
            self._send(DeleteGroupsRequest(groups_names=[group_id]), 2)

    def _delete_topic(self, name: str) -> None:
        """Delete a topic, and create it again a little later."""
        self._send(DeleteTopicsRequest(topic_names=[name], timeout_ms=5_000), 4)
        again = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        self._world.after(self._world.dice.between(0, 2_000), self._send, CreateTopicsRequest(topics=[again]), 4)

    def _send(self, message: Message, version: int) -> None:
        link = self._network.connect(self, Way(self._node(), self._asked))
        if link is not None:
            self._asked += 1
            self._world.saw(">", self.name, f"{type(message).__name__} v{version}")
            frame = b"".join(encode_request(message.API_KEY, version, self._asked, self.name, message))
            self._network.send(link, frame[4:])

    def arrived(self, link: Link, frame: bytes) -> None:
        """An answer, which the rules have seen already."""
        self._network.close_by_client(link)

    def broken(self, link: Link) -> None:
        """The connection is gone."""
