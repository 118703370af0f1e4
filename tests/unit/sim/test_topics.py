"""The simulated topics: what fetches, look-ups and questions about leader epochs are answered."""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import fetch, list_offsets
from partita.protocol.messages import offset_for_leader_epoch as epochs
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.records.batch import iter_records
from partita.records.header import iter_batches
from partita.sim.broker.topics import EARLIEST, LATEST, Topics
from partita.sim.world.trace import Trace
from partita.sim.world.world import World


def topics() -> tuple[World, Topics]:
    world = World(1, Trace())
    return world, Topics(world, {"t": 2})


def fetched(topics: Topics, offset: int, epoch: int = -1, max_wait_ms: int = 500) -> list[fetch.PartitionData]:
    """What a fetch of t-0 has been answered so far."""
    asked = fetch.FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    answers: list[fetch.PartitionData] = []
    request = fetch.FetchRequest(
        max_wait_ms=max_wait_ms, session_epoch=0, topics=[fetch.FetchTopic(topic="t", partitions=[asked])]
    )
    topics.fetch(request, lambda answer: answers.append(answer.responses[0].partitions[0]))
    return answers


def test_records_are_numbered_and_say_their_offsets() -> None:
    _, made = topics()
    made.produce("t", 0, 2)
    made.produce("t", 0, 1)
    (answer,) = fetched(made, 1)
    assert answer.records is not None
    records = [record for _, batch in iter_batches(answer.records) for record in iter_records(batch)]
    assert [(r.offset, r.value) for r in records] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert answer.high_watermark == 3


def test_a_fetch_without_news_waits_for_records_or_its_time() -> None:
    world, made = topics()
    waiting, patient = fetched(made, 0), fetched(made, 0, max_wait_ms=2_000)
    world.run(499)
    assert not waiting
    world.run(500)
    assert [answer.records for answer in waiting] == [b""]
    assert not patient
    made.produce("t", 1, 1)
    assert not patient
    made.produce("t", 0, 1)
    assert patient
    world.run(5_000)
    assert len(waiting) == len(patient) == 1


def test_a_fetch_beyond_the_end_is_out_of_range() -> None:
    _, made = topics()
    assert fetched(made, 1)[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_election_wakes_fetches_and_fences_the_old_leader_epoch() -> None:
    _, made = topics()
    made.produce("t", 0, 3)
    waiting = fetched(made, 3, epoch=0)
    assert not waiting
    made.elect("t", 0)
    assert waiting[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetched(made, 3, epoch=2)[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert not fetched(made, 3, epoch=1)
    (described,) = made.metadata(MetadataRequest(topics=[MetadataRequestTopic(name="t")])).topics
    assert [part.leader_epoch for part in described.partitions] == [1, 0]


def test_leader_epochs_end_where_the_next_one_begins() -> None:
    _, made = topics()
    made.produce("t", 0, 3)
    made.elect("t", 0)
    made.elect("t", 0)
    made.produce("t", 0, 2)

    def end_of(epoch: int, current: int = -1) -> tuple[int, int, int]:
        asked = epochs.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
        request = epochs.OffsetForLeaderEpochRequest(
            topics=[epochs.OffsetForLeaderTopic(topic="t", partitions=[asked])]
        )
        found = made.epoch_ends(request).topics[0].partitions[0]
        return found.error_code, found.leader_epoch, found.end_offset

    assert [end_of(epoch) for epoch in (0, 1, 2, 3)] == [(0, 0, 3), (0, 1, 3), (0, 2, 5), (0, -1, -1)]
    assert end_of(0, current=1) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)


def test_offsets_are_looked_up_at_the_leader_of_now() -> None:
    _, made = topics()
    made.produce("t", 0, 3)
    made.elect("t", 0)

    def found(timestamp: int, epoch: int = -1) -> tuple[int, int, int]:
        asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
        topic = list_offsets.ListOffsetsTopic(name="t", partitions=[asked])
        part = made.list_offsets(list_offsets.ListOffsetsRequest(topics=[topic])).topics[0].partitions[0]
        return part.error_code, part.offset, part.leader_epoch

    assert found(EARLIEST) == (0, 0, 0)
    assert found(LATEST, epoch=1) == (0, 3, 1)
    assert found(LATEST, epoch=0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)


def test_an_unknown_topic_is_described_as_such_and_a_new_partition_is_seen() -> None:
    _, made = topics()
    made.add_partition("t")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="nothing")])
    known, unknown = made.metadata(asked).topics
    assert [part.partition_index for part in known.partitions] == [0, 1, 2]
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
