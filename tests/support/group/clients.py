"""Clients that use a coordinator as clients do, in any order, and check what they are told.

`Clients` sends requests through a `GroupShell`; each answer is checked against the laws on the wire: one leader, one
protocol per generation, assignments as the leader sent them and to one owner each, generations that only rise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from partita.group.notes import GroupDeleted, GroupsLoaded
from partita.group.requests import DeleteGroup, EndTransaction, FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from partita.protocol.primitives import Structure
from support.group.shell import GroupShell

PARTITIONS = range(12)
LISTS = ("a", "ab", "ba", "abc", "b")
"""Protocol lists clients choose from; all but a and b alone have something in common."""


@dataclass
class Client:
    name: str
    group_id: str
    instance: str | None
    member_id: str = ""
    generation: int = -1
    members: list[str] = field(default_factory=list)
    protocols: str = "ab"
    version: int = 9


class Clients:
    def __init__(self, shell: GroupShell) -> None:
        self.shell = shell
        names = [("A", None), ("B", None), ("C", None), ("D", None), ("S", "one"), ("T", "one"), ("U", "two")]
        self.clients = [Client(name, group, inst) for group in ("g", "h") for name, inst in names]
        self.waiting: dict[int, Client] = {}
        self.syncs: dict[int, tuple[str, int, str]] = {}
        self.led: dict[tuple[int, str, int], str | None] = {}
        self.submitted: dict[tuple[str, int], list[dict[str, bytes]]] = {}
        self.accepted: dict[tuple[int, str, int], list[dict[str, bytes]]] = {}

    def send(self, client: Client, message: Structure, version: int | None = None) -> int:
        token = self.shell.send(message, client.version if version is None else version, client.name)
        self.waiting[token] = client
        self.learn()
        return token

    def learn(self) -> None:
        """Take in what was answered since the last look."""
        for reply in self.shell.take_fresh():
            token = reply.token
            assert isinstance(token, int)
            client = self.waiting.pop(token)
            if isinstance(reply.message, JoinGroupResponse):
                self.joined(client, reply.message)
            elif isinstance(reply.message, SyncGroupResponse) and not reply.message.error_code:
                self.synced(*self.syncs[token], reply.message)

    def joined(self, client: Client, answer: JoinGroupResponse) -> None:
        error = ErrorCode(answer.error_code)
        if error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            client.member_id = answer.member_id
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id, client.generation = "", -1
        if error is ErrorCode.NONE:
            client.generation = answer.generation_id
            client.members = [member.member_id for member in answer.members]
            key = (self.lives(), client.group_id, answer.generation_id)
            if answer.members and not answer.skip_assignment:
                assert answer.leader == answer.member_id in client.members
                assert len(set(client.members)) == len(client.members)
            known = self.led.setdefault(key, answer.protocol_name)
            assert known == answer.protocol_name, f"{key}: protocol {answer.protocol_name} and {known}"

    def lives(self) -> int:
        """A number that rises whenever a group may begin again at an old generation."""
        return sum(isinstance(note, GroupDeleted | GroupsLoaded) for note in self.shell.notes)

    def synced(self, group_id: str, generation: int, member_id: str, answer: SyncGroupResponse) -> None:
        """S1, S2: what one leader sent in this generation, byte for byte; or what a static predecessor had."""
        assignment = bytes(answer.assignment)
        key = (self.lives(), group_id, generation)
        sent = self.accepted.setdefault(key, list(self.submitted.get((group_id, generation), [])))
        if any(member_id in parts for parts in sent):
            self.accepted[key] = [parts for parts in sent if parts.get(member_id) == assignment]
            assert self.accepted[key], f"{member_id} was given {assignment!r}; its leader sent something else"
        else:
            everything = {part for all_sent in self.submitted.values() for parts in all_sent for part in parts.values()}
            assert assignment in everything | {b""}, f"{member_id} was given {assignment!r}, which nobody sent"

    # -- what a client may do ---------------------------------------------------------------------

    def join(self, client: Client, protocols: str, version: int) -> None:
        client.protocols, client.version = protocols, version if client.instance is None else max(version, 5)
        self.send(
            client,
            JoinGroupRequest(
                group_id=client.group_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=20_000,
                member_id=client.member_id,
                group_instance_id=client.instance,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequestProtocol(name=name, metadata=f"{client.name}{name}".encode()) for name in protocols
                ],
            ),
        )

    def sync(self, client: Client) -> None:
        """The leader deals the partitions out to its members; each goes to one of them."""
        parts: dict[str, bytes] = {}
        for at, member_id in enumerate(client.members):
            share = [str(number) for number in PARTITIONS if number % len(client.members) == at]
            parts[member_id] = f"{client.generation}:{','.join(share)}".encode()
        if parts:
            shares = [part for part in parts.values()]
            assert len(set(shares)) == len(shares)
            self.submitted.setdefault((client.group_id, client.generation), []).append(parts)
        message = SyncGroupRequest(
            group_id=client.group_id,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance,
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in parts.items()],
        )
        token = next(self.shell.tokens)
        self.shell.tokens = chain([token], self.shell.tokens)
        self.syncs[token] = (client.group_id, client.generation, client.member_id)
        self.send(client, message, 4)

    def heartbeat(self, client: Client) -> None:
        self.send(
            client,
            HeartbeatRequest(
                group_id=client.group_id,
                generation_id=client.generation,
                member_id=client.member_id,
                group_instance_id=client.instance,
            ),
            4,
        )

    def leave(self, client: Client, *, by_instance: bool) -> None:
        entry = MemberIdentity(member_id="" if by_instance else client.member_id, group_instance_id=client.instance)
        self.send(client, LeaveGroupRequest(group_id=client.group_id, members=[entry]), 5)

    def restart(self, client: Client) -> None:
        """The process dies without a word; the next one knows nothing."""
        client.member_id, client.generation, client.members = "", -1, []

    def commit(self, client: Client, offset: int, *, as_member: bool) -> None:
        partitions = [OffsetCommitRequestPartition(partition_index=offset % 3, committed_offset=offset)]
        self.send(
            client,
            OffsetCommitRequest(
                group_id=client.group_id,
                generation_id_or_member_epoch=client.generation if as_member else -1,
                member_id=client.member_id if as_member else "",
                group_instance_id=client.instance if as_member else None,
                topics=[OffsetCommitRequestTopic(name="t" if offset % 2 else "u", partitions=partitions)],
            ),
        )

    def txn_commit(self, client: Client, producer_id: int, offset: int) -> None:
        partitions = [TxnOffsetCommitRequestPartition(partition_index=offset % 3, committed_offset=offset)]
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=partitions)]
        self.send(
            client,
            TxnOffsetCommitRequest(group_id=client.group_id, producer_id=producer_id, topics=topics),
            3,
        )

    def end(self, client: Client, producer_id: int, *, committed: bool) -> None:
        self.send(client, EndTransaction(producer_id, 0, committed=committed))

    def fetch(self, client: Client) -> None:
        self.send(client, FetchOffsets(OffsetFetchRequestGroup(group_id=client.group_id, topics=None)))

    def delete(self, client: Client) -> None:
        self.send(client, DeleteGroup(client.group_id))

    # -- what happens to all ----------------------------------------------------------------------

    def advance(self, ms: int) -> None:
        self.shell.advance(ms, self.learn)
        self.learn()

    def reload(self, *, tell: bool) -> None:
        gone = [] if tell else list(self.shell.open)
        self.shell.reload(tell=tell)
        for token in gone:
            self.waiting.pop(token, None)
        self.learn()

    def control(self, verb: str, client: Client) -> None:
        now = self.shell.clock.now()
        name = client.instance if verb == "fence_instance" else client.member_id
        self.shell.take(getattr(self.shell.shard, verb)(client.group_id, name or "", now))
        self.learn()
