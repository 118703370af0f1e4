"""The rules of a share consumer without a socket: sessions, holds, locks, and every error code (SG-P, SG-D)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from partita.consumer.errors import CorruptRecordError, IllegalStateError
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import CommitCallback, Failed, Request
from partita.consumer.sharing.core import ShareCore
from partita.consumer.sharing.holding import STAGE_MOVES, Hold, Stage, Verdict
from partita.consumer.sharing.membership import Standing
from partita.consumer.sharing.session import Session
from partita.consumer.sharing.settings import ShareConfig
from partita.errors import KafkaError
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import share_acknowledge, share_fetch, share_group_heartbeat
from partita.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from partita.protocol.metadata_view import Node
from partita.records.builder import build_batch

T = b"t" * 16
T0 = TopicPartition("t", 0)
LOCK_MS = 10_000


class Member:
    """A core that has joined and reads t-0 at node 1; `now` is its clock, `sent` the requests not answered yet."""

    def __init__(self, **options: Any) -> None:
        given = {"share_acknowledgement_mode": "explicit", "retry_backoff_ms": 100, **options}
        config = ShareConfig.of(None, bootstrap_servers="b:9092", group_id="g", **given)
        self.core = ShareCore(config, lambda low, high: 1.0, "m")
        self.now = 0
        self.sent: list[Request] = []
        self.core.membership.subscribe(frozenset({"t"}))
        self.core.coordinator.node = Node(1, "b", 9092)
        self.begin_poll()
        self.answer("Metadata", _metadata())
        self.heard(beat(T0))

    def begin_poll(self) -> None:
        self.core.begin_poll(Now(self.now, self.now))
        self.turn()

    def turn(self, ms: int = 0) -> None:
        self.now += ms
        self.sent += self.core.poll(Now(self.now, self.now)).requests

    def request(self, name: str) -> Request:
        return next(one for one in self.sent if type(one.message).__name__ == f"{name}Request")

    def answer(self, name: str, response: Any) -> Any:
        """Answer the request of this name that waits; return its message."""
        request = self.request(name)
        self.sent.remove(request)
        request.version = 13 if name == "Metadata" else 2
        self.core.on_response(request, response, Now(self.now, self.now))
        self.turn()
        return request.message

    def heard(self, response: Any) -> Any:
        return self.answer("ShareGroupHeartbeat", response)

    def names(self) -> list[str]:
        return [type(one.message).__name__.removesuffix("Request") for one in self.sent]

    def take(self, most: int = 500) -> list[Hold]:
        return self.core.take(most, Now(self.now, self.now))

    def got(self, *counts: int, first: int = 0) -> list[Hold]:
        """Answer the fetch with records from `first` on, with these delivery counts; take them."""
        self.answer("ShareFetch", records(first, counts))
        return self.take()

    def errors(self) -> list[BaseException]:
        return [one.error for one in self.core.events if isinstance(one, Failed)]


def _metadata() -> MetadataResponse:
    topic = MetadataResponseTopic(name="t", topic_id=T, partitions=[MetadataResponsePartition(leader_id=1)])
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="b", port=9092)], topics=[topic])


def beat(*partitions: TopicPartition, code: int = 0, epoch: int = 1) -> Any:
    held = [share_group_heartbeat.ShareGroupTopicPartitions(topic_id=T, partitions=[p.partition for p in partitions])]
    return share_group_heartbeat.ShareGroupHeartbeatResponse(
        error_code=code,
        member_id="m",
        member_epoch=epoch,
        heartbeat_interval_ms=5_000,
        assignment=share_group_heartbeat.ShareGroupAssignment(topic_partitions=held),
    )


def records(first: int, counts: Sequence[int], data: bytes | None = None, **more: Any) -> Any:
    """A share fetch's answer: one batch of records from `first` on, acquired one by one with these counts."""
    if data is None and counts:
        batch = build_batch([(0, None, b"v", ())] * len(counts))
        data = first.to_bytes(8, "big") + bytes(batch)[8:]
    acquired = [
        share_fetch.AcquiredRecords(first_offset=first + i, last_offset=first + i, delivery_count=count)
        for i, count in enumerate(counts)
    ]
    part = share_fetch.ShareFetchPartitionData(
        partition_index=0, records=data or b"", acquired_records=acquired, **more
    )
    topic = share_fetch.ShareFetchableTopicResponse(topic_id=T, partitions=[part])
    return share_fetch.ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=[topic])


def acknowledged(code: int = 0) -> Any:
    part = share_acknowledge.ShareAcknowledgePartitionData(partition_index=0, error_code=code)
    topic = share_acknowledge.ShareAcknowledgeTopicResponse(topic_id=T, partitions=[part])
    return share_acknowledge.ShareAcknowledgeResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=[topic])


