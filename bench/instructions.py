"""Count the machine instructions that the broker spends on a request, and compare them with the record.

`python bench/instructions.py` names what became dearer or cheaper by more than 3 % and ends with status 1 if anything
became dearer; `--record` writes bench/instructions.json instead. Instructions do not depend on what else the machine
does. They do depend on the interpreter, the C compiler and the processor's kind, so the record holds one column for
each such build, and one that it does not know is measured and not judged.

One process under valgrind answers frames through `Connection` in memory, on one thread with a fixed hash seed. Each
request is repeated in several rounds, of which the cheapest counts. Two more processes count what `partita broker`
spends until it begins its banner, and what importing asyncio costs, its yardstick; the modules are
compiled before.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import gc
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from member_frames import JOIN_VERSION, frame, heartbeat_frame, join_frame, leader_frame, sync_frame

import partita
from partita.broker.launch import BrokerSettings, start_broker
from partita.broker.wire.connection import Connection
from partita.broker.wire.server import Server
from partita.compiled import compiled_modules
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Buffer
from partita.records.batch import build_batch

RECORD = Path(__file__).with_suffix(".json")
TOLERANCE = 0.03
REPEATED, ROUNDS = 10, 5
MEMBERS = 50
TOPIC, GROUP = "bench", "bench"
NOW_MS = 1_750_000_000_000
TURNS = 1000
UNKNOWN_MEMBER = struct.pack(">h", 25)
TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
FLAGS = ("avx2", "erms", "fsrm", "sse4_2")
"""What the C library and the checksum look at when they choose between their ways."""


PROGRAMS = {
    "import asyncio": "import asyncio",
    "start of a process": """
import os, sys
class Terminal:
    encoding = "utf-8"
    def isatty(self): return False
    def write(self, line): os._exit(0)
sys.stdout, sys.argv = Terminal(), ["partita", "broker", "--port", "0"]
from partita.cli.main import main
main()
""",
}
"""Programs whose end is the count's, each in a process of its own; the second ends when the banner begins."""


class Wire(asyncio.Transport):
    """A client in this process: hands frames to a connection of the broker, as a socket would, and keeps answers."""

    def __init__(self, server: Server) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.answers: list[Buffer] = []
        self.connection = Connection(server)
        self.connection.connection_made(self)

    def send(self, request: bytes) -> None:
        """Hand in one frame, in pieces of the size that the connection has room for."""
        left = memoryview(request)
        while left:
            room = self.connection.get_buffer(-1)
            count = min(len(room), len(left))
            room[:count] = left[:count]
            del room  # a view that lives would keep the buffer from being used again
            self.connection.buffer_updated(count)
            left = left[count:]

    async def answer(self) -> bytes:
        """The oldest answer."""
        for turn in range(2 * TURNS):
            if self.answers:
                return bytes(self.answers.pop(0))
            await asyncio.sleep(0 if turn < TURNS else 0.01)
        raise TimeoutError("the broker has not answered")

    async def ask(self, request: bytes) -> bytes:
        self.send(request)
        return await self.answer()

    def write(self, data: Buffer) -> None:
        self.answers.append(data)

    def is_closing(self) -> bool:
        return self.connection.closed

    def close(self) -> None:
        """The broker stops."""
        self.connection.connection_lost(None)

    def pause_reading(self) -> None:
        """It sends a frame only when the one before is answered."""

    def resume_reading(self) -> None:
        """It was never paused."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It takes everything at once."""


def mark() -> None:
    """Let valgrind write down what it has counted since the last mark: see `--dump-before`."""
    os.getppid()


class Costs:
    """Runs rounds of each request between marks; valgrind's dumps are in the order of `names`."""

    def __init__(self, server: Server) -> None:
        self.wire = Wire(server)
        self.members = [Wire(server) for _ in range(MEMBERS)]
        self.names: list[str] = []

    async def count(
        self, name: str, once: Callable[[], Awaitable[object]], *, of: int = 1, times: int = REPEATED
    ) -> None:
        """Mark some rounds of `once`, which makes `of` requests; the first one, which may import, is not counted."""
        await once()
        for _ in range(ROUNDS):
            mark()
            for _ in range(times):
                await once()
        mark()
        self.names.append(f"{name}/{of * times}")

    async def frames(self, name: str, request: bytes, *, error_at: int = -1, times: int = REPEATED) -> None:
        """The cost of one frame that can be sent again and again. `error_at`: where its answer has an error code."""

        async def once() -> None:
            answer = await self.wire.ask(request)
            assert error_at < 0 or answer[error_at : error_at + 2] == b"\0\0", answer[:64]

        await self.count(name, once, times=times)


