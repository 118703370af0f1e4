"""100 and 500 members over own sockets: from the first JoinGroup to the last SyncGroup answer; then one of 500 leaves.

The members are as thin as can be (ready-made frames, one epoll), so that what is measured is the broker. The floor is
an echo that gets as many requests: members and their sockets without a broker.
"""

from __future__ import annotations

import select
import socket
import statistics
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from itertools import count

from harness import QUICK, Server, brokers, c_server, left_out, report, row, row_is_wanted, wanted, wire_program
from table import C_ECHO, OURS

from partita.protocol.framing import encode_request
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Message

ROUNDS = 2 if QUICK else 7
FEW, MANY = 100, 500
ECHOED = 3
"""Requests of a member until it is synced: two joins, since the first is answered with a member id, and a sync."""
JOIN, HEARTBEAT, LEAVE, SYNC, FIND = 11, 12, 13, 14, 10
ANY_MEMBER = "the member id goes here"
REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED = 27, 22, 79
READY = (0, 25, 69)
"""What a coordinator that is ready answers to a stranger: nothing wrong, UNKNOWN_MEMBER_ID, or GROUP_ID_NOT_FOUND."""
LIMIT_SECONDS = 20
SILENCE_SECONDS = 0.02
"""After so much silence synced members ask whether the group rebalances without them: some generations are short."""
JOIN_VERSION = 5
SUBSCRIPTION = struct.pack(">hih30si", 0, 1, 30, b"a topic of thirty characters..", -1)
"""Version 0: topics and no user data. Kafka's coordinator reads it, and does not answer a join that it cannot read."""


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def frame(api_key: int, version: int, message: Message) -> bytes:
    return b"".join(encode_request(api_key, version, 7, "bench", message))


def template(api_key: int, version: int, message: Message) -> Callable[[bytes], bytes]:
    """A function that gives the frame of `message` for any member id."""
    head, tail = frame(api_key, version, message)[4:].split(string(ANY_MEMBER.encode()))

    def filled(member_id: bytes) -> bytes:
        body = head + string(member_id) + tail
        return struct.pack(">i", len(body)) + body

    return filled


@cache
def join_frame(group: str) -> Callable[[bytes], bytes]:
    request = JoinGroupRequest(
        group_id=group, session_timeout_ms=60_000, rebalance_timeout_ms=60_000, member_id=ANY_MEMBER,
        protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )  # fmt: skip
    return template(JOIN, JOIN_VERSION, request)


@cache
def sync_frame(group: str, generation: int) -> Callable[[bytes], bytes]:
    return template(SYNC, 3, SyncGroupRequest(group_id=group, generation_id=generation, member_id=ANY_MEMBER))


@cache
def heartbeat_frame(group: str, generation: int) -> Callable[[bytes], bytes]:
    return template(HEARTBEAT, 3, HeartbeatRequest(group_id=group, generation_id=generation, member_id=ANY_MEMBER))


def leader_frame(group: str, answer: bytes) -> bytes:
    """The leader's SyncGroup: an assignment for each member it was told of."""
    joined = JoinGroupResponse.decode(answer[8:], JOIN_VERSION)
    shares = [SyncGroupRequestAssignment(member_id=m.member_id, assignment=b"a" * 40) for m in joined.members]
    return frame(
        SYNC,
        3,
        SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=shares
        ),
    )


class Member:
    """One member over its own connection: joins and syncs, and beats when it is told to."""

    def __init__(self, group: str, port: int) -> None:
        self.group = group
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.member_id = b""
        self.is_synced = False
        self._asked = JOIN
        self._generation = -1
        self._received = b""

    def join(self) -> None:
        self.is_synced, self._asked = False, JOIN
        self.socket.sendall(join_frame(self.group)(self.member_id))

    def beat(self) -> None:
        self._asked = HEARTBEAT
        self.socket.sendall(heartbeat_frame(self.group, self._generation)(self.member_id))

    def ask(self, request: bytes) -> bytes:
        """Send one request and wait for its answer, its length included."""
        self.socket.sendall(request)
        size = self.socket.recv(4, socket.MSG_WAITALL)
        return size + self.socket.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)

    def on_readable(self) -> None:
        self._received += self.socket.recv(1 << 20)
        if len(self._received) < 4 or len(self._received) < 4 + struct.unpack_from(">i", self._received)[0]:
            return
        answer, self._received = self._received, b""
        (error,) = struct.unpack_from(">h", answer, 12)
        if self._asked == JOIN:
            self._on_joined(answer, error)
        elif error in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION):
            self.join()
        elif self._asked == HEARTBEAT:
            assert not error, error
        else:
            assert not error, error
            self.is_synced = True

    def _on_joined(self, answer: bytes, error: int) -> None:
        (generation,) = struct.unpack_from(">i", answer, 14)
        self._generation = generation
        at, strings = 18, []
        for _ in range(3):
            size = max(0, struct.unpack_from(">h", answer, at)[0])
            strings.append(answer[at + 2 : at + 2 + size])
            at += 2 + size
        _, leader, self.member_id = strings
        if error in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS):
            self.join()
            return
        assert not error, error
        self._asked = SYNC
        leads = leader == self.member_id
        self.socket.sendall(
            leader_frame(self.group, answer) if leads else sync_frame(self.group, generation)(self.member_id)
        )


