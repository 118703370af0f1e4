"""Heartbeats per second: one connection with 200 in flight, and 100 connections with one in flight each."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import tempfile
from pathlib import Path

from harness import Server, apache_kafka, c_server, left_out, measured, partita, report, wire_program

from partita.protocol.framing import encode_request
from partita.protocol.messages.heartbeat import HeartbeatRequest

SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
WARM_UP_SECONDS = 0.5
ANSWER_BYTES = 4 + 4 + 4 + 2
VERSION = 3
SHAPES = (("one connection, 200 in flight", 1, 200), ("100 connections, one in flight each", 100, 1))


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


def rate(program: Path, server: Server, frame: bytes, connections: int, depth: int, answer: int) -> dict[str, float]:
    path = frames_file(frame, connections)
    outcome: list[float] = []

    def work(limit_s: float = SECONDS) -> float:
        arguments = [str(server.port), str(path), str(answer), str(depth), str(limit_s)]
        done = subprocess.run([str(program), "load", *arguments], capture_output=True, text=True, check=True)
        count, seconds = map(float, done.stdout.split())
        outcome[:] = [count / seconds]
        return count

    work(WARM_UP_SECONDS)
    per_cpu_s, _ = measured(server, work)
    path.unlink()
    return {"per_s": outcome[0], "per_cpu_s": per_cpu_s}


def heartbeat_frame(member: str, generation: int) -> bytes:
    message = HeartbeatRequest(group_id="bench", generation_id=generation, member_id=member)
    return b"".join(encode_request(12, VERSION, 7, "bench", message))


def main() -> None:
    program = wire_program("heartbeats")
    if program is None:
        return
    with partita() as ours, c_server(program, "C echo", "echo") as reference, apache_kafka("heartbeats") as kafka:
        servers = [ours, *([kafka] if kafka else [])]
        frames = {server.name: heartbeat_frame(*asyncio.run(stable_group(server))) for server in servers}
        for shape, connections, depth in SHAPES:
            peers = {s.name: rate(program, s, frames[s.name], connections, depth, ANSWER_BYTES) for s in servers}
            frame = frames["partita"]
            peers["C echo"] = rate(program, reference, frame, connections, depth, len(frame))
            ratio = peers["partita"]["per_s"] / peers["C echo"]["per_s"]
            report(
                "heartbeats",
                shape=shape,
                **{f"{n} {k}": v for n, p in peers.items() for k, v in p.items()},
                ratio_to_echo=ratio,
            )
    left_out("heartbeats", "kfake, noida-db", "not published as packages")


if __name__ == "__main__":
    main()
