"""Heartbeats per second of the broker's CPU: 100 connections with one or 16 in flight each, and one with 200."""

from __future__ import annotations

import asyncio
import struct
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from harness import (
    SECONDS,
    Server,
    brokers,
    c_server,
    in_turns,
    measured,
    report,
    row,
    row_is_wanted,
    wanted,
    wire_program,
)
from table import C_ECHO

from partita.protocol.framing import encode_request
from partita.protocol.messages.heartbeat import HeartbeatRequest

WARM_UP_SECONDS = 0.5
SETTLING_SECONDS = 0.1
ANSWER_BYTES = 4 + 4 + 4 + 2
VERSION = 3
SHAPES = {"heartbeats 100 x 1": (100, 1), "heartbeats 1 x 200": (1, 200), "heartbeats 100 x 16": (100, 16)}


async def stable_group(server: Server) -> tuple[str, int]:
    """A stable group of one member; returns its id and generation."""
    from conformance.wire import RawClient
    from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
    from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
    from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

    client = await RawClient("bench").connect(server.bootstrap)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    for _ in range(400):
        await client.ask(FindCoordinatorRequest(key="bench"), 1)
        join = JoinGroupRequest(
            group_id="bench", session_timeout_ms=300_000, rebalance_timeout_ms=300_000, protocol_type="consumer",
            protocols=protocols,
        )  # fmt: skip
        answer = await client.ask(join, 3)
        assert isinstance(answer, JoinGroupResponse)
        if answer.error_code == 0:
            break
        await asyncio.sleep(0.05)
    assert isinstance(answer, JoinGroupResponse)
    assignments = [SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"")]
    sync = SyncGroupRequest(
        group_id="bench", generation_id=answer.generation_id, member_id=answer.member_id, assignments=assignments
    )
    synced = await client.ask(sync, 3)
    assert isinstance(synced, SyncGroupResponse)
    assert synced.error_code == 0
    client.close()
    return answer.member_id, answer.generation_id


def frames_file(frame: bytes, connections: int) -> Path:
    path = Path(tempfile.mkstemp(prefix="partita-bench-")[1])
    path.write_bytes((struct.pack("=I", len(frame)) + frame) * connections)
    return path


def loaded(program: Path, server: Server, frames: Path, answer: int, depth: int, limit_s: float) -> tuple[float, float]:
    """Load the server for some seconds; (answers per CPU-second of the server, answers per second)."""
    rates: list[float] = []

    def work() -> float:
        arguments = [str(server.port), str(frames), str(answer), str(depth), str(limit_s)]
        done = subprocess.run([str(program), "load", *arguments], capture_output=True, text=True, check=True)
        count, seconds = map(float, done.stdout.split())
        rates.append(count / seconds)
        return count

    per_cpu_s, _ = measured(server, work)
    return per_cpu_s, rates[0]


def heartbeat_frame(member: str, generation: int) -> bytes:
    message = HeartbeatRequest(group_id="bench", generation_id=generation, member_id=member)
    return b"".join(encode_request(12, VERSION, 7, "bench", message))


def main() -> None:
    program = wire_program("heartbeats")
    if program is None:
        return
    with ExitStack() as stack:
        servers = brokers(stack, "heartbeats")
        frames = {server.name: heartbeat_frame(*asyncio.run(stable_group(server))) for server in servers}
        if wanted(C_ECHO):
            frames[C_ECHO] = frames[servers[0].name]
            servers.append(stack.enter_context(c_server(program)))
        for name, (connections, depth) in SHAPES.items():
            if not row_is_wanted(name):
                continue
            measures: dict[str, Callable[[], float]] = {}
            elapsed: dict[str, list[float]] = {server.name: [] for server in servers}

            def measure(server: Server, path: Path, answer: int, depth: int, seen: list[float]) -> float:
                loaded(program, server, path, answer, depth, SETTLING_SECONDS)
                per_cpu_s, per_s = loaded(program, server, path, answer, depth, SECONDS)
                seen.append(per_s)
                return per_cpu_s

            for server in servers:
                frame = frames[server.name]
                answer = len(frame) if server.name == C_ECHO else ANSWER_BYTES
                path = frames_file(frame, connections)
                stack.callback(path.unlink)
                loaded(program, server, path, answer, depth, WARM_UP_SECONDS)
                measures[server.name] = partial(measure, server, path, answer, depth, elapsed[server.name])
            row(name, in_turns(measures))
            report("heartbeats", shape=name, **{f"{who} per s": max(seen) for who, seen in elapsed.items()})


if __name__ == "__main__":
    main()
