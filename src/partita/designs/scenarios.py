"""The fourteen scenarios: the steps done to a group, the same in every design."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from partita.designs.lab import Lab, NotSettled

EVERY = ("1", "2", "3", "3c", "848")
OWN_STRATEGY = ("1", "2", "3")
STALE_MS = 1500
APART_MS = 700


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. `shows` says where a reader should look; `session_factor` makes its sessions longer."""

    name: str
    what: str
    shows: str
    run: Callable[[Lab, int], None]
    designs: tuple[str, ...] = EVERY
    needs_ensemble: bool = False
    session_factor: int = 1


def names(count: int) -> list[str]:
    """The members, in the order in which they are assigned."""
    return [f"m{number:02}" for number in range(count)]


def victim(count: int) -> str:
    """The member in the middle: its neighbours have to take over its partitions."""
    return names(count)[count // 2]


def joiner(count: int) -> str:
    """A new member that is assigned last, so shares move down: the victim's neighbour needs some of its partitions."""
    return f"{names(count)[-1]}+"


def start(lab: Lab, count: int) -> None:
    """All members start within a second."""
    lab.cause(f"{count} members start")
    for name in names(count):
        lab.start(name)
        time.sleep(1 / count)
    lab.healed("all started")
    lab.watch(at_least_s=lab.session_s)


def join(lab: Lab, count: int) -> None:
    """One more member."""
    lab.gather(names(count))
    lab.cause("one joins")
    lab.start(joiner(count))
    lab.watch()


def leave(lab: Lab, count: int) -> None:
    """One member closes."""
    lab.gather(names(count))
    lab.cause("one leaves")
    lab.close(victim(count))
    lab.watch()


def crash(lab: Lab, count: int) -> None:
    """One member is killed."""
    lab.gather(names(count), alone=[victim(count)])
    lab.cause("one is killed")
    lab.kill(victim(count))
    lab.watch()


def grow(lab: Lab, count: int) -> None:
    """The topic gets five more partitions."""
    lab.gather(names(count))
    lab.cause("5 more partitions")
    lab.grow(5)
    lab.watch()


def broker(lab: Lab, count: int) -> None:
    """A broker comes."""
    lab.gather(names(count))
    lab.cause("a broker comes")
    lab.add_broker(1)
    lab.watch(at_least_s=lab.session_s)


def rolling(lab: Lab, count: int) -> None:
    """Each member is restarted in turn."""
    lab.gather(names(count))
    lab.cause("restarts")
    for name in names(count):
        lab.close(name)
        lab.start(name)
        lab.watch()
    lab.healed("last restart")
    lab.watch()


def expiry(lab: Lab, count: int) -> None:
    """One member's session ends while it runs on."""
    lab.gather(names(count), alone=[victim(count)])
    lab.cause("one session ends")
    lab.end_session(victim(count))
    lab.watch(at_least_s=lab.session_s)


def zk_partition(lab: Lab, count: int) -> None:
    """One member is cut off from its group's authority but still reaches its data; healed after two sessions."""
    lab.gather(names(count), alone=[victim(count)])
    lab.cause("one is cut off")
    taps = lab.authority_taps(victim(count))
    for tap in taps:
        tap.cut()
    time.sleep(2 * lab.session_s)
    for tap in taps:
        tap.heal(reset=True)
    lab.healed("healed")
    lab.watch(at_least_s=lab.session_s)


def pause(lab: Lab, count: int) -> None:
    """One process stands still, as in a long garbage collection, while another joins. Its session lives on."""
    lab.gather(names(count), alone=[victim(count)])
    for_s = 1.5 * lab.timings.retries * lab.timings.backoff_ms / 1000
    lab.cause("one stands still")
    lab.pause(victim(count), for_s, lambda: _join_in_vain(lab, count))
    lab.healed("goes on")
    lab.watch(at_least_s=2 * lab.timings.backoff_ms / 1000)


def _join_in_vain(lab: Lab, count: int) -> None:
    """Start the joiner; in design 1 wait until a member gives up: a busy machine takes its time."""
    lab.start(joiner(count))
    if lab.design == "1":
        with contextlib.suppress(NotSettled):  # with some sizes of a group none does
            lab.until(lambda: lab.has_happened("gave_up"), "a bystander gives up", within_s=lab.session_s / 2)


def stale(lab: Lab, count: int) -> None:
    """Half of the members read from a server that is late; one joins."""
    _pin(lab, count)
    lab.gather(names(count))
    _make_late(lab)
    lab.cause("one joins")
    lab.start(joiner(count))
    lab.watch(at_least_s=lab.session_s)
    _make_late(lab, late=False)


def stale_twice(lab: Lab, count: int) -> None:
    """The same, and a second one joins before the first is known everywhere."""
    _pin(lab, count)
    lab.gather(names(count))
    _make_late(lab)
    lab.cause("one joins")
    lab.start(joiner(count))
    time.sleep(APART_MS * lab.timings.session_ms / 6_000_000)
    lab.mark("another joins")
    lab.start(f"{joiner(count)}+")
    lab.watch(at_least_s=lab.session_s)
    _make_late(lab, late=False)


def _pin(lab: Lab, count: int) -> None:
    lab.is_pinned |= {name: 0 for number, name in enumerate(names(count)) if number % 2}


def _make_late(lab: Lab, *, late: bool = True) -> None:
    if lab.is_ensemble:
        lab.zookeeper.set_lag(STALE_MS * lab.timings.session_ms // 6000 if late else 0)


def slow(lab: Lab, count: int) -> None:
    """One member takes two sessions to process what it polled."""
    lab.gather(names(count), alone=[victim(count)])
    lab.cause("one is slow")
    lab.slow(victim(count), 2 * lab.session_s)
    lab.watch(at_least_s=3.5 * lab.session_s)


def coordinator(lab: Lab, count: int) -> None:
    """The coordinator is lost: killed in design 2, moved to the other node in the later ones."""
    lab.gather(names(count))
    lab.cause("coordinator lost")
    lab.fail_over()
    lab.watch(at_least_s=2 * lab.session_s)


def strategy(lab: Lab, count: int) -> None:
    """The members use an assignment strategy of their own."""
    lab.strategy = "mine"
    lab.cause("members with a strategy of their own")
    for name in names(count):
        lab.start(name)
    lab.watch(at_least_s=0.5)


SCENARIOS = (
    Scenario("start", "All members start within a second", "conflicts without any fault", start),
    Scenario("join", "One member joins a settled group", "the herd effect", join),
    Scenario("leave", "One member leaves in order", "the herd effect", leave),
    Scenario("crash", "One member is killed", "how long nobody reads", crash),
    Scenario("grow", "The topic gets 5 more partitions", "who notices", grow),
    Scenario("broker", "A broker comes", "who is woken for nothing", broker, designs=("1", "2")),
    Scenario("rolling", "Every member is restarted in turn", "what a deployment costs", rolling),
    Scenario("expiry", "One member's session ends", "registering again", expiry),
    Scenario("zk-partition", "One member is cut off from who decides", "split brain", zk_partition),
    Scenario("pause", "One process stands still while another joins", "orphans", pause, session_factor=8),
    Scenario("stale", "One joins; half see an old state", "different views", stale, needs_ensemble=True),
    Scenario("stale-twice", "Two join; half see an old state", "givings-up", stale_twice, ("1",), needs_ensemble=True),
    Scenario("slow", "One member is slow", "a late release", slow),
    Scenario("coordinator", "The coordinator is lost", "failover", coordinator, designs=EVERY[1:]),
    Scenario("strategy", "Members bring a strategy of their own", "who has to change for it", strategy, OWN_STRATEGY),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
