"""Accounts of single rebalances: causes told and seen, costs, moves, and the words."""

from __future__ import annotations

import json
from dataclasses import replace

from partita.explain import Account, Fact, Sure, What, explain
from partita.explain.facts import Assigned, Committed, EndSeen, Member, Replaced, ToldCause
from partita.explain.wording import duration, listed, names_of

START_MS = 1_764_000_000_000


def at(seconds: float) -> int:
    return START_MS + round(seconds * 1000)


def member(name: str, *numbers: int, member_id: str = "", instance: str | None = None) -> Member:
    return Member(
        member_id=member_id or f"{name}-id",
        client_id=name,
        instance_id=instance,
        host=f"/10.0.0.{len(name)}",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        topics=("orders",),
        partitions=tuple(("orders", number) for number in numbers),
    )


def generation(number: int, seconds: float, *members: Member, protocol: str = "range") -> Assigned:
    """As the group's log shows it: the join phase ended 0.1 s before."""
    return Assigned(
        "g", at(seconds), Sure.SEEN, number, members, protocol, members[0].member_id if members else None,
        joined_ms=at(seconds - 0.1), leader_epoch=0,
    )  # fmt: skip


def commits(number: int, *seconds: float) -> list[Fact]:
    return [Committed("g", at(s), ("orders", number), i * 10) for i, s in enumerate(seconds)]


def last(*facts: Fact) -> Account:
    return explain(facts)[-1]


def test_a_member_that_joins_is_seen() -> None:
    account = last(generation(1, 0, member("a", 0, 1)), generation(2, 60, member("a", 0), member("b", 1)))
    assert [(c.what, c.sure, c.who) for c in account.causes] == [(What.JOINED, Sure.SEEN, "b")]
    assert account.headline == "b joined."
    assert (account.kept, [m.partition for m in account.moves]) == (1, [("orders", 1)])


def epoch(number: int, seconds: float, *members: Member, topics_hash: int | None = 7) -> Assigned:
    """As the log of a KIP-848 group shows it."""
    told = tuple(replace(member, session_timeout_ms=None) for member in members)
    return Assigned("g", at(seconds), Sure.SEEN, number, told, is_incremental=True, topics_hash=topics_hash)


def test_topics_of_a_kip_848_group_that_have_changed_are_seen_by_their_hash() -> None:
    account = last(epoch(1, 0, member("a", 0)), epoch(2, 9, member("a", 0, 1), topics_hash=8))
    (cause,) = account.causes
    assert (cause.what, cause.sure, cause.detail) == (What.TOPICS_CHANGED, Sure.SEEN, "orders-1")
    joined = last(epoch(1, 0, member("a", 0)), epoch(2, 9, member("a", 0), member("b", 1), topics_hash=8))
    assert [(c.what, c.sure) for c in joined.causes] == [
        (What.JOINED, Sure.SEEN),
        (What.TOPICS_CHANGED, Sure.UNKNOWN),  # it may have been noticed only because of the join
    ]
    same = last(epoch(1, 0, member("a", 0)), epoch(2, 9, member("a", 0, 1)))
    assert [c.what for c in same.causes] == [What.UNEXPLAINED]


def test_why_a_member_of_a_kip_848_group_is_gone_is_not_guessed_from_its_silence() -> None:
    before, after = epoch(1, 0, member("a", 0), member("b", 1)), epoch(2, 60, member("b", 0, 1))
    for commit, told in (
        (commits(0, 20), "its last commit came 40 s before the new target"),
        ([], "it committed"),
    ):
        (cause,) = last(before, *commit, after).causes
        assert (cause.what, cause.sure) == (What.GONE, Sure.UNKNOWN)
        assert told in cause.evidence[1]
        assert "neither sessions nor heartbeats" in cause.evidence[2]


def test_a_member_that_committed_just_before_has_left() -> None:
    account = last(
        generation(1, 0, member("a", 0), member("b", 1)), *commits(1, 5, 10, 59.5), generation(2, 60, member("a", 0, 1))
    )
    assert [(c.what, c.sure, c.who) for c in account.causes] == [(What.LEFT, Sure.INFERRED, "b")]
    assert account.causes[0].evidence


