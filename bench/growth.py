"""Whether time and memory per member, group, partition and connection stay the same from 10 to 100,000 of them.

Each measurement runs in a process of its own. Members and groups are measured in the coordinator itself; partitions and
connections at a broker in memory, whose CPU time counts. A figure is flat if none at a larger size is more than twice
the least of the smaller ones; memory is judged from a thousand on, below which pages hide it.
`python bench/growth.py KIND SIZE` is one measurement; BENCH_SIZES=10,1000 chooses the sizes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from harness import Server, left_out, partita, report

from partita.admin import Admin, NewTopic
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest
from partita.group.coordinator import GroupCoordinator
from partita.group.records.log_records import group_key, group_value
from partita.now import Now
from partita.protocol.framing import encode_request
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Message
from partita.records.builder import build_batch

SIZES = tuple(int(size) for size in os.environ.get("BENCH_SIZES", "10,100,1000,10000,100000").split(","))
LEAST_SECONDS = 0.1
"""Small sizes are repeated until they have taken as long."""
MEMORY_FROM = 1000
GROWTH_MAX = 2.0
NOW_MS = 1_750_000_000_000
GROUP_MEMBERS = 3
TOPIC_PARTITIONS = 10
TOPICS_A_REQUEST = 500
OTHERS_FDS = 200
PORTS_OF_AN_ADDRESS = 20_000
IP_BIND_ADDRESS_NO_PORT = 24
"""Linux: the port is chosen when the other end is known, which stays quick with thousands of connections."""

Figures = dict[str, float]
"""Microseconds for each one, or KB for each one where the name begins with memory."""


def us_each(count: int, work: Callable[[], object]) -> float:
    """CPU microseconds of this process for each of `count`; the work is repeated while it is short."""
    runs, began = 0, time.process_time()
    while True:
        work()
        runs += 1
        took = time.process_time() - began
        if took >= LEAST_SECONDS:
            return took / runs / count * 1e6


def resident_kb(pid: int | str = "self") -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


def loaded(sizes: Iterable[tuple[str, int]]) -> tuple[GroupCoordinator, dict[str, list[str]], float, float]:
    """A coordinator with these groups of so many members: it, the members, CPU microseconds of loading, KB."""
    ids = {group: [f"consumer-{group}-{i}-0b3a6c52" for i in range(count)] for group, count in sizes}
    values = {group: group_of(members) for group, members in ids.items()}
    batches = [build_batch([(NOW_MS, group_key(group), value, ())]) for group, value in values.items()]
    del values
    gc.collect()
    coordinator = GroupCoordinator(GroupConfig(), lambda prefix: prefix)
    memory, began = resident_kb(), time.process_time()
    for batch in batches:
        coordinator.replay_batch(batch)
    coordinator.resume(Now(0, NOW_MS))
    return coordinator, ids, (time.process_time() - began) * 1e6, resident_kb() - memory


def group_of(ids: list[str]) -> bytes:
    """The record of a stable group."""
    members = [
        GroupMetadataValueMember(
            member_id=member, client_id="consumer", client_host="/127.0.0.1", rebalance_timeout=300_000,
            session_timeout=45_000, subscription=SUBSCRIPTION, assignment=b"a" * 40,
        )
        for member in ids
    ]  # fmt: skip
    return group_value(
        GroupMetadataValue(
            protocol_type="consumer", generation=1, protocol="range", leader=ids[0], current_state_timestamp=NOW_MS,
            members=members,
        )
    )  # fmt: skip


SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x05topic\xff\xff\xff\xff"


def ask(coordinator: GroupCoordinator, message: Message, version: int, at_ms: int = 1) -> tuple[object, ...]:
    """Hand the request in; the replies that left."""
    request = GroupRequest(message, version, "consumer", "/127.0.0.1")
    return tuple(reply.message for reply in coordinator.handle(object(), request, Now(at_ms, NOW_MS + at_ms)).replies)


def rebalance(coordinator: GroupCoordinator, group: str, ids: list[str]) -> None:
    """All members join again, and sync."""
    last: tuple[object, ...] = ()
    for member in ids:
        join = JoinGroupRequest(
            group_id=group, session_timeout_ms=45_000, rebalance_timeout_ms=300_000, member_id=member,
            protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )  # fmt: skip
        last = ask(coordinator, join, 5)
    joined = [reply for reply in last if isinstance(reply, JoinGroupResponse)]
    assert len(joined) == len(ids), f"{len(joined)} of {len(ids)} were answered"
    leader = joined[0].leader
    shares = [SyncGroupRequestAssignment(member_id=member, assignment=b"a" * 40) for member in ids]
    for member in ids:
        sync = SyncGroupRequest(
            group_id=group, generation_id=joined[0].generation_id, member_id=member,
            assignments=shares if member == leader else [],
        )  # fmt: skip
        ask(coordinator, sync, 3)


def heartbeats(coordinator: GroupCoordinator, ids: dict[str, list[str]], generation: int = 1) -> None:
    """One heartbeat of every member."""
    for group, members in ids.items():
        for member in members:
            beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
            assert coordinator.heartbeat(beat, 2) == 0


def deadlines(coordinator: GroupCoordinator) -> None:
    """What is due a second later: nothing, but it has to be found out."""
    coordinator.on_deadline(Now(1000, NOW_MS + 1000))
    coordinator.next_deadline_ms()


def members(size: int) -> Figures:
    """One group of so many members."""
    coordinator, ids, loading, memory = loaded([("group", size)])
    return {
        "loading": loading / size,
        "memory": memory / size,
        "heartbeat": us_each(size, lambda: heartbeats(coordinator, ids)),
        "deadlines": us_each(1, lambda: deadlines(coordinator)),
        "rebalance": us_each(size, lambda: rebalance(coordinator, "group", ids["group"])),
    }


def groups(size: int) -> Figures:
    """So many groups of three members; one of them rebalances."""
    coordinator, ids, loading, memory = loaded((f"group-{i}", GROUP_MEMBERS) for i in range(size))
    return {
        "loading": loading / size,
        "memory": memory / size,
        "heartbeats": us_each(size, lambda: heartbeats(coordinator, ids)),
        "deadlines": us_each(1, lambda: deadlines(coordinator)),
        "rebalance of one": us_each(1, lambda: rebalance(coordinator, "group-0", ids["group-0"])),
    }


def server_us(server: Server, count: int, work: Callable[[], object]) -> float:
    """CPU microseconds of the server for each of `count`; the work is repeated while it is short."""
    runs, began = 0, server.cpu_s()
    while True:
        work()
        runs += 1
        took = server.cpu_s() - began
        if took >= LEAST_SECONDS / 2:
            return took / runs / count * 1e6


class Line:
    """One plain connection that asks and waits."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        self.socket.bind((host, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, frame: bytes) -> int:
        """Send a frame; the size of its answer."""
        self.socket.sendall(frame)
        left = size = int.from_bytes(self.socket.recv(4, socket.MSG_WAITALL), "big")
        while left:
            left -= len(self.socket.recv(min(left, 1 << 20)))
        return size


