"""A client that says what is no longer true: old generations, and ids that a newer process has replaced.

Nothing it asks may succeed; `partita.sim.rules.groups` says so when the broker answers. It connects for each request
anew, waits for no answer, and has no membership of its own.
"""

from __future__ import annotations

from partita.group.state.model import Group
from partita.protocol.framing import encode_request
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
from partita.sim.world.network import Link, Network
from partita.sim.world.world import World

_VERSIONS = {HeartbeatRequest: 4, SyncGroupRequest: 5, LeaveGroupRequest: 5, OffsetCommitRequest: 9}


class Stranger:
    """`ask` sends one request that has to be refused, if the group has a past to speak of."""

    def __init__(self, world: World, network: Network, watch: Watch) -> None:
        self.name = "stranger"
        self._world = world
        self._network = network
        self._watch = watch
        self._asked = 0

    def ask(self) -> None:
        """Choose what to say, and say it."""
        group = self._watch.group
        if group is None or not group.members:
            return
        message = self._message(group)
        link = self._network.connect(self, f"stranger {self._asked}") if message is not None else None
        if message is None or link is None:
            return
        self._asked += 1
        version = _VERSIONS[type(message)]
        self._world.saw("!", "fault", f"a stranger sends {type(message).__name__}")
        frame = b"".join(encode_request(message.API_KEY, version, self._asked, self.name, message))
        self._network.send(link, frame[4:])

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
        far = OffsetCommitRequestPartition(partition_index=0, committed_offset=1 << 40, committed_metadata="")
        return OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[OffsetCommitRequestTopic(name="t0", partitions=[far])],
        )

    def arrived(self, link: Link, frame: bytes) -> None:
        """An answer, which does not matter here."""
        self._network.close_by_client(link)

    def broken(self, link: Link) -> None:
        """The connection is gone."""
