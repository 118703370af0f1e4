"""Requests as group scenarios spell them: words become messages of one client.

A method per kind of request, called by the second word of a command.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.assignors.interface import Subscription
from partita.assignors.payloads import encode_subscription
from partita.group.requests import DeleteGroup, DescribeGroup, EndTransaction, FetchOffsets, ListShardGroups
from partita.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "g"


def subscription(topics: str, generation: int | None = None) -> bytes:
    """Consumer-protocol metadata, "t1+t2" for two topics; "!x" and "-" stand for raw bytes and none.

    With a generation it is what clients of today send, whose bytes differ at every rejoin.
    """
    if topics.startswith("!"):
        return topics[1:].encode()
    if topics == "-":
        return b""
    if generation is not None:
        return encode_subscription(Subscription(topics.split("+"), generation_id=generation))
    return b"\x00\x00" + ConsumerProtocolSubscription(topics=topics.split("+")).encode(0)


def protocols(text: str, generation: int | None = None) -> list[JoinGroupRequestProtocol]:
    """ "range:t1,rr:t2" (topics default to t)."""
    pairs = [part.partition(":") for part in text.split(",") if part]
    return [
        JoinGroupRequestProtocol(name=name, metadata=subscription(topics or "t", generation))
        for name, _, topics in pairs
    ]


def partition_of(text: str) -> tuple[str, int]:
    topic, _, number = text.rpartition("-")
    return topic, int(number)


@dataclass
class Client:
    name: str
    member_id: str = ""
    generation: int = -1
    instance: str | None = None
    version: int = 9
    session: int = 10_000
    rebalance: int = 20_000
    kind: str = "consumer"
    protocols: str = "range"


class Requests:
    """Makes requests; `clients` are those known by name so far."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self.clients = clients

    def known(self, client: Client, options: dict[str, str]) -> tuple[str, int, str | None]:
        member_id = options.get("id", client.member_id)
        if member_id in self.clients:
            member_id = self.clients[member_id].member_id
        instance = options.get("i", client.instance)
        return member_id, int(options.get("g", client.generation)), instance or None

    def join(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> JoinGroupRequest:
        for name, attribute in (("S", "session"), ("R", "rebalance")):
            if name in options:
                setattr(client, attribute, int(options[name]))
        client.kind = options.get("type", client.kind)
        client.protocols = options.get("p", client.protocols)
        client.version = version
        if "i" in options and "id" not in options:
            client.instance = options["i"] or None
        if "new" in plain:
            client.member_id = ""
        member_id, _, instance = self.known(client, options)
        return JoinGroupRequest(
            group_id=options.get("group", GROUP),
            session_timeout_ms=client.session,
            rebalance_timeout_ms=client.rebalance,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=client.kind,
            protocols=protocols(client.protocols, int(options["gen"]) if "gen" in options else None),
            reason=options.get("reason"),
        )

    def sync(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> SyncGroupRequest:
        member_id, generation, instance = self.known(client, options)
        pairs = [part.split("=") for part in plain if "=" in part]
        named = version >= 5 and "unnamed" not in plain
        return SyncGroupRequest(
            group_id=options.get("group", GROUP),
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=options.get("type", client.kind) if named else None,
            protocol_name=options.get("p", client.protocols.split(",")[0].split(":")[0]) if named else None,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=self.clients[who].member_id if who in self.clients else who, assignment=what.encode()
                )
                for who, what in pairs
            ],
        )

    def heartbeat(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> HeartbeatRequest:
        member_id, generation, instance = self.known(client, options)
        return HeartbeatRequest(
            group_id=options.get("group", GROUP),
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )

    def leave(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> LeaveGroupRequest:
        """`A leave` for itself; `X leave B C/inst /inst` names others: a client or id, and an instance."""
        if not plain:
            member_id, _, instance = self.known(client, options)
            plain = [member_id if instance is None else f"{member_id}/{instance}"]
        entries = []
        for word in plain:
            name, slash, instance = word.partition("/")
            member_id = self.clients[name].member_id if name in self.clients else name
            entries.append(MemberIdentity(member_id=member_id, group_instance_id=instance if slash else None))
        return LeaveGroupRequest(group_id=options.get("group", GROUP), members=entries, member_id=entries[0].member_id)

    def commit(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> OffsetCommitRequest:
        member_id, generation, instance = self.known(client, options)
        return OffsetCommitRequest(
            group_id=options.get("group", GROUP),
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=int(options.get("retention", -1)),
            topics=[
                OffsetCommitRequestTopic(
                    topic_id=topic.encode().rjust(16, b"\x00"),
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=int(value),
                            committed_leader_epoch=int(options.get("epoch", -1)),
                            committed_metadata=_metadata(options),
                        )
                    ],
                )
                for part, value in (pair.split("=") for pair in plain)
                for topic, number in [partition_of(part)]
            ],
        )

    def fetch(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> FetchOffsets:
        stable = "stable" in plain
        wanted = [partition_of(word) for word in plain if word not in ("all", "stable")]
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[number]) for topic, number in wanted]
        group = OffsetFetchRequestGroup(group_id=options.get("group", GROUP), topics=None if "all" in plain else topics)
        return FetchOffsets(group, require_stable=stable)

    def forget(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> OffsetDeleteRequest:
        """`X forget t-0` is OffsetDelete."""
        return OffsetDeleteRequest(
            group_id=options.get("group", GROUP),
            topics=[
                OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=number)])
                for topic, number in map(partition_of, plain)
            ],
        )

    def txn(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> TxnOffsetCommitRequest:
        """`A txn pid=7 t-0=5` commits in producer 7's transaction; A's generation counts only with `member`."""
        member_id, generation, instance = self.known(client, options)
        pairs = [part.split("=") for part in plain if "=" in part]
        as_member = "member" in plain
        return TxnOffsetCommitRequest(
            group_id=options.get("group", GROUP),
            producer_id=int(options["pid"]),
            producer_epoch=int(options.get("pe", 0)),
            generation_id_or_member_epoch=generation if as_member else int(options.get("g", -1)),
            member_id=member_id if as_member else options.get("id", ""),
            group_instance_id=instance if as_member else None,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=number, committed_offset=int(value), committed_metadata=_metadata(options)
                        )
                    ],
                )
                for part, value in pairs
                for topic, number in [partition_of(part)]
            ],
        )

    def marker(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> EndTransaction:
        return EndTransaction(int(options["pid"]), int(options.get("pe", 0)), committed="commit" in plain)

    def describe(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> DescribeGroup:
        return DescribeGroup(options.get("group", GROUP))

    def delete(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> DeleteGroup:
        return DeleteGroup(options.get("group", GROUP))

    def list(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> ListShardGroups:
        split = {name: [word for word in options.get(name, "").split(",") if word] for name in ("states", "types")}
        return ListShardGroups(split["states"], split["types"])


def _metadata(options: dict[str, str]) -> str | None:
    """`meta=null`, `meta=x*4096` (repeated), or the text itself."""
    text = options.get("meta", "")
    if text == "null":
        return None
    unit, star, times = text.rpartition("*")
    return unit * int(times) if star else text
