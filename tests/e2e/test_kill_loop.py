"""Members killed again and again, mid-batch if need be: nothing is lost, and only uncommitted batches come again.

Ten kills, as fast as the group gets over them. `--soak-minutes 60` kills a member every 30 s for an hour instead.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

import pytest

from partita import Broker, Producer
from support.clients.member_processes import Member, MemberProcesses

PARTITIONS, KILLS, PAUSE_S = 4, 10, 30.0
WITHIN_S = 60.0


@contextmanager
def producing(bootstrap: str) -> Iterator[list[str]]:
    """Sends numbered values until the block ends; then the list holds all that were acknowledged."""
    sent: list[str] = []
    over = threading.Event()

    def run() -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            while not over.wait(0.02):
                some = [str(len(sent) + i) for i in range(8)]
                for future in [producer.send("jobs", value.encode(), key=value) for value in some]:
                    future.result(WITHIN_S)
                sent.extend(some)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def has_something_in_hand(member: Member) -> bool:
    """It was handed records and has not said that it committed them."""
    return bool(member.log) and member.log[-1]["event"] == "records"


def records_of_committed_batches(member: Member) -> Iterator[tuple[int, int]]:
    for fact, following in zip(member.log, member.log[1:], strict=False):
        if fact["event"] == "records" and following["event"] == "committed":
            yield from ((partition, offset) for partition, offset, _ in fact["records"])


@pytest.mark.case("CC-197")
def test_members_killed_again_and_again_lose_nothing(request: pytest.FixtureRequest) -> None:
    minutes: float = request.config.getoption("--soak-minutes")
    until, random = time.monotonic() + minutes * 60, Random(197)
    everybody: list[Member] = []
    kills = 0
    with (
        Broker(num_partitions=PARTITIONS, group_min_session_timeout_ms=500) as broker,
        MemberProcesses("partita", broker.bootstrap, "crew", "jobs") as processes,
    ):
        with producing(broker.bootstrap) as sent:
            processes.start("m0", "m1", "m2")
            while kills < KILLS or time.monotonic() < until:
                processes.wait("all three share", lambda: processes.shares(PARTITIONS), WITHIN_S)
                victim = random.choice(sorted(processes.members))
                if kills % 2:
                    processes.wait(
                        "it has something in hand", partial(has_something_in_hand, processes.members[victim])
                    )
                everybody.append(processes.kill(victim))
                kills += 1
                processes.start(f"m{2 + kills}")
                if minutes:
                    threading.Event().wait(PAUSE_S)
        processes.wait("all three share", lambda: processes.shares(PARTITIONS), WITHIN_S)
        processes.wait("everything was processed", lambda: processes.values() >= set(sent), WITHIN_S)
        everybody += processes.members.values()
        processes.stop()
    assert set(sent) == processes.values()
    done = Counter(record for member in everybody for record in records_of_committed_batches(member))
    assert max(done.values()) == 1, "what was committed came again"
