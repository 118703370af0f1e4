"""Staged incidents: what an operator reads, once as the coordinator tells it, once from the group's log alone.

A coordinator shard decides; its members behave as Kafka's do; time is moved by hand.
"""

from __future__ import annotations

import pytest

from partita.explain import Account, Sure
from support.explain.staged import Stage

TOLD, LOG = True, False


def group(*names: str, topics: dict[str, int] | None = None, assignor: str = "range") -> Stage:
    """A group at rest, half a minute after its last member came."""
    stage = Stage(topics or {"orders": 6}, assignor)
    for name in names:
        stage.start(name)
        stage.pass_ms(200)
    stage.settle(30_000)
    return stage


def killed() -> Stage:
    stage = group("worker-1", "worker-2", "worker-3")
    stage.kill("worker-2")
    stage.settle(60_000)
    return stage


def left() -> Stage:
    stage = group("worker-1", "worker-2")
    stage.stop("worker-2")
    stage.settle()
    return stage


def joined() -> Stage:
    stage = group("worker-1")
    stage.start("worker-2")
    stage.settle()
    return stage


def polled_late() -> Stage:
    stage = group("worker-1", "worker-2")
    stage.block("worker-1")
    stage.pass_ms(300_000)
    stage.give_up_polling("worker-1")
    stage.settle()
    return stage


def static_restart() -> Stage:
    stage = Stage({"orders": 6})
    stage.start("w", instance="w-1")
    stage.start("v", instance="w-2")
    stage.settle(30_000)
    stage.kill("w")
    stage.pass_ms(5_000)
    stage.start("w", instance="w-1")
    stage.settle()
    return stage


def resubscribed() -> Stage:
    stage = group("worker-1", "worker-2", topics={"orders": 4, "refunds": 2})
    stage.subscribe("worker-2", "orders")
    stage.settle()
    return stage


def more_partitions() -> Stage:
    stage = group("worker-1", "worker-2")
    stage.add_partitions("orders", 8)
    stage.settle()
    return stage


def slow_join() -> Stage:
    stage = group("worker-1", "worker-2")
    stage.block("worker-1")
    stage.start("worker-3")
    stage.pass_ms(40_000)
    stage.process("worker-1").polls = True
    stage.settle()
    return stage


def deploy() -> Stage:
    stage = group("worker-1", "worker-2", "worker-3")
    for number in (1, 2, 3):
        stage.stop(f"worker-{number}")
        stage.pass_ms(8_000)
        stage.start(f"worker-{number}")
        stage.pass_ms(20_000)
    return stage


def flapping() -> Stage:
    stage = group("worker-1", "worker-2")
    for _ in range(4):
        stage.kill("worker-2")
        stage.pass_ms(55_000)
        stage.start("worker-2")
        stage.pass_ms(10_000)
    return stage


def storm() -> Stage:
    stage = group("worker-1")
    for number in range(2, 8):
        stage.start(f"worker-{number}")
        stage.pass_ms(5_000)
    return stage


def last_one_left() -> Stage:
    stage = group("worker-1")
    stage.stop("worker-1")
    stage.settle()
    return stage


