"""A client that says what is no longer true: old generations, and ids that a newer process has replaced.

Nothing it asks may succeed; `partita.sim.rules.groups` says so when the broker answers. It opens a connection
for each request, waits for no answer, and has no membership of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.group.records.consumer_group import ConsumerGroup
from partita.group.state.model import Group
from partita.protocol.framing import encode_request
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.primitives import Message
from partita.sim.rules.watch import Watch
from partita.sim.world.network import Link, Network, Way
from partita.sim.world.world import World

_VERSIONS = {
    HeartbeatRequest: 4,
    SyncGroupRequest: 5,
    LeaveGroupRequest: 5,
    OffsetCommitRequest: 9,
    ConsumerGroupHeartbeatRequest: 1,
}


class Stranger:
    """`ask` sends one request that has to be refused, if the group has a past; `node` coordinates it."""

    def __init__(self, world: World, network: Network, watch: Watch, node: Callable[[], int]) -> None:
        self.name = "stranger"
        self._world = world
        self._network = network
        self._watch = watch
        self._node = node
        self._asked = 0

    def ask(self) -> None:
        """Choose what to say, and say it."""
        group, consumers = self._watch.group, self._watch.consumer_group
        if consumers is not None and consumers.members:
            message: Message | None = self._to_consumers(consumers)
        elif group is not None and group.members:
            message = self._message(group)
        else:
            return
        link = self._network.connect(self, Way(self._node(), self._asked)) if message is not None else None
        if message is None or link is None:
            return
        self._asked += 1
        version = _VERSIONS[type(message)]
        self._world.saw("!", "fault", f"a stranger sends {type(message).__name__}")
        frame = b"".join(encode_request(message.API_KEY, version, self._asked, self.name, message))
        self._network.send(link, frame[4:])

    def _to_consumers(self, group: ConsumerGroup) -> Message:
        """Send to a KIP-848 group with a past or future epoch, or with an instance id that a member holds."""
        dice, group_id = self._world.dice, self._watch.group_id
        member = group.members[dice.choice(list(group.members))]
        epoch = dice.choice((max(1, member.epoch - 2), member.epoch + 1))
        if epoch == member.epoch:
            epoch += 1
        match dice.between(0, 2):
            case 0 if member.instance_id is not None:
                return ConsumerGroupHeartbeatRequest(
                    group_id=group_id, member_id="stranger", member_epoch=epoch, instance_id=member.instance_id
                )
            case 1:
                # An older epoch may commit what the member has had since then (KIP-1251); a far one nothing.
                return self._commit(group_id, member.epoch + 1_000, member.member_id, member.instance_id)
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id=member.member_id, member_epoch=epoch, instance_id=member.instance_id
        )

    def _commit(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> OffsetCommitRequest:
        far = OffsetCommitRequestPartition(partition_index=0, committed_offset=1 << 40, committed_metadata="")
        return OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[OffsetCommitRequestTopic(name="t0", partitions=[far])],
        )

    def _message(self, group: Group) -> Message | None:
        dice, group_id = self._world.dice, self._watch.group_id
        replaced = self._watch.groups.replaced_ids()
        member_id = dice.choice(list(group.members))
        instance_id = group.members[member_id].instance_id
        generation = group.generation - dice.between(1, 2)
        if replaced and dice.chance(0.5):
            instance_id, member_id = dice.choice(replaced)
            generation = group.generation
            if dice.chance(0.5):
                gone = MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                return LeaveGroupRequest(group_id=group_id, members=[gone])
        if generation < 0:
            return None
        match dice.between(0, 2):
            case 0:
                return HeartbeatRequest(
                    group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance_id
                )
            case 1:
                return SyncGroupRequest(
                    group_id=group_id,
                    generation_id=generation,
                    member_id=member_id,
                    group_instance_id=instance_id,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                )
        # A generation that is not stored yet may be lost with its shard; then the one before it counts again, and so
        # does what its members commit.
        generation = min(generation, self._watch.stored_generation - 2)
        return None if generation < 0 else self._commit(group_id, generation, member_id, instance_id)

    def arrived(self, link: Link, frame: bytes) -> None:
        """An answer, which does not matter here."""
        self._network.close_by_client(link)

    def broken(self, link: Link) -> None:
        """The connection is gone."""