def said(message: Any) -> list[tuple[int, int, list[int]]]:
    """The acknowledgements in a request."""
    return [
        (one.first_offset, one.last_offset, list(one.acknowledge_types))
        for topic in message.topics
        for part in topic.partitions
        for one in part.acknowledgement_batches
    ]


# Sessions


def test_acknowledgements_ride_on_the_next_fetch_as_runs_of_one_type() -> None:
    member = Member()
    for hold, verdict in zip(member.got(1, 1, 1, 1), (1, 1, 2, 3), strict=True):
        member.core.fetching.holdings.say(hold, Verdict(verdict))
    member.core.end_poll(Now(0, 0))
    member.begin_poll()
    message = member.request("ShareFetch").message
    assert said(message) == [(0, 1, [1]), (2, 2, [2]), (3, 3, [3])]
    assert message.share_session_epoch == 1
    assert [part.partition_index for topic in message.topics for part in topic.partitions] == [0]


def test_a_turn_that_ctrl_c_broke_off_takes_no_acknowledgement_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """They had left the outbox, and no request carried them; a partition that was new counted as named, too."""
    member = Member()
    (hold,) = member.got(1)
    member.core.fetching.holdings.say(hold, Verdict.ACCEPT)
    made = Session.fetch

    def broken_off(*arguments: Any) -> None:
        made(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "fetch", broken_off)
        member.core.fetching.assigned |= {(T, 1)}
        with pytest.raises(KeyboardInterrupt):
            member.begin_poll()
    (session,) = member.core.fetching._sessions.values()
    assert session.partitions == {(T, 0)}
    member.turn()
    assert said(member.request("ShareFetch").message) == [(0, 0, [1])]


def test_a_commit_travels_alone_and_gives_the_error_of_its_partition() -> None:
    member = Member()
    (hold,) = member.got(1)
    member.core.end_poll(Now(0, 0))
    member.core.fetching.holdings.say(hold, Verdict.ACCEPT)
    commit = member.core.commit()
    member.turn()
    message = member.answer("ShareAcknowledge", acknowledged(ErrorCode.INVALID_RECORD_STATE))
    assert (message.share_session_epoch, message.is_renew_ack, said(message)) == (1, False, [(0, 0, [1])])
    assert commit.is_done
    assert commit.value[T0].code is ErrorCode.INVALID_RECORD_STATE


@pytest.mark.case("SG-P23")
@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_session_is_opened_again_and_its_acknowledgements_fail(code: ErrorCode) -> None:
    member = Member()
    heard: list[Any] = []
    member.core.fetching.callback = lambda offsets, error: heard.append((offsets, error))
    (hold,) = member.got(1)
    member.core.fetching.holdings.say(hold, Verdict.ACCEPT)
    member.begin_poll()
    member.answer("ShareFetch", share_fetch.ShareFetchResponse(error_code=code))
    (event,) = [one for one in member.core.events if isinstance(one, CommitCallback)]
    assert (event.offsets, event.error.code if isinstance(event.error, KafkaError) else None) == ({T0: [0]}, code)
    assert "ShareFetch" not in member.names()
    member.turn(100)
    assert member.request("ShareFetch").message.share_session_epoch == 0


def test_an_acknowledgement_without_a_session_opens_one_first() -> None:
    member = Member()
    (hold,) = member.got(1)
    member.turn()
    lost = member.request("ShareFetch")
    member.sent.remove(lost)
    member.core.end_poll(Now(0, 0))
    member.core.on_disconnect(lost, Now(0, 0))
    member.core.fetching.holdings.say(hold, Verdict.ACCEPT)
    commit = member.core.commit()
    member.turn(100)
    opening = member.answer("ShareFetch", records(0, ()))
    assert (opening.share_session_epoch, opening.max_records, said(opening)) == (0, 0, [])
    assert member.answer("ShareAcknowledge", acknowledged()).share_session_epoch == 1
    assert commit.value == {T0: None}


def test_a_session_gets_each_partition_once_and_forgets_what_was_taken_away() -> None:
    member = Member()
    first = member.answer("ShareFetch", records(0, ()))
    second = member.answer("ShareFetch", records(0, ()))
    assert [len(one.topics) for one in (first, second)] == [1, 0]
    member.turn(5_000)
    member.heard(beat(epoch=2))
    member.answer("ShareFetch", records(0, ()))
    assert "ShareFetch" not in member.names(), "no partition is left to fetch"


