"""Is it Kafka? The same generated histories of group requests, raw on the wire, to Apache Kafka and to Partita."""

from __future__ import annotations

import asyncio
import os

import pytest

from conformance.histories import PARTITIONS, TOPICS, history
from conformance.lockstep import SILENCE_S, Lockstep, Side
from partita import Admin
from support.broker.process import broker_process
from support.kafka.node import KafkaNode

HISTORIES = int(os.environ.get("PARTITA_HISTORIES", "2000"))
AT_ONCE = 24
PATIENT_SILENCE_S = 2.0


async def play(seed: int, kafka: str, partita: str, again: bool = False) -> tuple[int, list[str], int]:
    told = history(seed, "again" if again else "conformance")
    sides = (Side("kafka", kafka, told.group), Side("partita", partita, told.group))
    try:
        game = Lockstep(sides, PATIENT_SILENCE_S if again else SILENCE_S)
        return seed, await game.run(told), game.answers
    finally:
        for side in sides:
            side.close()


async def play_all(kafka: str, partita: str) -> list[tuple[int, list[str], int]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> tuple[int, list[str], int]:
        async with places:
            return await play(seed, kafka, partita)

    outcomes = await asyncio.gather(*(one(seed) for seed in range(HISTORIES)))
    # A busy machine may answer after a step gave up waiting; what really differs does so again, alone and in peace.
    return [await play(outcome[0], kafka, partita, again=True) if outcome[1] else outcome for outcome in outcomes]


@pytest.mark.conformance
def test_every_answer_of_every_history_is_kafkas(kafka: KafkaNode) -> None:
    with broker_process() as bootstrap:
        with Admin(bootstrap_servers=bootstrap) as admin:
            for topic in TOPICS:
                admin.create_topic(topic, partitions=PARTITIONS)
        outcomes = asyncio.run(play_all(kafka.bootstrap, bootstrap))
    different = [f"seed {seed}: {line}" for seed, lines, _ in outcomes for line in lines]
    assert not different, f"{len(different)} of {HISTORIES} histories differ:\n" + "\n".join(different[:20])
    answers = sum(answers for _, _, answers in outcomes)
    assert answers > 8 * HISTORIES, "the histories must really be played"
    print(f"{HISTORIES} histories, {answers} answers compared")