def test_a_member_that_was_silent_for_its_session_timeout_has_expired() -> None:
    account = last(
        generation(1, 0, member("a", 0), member("b", 1)),
        *commits(1, 5, 10, 15),
        *commits(0, 5, 10, 15, 20, 30, 40, 50, 60),
        generation(2, 62, member("a", 0, 1)),
    )
    assert [(c.what, c.sure) for c in account.causes] == [(What.EXPIRED, Sure.INFERRED)]
    assert account.headline == (
        "b probably crashed, stood still or was cut off: it was silent for its session timeout of 45 s."
    )
    assert account.unread_ms == 47_000
    assert 3 <= len(account.story) <= 6


def test_what_the_coordinator_told_wins() -> None:
    told = Assigned(
        "g", at(62), Sure.TOLD, 2, (member("a", 0, 1),), "range", "a-id", at(61.9), at(60),
        causes=(ToldCause(What.LEFT, "b-id", None, "b", "no poll for 300000 ms, max_poll_interval_ms is 300000"),),
    )  # fmt: skip
    first = generation(1, 0, member("a", 0), member("b", 1))
    account = last(first, told, generation(2, 62.01, member("a", 0, 1)))
    assert [(c.what, c.sure, c.who) for c in account.causes] == [(What.POLLED_TOO_LATE, Sure.TOLD, "b")]
    assert account.headline == "b did not poll for 5 min and left."
    assert "max.poll.records" in account.advice
    assert len(explain([first, told, generation(2, 62.01, member("a", 0, 1))])) == 2, "one account per generation"


def test_a_static_member_that_is_replaced_costs_no_rebalance() -> None:
    before = generation(3, 0, member("w", 0, instance="w-1"))
    seen = last(before, generation(3, 30, member("w", 0, instance="w-1", member_id="w-new")))
    told = last(before, Replaced("g", at(30), Sure.TOLD, "w-1", "w-id", "w-new"))
    for account in (seen, told):
        assert account.headline == "A new process took the place of w-1 without a rebalance."
        assert (account.generation, account.previous_generation, account.moves) == (3, 3, ())


def test_lag_gained_is_read_between_the_ends_that_were_seen() -> None:
    ends: list[Fact] = [EndSeen(at(0), ("orders", 1), 0), EndSeen(at(100), ("orders", 1), 1000)]
    facts: list[Fact] = [
        generation(1, 0, member("a", 0), member("b", 1)), *commits(1, 10), generation(2, 60, member("a", 0, 1)), *ends
    ]  # fmt: skip
    (span,) = last(*facts).unread
    assert (span.partition, span.lag_gained) == (("orders", 1), 500)


def test_an_account_is_plain_json() -> None:
    account = last(generation(1, 0, member("a", 0, 1)), generation(2, 60, member("a", 0), member("b", 1)))
    told = json.loads(json.dumps(account.as_json()))
    assert told["moves"][0]["partition"] == "orders-1"
    assert told["causes"][0]["sure"] == "seen"
    assert told["cause"] == "member joined"


def test_names_tell_members_apart() -> None:
    uuid = "11112222-3333-4444-5555-666677778888"
    twins = [Member(f"app-{uuid}", "app"), Member("app-" + uuid.replace("1111", "9999"), "app")]
    assert list(names_of([twins]).values()) == ["app-1111", "app-9999"]
    assert list(names_of([twins[:1], twins[1:]]).values()) == ["app", "app"], "one after the other"
    assert list(names_of([[Member("x", "app", "i-1")]]).values()) == ["i-1"]


def test_words_for_durations_and_lists() -> None:
    assert [duration(ms) for ms in (850, 3_100, 3_000, 47_000, 320_000, 7_500_000, 273_600_000)] == [
        "850 ms", "3.1 s", "3 s", "47 s", "5 min 20 s", "2 h 5 min", "3 d 4 h",
    ]  # fmt: skip
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert listed(["a", "b", "c"]) == "a, b and c"