def until_synced(members: list[Member]) -> None:
    waiting = {member.socket.fileno(): member for member in members}
    limit = time.monotonic() + LIMIT_SECONDS
    with select.epoll() as epoll:
        for fd in waiting:
            epoll.register(fd, select.EPOLLIN)
        left = len(members)
        while left:
            ready = epoll.poll(SILENCE_SECONDS, 512)
            for fd, _ in ready:
                member = waiting[fd]
                was_synced = member.is_synced
                member.on_readable()
                left += was_synced - member.is_synced
            if not ready:
                for member in members:
                    if member.is_synced:
                        member.beat()
            if time.monotonic() > limit:
                raise TimeoutError(f"{left} of {len(members)} members are not synced after {LIMIT_SECONDS} s")


def until_echoed(members: list[Member]) -> None:
    """Send as many requests as joining takes, each when the one before has come back."""
    for _ in range(ECHOED):
        for member in members:
            member.socket.sendall(join_frame(member.group)(member.member_id))
        for member in members:
            member.socket.recv(1 << 16)


def wait_for_coordinator(group: str, port: int) -> None:
    member = Member(group, port)
    leave = frame(LEAVE, 3, LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="nobody")]))
    for _ in range(400):
        member.ask(frame(FIND, 1, FindCoordinatorRequest(key=group)))
        if struct.unpack_from(">h", member.ask(leave), 12)[0] in READY:
            break
        time.sleep(0.05)
    member.socket.close()


def one_round(group: str, server: Server, size: int) -> tuple[float, float]:
    """Milliseconds until all are synced, and until all but one are synced again."""
    wait_for_coordinator(group, server.port)
    members = [Member(group, server.port) for _ in range(size)]
    started = time.perf_counter()
    for member in members:
        member.join()
    until_synced(members)
    joined = time.perf_counter()
    leaver = members.pop()
    leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=leaver.member_id.decode())])
    leaver.ask(frame(LEAVE, 3, leave))
    for member in members:
        member.join()
    until_synced(members)
    left = time.perf_counter()
    for member in (leaver, *members):
        member.socket.close()
    return (joined - started) * 1000, (left - joined) * 1000


def echo_round(group: str, server: Server, size: int) -> tuple[float, float]:
    """The same against the echo; leaving takes one request less for each."""
    members = [Member(group, server.port) for _ in range(size)]
    started = time.perf_counter()
    until_echoed(members)
    took = (time.perf_counter() - started) * 1000
    for member in members:
        member.socket.close()
    return took, took * (ECHOED - 1) / ECHOED


def measure(servers: list[Server], size: int) -> tuple[dict[str, float], dict[str, float]]:
    """Medians of joining and of leaving, the servers in turns."""
    rounds: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
    cpu = {server.name: server.cpu_s() for server in servers}
    failed: set[str] = set()
    for _ in range(ROUNDS):
        for server in servers:
            one = echo_round if server.name == C_ECHO else one_round
            try:
                if server.name not in failed:
                    rounds[server.name].append(one(f"bench-{next(_numbers)}", server, size))
            except (TimeoutError, AssertionError, OSError, struct.error) as problem:
                failed.add(server.name)
                left_out("groups", server.name, f"{size} members: {problem!r}")
    for server in servers:
        used = (server.cpu_s() - cpu[server.name]) * 1000 / ROUNDS
        report("groups", server=server.name, members=size, **{"server CPU ms a round": used})
    found = {name: values for name, values in rounds.items() if name not in failed}
    joined, left = ({n: statistics.median(v[i] for v in values) for n, values in found.items()} for i in (0, 1))
    return joined, left


_numbers = count()


def main() -> None:
    program = wire_program("groups")
    with ExitStack() as stack:
        servers = brokers(stack, "groups")
        if program is not None and wanted(C_ECHO):
            servers.append(stack.enter_context(c_server(program)))
        assert servers[0].name == OURS
        if row_is_wanted("100 members joined"):
            row("100 members joined", measure(servers, FEW)[0])
        if row_is_wanted("500 members joined") or row_is_wanted("one of 500 leaves"):
            joined, left = measure(servers, MANY)
            row("500 members joined", joined)
            row("one of 500 leaves", left)


if __name__ == "__main__":
    main()