async def until_ready(wire: Wire) -> None:
    """Wait until the group's coordinator answers: the first request makes its topic and loads it."""
    while True:
        await wire.ask(frame(10, 1, FindCoordinatorRequest(key=GROUP)))
        if (await wire.ask(heartbeat_frame(GROUP, 1)(b"nobody")))[12:14] == UNKNOWN_MEMBER:
            return
        await asyncio.sleep(0.01)


class Members:
    """A classic group whose members answer in this process; the first one leads it."""

    def __init__(self, wires: list[Wire]) -> None:
        self.wires = wires
        self.ids: list[bytes] = []
        self.generation = -1

    async def form(self) -> None:
        """All get their ids; the first one joins alone, and then once more when all others have joined."""
        for wire in self.wires:
            refused = JoinGroupResponse.decode((await wire.ask(join_frame(GROUP)(b"")))[8:], JOIN_VERSION)
            self.ids.append(refused.member_id.encode())
        leader, join = self.wires[0], join_frame(GROUP)(self.ids[0])
        await leader.ask(leader_frame(GROUP, await leader.ask(join)))
        for wire, member in zip(self.wires[1:], self.ids[1:], strict=True):
            wire.send(join_frame(GROUP)(member))
        leader.send(join)
        await self._sync()

    async def rebalance(self) -> None:
        """The leader joins again; each other one hears of it by a heartbeat, and joins; all sync."""
        self.wires[0].send(join_frame(GROUP)(self.ids[0]))
        for wire, member in zip(self.wires[1:], self.ids[1:], strict=True):
            await wire.ask(heartbeat_frame(GROUP, self.generation)(member))
            wire.send(join_frame(GROUP)(member))
        await self._sync()

    async def _sync(self) -> None:
        answers = [await wire.answer() for wire in self.wires]
        self.generation = JoinGroupResponse.decode(answers[0][8:], JOIN_VERSION).generation_id
        self.wires[0].send(leader_frame(GROUP, answers[0]))
        for wire, member in zip(self.wires[1:], self.ids[1:], strict=True):
            wire.send(sync_frame(GROUP, self.generation)(member))
        for wire in self.wires:
            await wire.answer()


async def kip_848_heartbeat(wire: Wire) -> bytes:
    """The heartbeat of a settled member of a KIP-848 group, which holds both partitions."""
    first = ConsumerGroupHeartbeatRequest(
        group_id=f"{GROUP}-848", member_id="member", rebalance_timeout_ms=300_000, subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )  # fmt: skip
    joined = ConsumerGroupHeartbeatResponse.decode((await wire.ask(frame(68, 1, first)))[9:], 1)
    assert joined.error_code == 0, joined
    assert joined.assignment is not None
    held = [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
        for topic in joined.assignment.topic_partitions
    ]
    epoch = joined.member_epoch
    await wire.ask(frame(68, 1, ConsumerGroupHeartbeatRequest(
        group_id=f"{GROUP}-848", member_id="member", member_epoch=epoch, topic_partitions=held,
    )))  # fmt: skip
    return frame(68, 1, ConsumerGroupHeartbeatRequest(group_id=f"{GROUP}-848", member_id="member", member_epoch=epoch))


def produce_frame(record_bytes: int, records: int) -> bytes:
    batch = build_batch([(NOW_MS, None, b"v" * record_bytes, [])] * records)
    data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    return frame(0, 7, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]))


async def measure() -> list[str]:
    """Ask a broker in memory for everything; return the names in the order of the marks."""
    broker = await start_broker(BrokerSettings())
    broker.services.turns.clock = lambda: 0.0  # under valgrind every step would last longer than a turn
    costs = Costs(broker.servers[1][0])
    wire = costs.wire
    await wire.ask(frame(19, 2, CreateTopicsRequest(
        topics=[CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)]
    )))  # fmt: skip
    await until_ready(wire)
    members = Members(costs.members)
    await members.form()
    follower, at_generation = members.ids[1], members.generation

    def commit(offset: int) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        return OffsetCommitRequest(
            group_id=GROUP, generation_id_or_member_epoch=at_generation, member_id=follower.decode(),
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )  # fmt: skip

    asked = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    looked_up = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    wanted = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
    await costs.frames("ApiVersions", frame(18, 2, ApiVersionsRequest()))
    await costs.frames("Metadata", frame(3, 7, MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])))
    await costs.frames("Produce, a record of 100 B", produce_frame(100, 1))
    await costs.frames("Produce, a record of 1 KB", produce_frame(1000, 1))
    await costs.frames("Produce, a batch of 1 MB", produce_frame(1000, 1000), times=4)
    await costs.frames("Fetch", frame(1, 4, FetchRequest(max_wait_ms=0, max_bytes=1000, topics=[wanted])))
    await costs.frames("ListOffsets", frame(2, 2, ListOffsetsRequest(replica_id=-1, topics=[looked_up])))
    await costs.frames("Heartbeat", heartbeat_frame(GROUP, at_generation)(follower), error_at=12)
    await costs.frames("ConsumerGroupHeartbeat", await kip_848_heartbeat(wire))
    await costs.frames("OffsetCommit", frame(8, 5, commit(1)))
    await costs.frames("OffsetFetch", frame(9, 5, OffsetFetchRequest(group_id=GROUP, topics=[asked])))
    await costs.frames("JoinGroup of a follower again", join_frame(GROUP)(follower), error_at=12)
    await costs.frames("SyncGroup again", sync_frame(GROUP, at_generation)(follower), error_at=12)
    await costs.count("rebalance, each member", members.rebalance, of=MEMBERS, times=1)
    await broker.stop()
    return costs.names


