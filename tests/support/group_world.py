"""The words of group scenarios: clients called A, B, C talk to one coordinator shard.

A client's ids are "<name>-<n>" (static: "<instance>-<n>"). It remembers its id, generation and settings and uses them
unless a command says otherwise (`id=`, `g=`, `i=`, `v=`, `S=`, `R=`). Answers are printed as the wire of that version
carries them: encoded, decoded, then shown. See tests/scenarios/group/README.md for the words.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from dataclasses import replace as changed

from partita.group.config import GroupConfig
from partita.group.requests import DeleteGroup, DescribeGroup, EndTransaction, FetchOffsets, ListShardGroups
from partita.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
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
from support.group_answers import show_answer, show_group, show_note, show_record
from support.group_shell import GroupShell
from support.scenario_text import Runner

GROUP = "g"


def subscription(topics: str) -> bytes:
    """Consumer-protocol metadata, "t1+t2" for two topics; "!x" and "-" stand for raw bytes and none."""
    if topics.startswith("!"):
        return topics[1:].encode()
    if topics == "-":
        return b""
    return b"\x00\x00" + ConsumerProtocolSubscription(topics=topics.split("+")).encode(0)


def protocols(text: str) -> list[JoinGroupRequestProtocol]:
    """ "range:t1,rr:t2" (topics default to t)."""
    pairs = [part.partition(":") for part in text.split(",") if part]
    return [JoinGroupRequestProtocol(name=name, metadata=subscription(topics or "t")) for name, _, topics in pairs]


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


class World:
    def __init__(self) -> None:
        self.shell = GroupShell()
        self.clients: dict[str, Client] = {}
        self.senders: dict[int, tuple[str, int]] = {}
        self.out: list[str] = []
        self.shown = 0
        self.quiet = False

    # -- running ----------------------------------------------------------------------------------

    def run(self, commands: list[str]) -> list[str]:
        self.out = []
        for command in commands:
            self.command(command)
        return self.out

    def command(self, line: str) -> None:
        words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if line.startswith("+"):
            self.shell.advance(int(plain[0]), lambda: self.flush(timed=True))
            return
        verb = getattr(self, f"do_{plain[0].replace('-', '_')}", None)
        if verb is not None:
            verb(plain[1:], options)
            self.flush()
        else:
            self.request(plain, options, words)

    def request(self, plain: list[str], options: dict[str, str], words: list[str]) -> None:
        client = self.clients.setdefault(plain[0], Client(plain[0]))
        parts = [word for word in words[2:] if "=" in word and word.split("=")[0] not in _OPTIONS]
        version = int(options.get("v", client.version))
        message = getattr(self, f"send_{plain[1]}")(client, options, [*plain[2:], *parts], version)
        token = self.shell.send(message, version, client.name, transaction_open="closed" not in plain)
        self.senders[token] = (client.name, version)
        self.flush()
        if token in self.shell.open and not self.quiet:
            self.out.append(f"{client.name} waits")

    def flush(self, *, timed: bool = False) -> None:
        """Show the answers that came, and let each client learn from its own."""
        for reply in self.shell.take_fresh():
            name, version = self.senders[reply.token]  # type: ignore[index]
            if isinstance(reply.message, JoinGroupResponse):
                client = self.clients[name]
                if reply.message.error_code in (0, 79):
                    client.member_id = reply.message.member_id
                if not reply.message.error_code:
                    client.generation = reply.message.generation_id
            if not self.quiet:
                at = f"@{self.shell.clock.now().mono_ms} " if timed else ""
                self.out.append(f"{at}{name} <- {show_answer(reply.message, version)}")

    def known(self, client: Client, options: dict[str, str]) -> tuple[str, int, str | None]:
        member_id = options.get("id", client.member_id)
        if member_id in self.clients:
            member_id = self.clients[member_id].member_id
        instance = options.get("i", client.instance)
        return member_id, int(options.get("g", client.generation)), instance or None

    # -- requests ---------------------------------------------------------------------------------

    def send_join(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> JoinGroupRequest:
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
            protocols=protocols(client.protocols),
            reason=options.get("reason"),
        )

    def send_sync(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> SyncGroupRequest:
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

    def send_heartbeat(
        self, client: Client, options: dict[str, str], plain: list[str], version: int
    ) -> HeartbeatRequest:
        member_id, generation, instance = self.known(client, options)
        return HeartbeatRequest(
            group_id=options.get("group", GROUP),
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )

    def send_leave(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> LeaveGroupRequest:
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

    def send_commit(
        self, client: Client, options: dict[str, str], plain: list[str], version: int
    ) -> OffsetCommitRequest:
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

    def send_fetch(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> FetchOffsets:
        stable = "stable" in plain
        wanted = [partition_of(word) for word in plain if word not in ("all", "stable")]
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[number]) for topic, number in wanted]
        group = OffsetFetchRequestGroup(group_id=options.get("group", GROUP), topics=None if "all" in plain else topics)
        return FetchOffsets(group, require_stable=stable)

    def send_forget(
        self, client: Client, options: dict[str, str], plain: list[str], version: int
    ) -> OffsetDeleteRequest:
        """`X forget t-0` is OffsetDelete."""
        return OffsetDeleteRequest(
            group_id=options.get("group", GROUP),
            topics=[
                OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=number)])
                for topic, number in map(partition_of, plain)
            ],
        )

    def send_txn(
        self, client: Client, options: dict[str, str], plain: list[str], version: int
    ) -> TxnOffsetCommitRequest:
        """`A txn pid=7 t-0=5` commits in producer 7's transaction; A's generation counts only with `member`."""
        member_id, generation, instance = self.known(client, options)
        pairs = [part.split("=") for part in plain if "=" in part]
        as_member = "member" in plain
        return TxnOffsetCommitRequest(
            group_id=options.get("group", GROUP),
            producer_id=int(options["pid"]),
            producer_epoch=int(options.get("pe", 0)),
            generation_id=generation if as_member else int(options.get("g", -1)),
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

    def send_marker(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> EndTransaction:
        return EndTransaction(int(options["pid"]), int(options.get("pe", 0)), committed="commit" in plain)

    def send_describe(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> DescribeGroup:
        return DescribeGroup(options.get("group", GROUP))

    def send_delete(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> DeleteGroup:
        return DeleteGroup(options.get("group", GROUP))

    def send_list(self, client: Client, options: dict[str, str], plain: list[str], version: int) -> ListShardGroups:
        split = {name: [word for word in options.get(name, "").split(",") if word] for name in ("states", "types")}
        return ListShardGroups(split["states"], split["types"])

    # -- what a test may cause, and look at -------------------------------------------------------

    def do_config(self, plain: list[str], options: dict[str, str]) -> None:
        names = {f.name for f in fields(GroupConfig)}
        given = {name.replace(".", "_"): int(value) for name, value in options.items()}
        assert given.keys() <= names, f"unknown settings in {given}"
        self.shell.config = changed(self.shell.config, **given)
        self.shell.shard.config = self.shell.config

    def do_stable(self, plain: list[str], options: dict[str, str]) -> None:
        """Bring these clients into one stable group; the first leads. `A/i` is static with instance id i."""
        self.quiet = True
        own = " ".join(f"{name}={value}" for name, value in options.items())
        for word in plain:
            name, slash, instance = word.partition("/")
            self.command(f"{name} join {own}" + (f" i={instance}" if slash else ""))
            if not slash and self.clients[name].version >= 4:
                self.command(f"{name} join {own}")
        names = [word.partition("/")[0] for word in plain]
        while any(self.clients[name].generation < 0 for name in names):
            before = self.shell.clock.now().mono_ms
            self.shell.advance(1000, self.flush)
            assert self.shell.clock.now().mono_ms - before < 60_000
        for name in reversed(names):
            self.command(f"{name} sync " + " ".join(f"{n}={n.lower()}" for n in names if name == names[0]))
        self.flush()
        self.quiet = False
        self.do_group([], {})

    def do_group(self, plain: list[str], options: dict[str, str]) -> None:
        for group_id in plain or [GROUP]:
            group = self.shell.shard._shard.groups.get(group_id)
            self.out.append(f"{group_id} absent" if group is None else show_group(group))

    def do_records(self, plain: list[str], options: dict[str, str]) -> None:
        """Records written since the last look."""
        entries, self.shown = self.shell.log[self.shown :], len(self.shell.log)
        lines = [line for entry in entries for line in show_record(entry)]
        self.out += lines or ["no records"]

    def do_notes(self, plain: list[str], options: dict[str, str]) -> None:
        wanted = [note for note in self.shell.notes if not plain or type(note).__name__ in plain]
        self.out += [show_note(note) for note in wanted] or ["no notes"]
        self.shell.notes.clear()

    def do_jump(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.jump(int(plain[0]))

    def do_reload(self, plain: list[str], options: dict[str, str]) -> None:
        """Resign and be elected again; `crash` tells nobody, `unclean`: records may be lost, `silences`: handed on."""
        silences = self.shell.shard.silences(self.shell.clock.now()) if "silences" in plain else None
        self.shell.reload(tell="crash" not in plain, clean="unclean" not in plain, silences=silences)

    def do_lose(self, plain: list[str], options: dict[str, str]) -> None:
        """The last batches of the log are lost, then reload by `crash`."""
        del self.shell.log[-int(plain[0]) :]

    def do_unload(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.unload())

    def do_fail_append(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.failing_appends += int(plain[0]) if plain else 1

    def do_evict(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.evict_member(GROUP, self._id(plain[0]), self.shell.clock.now()))

    def do_expire(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.expire_session(GROUP, self._id(plain[0]), self.shell.clock.now()))

    def do_fence(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.fence_instance(GROUP, plain[0], self.shell.clock.now()))

    def do_topics_deleted(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.on_topics_deleted(plain, self.shell.clock.now()))
        self.shell.advance(0)

    def do_compact(self, plain: list[str], options: dict[str, str]) -> None:
        """Keep only the last record per key, as a cleaner would."""
        from support.group_compaction import compacted

        self.shell.log = compacted(self.shell.log)

    def do_heartbeats(self, plain: list[str], options: dict[str, str]) -> None:
        """`heartbeats A B every=3000 for=60000`: these stay alive; answers are shown when they change."""
        last = {name: f"{name} <- Heartbeat NONE" for name in plain}
        for _ in range(int(options["for"]) // int(options["every"])):
            self.command(f"+{options['every']}")
            for name in plain:
                self.command(f"{name} heartbeat")
                if self.out[-1] == last[name]:
                    del self.out[-1]
                else:
                    last[name] = self.out[-1]

    def _id(self, name: str) -> str:
        return self.clients[name].member_id if name in self.clients else name


_OPTIONS = {
    *("id", "g", "i", "v", "S", "R", "p", "type", "group", "reason", "retention", "epoch"),
    *("meta", "pid", "pe", "states", "types"),
}


def _metadata(options: dict[str, str]) -> str | None:
    """`meta=null`, `meta=x*4096` (repeated), or the text itself."""
    text = options.get("meta", "")
    if text == "null":
        return None
    unit, star, times = text.rpartition("*")
    return unit * int(times) if star else text


def new_runner() -> Runner:
    return World().run
