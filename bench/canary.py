"""An honest client beside attackers: a process that asks one small thing after another and measures each answer."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from harness import Server

from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Message
from partita.records.batch import build_batch
from support.broker.raw import Raw, commit_request

TOPIC = "canary"
PAUSE_SECONDS = 0.002
LIMIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What the canary saw: milliseconds; `queued_ms` is the time the broker waited for a core meanwhile."""

    answers: int
    p99_ms: float
    max_ms: float
    slowest: str
    refused: str
    queued_ms: float


class Canary:
    """Measures from `start` to `stop`. Its group keeps its one member throughout, or an answer is refused."""

    def __init__(self, server: Server, pause_s: float = PAUSE_SECONDS) -> None:
        self._server = server
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_live, args=(server.port, theirs, pause_s), daemon=True)
        self._process.start()
        assert self._pipe.recv() == "ready"

    def start(self) -> None:
        """Begin to measure."""
        self._queued = queued_ms(self._server)
        self._pipe.send("start")

    def stop(self) -> Watched:
        """End measuring; return what was seen since `start`."""
        self._pipe.send("stop")
        seen: list[tuple[float, str]]
        seen, refused = self._pipe.recv()
        times = sorted(seen) or [(float("inf"), "nothing")]
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))][0]
        queued = queued_ms(self._server) - self._queued
        return Watched(len(seen), p99 * 1000, times[-1][0] * 1000, times[-1][1], refused, queued)

    def close(self) -> None:
        """Let the canary go."""
        self._pipe.send("end")
        self._process.kill()
        self._process.join()


def queued_ms(server: Server) -> float:
    """How long the process was ready to run and had no core, so far."""
    return int(Path(f"/proc/{server.pid}/schedstat").read_text().split()[1]) / 1e6


def _live(port: int, pipe: Pipe, pause_s: float) -> None:
    with Raw(port, "canary") as raw:
        raw.socket.settimeout(LIMIT_SECONDS)
        raw.ask(CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]), 5)
        group = f"canary-{os.getpid()}"  # one before this may not have left
        joined = raw.stable(group, session_timeout_ms=300_000)
        heartbeat = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
        data = PartitionProduceData(index=0, records=build_batch([(0, b"k", b"v", [])]))
        produce = ProduceRequest(
            acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
        )
        member: dict[str, Any] = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
        commit = commit_request(group, 1, TOPIC, **member)
        steps: list[tuple[Message, int]] = [
            (heartbeat, 3), (ApiVersionsRequest(), 2), (heartbeat, 3), (produce, 9), (heartbeat, 3), (commit, 7),
        ]  # fmt: skip
        pipe.send("ready")
        while pipe.recv() == "start":
            pipe.send(_measure(raw, steps, pipe, pause_s))


def _measure(
    raw: Raw, steps: list[tuple[Message, int]], pipe: Pipe, pause_s: float
) -> tuple[list[tuple[float, str]], str]:
    seen: list[tuple[float, str]] = []
    refused = ""
    while not pipe.poll():
        for message, version in steps:
            name = type(message).__name__.removesuffix("Request")
            begun = time.perf_counter()
            answer = raw.ask(message, version)
            seen.append((time.perf_counter() - begun, name))
            if getattr(answer, "error_code", 0):
                refused = f"{name} {answer.error_code}"
            time.sleep(pause_s)
    pipe.recv()
    return seen, refused
