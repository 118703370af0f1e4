"""The simulated storage of the group log: durable later, a prefix after a crash, compacted without loss."""

from __future__ import annotations

import pytest

from partita.group.contract import Record
from partita.records.batch import iter_records
from partita.sim.broker.group_log import AppendFailed, GroupLog
from partita.sim.world.trace import Trace
from partita.sim.world.world import World


def log_of(*, sync_ms: tuple[int, int] = (0, 0), seed: int = 1) -> tuple[World, GroupLog]:
    world = World(seed, Trace())
    log = GroupLog(world)
    log.sync_ms = sync_ms
    return world, log


def put(log: GroupLog, key: str, value: str | None = "v") -> None:
    log.append((Record(key.encode(), None if value is None else value.encode()),), 0)


def contents(batches: list[bytes]) -> list[tuple[object, object]]:
    return [(record.key, record.value) for batch in batches for record in iter_records(batch)]


def test_without_a_delay_a_batch_is_durable_at_once() -> None:
    _, log = log_of()
    put(log, "a")
    assert (log.end, log.durable) == (1, 1)


def test_batches_become_durable_later_and_the_broker_hears_of_it() -> None:
    world, log = log_of(sync_ms=(10, 20))
    heard: list[int] = []
    log.on_durable = lambda: heard.append(log.durable)
    put(log, "a")
    put(log, "b")
    assert (log.end, log.durable) == (2, 0)
    world.run(9)
    assert log.durable == 0
    world.run(20)
    assert log.durable == 2
    assert heard[-1] == 2


def test_an_append_that_fails_leaves_nothing() -> None:
    _, log = log_of()
    log.failures_left = 1
    with pytest.raises(AppendFailed):
        put(log, "a")
    assert log.end == 0
    put(log, "b")
    assert contents(log.batches) == [(b"b", b"v")]


def test_a_crash_keeps_what_is_durable_and_some_prefix_of_the_rest() -> None:
    kept = set()
    for seed in range(40):
        world, log = log_of(sync_ms=(0, 0), seed=seed)
        put(log, "durable")
        log.sync_ms = (50, 50)
        for n in range(3):
            put(log, f"{n}")
        lost = log.crash()
        assert log.end == log.durable == 4 - lost
        assert contents(log.batches) == [(b"durable", b"v"), *((b"%d" % n, b"v") for n in range(3))][: log.end]
        kept.add(log.end)
        world.run(1_000)
        assert log.durable == log.end
    assert kept == {1, 2, 3, 4}


def test_offsets_go_on_over_a_crash() -> None:
    _, log = log_of(sync_ms=(50, 50))
    put(log, "a")
    log.crash()
    put(log, "b")
    offsets = [record.offset for batch in log.batches for record in iter_records(batch)]
    assert offsets == sorted(set(offsets))


def test_a_cleaned_log_has_the_last_record_of_each_key_in_the_cleaned_part() -> None:
    _, log = log_of()
    for key, value in (("a", "1"), ("b", "1"), ("a", "2"), ("b", None), ("a", "3")):
        put(log, key, value)
    assert contents(log.cleaned(4)) == [(b"a", b"2"), (b"b", None), (b"a", b"3")]
    assert contents(log.cleaned(0)) == contents(log.batches)
