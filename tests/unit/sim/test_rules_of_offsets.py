"""Each rule of committed offsets is broken by a history that is wrong in just that way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from partita.assignors.interface import Subscription
from partita.assignors.payloads import encode_subscription
from partita.group.contract import Step
from partita.group.offsets import delete
from partita.group.requests import DeleteGroup, FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.sim.rules.rule import RuleBroken
from partita.sim.rules.watch import Court as Facts
from partita.sim.rules.watch import Watch
from partita.sim.shell.group_shards import Recorder
from partita.sim.world.world import Trace, World
from support.sim.court import RETENTION_MS, Court

KEPT = "kept"


def breaks(rule: str, act: Callable[[], object]) -> None:
    with pytest.raises(RuleBroken) as broken:
        act()
    assert broken.value.rule == rule


class Books(Court):
    """A group without members that keeps the offset of z-0."""

    def commit(self, offset: int, *, epoch: int = 3, metadata: str = "m", retention_ms: int = -1, code: int = 0) -> Any:
        part = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=epoch, committed_metadata=metadata
        )
        message = OffsetCommitRequest(
            group_id=KEPT, generation_id_or_member_epoch=-1, retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name="z", partitions=[part])],
        )  # fmt: skip

        def answered(answer: Any) -> None:
            answer.topics[0].partitions[0].error_code = code or answer.topics[0].partitions[0].error_code

        return self.ask(message, 8 if retention_ms == -1 else 4, answered)

    def read(self, **wrong: object) -> Any:
        """Read z-0; `wrong` falsifies what is found."""
        topics = [OffsetFetchRequestTopics(name="z", partition_indexes=[0])]

        def change(answer: Any) -> None:
            for name, value in wrong.items():
                setattr(answer.topics[0].partitions[0], name, value)

        return self.fetch(FetchOffsets(OffsetFetchRequestGroup(group_id=KEPT, topics=topics)), change)

    def delete_offset(self) -> Any:
        gone = OffsetDeleteRequestTopic(name="z", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
        return self.ask(OffsetDeleteRequest(group_id=KEPT, topics=[gone]), 0)

    def delete_group(self) -> Any:
        return self.ask(DeleteGroup(KEPT), 2)

    def delete_topic(self) -> None:
        number = self.offsets.topic_deleted("z")
        self.take(self.coordinator.on_topics_deleted(("z",), self.clock.now()), "z")
        self.offsets.topic_forgotten("z", number)


def test_a_right_history_breaks_nothing() -> None:
    books = Books()
    for end in (books.delete_offset, books.delete_group, books.delete_topic):
        books.commit(5)
        books.commit(6)
        assert books.read().topics[0].partitions[0].committed_offset == 6
        end()
        assert books.read().topics[0].partitions[0].committed_offset == -1
    books.commit(7)
    books.commit(8, epoch=-1, retention_ms=5_000)
    books.pass_time(4_000)
    assert books.read().topics[0].partitions[0].committed_offset == 8
    books.pass_time(2_000)
    assert books.read().topics[0].partitions[0].committed_offset == -1
    assert not books.offsets.overdue(books.coordinator, books.clock.now().wall_ms)


def test_a_topic_deleted_again_before_its_offsets_are_forgotten_ends_the_commits_between() -> None:
    books, world = Books(), World(0, Trace())
    watch = Watch(world, KEPT, books.config, Facts(eager=True, is_classic=True))
    watch.offsets = books.offsets
    recorder = Recorder(world, watch, books.config, {}, solve_ms=0)
    for offset in (5, 6):
        books.commit(offset)
        recorder.deleted("z")
        books.take(books.coordinator.on_topics_deleted(("z",), books.clock.now()), "z")
        assert books.read().topics[0].partitions[0].committed_offset == -1
    recorder.forgotten("z")
    recorder.raise_broken()
    breaks("S20", partial(books.read, committed_offset=6, committed_leader_epoch=3, metadata="m"))


@pytest.mark.parametrize("wrong", [{"committed_offset": 5}, {"committed_offset": -1}, {"committed_offset": 99}])
def test_s20_an_older_offset_none_or_one_that_nobody_committed(wrong: dict[str, object]) -> None:
    books = Books()
    books.commit(5)
    books.commit(6)
    breaks("S20", partial(books.read, **wrong))


@pytest.mark.parametrize("wrong", [{"committed_leader_epoch": -1}, {"metadata": ""}])
def test_s22_leader_epoch_and_metadata_do_not_come_back(wrong: dict[str, object]) -> None:
    books = Books()
    books.commit(5)
    breaks("S20", partial(books.read, **wrong))


def test_a_commit_of_unknown_fate_may_show_and_what_was_read_stays() -> None:
    books = Books()
    books.commit(5)
    books.commit(6, code=ErrorCode.NOT_COORDINATOR)
    books.read(committed_offset=5)
    books.read()
    breaks("S20", partial(books.read, committed_offset=5))


def test_a_refused_commit_never_shows() -> None:
    books = Books()
    books.commit(5)
    books.commit(6, code=ErrorCode.UNKNOWN_MEMBER_ID)
    breaks("S20", books.read)


@pytest.mark.parametrize("end", ["delete_offset", "delete_group", "delete_topic"])
def test_s25_what_was_deleted_shows_again(end: str) -> None:
    books = Books()
    books.commit(5)
    getattr(books, end)()
    breaks("S20", partial(books.read, committed_offset=5, committed_leader_epoch=3, metadata="m"))


def test_s23_metadata_that_are_too_long_are_stored() -> None:
    books = Books()

    def accept() -> None:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="m" * 5_000)
        topic = OffsetCommitRequestTopic(name="z", partitions=[part])
        message = OffsetCommitRequest(group_id=KEPT, generation_id_or_member_epoch=-1, topics=[topic])

        def change(answer: Any) -> None:
            answer.topics[0].partitions[0].error_code = 0

        books.ask(message, 8, change)

    breaks("S23", accept)


def test_s24_an_offset_expires_too_early() -> None:
    books = Books()
    books.commit(5)
    breaks("S24", partial(tombstone, books))


def test_s24_an_offset_expires_that_is_not_there() -> None:
    books = Books()
    books.commit(5)
    books.delete_offset()
    breaks("S24", partial(tombstone, books))


def test_s24_an_offset_expires_while_its_group_has_members() -> None:
    court = Court()
    joined = court.stable()
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    message = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[part])],
    )  # fmt: skip
    court.ask(message, 8)
    court.clock.advance(2 * RETENTION_MS)
    step = Step(records=tuple(delete.tombstones("g", [("t", 0)])))
    breaks("S24", partial(court.take, step, None))


def test_s24_an_offset_gets_an_expiry_that_nobody_asked_for() -> None:
    books = Books()
    books.commit(5, retention_ms=5_000)
    (record,) = [r for r in recorded(books) if r.value is not None]
    asked = books.asked(99, OffsetCommitRequest(group_id=KEPT), 8)
    breaks(
        "S24",
        partial(books.offsets.appended, (record,), books.coordinator, books.clock.now().wall_ms, asked),
    )


def test_in_a_consumer_group_retention_runs_from_the_commit_though_members_of_a_classic_one_came_later() -> None:
    """Seed 1838: the step that expires the last offset ends the KIP-848 group as well."""
    books = Books()
    books.commit(5)
    books.pass_time(RETENTION_MS // 2)
    metadata = encode_subscription(Subscription(["t"]))
    joined = books.ask(
        JoinGroupRequest(
            group_id=KEPT, protocol_type="consumer", session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        ),
        3,
    )  # fmt: skip
    books.ask(LeaveGroupRequest(group_id=KEPT, member_id=joined.member_id), 2)
    for epoch in (0, -1):
        books.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=KEPT, member_id="C", member_epoch=epoch, rebalance_timeout_ms=10_000,
                subscribed_topic_names=["t"], topic_partitions=[],
            ),
            1,
        )  # fmt: skip
    assert KEPT in books.coordinator.consumer_groups
    books.pass_time(RETENTION_MS // 2)
    books.pass_time(1_000)
    assert not books.coordinator.hard_state.offsets.get(KEPT)


def test_s24_an_offset_that_should_have_expired_is_overdue() -> None:
    books = Books()
    books.commit(5)
    wall_ms = books.clock.now().wall_ms
    assert not books.offsets.overdue(books.coordinator, wall_ms + RETENTION_MS)
    assert books.offsets.overdue(books.coordinator, wall_ms + RETENTION_MS + 1) == [(KEPT, "z", 0)]


def tombstone(books: Books) -> None:
    """End the offset of z-0 as if its time had come."""
    books.take(Step(records=tuple(delete.tombstones(KEPT, [("z", 0)]))), None)


def recorded(books: Books) -> list[Any]:
    """The offset's record as the coordinator would write it now."""
    value = books.coordinator.hard_state.offsets[KEPT]["z", 0]
    return [record._replace(value=value) for record in delete.tombstones(KEPT, [("z", 0)])]
