"""50 and 500 members of one KIP-848 group over own sockets: from the first heartbeat until everything is settled.

Settled is a group whose members are all at its newest epoch, and have all partitions of the topic between them, each
exactly one. First all members are new; then one of 500 leaves. Brokers run with Kafka's default intervals. A member
behaves as Java's does: it heartbeats at the interval that the broker tells it, and at once after it has taken or given
up partitions. So most of the time is the interval of 5 s, which nobody can be quicker than who has to wait for it, and
the brokers are measured side by side.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from itertools import count, product
from uuid import uuid4

from groups import wait_for_coordinator
from harness import Medians, Server, brokers, report, row, row_is_wanted, turns
from member_frames import frame

from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

FEW, MANY = 50, 500
PARTITIONS_EACH = 2
APART_SECONDS = 1.25
"""Between the starts of two groups, so that the members of all others are at rest while those of one hurry."""
HEARTBEAT, CREATE = 68, 19
VERSION = 1
LIMIT_SECONDS = 60
JOINED_ROWS = {FEW: "848, 50 members", MANY: "848, 500 members"}
LEAVES_ROW = "848, one of 500 leaves"


class Member:
    """One member over its own connection; it subscribes to a topic, or by a regular expression."""

    def __init__(self, group: str, port: int, *, topic: str | None = None, regex: str | None = None) -> None:
        self.group, self.topic, self.regex = group, topic, regex
        self.member_id = urlsafe_b64encode(uuid4().bytes)[:22].decode()
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def partitions(self) -> Iterator[tuple[bytes, int]]:
        """What it owns."""
        return ((topic, number) for topic, numbers in self.owned.items() for number in numbers)

    def join(self) -> None:
        self._send(ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=0, rebalance_timeout_ms=300_000,
            subscribed_topic_names=None if self.topic is None else [self.topic], subscribed_topic_regex=self.regex,
            topic_partitions=[],
        ))  # fmt: skip

    def beat(self) -> None:
        """Nothing has changed since the last heartbeat."""
        self._send(
            ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=self.epoch)
        )

    def acknowledge(self) -> None:
        """Tell what it owns now."""
        owned = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=numbers)
            for topic, numbers in self.owned.items()
        ]
        self._send(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topic_partitions=owned
            )
        )

    def leave(self) -> None:
        """Leave, and wait until that is answered."""
        self._send(ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=-1))
        while (answer := self.receive()) is None or answer.member_epoch != -1:
            pass
        self.socket.close()

    def _send(self, request: ConsumerGroupHeartbeatRequest) -> None:
        self.socket.sendall(frame(HEARTBEAT, VERSION, request))

    def receive(self) -> ConsumerGroupHeartbeatResponse | None:
        """The next answer, or None while it is not there as a whole. Raises AssertionError for a refusal."""
        if not (end := self._answer_end()):
            self._received += self.socket.recv(1 << 16)
            if not (end := self._answer_end()):
                return None
        answer = ConsumerGroupHeartbeatResponse.decode(
            self._received[9:end], VERSION
        )  # a flexible header: one tag byte
        self._received = self._received[end:]
        assert not answer.error_code, f"error {answer.error_code}: {answer.error_message}"
        return answer

    def _answer_end(self) -> int:
        """Where the first answer ends; 0 while it is not there as a whole."""
        end: int = 4 + struct.unpack_from(">i", self._received)[0] if len(self._received) >= 4 else 0
        return end if end <= len(self._received) else 0


class Fleet:
    """The members of one group, driven until they have settled: at one epoch, with all partitions shared evenly."""

    def __init__(self, members: list[Member], partitions: int) -> None:
        self._members = {member.socket.fileno(): member for member in members}
        self._partitions = partitions
        self._owners: dict[tuple[bytes, int], str] = {}
        self._epochs: Counter[int] = Counter()
        self._due: list[tuple[float, int]] = []
        self._epoll = select.epoll()
        for fd in self._members:
            self._epoll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        self._epoll.close()
        for member in self._members.values():
            member.socket.close()

    def join(self) -> float:
        """Join with all members at once; seconds until they have settled."""
        started = time.perf_counter()
        self._epochs = Counter({0: len(self._members)})
        for member in self._members.values():
            member.join()
        return self._settle() - started

    def leave(self, count: int = 1) -> float:
        """Let some members leave; seconds until the others have settled."""
        started = time.perf_counter()
        for _ in range(count):
            fd, leaver = self._members.popitem()
            self._epoll.unregister(fd)
            leaver.leave()
            self._epochs -= Counter([leaver.epoch])
            for partition in leaver.partitions():
                del self._owners[partition]
        return self._settle() - started

    @property
    def _is_settled(self) -> bool:
        if len(self._epochs) > 1 or len(self._owners) < self._partitions:
            return False
        share = -(-self._partitions // len(self._members))
        return max(Counter(self._owners.values()).values()) <= share

    def _settle(self) -> float:
        """Heartbeat until the group has settled; when that was."""
        limit = time.perf_counter() + LIMIT_SECONDS
        while not self._is_settled:
            wait = max(0.0, self._due[0][0] - time.perf_counter()) if self._due else 1.0
            for fd, _ in self._epoll.poll(wait, 512):
                self._take(fd, self._members[fd])
            now = time.perf_counter()
            while self._due and self._due[0][0] <= now:
                if (due := self._members.get(heappop(self._due)[1])) is not None:
                    due.beat()
            if now > limit:
                raise TimeoutError(f"epochs {self._epochs}, {len(self._owners)} partitions after {LIMIT_SECONDS} s")
        return time.perf_counter()

    def _take(self, fd: int, member: Member) -> None:
        answer = member.receive()
        if answer is None:
            return
        self._epochs[member.epoch] -= 1
        if not self._epochs[member.epoch]:
            del self._epochs[member.epoch]
        member.epoch = answer.member_epoch
        self._epochs[member.epoch] += 1
        given = member.owned
        if answer.assignment is not None:
            given = {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}
        if given == member.owned:
            heappush(self._due, (time.perf_counter() + answer.heartbeat_interval_ms / 1000, fd))
            return
        for partition in member.partitions():
            del self._owners[partition]
        member.owned = given
        for partition in member.partitions():
            assert partition not in self._owners, f"{partition} has two owners"
            self._owners[partition] = member.member_id
        member.acknowledge()


def create_topics(server: Server, sizes: Iterable[int]) -> None:
    """A topic for each number of members."""
    asking = Member("", server.port)
    topics = [
        CreatableTopic(name=f"of-{size}", num_partitions=size * PARTITIONS_EACH, replication_factor=1) for size in sizes
    ]
    asking.socket.sendall(frame(CREATE, 5, CreateTopicsRequest(topics=topics, timeout_ms=60_000)))
    asking.socket.recv(1 << 16)
    asking.socket.close()


@contextmanager
def fleet(server: Server, size: int) -> Iterator[Fleet]:
    """Members that are connected and have not joined."""
    group = f"convergence-{next(_groups)}"
    wait_for_coordinator(group, server.port)
    found = Fleet([Member(group, server.port, topic=f"of-{size}") for _ in range(size)], size * PARTITIONS_EACH)
    try:
        yield found
    finally:
        found.close()


def measure(servers: list[Server], sizes: Iterable[int], *, leaves: bool) -> tuple[dict[int, Medians], Medians]:
    """Milliseconds of joining by the number of members and, if asked for, of one of MANY leaving."""
    joined: dict[int, dict[str, list[float]]] = {size: {server.name: [] for server in servers} for size in sizes}
    left: dict[str, list[float]] = {server.name: [] for server in servers}

    def one_round(of: tuple[int, Server], delay: float) -> None:
        size, server = of
        time.sleep(delay)
        with fleet(server, size) as members:
            joined[size][server.name].append(members.join() * 1000)
            if leaves and size == MANY:
                left[server.name].append(members.leave() * 1000)

    groups = list(product(joined, servers))
    for _ in turns():
        before = {server: server.cpu_s() for server in servers}
        with ThreadPoolExecutor(len(groups)) as pool:
            list(pool.map(one_round, groups, count(0, APART_SECONDS)))
        for server, cpu_s in before.items():
            report("convergence", server=server.name, **{"server CPU ms a round": (server.cpu_s() - cpu_s) * 1000})
    return {size: Medians(found) for size, found in joined.items()}, Medians(left if leaves else {})


_groups = count()


def main() -> None:
    sizes = [size for size, name in JOINED_ROWS.items() if row_is_wanted(name)]
    if row_is_wanted(LEAVES_ROW) and MANY not in sizes:
        sizes.append(MANY)
    with ExitStack() as stack:
        servers = brokers(stack, "convergence", small_peers=())
        for server in servers:
            create_topics(server, sizes)
        joined, left = measure(servers, sizes, leaves=MANY in sizes)
        for size, found in joined.items():
            row(JOINED_ROWS[size], found)
        if left:
            row(LEAVES_ROW, left)


if __name__ == "__main__":
    main()