def test_closing_releases_what_is_held_and_ends_the_session() -> None:
    member = Member()
    given, *_ = member.got(1, 1)
    member.core.fetching.holdings.say(given, Verdict.ACCEPT)
    member.core.end_poll(Now(0, 0))
    member.core.fetching.close()
    member.turn()
    last = member.answer("ShareAcknowledge", acknowledged())
    assert (last.share_session_epoch, said(last)) == (1, [(0, 0, [1]), (1, 1, [2])])
    final = member.answer("ShareAcknowledge", acknowledged())
    assert (final.share_session_epoch, said(final)) == (-1, [])
    assert member.core.fetching.has_ended
    (leaving,) = member.core.membership.leave("closed")
    assert leaving.message.member_epoch == -1


def test_one_lost_record_does_not_fail_the_others_of_its_partition() -> None:
    """A leader refuses the acknowledgements of a partition as a whole; halves find the one that is not ours."""
    member = Member()
    heard: dict[int, object] = {}
    member.core.fetching.callback = lambda offsets, error: None
    for hold in member.got(*[1] * 8):
        member.core.fetching.holdings.say(hold, Verdict.ACCEPT)
    member.core.end_poll(Now(0, 0))
    commit = member.core.commit()
    member.turn()
    while not commit.is_done:
        offsets = {
            n for first, last, _ in said(member.request("ShareAcknowledge").message) for n in range(first, last + 1)
        }
        member.answer("ShareAcknowledge", acknowledged(ErrorCode.INVALID_RECORD_STATE if 5 in offsets else 0))
    for event in member.core.events:
        assert isinstance(event, CommitCallback)
        heard |= dict.fromkeys(event.offsets[T0], getattr(event.error, "code", None))
    assert heard == {n: ErrorCode.INVALID_RECORD_STATE if n == 5 else None for n in range(8)}
    assert commit.value[T0].code is ErrorCode.INVALID_RECORD_STATE


def test_a_record_whose_lock_is_over_by_our_clock_is_not_acknowledged() -> None:
    member = Member()
    lost, kept = member.got(1, 1)
    member.core.end_poll(Now(0, 0))
    for hold in (lost, kept):
        member.core.fetching.holdings.say(hold, Verdict.ACCEPT)
    kept.deadline_ms += LOCK_MS
    member.now = LOCK_MS
    commit = member.core.commit()
    member.turn()
    assert said(member.answer("ShareAcknowledge", acknowledged())) == [(1, 1, [1])]
    assert "the lock of record 0 of t-0 is over" in str(commit.value[T0])


# Records


def test_offsets_without_a_record_are_acknowledged_as_gaps() -> None:
    member = Member()
    answer = records(5, (1, 1))
    answer.responses[0].partitions[0].acquired_records = [
        share_fetch.AcquiredRecords(first_offset=3, last_offset=10, delivery_count=2)
    ]
    member.answer("ShareFetch", answer)
    assert [(hold.record.offset, hold.delivery_count) for hold in member.take()] == [(5, 2), (6, 2)]
    assert said(member.request("ShareAcknowledge").message) == [(3, 4, [0]), (7, 10, [0])]


def test_records_outside_of_what_was_acquired_are_not_given() -> None:
    member = Member()
    answer = records(0, (1, 1, 1, 1))
    del answer.responses[0].partitions[0].acquired_records[1:3]
    member.answer("ShareFetch", answer)
    assert [hold.record.offset for hold in member.take()] == [0, 3]
    assert "ShareAcknowledge" not in member.names()


def test_corrupt_bytes_are_released_and_raise_after_the_records_before_them() -> None:
    member = Member()
    good = build_batch([(0, None, b"v", ())])
    bad = bytearray(build_batch([(0, None, b"v", ())] * 2))
    bad[:8] = (1).to_bytes(8, "big")
    bad[-1] ^= 0xFF
    member.answer("ShareFetch", records(0, (1, 1, 1), data=bytes(good) + bytes(bad)))
    assert [hold.record.offset for hold in member.take()] == [0]
    with pytest.raises(CorruptRecordError, match=r"t-0 at offset 1: .*; what could not be read is released"):
        member.take()
    assert said(member.request("ShareAcknowledge").message) == [(1, 2, [2])]


# Locks


