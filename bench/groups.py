"""100 and 500 members over own sockets: from the first JoinGroup to the last SyncGroup answer; then one of 500 leaves.

The members are as thin as can be (ready-made frames, one epoll), so that what is measured is the broker. The floor is
an echo that gets as many requests: members and their sockets without a broker. Members that beat send a heartbeat as
soon as they are synced and then every 5 ms, as long as the group is unfinished: so the broker rebalances under load.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import ExitStack
from functools import partial
from itertools import count

from harness import (
    Medians,
    Server,
    brokers,
    c_server,
    left_out,
    report,
    row,
    row_is_wanted,
    turns,
    wanted,
    wire_program,
)
from member_frames import (
    FIND,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    frame,
    heartbeat_frame,
    join_frame,
    leader_frame,
    sync_frame,
)
from table import C_ECHO, OURS

from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

EACH = 3
"""Groups of a broker in a round."""
FEW, MANY = 100, 500
ECHOED = 3
"""Requests of a member until it is synced: two joins, since the first is answered with a member id, and a sync."""
REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED = 27, 22, 79
READY = (0, 25, 69)
"""What a coordinator that is ready answers to a stranger: nothing wrong, UNKNOWN_MEMBER_ID, or GROUP_ID_NOT_FOUND."""
LIMIT_SECONDS = 20
BEAT_SECONDS = 0.005
SILENCE_SECONDS = 0.02
"""After so much silence synced members ask whether the group rebalances without them: some generations are short."""


class Member:
    """One member over its own connection: joins and syncs, and beats when it is told to."""

    def __init__(self, group: str, port: int) -> None:
        self.group = group
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.member_id = b""
        self.is_synced = False
        self.is_waiting = False
        """Whether an answer is due."""
        self._asked = JOIN
        self._generation = -1
        self._received = b""

    def join(self) -> None:
        self.is_synced, self.is_waiting, self._asked = False, True, JOIN
        self.socket.sendall(join_frame(self.group)(self.member_id))

    def beat(self) -> None:
        self.is_waiting, self._asked = True, HEARTBEAT
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
        answer, self._received, self.is_waiting = self._received, b"", False
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
        self.is_waiting, self._asked = True, SYNC
        leads = leader == self.member_id
        self.socket.sendall(
            leader_frame(self.group, answer) if leads else sync_frame(self.group, generation)(self.member_id)
        )


def until_synced(members: list[Member], *, beating: bool) -> float:
    """Serve all members until each is synced; return when that was, by `perf_counter`.

    `beating`: while some are not synced, the others send a heartbeat at once and then every 5 ms.
    """
    waiting = {member.socket.fileno(): member for member in members}
    limit = time.monotonic() + LIMIT_SECONDS
    with select.epoll() as epoll:
        for fd in waiting:
            epoll.register(fd, select.EPOLLIN)
        left, next_beat = len(members), time.monotonic() + BEAT_SECONDS
        synced = 0.0
        while left or any(member.is_waiting for member in members):
            ready = epoll.poll(BEAT_SECONDS if beating else SILENCE_SECONDS, 512)
            for fd, _ in ready:
                member = waiting[fd]
                was_synced = member.is_synced
                member.on_readable()
                left += was_synced - member.is_synced
                if beating and left and member.is_synced and not was_synced:
                    member.beat()
            synced = 0.0 if left else synced or time.perf_counter()
            if left and (time.monotonic() >= next_beat if beating else not ready):
                next_beat = time.monotonic() + BEAT_SECONDS
                for member in members:
                    if member.is_synced and not member.is_waiting:
                        member.beat()
            if time.monotonic() > limit:
                raise TimeoutError(f"{left} of {len(members)} members are not synced after {LIMIT_SECONDS} s")
    return synced


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


def one_round(group: str, server: Server, size: int, *, beating: bool = False) -> tuple[float, float]:
    """Milliseconds until all are synced, and until all but one are synced again."""
    wait_for_coordinator(group, server.port)
    members = [Member(group, server.port) for _ in range(size)]
    started = time.perf_counter()
    for member in members:
        member.join()
    joined = until_synced(members, beating=beating)
    leaver = members.pop()
    leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=leaver.member_id.decode())])
    parted = time.perf_counter()
    leaver.ask(frame(LEAVE, 3, leave))
    for member in members:
        member.join()
    left = until_synced(members, beating=beating)
    for member in (leaver, *members):
        member.socket.close()
    return (joined - started) * 1000, (left - parted) * 1000


def echo_round(group: str, server: Server, size: int) -> tuple[float, float]:
    """The same against the echo; leaving takes one request less for each."""
    members = [Member(group, server.port) for _ in range(size)]
    started = time.perf_counter()
    until_echoed(members)
    took = (time.perf_counter() - started) * 1000
    for member in members:
        member.socket.close()
    return took, took * (ECHOED - 1) / ECHOED


def measure(servers: list[Server], size: int, *, beating: bool = False) -> tuple[Medians, Medians]:
    """Medians of joining and of leaving, the servers in turns."""
    rounds: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
    cpu = {server.name: server.cpu_s() for server in servers}
    failed: set[str] = set()
    for _ in turns(EACH):
        for server in servers:
            one = echo_round if server.name == C_ECHO else partial(one_round, beating=beating)
            try:
                if server.name not in failed:
                    rounds[server.name].append(one(f"bench-{next(_numbers)}", server, size))
            except (TimeoutError, AssertionError, OSError, struct.error) as problem:
                failed.add(server.name)
                left_out("groups", server.name, f"{size} members: {problem!r}")
    for server in servers:
        used = (server.cpu_s() - cpu[server.name]) * 1000 / max(1, len(rounds[server.name]))
        report("groups", server=server.name, members=size, beating=beating, **{"server CPU ms a round": used})
    found = {name: values for name, values in rounds.items() if name not in failed}
    joined, left = (
        Medians({name: [pair[i] for pair in values] for name, values in found.items()}, EACH) for i in (0, 1)
    )
    return joined, left


_numbers = count()


def main() -> None:
    program = wire_program("groups")
    with ExitStack() as stack:
        servers = brokers(stack, "groups")
        assert servers[0].name == OURS
        if row_is_wanted("100 joined, beating"):
            row("100 joined, beating", measure(servers, FEW, beating=True)[0])
        if row_is_wanted("500 joined, beating") or row_is_wanted("one of 500 leaves, beating"):
            joined, left = measure(servers, MANY, beating=True)
            row("500 joined, beating", joined)
            row("one of 500 leaves, beating", left)
        if program is not None and wanted(C_ECHO):
            servers.append(stack.enter_context(c_server(program)))
        if row_is_wanted("100 members joined"):
            row("100 members joined", measure(servers, FEW)[0])
        if row_is_wanted("500 members joined") or row_is_wanted("one of 500 leaves"):
            joined, left = measure(servers, MANY)
            row("500 members joined", joined)
            row("one of 500 leaves", left)


if __name__ == "__main__":
    main()