def counted() -> dict[str, int]:
    """Instructions per request by name, as valgrind counts them."""
    dumps, printed = under_valgrind("--dump-before=getppid", sys.executable, __file__, "--measure")
    names = json.loads(printed)
    # A dump ends at each mark: for every name what came before its first round, and then its rounds. The cheapest
    # counts: in the others a timer of the broker was due.
    assert len(dumps) >= (ROUNDS + 1) * len(names), (len(dumps), len(names))
    costs: dict[str, int] = {}
    for place, name in enumerate(names):
        first = (ROUNDS + 1) * place + 1
        name, _, requests = name.rpartition("/")
        costs[name] = round(min(dumps[first : first + ROUNDS]) / int(requests))
    # As an installer does.
    compileall.compile_dir(partita.__path__[0], quiet=2)
    for name, program in PROGRAMS.items():
        costs[name] = sum(under_valgrind(sys.executable, "-c", program)[0])
    return costs


def under_valgrind(*command: str) -> tuple[list[int], str]:
    """Run a command; return the instructions of its dumps, the last of which its end makes, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        out = Path(folder, "counts")
        whole = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PARTITA_UVLOOP": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(whole, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(f"the run under valgrind failed: {done.stderr[-2000:]}")
        paths = numbered(out) or [out]
        return [int(found[1]) for path in paths if (found := TOTAL.search(path.read_text()))], done.stdout


def numbered(out: Path) -> list[Path]:
    """The dumps in order."""
    return sorted(out.parent.glob(f"{out.name}.*"), key=lambda path: int(path.suffix[1:]))


def build() -> str:
    """Everything but our code that the counts depend on: the interpreter, what compiled it and us, the processor."""
    flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
    compiler = shutil.which("cc")
    parts = (
        f"{platform.python_version()} ({' '.join(platform.python_build())}, {platform.python_compiler()})",
        " ".join(platform.libc_ver()),
        f"cc {subprocess.run([compiler, '-dumpfullversion'], capture_output=True, text=True).stdout.strip()}"
        if compiler
        else "no cc",
        f"crc32c {version('crc32c')}",
        f"{platform.machine()} {' '.join(flag for flag in FLAGS if flag in flags)}",
    )
    return ", ".join(parts)


def compare(recorded: Mapping[str, int], found: Mapping[str, int]) -> tuple[list[str], bool]:
    """A line for each request, and whether any became dearer."""
    lines, is_dearer = [], False
    for name, now in found.items():
        before = recorded.get(name)
        change = 0.0 if before is None else now / before - 1
        word = "new" if before is None else "dearer" if change > TOLERANCE else "cheaper" if change < -TOLERANCE else ""
        is_dearer |= word == "dearer"
        lines.append(f"{name:32} {now:>10,} {change:>+8.1%} {word}".rstrip())
    return lines, is_dearer


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="keep what is measured as the record of this build")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure:
        gc.disable()
        print(json.dumps(asyncio.run(measure())))
        return 0
    if shutil.which("valgrind") is None:
        print("instructions: not counted, valgrind is not installed")
        return 0
    if not all(compiled_modules().values()):
        print("instructions: not counted, this is no compiled build")
        return 0
    records, found, name = json.loads(RECORD.read_text()) if RECORD.exists() else {}, counted(), build()
    if given.record:
        RECORD.write_text(json.dumps({**records, name: found}, indent=2) + "\n")
    lines, is_dearer = compare(records.get(name, {}), found)
    print("\n".join(lines))
    if given.record:
        print(f"instructions: recorded for {name}")
    elif name not in records:
        print(f"instructions: not judged, there is no record of this build: {name}")
    return 1 if is_dearer and not given.record else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
