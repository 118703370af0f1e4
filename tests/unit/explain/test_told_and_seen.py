"""Reports and the group's log together: the report fixes who began a rebalance, the log says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from partita.explain import Account, Fact, Sure, What, asides_of, explain
from partita.explain.account import Cause
from partita.explain.advice import ADVICE
from partita.explain.facts import (
    Assigned,
    BeginSeen,
    Committed,
    CoordinatorLoaded,
    Forgotten,
    Member,
    PartitionsCounted,
    Refused,
    ToldCause,
)
from partita.explain.story import headline_of
from partita.explain.wording import agree
from partita.observe.kept import Kept
from partita.observe.note_facts import facts_of_notes

START_MS = 1_764_000_000_000
GROUP = "g"


def at(seconds: float) -> int:
    return START_MS + round(seconds * 1000)


def member(name: str, *numbers: int, topics: Sequence[str] = ("orders",), new_id: str = "") -> Member:
    return Member(
        member_id=new_id or f"{name}-id",
        client_id=name,
        host="/10.0.0.1",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        topics=tuple(topics),
        partitions=tuple(("orders", number) for number in numbers),
    )


def seen(number: int, seconds: float, *members: Member, protocol: str = "range", epoch: int = 0) -> Assigned:
    return Assigned(
        GROUP, at(seconds), Sure.SEEN, number, members, protocol, members[0].member_id if members else None,
        joined_ms=at(seconds - 0.1), leader_epoch=epoch,
    )  # fmt: skip


def told(number: int, seconds: float, *causes: ToldCause, members: Sequence[Member], protocol: str = "range") -> Fact:
    return replace(
        seen(number, seconds, *members, protocol=protocol), sure=Sure.TOLD, causes=causes, began_ms=at(seconds - 0.2)
    )


def commits(number: int, *seconds: float) -> list[Fact]:
    return [Committed(GROUP, at(s), ("orders", number), i * 10) for i, s in enumerate(seconds)]


def every(step: float, until: float, start: float = 0) -> list[float]:
    return [start + step * i for i in range(1, int((until - start) / step) + 1)]


def last(*facts: Fact) -> Account:
    return explain(facts)[-1]


def through_kept(*facts: Fact) -> Account:
    """As a command or a page knows it: with most commits dropped."""
    kept = Kept()
    for fact in sorted(facts, key=lambda fact: fact.at_ms):
        kept.add(fact)
    return explain(kept.of(GROUP))[-1]


A, B = member("a", 0), member("b", 1)
HOURS = 3 * 3600.0


@pytest.mark.parametrize("quiet", [(), (60.0, 200.0)], ids=["steady", "one idle time long ago"])
def test_a_crash_after_hours_of_peace_is_named_from_the_log_alone(quiet: tuple[float, ...]) -> None:
    """Finding F1: the gap that dropped commits left was taken for the pace, so no crash was ever named."""
    beats = [s for s in every(5, HOURS) if not (quiet and quiet[0] < s < quiet[1])]
    account = through_kept(
        seen(1, 0, A, B), *commits(1, *beats), *commits(0, *beats, *every(5, HOURS + 47, HOURS)),
        seen(2, HOURS + 48, member("a", 0, 1)),
    )  # fmt: skip
    (cause,) = account.causes
    assert (cause.what, cause.sure, cause.who) == (What.EXPIRED, Sure.INFERRED, "b")
    assert "it committed every 5 s or more often" in cause.evidence[1]


def test_a_late_poll_after_hours_of_peace_is_named_from_the_log_alone() -> None:
    beats = every(5, HOURS)
    account = through_kept(
        seen(1, 0, A, B), *commits(1, *beats), *commits(0, *beats, *every(5, HOURS + 303, HOURS)),
        seen(2, HOURS + 304, member("a", 0, 1)),
    )  # fmt: skip
    assert [(c.what, c.sure) for c in account.causes] == [(What.POLLED_TOO_LATE, Sure.INFERRED)]


def test_a_member_that_left_after_its_poll_interval_polled_too_late_though_the_note_says_left() -> None:
    account = last(
        seen(1, 0, A, B), *commits(1, *every(5, 600)), *commits(0, *every(5, 905)),
        told(2, 906, ToldCause(What.LEFT, "b-id", None, "b"), members=[member("a", 0, 1)]),
    )  # fmt: skip
    assert [(c.what, c.sure, c.who) for c in account.causes] == [(What.POLLED_TOO_LATE, Sure.INFERRED, "b")]
    assert account.causes[0].evidence[0] == "the coordinator noted 'member left'"
    assert account.advice.startswith("Find the batch that kept b busy")


def test_a_member_of_an_idle_topic_that_left_has_left() -> None:
    account = last(
        seen(1, 0, A, B), *commits(1, *every(5, 600)), *commits(0, *every(5, 600)),
        told(2, 906, ToldCause(What.LEFT, "b-id", None, "b"), members=[member("a", 0, 1)]),
    )  # fmt: skip
    assert [(c.what, c.sure) for c in account.causes] == [(What.LEFT, Sure.TOLD)]


LEADER = ToldCause(What.LEADER_REJOINED, "a-id", None, "a")


def test_partitions_that_were_added_stand_before_the_leader_that_noticed() -> None:
    account = last(seen(1, 0, A, B), told(2, 60, LEADER, members=[member("a", 0, 2), B]))
    assert account.headline == "Partitions were added (orders-2), and a noticed."
    alone = last(seen(1, 0, A, B), seen(2, 60, member("a", 0, 2), B))
    assert alone.headline == "Partitions were added: orders-2."


def test_a_new_assignor_stands_behind_the_member_that_brought_it() -> None:
    causes = [ToldCause(What.JOINED, "c-id", None, "c")]
    account = last(seen(1, 0, A, B), told(2, 60, *causes, members=[A, B, member("c")], protocol="roundrobin"))
    assert account.headline == "c joined, and the group changed its assignor from range to roundrobin."


def test_a_restarted_broker_is_the_cause_and_not_its_members() -> None:
    again = [member("a", 0, new_id="a-2"), member("b", 1, new_id="b-2")]
    silent = [ToldCause(What.EXPIRED, f"{who}-id", None, who) for who in "ab"]
    joined = [ToldCause(What.JOINED, f"{who}-2", None, who) for who in "ab"]
    load = CoordinatorLoaded("", at(55), Sure.TOLD)
    account = last(seen(1, 0, A, B), load, told(2, 60, *joined, *silent, members=again))
    assert account.headline == "The coordinator moved or restarted, and a and b joined."
    assert account.advice == ""
    on_kafka = last(seen(1, 0, A, B), seen(2, 60, *again, epoch=1))
    assert on_kafka.headline == "The coordinator moved or restarted, and a and b joined."


def test_a_crash_after_the_coordinator_moved_keeps_its_name() -> None:
    account = last(seen(1, 0, A, B), *commits(1, 5, 10), seen(2, 60, member("a", 0, 1), epoch=1))
    assert [c.what for c in account.causes] == [What.GONE, What.COORDINATOR_MOVED]


# -- topics ------------------------------------------------------------------------------------------------------------

BOTH = ("orders", "old")
WITH_OLD = [member("a", 0, topics=BOTH), member("b", 1, topics=BOTH)]


def test_a_topic_that_several_members_drop_at_once_was_deleted() -> None:
    account = last(seen(1, 0, *WITH_OLD), seen(2, 60, A, B))
    (cause,) = account.causes
    assert (cause.what, cause.sure, cause.detail) == (What.TOPIC_DELETED, Sure.INFERRED, "old")
    assert account.headline == "Topic old was probably deleted."


def test_a_topic_that_does_not_exist_was_deleted_though_one_member_alone_dropped_it() -> None:
    facts = [seen(1, 0, *WITH_OLD[:1], B), seen(2, 60, A, B)]
    assert last(*facts).headline == "a changed its subscription (dropped old)."
    assert last(*facts, PartitionsCounted(at(900), "old", 0)).headline == "Topic old was probably deleted."
    assert last(*facts, PartitionsCounted(at(59), "old", 0)).headline == "Topic old was deleted."
    assert last(*facts, PartitionsCounted(at(900), "old", 3)).headline == "a changed its subscription (dropped old)."


def test_a_deleted_topic_stands_before_the_member_that_noticed() -> None:
    note = {"note": "TopicChanged", "topic": "old", "partitions": 0, "wall_ms": at(50), "seq": 1}
    for cause in (LEADER, ToldCause(What.SUBSCRIPTION_CHANGED, "a-id", None, "a")):
        account = last(
            seen(1, 0, *WITH_OLD), *facts_of_notes([note]), told(2, 60, cause, members=[A, member("b", 1, topics=BOTH)])
        )
        assert account.headline == "Topic old was deleted, and a noticed."


def test_a_new_topic_that_a_pattern_matches_is_no_change_of_mind() -> None:
    matched = [replace(m, topics=("orders", "new")) for m in (A, B)]
    assert last(seen(1, 0, A, B), seen(2, 60, *matched)).headline == "Topic new was probably created."
    counted = PartitionsCounted(at(50), "new", 3)
    assert last(seen(1, 0, A, B), counted, seen(2, 60, matched[0], B)).headline == "Topic new was created."
    old = PartitionsCounted(at(-50), "new", 3)
    changed = last(seen(1, 0, A, B), old, seen(2, 60, matched[0], B))
    assert changed.headline == "a changed its subscription (added new)."


def test_a_new_topic_that_members_notice_one_after_the_other_is_no_change_of_mind_either() -> None:
    """The second rebalance within a second was called a change of subscription, with advice about a deploy."""
    a, b = (replace(m, topics=("orders", "new")) for m in (A, B))
    facts: list[Fact] = [seen(1, 0, A, B), PartitionsCounted(at(50), "new", 3), seen(2, 60, a, B)]
    note = ToldCause(What.SUBSCRIPTION_CHANGED, "b-id", client_id="b", detail="added new")
    assert last(*facts, told(3, 61, note, members=[a, b])).headline == "Topic new was created, and b noticed."
    assert last(*facts, seen(3, 61, a, b)).headline == "Topic new was created."
    assert last(*facts, seen(3, 900, a, b)).headline == "b changed its subscription (added new)."
    had_it = last(PartitionsCounted(at(-5), "new", 3), seen(1, 0, a, B), seen(2, 60, a, b))
    assert had_it.headline == "b changed its subscription (added new)."


# -- KIP-848 -----------------------------------------------------------------------------------------------------------


def incremental(number: int, seconds: float, *members: Member) -> Assigned:
    return replace(
        seen(number, seconds, *(replace(m, session_timeout_ms=None) for m in members)), is_incremental=True,
        joined_ms=None, protocol=None,
    )  # fmt: skip


def test_a_conversion_is_said_and_the_way_back_too() -> None:
    up = last(seen(3, 0, member("a", 0, 1)), incremental(4, 30, A, B))
    assert up.headline == "b joined, and the group changed to the consumer protocol (KIP-848)."
    down = last(incremental(4, 0, A, B), *commits(1, 28), seen(5, 30, A))
    assert down.headline.endswith("and the group changed to the classic protocol.")


def test_a_downgraded_group_has_no_second_end() -> None:
    held: dict[str, object] = {
        "member_id": "a-id", "group_instance_id": None, "client_id": "a", "client_host": "/h",
        "session_timeout_ms": None, "rebalance_timeout_ms": 1, "topics": ["t"], "partitions": {},
        "joined_ms": None, "synced_ms": None,
    }  # fmt: skip
    notes: list[dict[str, Any]] = [
        {"note": "TargetComputed", "group_id": GROUP, "epoch": 3, "assignor": "uniform", "members": 1, "held": [held]},
        {"note": "GroupConverted", "group_id": GROUP, "protocol": "classic", "members": 1},
        {"note": "MemberGone", "group_id": GROUP, "cause": {"member_id": "a-id"}},
    ]
    facts = facts_of_notes([{**note, "wall_ms": i, "seq": i} for i, note in enumerate(notes)])
    assert [fact.generation for fact in facts if isinstance(fact, Assigned)] == [3]


def test_a_storm_of_a_kip_848_group_needs_a_known_session_and_advises_no_delay() -> None:
    members = [member(name) for name in "abcdef"]
    steps = [incremental(i, 4 * i, *members[:i]) for i in range(1, 7)]
    assert last(*steps).patterns == ()
    known = [replace(step, members=tuple(members[: step.generation])) for step in steps]
    account = last(*known)
    assert account.patterns[0].text == "6 rebalances came within 20 s, which is less than one session timeout"
    assert "group.instance.id" in account.advice
    assert "initial.rebalance.delay" not in account.advice


def test_a_conversion_within_one_generation_is_no_replacement_and_makes_no_storm() -> None:
    up = [incremental(4, 0, A, B), seen(4, 1, A, B)]
    account = last(*up)
    assert account.headline == "The group changed to the classic protocol."
    assert "Generation 4 has 2 members for 2 partitions: 0 moved, 2 stayed." in account.story
    left = last(incremental(4, 0, A, B), seen(4, 1, member("a", 0, 1)))
    assert left.headline.startswith("b is gone: it left or its session expired, and the group changed to the classic")
    steps = [*up, *(seen(5 + i, 2 + i, A, *([B] if i % 2 else [])) for i in range(4))]
    assert last(*steps).patterns == ()


def test_an_epoch_that_was_passed_within_one_step_has_no_account() -> None:
    joined = replace(incremental(4, 30, A, B), sure=Sure.TOLD, causes=(ToldCause(What.JOINED, "b-id"),))
    passed = replace(incremental(3, 30.01, A), sure=Sure.SEEN)
    assert [account.generation for account in explain([incremental(2, 0, A), joined, passed])] == [2, 4]


def test_the_old_form_of_a_converted_group_is_forgotten_at_the_same_instant() -> None:
    joined = last(incremental(3, 0, member("a", 0, 1)), Forgotten(GROUP, at(0), Sure.SEEN), incremental(4, 2, A, B))
    assert joined.headline == "b joined."
    deleted = last(seen(3, 0), Forgotten(GROUP, at(1), Sure.SEEN), seen(1, 2, A))
    assert deleted.headline == "a joined: the group's first member."


def test_a_member_that_fell_silent_long_after_its_last_commit_had_not_polled() -> None:
    """librdkafka sends no leave when max.poll.interval.ms is over in a KIP-848 group; its session ends later."""
    quick = [replace(m, session_timeout_ms=6_000, rebalance_timeout_ms=15_000) for m in (A, B)]
    before = replace(incremental(4, 0), members=tuple(quick))
    goes_on = commits(0, *every(0.5, 60))
    silent = ToldCause(What.EXPIRED, "b-id", client_id="b")
    gone = replace(before, at_ms=at(60), generation=5, members=(quick[0],), sure=Sure.TOLD, causes=(silent,))
    late = last(before, *goes_on, *commits(1, *every(0.5, 38.5)), gone)
    assert late.headline == "b probably did not poll for 15 s and left."
    crashed = last(before, *goes_on, *commits(1, *every(0.5, 53.5)), gone)
    assert crashed.headline == "b was silent for its session timeout of 6 s and was removed."


def test_a_pattern_that_was_matched_again_is_the_topic_that_came_or_the_member_that_brought_it() -> None:
    matched = ToldCause(What.SUBSCRIPTION_CHANGED, detail="regular expressions were matched")
    more = [replace(m, topics=("orders", "more")) for m in (A, B)]
    came = last(seen(1, 0, A, B), PartitionsCounted(at(5), "more", 1), told(2, 10, matched, members=more))
    assert came.headline == "Topic more was created."
    brought = (matched, ToldCause(What.JOINED, "b-id", client_id="b"))
    joined = last(seen(1, 0, member("a", 0, 1)), told(2, 10, *brought, members=[A, B]))
    assert joined.headline == "b joined."


# -- two at once -------------------------------------------------------------------------------------------------------


def test_partitions_added_while_a_member_was_dying_are_said_behind_its_end() -> None:
    died = ToldCause(What.EXPIRED, "b-id", client_id="b")
    facts = [seen(1, 0, A, B), told(2, 60, died, members=[member("a", 0, 1, 2)])]
    assert "; " not in last(*facts).headline
    assert last(*facts).headline.endswith("and was removed, and partitions were added: orders-2.")
    counted = last(*facts, PartitionsCounted(at(30), "orders", 3))
    assert [cause.sure for cause in counted.causes] == [Sure.TOLD, Sure.SEEN]


def test_a_silence_of_both_time_outs_blames_neither() -> None:
    close = [replace(m, rebalance_timeout_ms=46_000) for m in (A, B)]
    quiet = [*commits(0, *every(5, 100)), *commits(1, *every(5, 52))]
    account = last(seen(1, 0, *close), *quiet, seen(2, 100, close[0]))
    assert account.headline == "b is gone: it left or its session expired."
    assert "either may have run out" in account.story[1]


# -- words -------------------------------------------------------------------------------------------------------------


def test_generation_1_is_the_beginning() -> None:
    assert last(seen(1, 0, A)).headline == "a joined: the group's first member."
    assert last(seen(1, 0, A, B)).headline == "a and b joined: the group's first members."
    assert last(seen(7, 0, A)).headline == "a is in the group, and nothing is known of the time before."


def test_words_agree_with_the_number() -> None:
    text = "{is|are} gone: {it|they} left"
    assert [agree(text, n) for n in (1, 2, 5)] == ["is gone: it left", "are gone: they left", "are gone: they left"]


SINGULAR = (" is ", " was ", " it ", " its ", " has ", "sends ", "says ")
WHATS = [what for what in What if what not in (What.PARTITIONS_GIVEN_UP, What.CONVERTED)]


@pytest.mark.parametrize("number", [1, 2, 5])
def test_every_sentence_about_members_agrees_with_their_number(number: int) -> None:
    """Finding F6: "w3, w1 and w2 is gone: it left or its session expired"."""
    names = ["w1", "w2", "w3", "w4", "w5"][:number]
    members = tuple(replace(A, member_id=name, client_id=name) for name in names)
    for what in WHATS:
        for sure in Sure:
            causes = tuple(Cause(what, sure, name, name, client_id=name, detail="d", evidence=("e",)) for name in names)
            account = replace(
                last(seen(1, 0, A), seen(2, 60, A)), causes=causes, members_before=members, members=(A,),
            )  # fmt: skip
            texts = [headline_of(account), *(row.sentence(account) for row in ADVICE if row.applies(account))]
            of_members = [text for text in texts if text.startswith("w1") or "w1" in text]
            wrong = [text for text in of_members if number > 1 and any(word in text for word in SINGULAR)]
            assert not [text for text in wrong if "topic d was" not in text.lower() and "the group" not in text], wrong


def test_evidence_of_one_of_several_names_it() -> None:
    account = last(seen(1, 0, A, B, member("c", 2)), *commits(1, 5, 10), seen(2, 100, A))
    assert account.headline == "b and c are gone: they left or their sessions expired."
    assert any(part.startswith("Not known for sure of b: ") for part in account.story), account.story


def test_advice_about_the_assignor_is_given_once_and_after_the_cause_s_own() -> None:
    shuffled = [seen(i, 60 * i, member("a", i % 2), member("b", (i + 1) % 2), member(f"n{i}", 2)) for i in range(1, 6)]
    advised = [account.advice for account in explain(shuffled)]
    assert sum("changed owner without need" in advice for advice in advised) <= 1
    expired = last(
        seen(1, 0, A, B, member("c", 2)), *commits(2, *every(5, 30)), *commits(0, *every(5, 75)),
        seen(2, 77, member("a", 1), member("b", 0, 2)),
    )  # fmt: skip
    assert "See whether the process of c crashed" in expired.advice


# -- no rebalance ------------------------------------------------------------------------------------------------------


def test_offsets_that_were_set_while_the_group_was_empty_are_said() -> None:
    reset = Committed(GROUP, at(70), ("orders", 1), 0)
    facts: list[Fact] = [seen(1, 0, A), *commits(1, 10, 20, 30), seen(2, 60), reset]
    (text,) = asides_of(facts)
    assert text.startswith("While the group had no members, its committed offsets were set at 16:01:10 UTC")
    assert "(orders-1 from 20 to 0)" in text
    assert asides_of([seen(1, 0, A), *commits(1, 10, 20, 30), reset]) == (), "a member may go back"


def test_records_that_were_deleted_unread_are_counted() -> None:
    facts: list[Fact] = [seen(1, 0, A), *commits(1, 10, 20), seen(2, 60)]
    (text,) = asides_of([*facts, BeginSeen(at(90), ("orders", 1), 905)])
    assert text.startswith("895 records of orders-1 that the group had not read are gone: it committed 10, and the log")
    assert asides_of([*facts, BeginSeen(at(90), ("orders", 1), 10)]) == ()


# -- refused members ---------------------------------------------------------------------------------------------------


def refused(
    error: str, seconds: float, *, client: str = "w4", instance: str | None = None, detail: str = ""
) -> Refused:
    return Refused(GROUP, at(seconds), error, "m", instance, "w4", detail)


def test_a_member_that_cannot_join_is_named_until_it_has_joined() -> None:
    detail = "it offers roundrobin, and the members have range in common"
    facts: list[Fact] = [seen(1, 0, A), *(refused("INCONSISTENT_GROUP_PROTOCOL", s, detail=detail) for s in (10, 20))]
    assert asides_of(facts) == (
        f"w4 cannot join (INCONSISTENT_GROUP_PROTOCOL, at 16:00:20 UTC): {detail}. "
        "Give all members an assignor in common; to change it, list both for a while.",
    )
    assert asides_of([*facts, seen(2, 30, A, member("w4"))]) == ()


def test_two_processes_with_one_instance_id_are_named() -> None:
    (text,) = asides_of([refused("FENCED_INSTANCE_ID", 10, instance="box-2")])
    assert text.startswith("Two processes use the instance id box-2: the older one was alive and was fenced at ")
    assert text.endswith("Give every process its own group.instance.id.")
