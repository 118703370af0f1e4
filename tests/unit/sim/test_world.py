"""Time, chance and the written history of a simulation."""

from __future__ import annotations

import pytest

from partita.sim.world.world import START_WALL_MS, Dice, Trace, World


def world(seed: int = 1) -> World:
    return World(seed, Trace(keep_all=True))


def test_events_happen_when_they_are_due_and_time_stands_at_each() -> None:
    w = world()
    seen: list[tuple[int, int, int]] = []
    for ms in (30, 10, 20):
        w.after(ms, lambda ms=ms: seen.append((ms, w.ms, w.now.wall_ms - START_WALL_MS)))
    w.run(25)
    assert seen == [(10, 10, 10), (20, 20, 20)]
    assert w.ms == 25
    w.run(100)
    assert seen[-1] == (30, 30, 30)
    assert w.ms == 100


def test_an_event_of_the_past_happens_now() -> None:
    w = world()
    seen: list[int] = []
    w.run(50)
    w.at(3, lambda: seen.append(w.ms))
    w.run(50)
    assert seen == [50]


def test_events_cause_events_at_the_same_instant() -> None:
    w = world()
    seen: list[str] = []
    w.after(5, w.after, 0, seen.append, "caused")
    w.run(5)
    assert seen == ["caused"]


def test_what_is_due_while_everything_stands_still_comes_late_at_once_and_in_its_order() -> None:
    w = world()
    seen: list[tuple[str, int]] = []
    for name, ms in (("second", 30), ("third", 2_500), ("first", 20), ("last", 6_000)):
        w.after(ms, lambda name=name: seen.append((name, w.ms)))
    w.after(10, w.stand_still, 5_000)
    w.run(1_000)
    assert seen == [("first", 5_010), ("second", 5_010), ("third", 5_010)]
    assert (w.ms, w.now.wall_ms - world().now.wall_ms) == (5_010, 5_010)
    w.run(6_000)
    assert seen[3:] == [("last", 6_000)]
    assert [w.stood_ms(since) for since in (0, w.now.mono_ms)] == [5_000, 0]


def test_what_is_due_together_comes_in_an_order_of_the_seed() -> None:
    def order(seed: int) -> str:
        w = world(seed)
        seen: list[str] = []
        for name in "abcdef":
            w.after(7, seen.append, name)
        w.run(7)
        return "".join(seen)

    assert order(1) == order(1)
    assert len({order(seed) for seed in range(5)}) > 1


def test_dice_fall_the_same_for_a_seed_in_every_python() -> None:
    dice = Dice("partita")
    assert [dice.bits(16) for _ in range(3)] == FALLEN
    assert Dice(7).random() != Dice(8).random()


FALLEN = [54920, 43147, 49704]


def test_dice_stay_within_their_bounds() -> None:
    dice = Dice(0)
    assert {dice.between(2, 4) for _ in range(200)} == {2, 3, 4}
    assert all(1.5 <= dice.uniform(1.5, 2.5) < 2.5 for _ in range(200))
    assert not any(dice.chance(0) for _ in range(200))
    assert all(dice.chance(1) for _ in range(200))
    assert {dice.choice("xyz") for _ in range(200)} == {"x", "y", "z"}
    assert all(len(set(dice.sample(range(9), 5))) == 5 for _ in range(50))
    assert all(0 <= dice.bits(5) < 32 for _ in range(200))


def test_intervals_have_their_mean() -> None:
    dice = Dice(0)
    mean = sum(dice.interval(100.0) for _ in range(20_000)) / 20_000
    assert mean == pytest.approx(100.0, rel=0.05)


def test_a_trace_keeps_its_tail_and_the_digest_of_everything() -> None:
    short, whole = Trace(tail=2), Trace(keep_all=True)
    for trace in (short, whole):
        for ms in range(5):
            trace.add(ms, "c", "me", f"event {ms}")
    assert [line.split()[0] for line in short.lines()] == ["3", "4"]
    assert len(list(whole.lines())) == short.events == 5
    assert short.digest == whole.digest
    short.add(5, "c", "me", "another")
    assert short.digest != whole.digest