EXPIRED = "worker-2 was silent for its session timeout of 45 s and was removed."
PROBABLY = "worker-2 probably crashed, stood still or was cut off: it was silent for its session timeout of 45 s."
STATIC = "A new process took the place of w-1 without a rebalance."
WORDS = {
    killed: (EXPIRED, PROBABLY, "Nobody read orders-2 and orders-3 for 50 s", "session.timeout.ms (now 45 s)"),
    left: ("worker-2 left.", "worker-2 left.", "Nobody read orders-3, orders-4 and orders-5 for 2.9 s", ""),
    joined: ("worker-2 joined.", "worker-2 joined.", "has 2 members for 6 partitions: 3 moved, 3 stayed", ""),
    polled_late: (
        "worker-1 did not poll for 5 min and left.",
        "worker-1 probably did not poll for 5 min and left.",
        "Nobody read orders-0, orders-1 and orders-2 for 5 min 5 s",
        "Find the batch that kept worker-1 busy; then lower max.poll.records, raise max.poll.interval.ms (now 5 min)",
    ),
    static_restart: (STATIC, STATIC, "a process that still uses the old member id is fenced", ""),
    resubscribed: (
        "worker-2 changed its subscription (dropped refunds).",
        "worker-2 changed its subscription (dropped refunds).",
        "one has 2 partitions more than another",
        "compare the members' configurations",
    ),
    more_partitions: (
        "Partitions were added (orders-6 and orders-7), and worker-1 noticed.",
        "Partitions were added: orders-6 and orders-7.",
        "Generation 3 has 2 members for 8 partitions",
        "cooperative-sticky or KIP-848",
    ),
    slow_join: ("worker-3 joined.", "worker-3 joined.", "Nobody read orders-3, orders-4 and orders-5 for 37 s", ""),
    deploy: (
        "worker-3 joined.", "worker-3 joined.",
        "worker-1, worker-2 and worker-3 restarted one after another, which looks like a deploy.",
        "Give each member a group.instance.id",
    ),
    flapping: (
        "worker-2 joined.", "worker-2 joined.", "worker-2 went 4 times in 4 min 39 s and keeps coming back",
        "Stop worker-2 until its log shows why it restarts or stalls",
    ),
    storm: (
        "worker-7 joined.", "worker-7 joined.",
        "6 rebalances came within 25 s, which is less than one session timeout",
        "raise group.initial.rebalance.delay.ms",
    ),
    last_one_left: (
        "worker-1 left, and the group is empty now.", "worker-1 left, and the group is empty now.",
        "has no members, so nobody reads", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("incident", WORDS, ids=lambda incident: incident.__name__)
def test_an_operator_reads_what_happened_what_it_cost_and_what_to_do(incident: object) -> None:
    told_headline, log_headline, sentence, advice = WORDS[incident]  # type: ignore[index]  # the keys are functions
    stage: Stage = incident()  # type: ignore[operator]  # as above
    for source, headline in ((TOLD, told_headline), (LOG, log_headline)):
        account = stage.accounts(told=source)[-1]
        assert account.headline == headline
        assert any(sentence in part for part in account.story), account.story
        assert advice in account.advice
        assert 2 <= len(account.story) <= 6, account.story
        assert all(cause.evidence for cause in account.causes)


def test_whom_the_others_waited_for_is_told_by_the_coordinator_only() -> None:
    stage = slow_join()
    told, seen = (stage.accounts(told=source)[-1] for source in (TOLD, LOG))
    assert any("The join phase took 40 s, until worker-1 had rejoined" in part for part in told.story)
    assert told.advice.startswith("Everybody waited for worker-1 to call poll")
    assert [phase.waited_for for phase in told.phases if phase.name == "join"] == ["worker-1"]
    assert not [phase for phase in seen.phases if phase.name == "join"]


def test_both_sources_together_give_one_account_of_each_rebalance() -> None:
    stage = killed()
    both = stage.accounts(told=TOLD)
    assert [a.generation for a in both] == [a.generation for a in stage.accounts(told=LOG)]
    assert all(cause.sure is Sure.TOLD for account in both for cause in account.causes)


def test_costs_are_those_of_the_clock() -> None:
    def unread(account: Account) -> dict[str, int]:
        return {f"{topic}-{number}": span.ms or 0 for span in account.unread for topic, number in [span.partition]}

    told, seen = (unread(killed().accounts(told=source)[-1]) for source in (TOLD, LOG))
    assert told == seen
    assert 45_000 <= told["orders-2"] <= 55_000, "silent for its session timeout, up to one commit interval longer"


def test_what_happens_every_few_minutes_is_seen_as_a_pattern() -> None:
    stage = group("worker-1")
    for _ in range(5):
        stage.start("batch")
        stage.pass_ms(60_000)
        stage.stop("batch")
        stage.pass_ms(240_000)
    account = stage.accounts()[-1]
    assert any("every 5 min" in pattern.text for pattern in account.patterns), account.patterns
    assert account.advice.startswith("Look for what runs at that interval")
