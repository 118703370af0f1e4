"""The process of a coordinator in design 2: Kafka's group requests on one side, ZooKeeper on the other.

Run as `python -m partita.designs.members.coordinator JSON`; it prints its port as a JSON line and ends with its
standard input. Plans are written by one thread, so that a ZooKeeper that is cut off holds up nothing else.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from dataclasses import dataclass
from queue import Queue, SimpleQueue
from typing import Any

from partita.assignors.payloads import decode_subscription, encode_assignment
from partita.designs.members.wire import receive
from partita.designs.members.worker import sayer
from partita.designs.rules import nodes
from partita.designs.rules.coordinator_two import (
    Answer,
    CoordinatorTwo,
    Effect,
    Group,
    Join,
    RemoveNode,
    WritePlan,
)
from partita.designs.rules.requests import Children, Create, Delete, Exists, Failure, Get, Node, Put, WatchEvent
from partita.designs.zookeeper.client import Client, Closed
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import encode_response, read_request_header
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from partita.protocol.primitives import Message

OTHERS_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """One coordinator of `count`: its number, ZooKeeper's address, the length of its session."""

    number: int
    count: int
    zookeeper: str
    session_ms: int


class CoordinatorProcess:
    """Serves slots of groups; the lock guards the rules, and nothing waits while holding it."""

    def __init__(self, settings: CoordinatorSettings) -> None:
        self._settings = settings
        self._say = sayer(f"coordinator-{settings.number}")
        self._rules = CoordinatorTwo(session_ms_min=settings.session_ms, session_ms_max=settings.session_ms * 5)
        self._lock = threading.Lock()
        self._armed = threading.Event()
        self._plans: Queue[WritePlan | RemoveNode] = Queue()
        self._watched: set[str] = set()
        self._client = Client(
            settings.zookeeper,
            session_timeout_ms=settings.session_ms,
            on_event=self._on_event,
            on_new_session=self._on_new_session,
        )

    def run(self) -> None:
        """Listen, stand for election, serve; never returns."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = listener.getsockname()[1]
        self._client.start()
        for work in (self._write_plans, self._mind_deadlines, self._mind_connection):
            threading.Thread(target=work, daemon=True).start()
        self._say("listening", port=self.port)
        self._stand_for_election()
        self._say("elected", slots=len(self._rules.epochs))
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _stand_for_election(self) -> None:
        """Try its own slots first and the others a second later; watch those that another coordinator has."""
        preferred = [n for n in range(nodes.SLOT_COUNT) if n % self._settings.count == self._settings.number]
        for number in preferred:
            self._try_slot(number)

        def rest() -> None:
            for number in range(nodes.SLOT_COUNT):
                if number not in preferred:
                    self._try_slot(number)

        timer = threading.Timer(OTHERS_WAIT_S, rest)
        timer.daemon = True
        timer.start()

    def _try_slot(self, number: int) -> None:
        """Create the slot's node, raise its epoch by a write on its version, take over its groups."""
        if self._client.ask(Create(nodes.slot(number), self._name, ephemeral=True)) is not None:
            self._client.ask(Exists(nodes.slot(number), watch=True))
            return
        path = nodes.epoch(number)
        if self._client.ask(Create(path, "0")) is None:
            version = 0
        else:
            found = self._client.ask(Get(path))
            if not isinstance(found, Node) or self._client.ask(Put(path, "", found.version)) is not None:
                self._client.ask(Delete(nodes.slot(number)))
                return
            version = found.version + 1
        groups = self._groups_of(number)
        with self._lock:
            self._rules.take(number, version, groups)
        for group in groups:
            self._watch_members(group.name)

    @property
    def _name(self) -> str:
        return f"{self._settings.number} 127.0.0.1:{self.port}"

    def _groups_of(self, slot: int) -> list[Group]:
        """Return what ZooKeeper stores of the groups of a slot: generation and plan."""
        names = self._client.ask(Children("/consumers"))
        found = []
        for name in names if isinstance(names, tuple) else ():
            if nodes.slot_of(name) == slot:
                group = Group(name)
                generation = self._client.ask(Get(nodes.generation(name)))
                if isinstance(generation, Node):
                    group.generation, group.has_generation_node = int(generation.data), True
                group.written = self._plan_of(name)
                group.plan = dict(group.written)
                found.append(group)
        return found

    def _plan_of(self, group: str) -> dict[tuple[str, int], str]:
        plan = {}
        topics = self._client.ask(Children(f"/consumers/{group}/owners"))
        for topic in topics if isinstance(topics, tuple) else ():
            numbers = self._client.ask(Children(f"/consumers/{group}/owners/{topic}"))
            for number in numbers if isinstance(numbers, tuple) else ():
                owner = self._client.ask(Get(nodes.owner(group, topic, int(number))))
                if isinstance(owner, Node):
                    plan[topic, int(number)] = owner.data
        return plan

    # ZooKeeper tells

    def _on_event(self, event: WatchEvent) -> None:
        path = event.path
        if path.startswith(f"{nodes.SLOTS}/"):
            self._try_slot(int(path.rpartition("/")[2]))
        elif path.startswith(f"{nodes.TOPICS}/"):
            self._read_topic(path.rpartition("/")[2])
        else:
            group = path.split("/")[2]
            self._client.ask(Exists(path, watch=True))
            names = self._client.ask(Children(path, watch=True))
            if isinstance(names, tuple):
                with self._lock:
                    self._carry_out(self._rules.node_gone(group, names, now_ms()))

    def _on_new_session(self) -> None:
        """Drop all slots: they went with the old session. Every waiting member is sent away."""
        self._say("session", id=self._client.session)
        with self._lock:
            for slot in list(self._rules.epochs):
                self._carry_out(self._rules.resign(slot))
        self._watched.clear()
        self._stand_for_election()

    def _watch_members(self, group: str) -> None:
        path = nodes.members(group)
        if path not in self._watched:
            self._watched.add(path)
            self._client.ask(Children(path, watch=True))

    def _read_topic(self, topic: str) -> None:
        path = nodes.topic(topic)
        self._watched.add(path)
        self._client.ask(Exists(path, watch=True))
        found = self._client.ask(Get(path, watch=True))
        if isinstance(found, Node):
            with self._lock:
                self._carry_out(self._rules.topic_has(topic, nodes.partitions_in(found.data), now_ms()))

    def _serve(self, connection: socket.socket) -> None:
        try:
            while True:
                key, version, correlation, client_id, reader = read_request_header(receive(connection))
                handler, request = HANDLERS[key]
                answer = getattr(self, handler)(request.read(reader, version), client_id or "")
                connection.sendall(b"".join(encode_response(key, version, correlation, answer)))
        except (OSError, Closed):
            connection.close()

    def _find(self, request: FindCoordinatorRequest, _: str) -> Message:
        found = self._client.ask(Get(nodes.slot(nodes.slot_of(request.key))))
        if not isinstance(found, Node):
            return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, node_id=-1, port=-1)
        number, _, address = found.data.partition(" ")
        host, _, port = address.rpartition(":")
        return FindCoordinatorResponse(node_id=int(number), host=host, port=int(port))

    def _join(self, request: JoinGroupRequest, client_id: str) -> Message:
        protocol = request.protocols[0]
        topics = frozenset(decode_subscription(protocol.metadata).topics)
        with self._lock:
            is_served = self._rules.refusal(request.group_id) is ErrorCode.NONE
            unknown = topics - self._rules.partitions.keys()
        for topic in unknown if is_served else ():
            self._read_topic(topic)
        if is_served:
            self._watch_members(request.group_id)
        waiting: SimpleQueue[Answer] = SimpleQueue()
        join = Join(request.group_id, client_id, request.member_id, request.session_timeout_ms, protocol.name, topics)
        with self._lock:
            self._carry_out(self._rules.join(waiting, join, now_ms()))
        self._armed.set()
        answer = waiting.get()
        share = encode_assignment(answer.partitions, version=0)
        return JoinGroupResponse(
            error_code=answer.error, generation_id=answer.generation, protocol_name=protocol.name, leader="",
            member_id=answer.member_id, members=[JoinGroupResponseMember(member_id=answer.member_id, metadata=share)],
        )  # fmt: skip

    def _heartbeat(self, request: HeartbeatRequest, _: str) -> Message:
        with self._lock:
            error = self._rules.heartbeat(request.group_id, request.member_id, request.generation_id, now_ms())
        return HeartbeatResponse(error_code=error)

    def _commit(self, request: OffsetCommitRequest, _: str) -> Message:
        asked = {(t.name, p.partition_index): p.committed_offset for t in request.topics for p in t.partitions}
        with self._lock:
            errors = self._rules.commit(
                request.group_id, request.member_id, request.generation_id_or_member_epoch, asked
            )
        for (topic, number), error in errors.items():
            if error is ErrorCode.NONE:
                path, content = nodes.offset(request.group_id, topic, number), str(asked[topic, number])
                if self._client.ask(Put(path, content)) is Failure.NO_NODE:
                    self._client.ask(Create(path, content))
        topics = {topic for topic, _ in asked}
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=number, error_code=error)
                        for (its, number), error in errors.items()
                        if its == topic
                    ],
                )
                for topic in sorted(topics)
            ]
        )

    def _fetch_offsets(self, request: OffsetFetchRequest, _: str) -> Message:
        topics = []
        for topic in request.topics or []:
            partitions = []
            for number in topic.partition_indexes:
                found = self._client.ask(Get(nodes.offset(request.group_id, topic.name, number)))
                offset = int(found.data) if isinstance(found, Node) else -1
                partitions.append(
                    OffsetFetchResponsePartition(partition_index=number, committed_offset=offset, metadata="")
                )
            topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
        return OffsetFetchResponse(topics=topics)

    def _carry_out(self, effects: list[Effect]) -> None:
        """Send answers at once and queue writes for the thread that writes. Called with the lock held."""
        for effect in effects:
            if isinstance(effect, Answer):
                assert isinstance(effect.token, SimpleQueue), "a join waits with a queue"
                effect.token.put(effect)
            else:
                self._plans.put(effect)
        self._armed.set()

    def _write_plans(self) -> None:
        while True:
            effect = self._plans.get()
            if isinstance(effect, RemoveNode):
                self._client.ask(Delete(effect.path))
                continue
            answer = self._client.ask(effect.multi)
            self._say("plan", generation=effect.generation, group=effect.group, failed=answer and str(answer))
            with self._lock:
                self._carry_out(self._rules.planned(effect.group, answer is None, now_ms()))
            if answer is not None:
                self._stand_again(nodes.slot_of(effect.group))

    def _stand_again(self, slot: int) -> None:
        """After a failed write of a plan: give the slot up, if it is still ours, and try to win it again."""
        holder = self._client.ask(Get(nodes.slot(slot)))
        if isinstance(holder, Node) and holder.data == self._name:
            self._client.ask(Delete(nodes.slot(slot)))
        self._try_slot(slot)

    def _mind_deadlines(self) -> None:
        while True:
            with self._lock:
                due = self._rules.next_deadline_ms()
                if due is not None and due <= now_ms():
                    self._carry_out(self._rules.on_deadline(now_ms()))
                    continue
                self._armed.clear()
            self._armed.wait(None if due is None else max(due - now_ms(), 1) / 1000)

    def _mind_connection(self) -> None:
        """Stop serving after a session's length without ZooKeeper, by the own clock: another may coordinate by then."""
        while True:
            silent_s = self._client.silent_s
            if silent_s * 1000 > self._settings.session_ms:
                with self._lock:
                    for slot in list(self._rules.epochs):
                        self._carry_out(self._rules.resign(slot))
            time.sleep(self._settings.session_ms / 20_000)


HANDLERS: dict[int, tuple[str, Any]] = {
    10: ("_find", FindCoordinatorRequest),
    11: ("_join", JoinGroupRequest),
    12: ("_heartbeat", HeartbeatRequest),
    8: ("_commit", OffsetCommitRequest),
    9: ("_fetch_offsets", OffsetFetchRequest),
}


def now_ms() -> int:
    """The time of the machine's monotonic clock."""
    return int(time.monotonic() * 1000)


def main(settings: str) -> None:
    """Run until standard input ends."""

    def wait_for_end() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait_for_end, daemon=True).start()
    CoordinatorProcess(CoordinatorSettings(**json.loads(settings))).run()


if __name__ == "__main__":
    main(sys.argv[1])