def test_records_that_wait_are_renewed_at_half_their_time_while_the_application_polls() -> None:
    member = Member(max_poll_interval_ms=60_000)
    member.answer("ShareFetch", records(0, (1, 1)))
    assert len(member.take(1)) == 1
    member.core.end_poll(Now(0, 0))
    member.turn(LOCK_MS // 2)
    renewal = member.answer("ShareAcknowledge", acknowledged())
    assert (renewal.is_renew_ack, said(renewal)) == (True, [(1, 1, [4])]), "the record handed out is the application's"
    member.turn(LOCK_MS - 1)
    assert [hold.record.offset for hold in member.take()] == [1]


def test_nothing_is_renewed_once_the_application_has_not_polled_for_its_interval() -> None:
    member = Member(max_poll_interval_ms=4_000)
    member.answer("ShareFetch", records(0, (1,)))
    member.core.end_poll(Now(0, 0))
    member.turn(LOCK_MS // 2)
    assert "ShareAcknowledge" not in member.names()
    assert member.core.membership.standing is Standing.OUT
    member.turn(LOCK_MS)
    assert member.take() == [], "its lock is over: another member has it by now"


def test_a_refused_renewal_is_not_repeated() -> None:
    member = Member()
    (hold,) = member.got(1)
    hold.is_worked_on = True
    member.turn(LOCK_MS // 2)
    member.answer("ShareAcknowledge", acknowledged(ErrorCode.INVALID_RECORD_STATE))
    assert not hold.is_worked_on
    member.turn(LOCK_MS // 4)
    assert "ShareAcknowledge" not in member.names()


def test_a_fetch_waits_no_longer_than_a_quarter_of_a_lock() -> None:
    member = Member(fetch_max_wait_ms=60_000)
    assert member.answer("ShareFetch", records(0, ())).max_wait_ms == 60_000
    assert member.request("ShareFetch").message.max_wait_ms == LOCK_MS // 4


def test_every_stage_of_a_hold_has_its_moves() -> None:
    member = Member()
    (hold,) = member.got(1)
    assert set(STAGE_MOVES) == set(Stage)
    member.core.fetching.holdings.drop(hold)
    with pytest.raises(AssertionError, match="does not move"):
        hold.move(Stage.GIVEN)
    with pytest.raises(IllegalStateError, match="it is answered, or lost"):
        member.core.fetching.holdings.say(hold, Verdict.ACCEPT)


def test_a_record_that_comes_again_under_a_new_lock_replaces_the_lost_one() -> None:
    member = Member()
    (lost,) = member.got(1)
    member.core.end_poll(Now(0, 0))
    member.core.fetching.holdings.say(lost, Verdict.RENEW)
    member.begin_poll()
    member.answer("ShareAcknowledge", acknowledged(ErrorCode.INVALID_RECORD_STATE))
    (again,) = member.got(2)
    assert (lost.stage, again.stage, again.delivery_count) == (Stage.OVER, Stage.GIVEN, 2)


# Error codes

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


def test_every_code_of_a_heartbeat_leads_to_the_reaction_of_its_cell() -> None:
    wrong = []
    for code in CODES:
        member = Member()
        member.turn(5_000)
        member.heard(beat(code=code, epoch=0))
        core = member.core
        is_right = {
            Reaction.LOOK_UP: core.coordinator.node is None,
            Reaction.RETRY: core.membership.standing is Standing.IN and not member.errors(),
            Reaction.FORGET_MEMBER: core.membership._epoch == 0 and "ShareGroupHeartbeat" in member.names(),
            Reaction.TELL: core.membership.standing is Standing.IN and bool(member.errors()),
            Reaction.FATAL: core.membership.standing is Standing.FAILED and bool(member.errors()),
        }
        verb = reaction("ShareGroupHeartbeat", code)
        wrong += [f"{code.name}: {verb.name}"] if not is_right[verb] else []
    assert not wrong


def test_every_code_of_a_fetch_and_of_its_partitions_leads_to_the_reaction_of_its_cell() -> None:
    wrong = []
    for code in CODES:
        whole, part = Member(), Member()
        whole.answer("ShareFetch", share_fetch.ShareFetchResponse(error_code=code))
        part.answer("ShareFetch", records(0, (), error_code=code))
        for row, member in (("ShareFetch", whole), ("ShareFetch, each partition", part)):
            raises = reaction(row, code) in (Reaction.TELL, Reaction.RAISE)
            wrong += [f"{row}, {code.name}: raised"] if raises != bool(member.errors()) else []
            wrong += [f"{row}, {code.name}: asked at once"] if "ShareFetch" in member.names() else []
            member.turn(100)
            wrong += [f"{row}, {code.name}: not asked again"] if "ShareFetch" not in member.names() else []
        epochs = [one.request("ShareFetch").message.share_session_epoch for one in (whole, part)]
        wrong += [f"{code.name}: epochs {epochs}"] if epochs != [0, 2] and epochs != [0, 1] else []
    assert not wrong


def test_a_cluster_without_share_groups_says_what_to_switch_on() -> None:
    member = Member()
    member.turn(5_000)
    member.heard(beat(code=ErrorCode.UNSUPPORTED_VERSION, epoch=0))
    (error,) = member.errors()
    assert "share.version" in str(error)