def frame(api_key: int, version: int, message: Message) -> bytes:
    return b"".join(encode_request(api_key, version, 7, "bench", message))


def partitions(size: int) -> Figures:
    """So many partitions in topics of ten; the log of each is made when it is first used."""
    topics = [NewTopic(f"topic-{i}", TOPIC_PARTITIONS) for i in range(size // TOPIC_PARTITIONS)]
    asked = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(TOPIC_PARTITIONS)]
    listed = [ListOffsetsTopic(name=topic.name, partitions=asked) for topic in topics]
    listings = [
        frame(2, 2, ListOffsetsRequest(replica_id=-1, topics=listed[begin : begin + TOPICS_A_REQUEST]))
        for begin in range(0, len(listed), TOPICS_A_REQUEST)
    ]
    with partita() as server:
        memory, began = resident_kb(server.pid), server.cpu_s()
        asyncio.run(create(server, topics))
        created, of_topics = server.cpu_s() - began, resident_kb(server.pid) - memory
        line, began = Line(server.port), server.cpu_s()
        for listing in listings:
            line.ask(listing)
        opened, of_logs = server.cpu_s() - began, resident_kb(server.pid) - memory - of_topics
        return {
            "create": created / size * 1e6,
            "memory": of_topics / size,
            "first use": opened / size * 1e6,
            "memory of logs": of_logs / size,
            "metadata of all": server_us(server, size, lambda: line.ask(frame(3, 9, MetadataRequest(topics=None)))),
            "metadata of one": server_us(server, 1, lambda: line.ask(frame(3, 9, one_topic(topics[0].name)))),
            "list offsets": server_us(server, size, lambda: [line.ask(listing) for listing in listings]),
        }


def one_topic(name: str) -> MetadataRequest:
    from partita.protocol.messages.metadata import MetadataRequestTopic

    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


async def create(server: Server, topics: list[NewTopic]) -> None:
    async with Admin(bootstrap_servers=server.bootstrap) as admin:
        for begin in range(0, len(topics), TOPICS_A_REQUEST):
            await admin.create_topics(*topics[begin : begin + TOPICS_A_REQUEST], timeout_ms=120_000)


def connections(size: int) -> Figures:
    """So many idle connections, each of which asks once for the versions."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if size + OTHERS_FDS > hard:
        raise RuntimeError(f"this machine allows {hard} open files for each process")
    versions = frame(18, 0, ApiVersionsRequest())
    with partita() as server, selectors.DefaultSelector():
        Line(server.port).ask(versions)
        memory, began = resident_kb(server.pid), server.cpu_s()
        lines = [Line(server.port, f"127.0.0.{1 + i // PORTS_OF_AN_ADDRESS}") for i in range(size)]
        for line in lines:
            line.ask(versions)
        opened, memory = server.cpu_s() - began, resident_kb(server.pid) - memory
        return {
            "open and ask": opened / size * 1e6,
            "memory": memory / size,
            "ask": server_us(server, size, lambda: [line.ask(versions) for line in lines]),
        }


KINDS: dict[str, Callable[[int], Figures]] = {
    "member": members,
    "group": groups,
    "partition": partitions,
    "connection": connections,
}


def measured(kind: str, size: int) -> Figures | str:
    """The figures of one process, or why there are none."""
    done = subprocess.run([sys.executable, __file__, kind, str(size)], capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def growth(sizes: list[int], values: list[float]) -> float:
    """The most that a figure is times the least of those at smaller sizes."""
    worst = 1.0
    for i in range(1, len(sizes)):
        worst = max(worst, values[i] / max(min(values[:i]), 1e-9))
    return worst


def print_table(kind: str, runs: dict[int, Figures]) -> bool:
    """The table of one kind; whether all of it is flat."""
    sizes = list(runs)
    all_flat = True
    print(f"| per {kind} | " + " | ".join(f"{size:,}" for size in sizes) + " | flat |")
    print("| --- |" + " --- |" * (len(sizes) + 1))
    for what in next(iter(runs.values())):
        judged = [size for size in sizes if not what.startswith("memory") or size >= MEMORY_FROM]
        is_flat = growth(judged, [runs[size][what] for size in judged]) <= GROWTH_MAX
        all_flat &= is_flat
        unit = "KB" if what.startswith("memory") else "us"
        cells = [f"{runs[size][what]:.3g} {unit}" if size in judged else "-" for size in sizes]
        print(f"| {what} | " + " | ".join(cells) + f" | {'yes' if is_flat else '**no**'} |")
    print(flush=True)
    return all_flat


def main() -> int:
    flat = True
    for kind in KINDS:
        runs: dict[int, Figures] = {}
        for size in SIZES:
            found = measured(kind, size)
            if isinstance(found, str):
                left_out("growth", f"{size:,} of {kind}", found)
                break
            runs[size] = found
            report("growth", kind=kind, size=size, **found)
        flat &= not runs or print_table(kind, runs)
    return 0 if flat else 1


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(KINDS[sys.argv[1]](int(sys.argv[2]))))
    else:
        sys.exit(main())
