"""Is it Kafka? The same generated histories of group requests, raw on the wire, to Apache Kafka and to Partita."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

import pytest

from conformance.histories import PARTITIONS, TOPICS, history
from conformance.lockstep import SILENCE_S, Lockstep, Side
from partita import Admin
from support.broker.process import broker_process
from support.kafka.node import KafkaNode

HISTORIES = int(os.environ.get("PARTITA_HISTORIES", "400"))
AT_ONCE = 24
PATIENT_SILENCE_S = 2.0
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """One history, played on both: what differed, and how many answers were compared."""

    seed: int
    differences: list[str]
    answers: int


async def play(seed: int, kafka: str, partita: str, repeat: int = 0) -> Outcome:
    told = history(seed, f"again-{repeat}" if repeat else "conformance")
    sides = (Side("kafka", kafka, told.group), Side("partita", partita, told.group))
    try:
        game = Lockstep(sides, PATIENT_SILENCE_S if repeat else SILENCE_S)
        return Outcome(seed, await game.run(told), game.answers)
    finally:
        for side in sides:
            side.close()


async def play_all(kafka: str, partita: str) -> list[Outcome]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> Outcome:
        async with places:
            return await play(seed, kafka, partita)

    outcomes = await asyncio.gather(*(one(seed) for seed in range(HISTORIES)))
    return [await settle(outcome, kafka, partita) if outcome.differences else outcome for outcome in outcomes]


async def settle(outcome: Outcome, kafka: str, partita: str) -> Outcome:
    """A history that differed, played alone until both agree: what really differs does so every time.

    Two things differ by chance. A busy machine answers after a step gave up waiting. And in both brokers a timer of
    0 ms races with the next request: when the last member leaves while a member id is given out and not yet used, the
    rebalance ends by such a timer, and a join before it is in that generation, a join after it in the next.
    """
    for repeat in range(1, REPEATS + 1):
        outcome = await play(outcome.seed, kafka, partita, repeat)
        if not outcome.differences:
            break
    return outcome


@pytest.mark.conformance
def test_every_answer_of_every_history_is_kafkas(kafka: KafkaNode) -> None:
    with broker_process() as bootstrap:
        with Admin(bootstrap_servers=bootstrap) as admin:
            for topic in TOPICS:
                admin.create_topic(topic, partitions=PARTITIONS)
        outcomes = asyncio.run(play_all(kafka.bootstrap, bootstrap))
    different = [f"seed {outcome.seed}: {line}" for outcome in outcomes for line in outcome.differences]
    assert not different, f"{len(different)} of {HISTORIES} histories differ:\n" + "\n".join(different[:20])
    answers = sum(outcome.answers for outcome in outcomes)
    assert answers > 8 * HISTORIES, "the histories must really be played"
    print(f"{HISTORIES} histories, {answers} answers compared")
