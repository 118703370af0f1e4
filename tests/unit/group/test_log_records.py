"""Records of `__consumer_offsets` against Kafka's own bytes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.group.contract import Record
from partita.group.records import consumer_log, log_records, share_log, streams_log
from partita.group.records.hard_state import HardState
from partita.group.records.log_records import CommittedOffset
from partita.group.records.replay_batch import read_batch
from partita.now import Now
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.protocol.primitives import ZERO_UUID, MalformedRequest

VECTORS = Path(__file__).parents[2] / "vectors"


def lines(name: str) -> Iterator[dict[str, Any]]:
    with (VECTORS / name).open() as file:
        yield from map(json.loads, file)


def vectors(kind: str) -> list[dict[str, Any]]:
    return [line for line in lines("group-log.jsonl") if line.get("type") == kind]


def written(what: str) -> list[dict[str, Any]]:
    return [line for line in lines("group-log-written.jsonl") if line["what"].startswith(what)]


def uuid(text: str | None) -> bytes:
    return ZERO_UUID if text is None else base64.urlsafe_b64decode(text + "==")


def test_written_offsets_are_kafkas_bytes() -> None:
    found = written("offset commit")
    assert len(found) == 36
    for line in found:
        given = line["given"]
        committed = CommittedOffset(
            given["offset"],
            -1 if given["leader_epoch"] is None else given["leader_epoch"],
            given["metadata"],
            given["commit_timestamp"],
            -1 if given["expire_timestamp"] is None else given["expire_timestamp"],
            uuid(given["topic_id"]),
        )
        key = log_records.offset_key(given["group"], given["topic"], given["partition"])
        assert key.hex() == line["key_hex"]
        assert log_records.offset_value(committed).hex() == line["value_hex"]


def test_written_groups_are_kafkas_bytes() -> None:
    for line in written("group metadata"):
        value = line["value"]
        group = GroupMetadataValue(
            protocol_type=value["protocolType"],
            generation=value["generation"],
            protocol=value["protocol"],
            leader=value["leader"],
            current_state_timestamp=value["currentStateTimestamp"],
            members=[
                GroupMetadataValueMember(
                    member_id=m["memberId"],
                    group_instance_id=m["groupInstanceId"],
                    client_id=m["clientId"],
                    client_host=m["clientHost"],
                    rebalance_timeout=m["rebalanceTimeout"],
                    session_timeout=m["sessionTimeout"],
                    subscription=base64.b64decode(m["subscription"]),
                    assignment=base64.b64decode(m["assignment"]),
                )
                for m in value["members"]
            ],
        )
        assert log_records.group_key(line["given"]["group"]).hex() == line["key_hex"]
        assert log_records.group_value(group).hex() == line["value_hex"]
    for line in written("group metadata, empty") + written("group metadata, last"):
        empty = log_records.empty_group(None, line["value"]["generation"], line["value"]["currentStateTimestamp"])
        assert log_records.group_value(empty).hex() == line["value_hex"]


@pytest.mark.case("GC-R03", "GC-R05")
@pytest.mark.parametrize("kind", ["LEGACY_OFFSET_COMMIT", "OFFSET_COMMIT"])
def test_offsets_of_every_version_are_read(kind: str) -> None:
    versions = set()
    for line in vectors(kind):
        key, value = line["key"], line["value"]
        assert log_records.read_offset_key(bytes.fromhex(line["key_hex"])) == (
            key["group"],
            key["topic"],
            key["partition"],
        )
        if value is None:
            continue
        versions.add(line["value_version"])
        read = log_records.read_offset_value(bytes.fromhex(line["value_hex"]))
        assert (read.offset, read.metadata, read.commit_ms) == (
            value["offset"],
            value["metadata"],
            value["commitTimestamp"],
        )
        assert read.leader_epoch == value.get("leaderEpoch", -1)
        assert read.expire_ms == value.get("expireTimestamp", -1)
        assert read.topic_id == uuid(value.get("topicId"))
    assert versions == ({0} if kind.startswith("LEGACY") else {0, 1, 2, 3, 4})


@pytest.mark.case("GC-R02", "GC-L27")
def test_groups_of_every_version_are_read() -> None:
    versions = set()
    for line in vectors("GROUP_METADATA"):
        value = line["value"]
        assert log_records.read_group_key(bytes.fromhex(line["key_hex"])) == line["key"]["group"]
        if value is None:
            continue
        versions.add(line["value_version"])
        read = log_records.read_group_value(bytes.fromhex(line["value_hex"]))
        assert read.current_state_timestamp == value.get("currentStateTimestamp", -1)
        assert (read.generation, read.protocol, read.leader) == (
            value["generation"],
            value["protocol"],
            value["leader"],
        )
        for member, told in zip(read.members, value["members"], strict=True):
            assert member.member_id == told["memberId"]
            assert member.group_instance_id == told.get("groupInstanceId")
            stored = told.get("rebalanceTimeout", -1)
            assert member.rebalance_timeout == (told["sessionTimeout"] if stored == -1 else stored)
            assert bytes(member.assignment) == base64.b64decode(told["assignment"])
    assert versions == {0, 1, 2, 3, 4}


@pytest.mark.case("GC-R03", "GC-R04")
def test_what_the_loader_accepts_is_what_kafkas_accepts() -> None:
    """Unknown kinds of records are skipped and counted; Kafka's deserializer refuses them and its loader skips."""
    for line in lines("group-log.jsonl"):
        if "case" not in line or line["key_hex"] is None:
            continue
        hard = HardState()
        record = Record(bytes.fromhex(line["key_hex"]), bytes.fromhex(line["value_hex"]))
        if line["case"] == "unknown key id":
            hard.replay(record)
            assert hard.skipped == 1
        elif line["outcome"] == "accepted":
            hard.replay(record)
            assert hard.skipped == 0
        else:
            with pytest.raises(MalformedRequest):
                hard.replay(record)


@pytest.mark.case("GC-R04")
def test_a_group_record_cut_short_fails_the_load() -> None:
    from support.group.shell import GroupShell

    shell = GroupShell()
    full = log_records.group_value(log_records.empty_group("consumer", 3, 5))
    shell.shard.replay(Record(log_records.group_key("g"), full[:-3]))
    with pytest.raises(MalformedRequest):
        shell.shard.resume(Now(0, 0))


def test_records_of_other_kinds_of_groups_are_passed_over() -> None:
    hard = HardState()
    known = consumer_log.KINDS | share_log.KINDS | streams_log.KINDS | set(range(log_records.GROUP_KEY + 1))
    others = [kind for kind in range(40) if kind not in known]
    for kind in others:
        hard.replay(Record(kind.to_bytes(2, "big") + b"\0\1g", b"\0\0"))
        hard.replay(Record(kind.to_bytes(2, "big") + b"\0\1g", None))
    assert hard.skipped == 2 * len(others) > 30
    assert hard == HardState()


def test_offsets_that_are_taken_together_are_what_their_records_would_be() -> None:
    """A commit changes the hard state as its records do, those of open transactions included."""
    offsets = {(name, n): log_records.offset_value(CommittedOffset(n)) for name in ("t", "тема") for n in range(3)}
    states = HardState(), HardState()
    for hard in states:
        for producer_id, offset in ((7, 50), (8, 60)):
            key, value = log_records.offset_key("g", "t", 1), log_records.offset_value(CommittedOffset(offset))
            hard.replay(Record(key, value), producer_id, 0)
        hard.replay(Record(log_records.offset_key("g", "t", 2), log_records.offset_value(CommittedOffset(90))))
    states[0].replay_offsets("g", offsets)
    for (topic, number), value in offsets.items():
        states[1].replay(Record(log_records.offset_key("g", topic, number), value))
    assert states[0] == states[1]
    assert list(states[0].offsets["g"]) == list(states[1].offsets["g"])
    for hard in states:
        hard.end_transaction(7, 0, committed=True)
        assert hard.committed("g", ("t", 1)) == CommittedOffset(1), "it came later than the transaction's"
    states[0].replay_offsets("h", {})
    assert states[0] == states[1]


@pytest.mark.case("GC-R14")
def test_names_outside_ascii_are_utf8() -> None:
    key = log_records.offset_key("消费者组", "тема😀", 3)
    group, topic = "消费者组".encode(), "тема😀".encode()
    assert key == (
        b"\x00\x01" + len(group).to_bytes(2, "big") + group + len(topic).to_bytes(2, "big") + topic + b"\0\0\0\x03"
    )
    assert log_records.read_offset_key(key) == ("消费者组", "тема😀", 3)
    assert log_records.read_group_key(log_records.group_key("消费者组")) == "消费者组"


@pytest.mark.case("BM-091")
def test_metadata_with_a_zero_byte_comes_back_whole() -> None:
    committed = CommittedOffset(5, 7, "a\0b", 11)
    assert log_records.read_offset_value(log_records.offset_value(committed)) == committed


def test_the_size_of_a_batch_is_known_before_it_is_made() -> None:
    from partita.records.batch import build_batch

    records = [Record(b"k" * n, None if n % 5 == 0 else b"v" * (n * 37)) for n in range(130)]
    batch = build_batch([(1_000, key, value, ()) for key, value in records])
    assert log_records.batch_bytes(records) == len(batch)


@pytest.mark.case("BM-050", "BM-051", "BM-055")
@pytest.mark.parametrize("codec", [0, 1, 4])
def test_a_batch_is_read_whole(codec: int) -> None:
    """Several values of one key, tombstones, headers, values larger than any buffer."""
    from partita.records.batch import build_batch

    plain = [(log_records.offset_key("g", "t", n % 3), None if n == 4 else b"v%d" % n * 100_000) for n in range(6)] + [
        (log_records.group_key("g"), b"x"),
        (b"\x00\x09other", b"y"),
    ]
    batch = build_batch([(1, key, value, [("h", b"1"), ("n", None)]) for key, value in plain], codec=codec)
    latest: dict[bytes, bytes | None] = {}
    rest = read_batch(batch, latest)
    assert latest == {key: value for key, value in plain if key[:2] == b"\x00\x01"}
    assert rest.others == plain[-2:]
    assert (rest.producer_id, rest.marker) == (-1, None)


def test_a_batch_that_ends_early_is_no_batch() -> None:
    from partita.records.batch import build_batch

    batch = bytearray(build_batch([(1, b"\x00\x02\x00\x01g", b"value", ())]))
    batch[57:61] = (7).to_bytes(4, "big")
    with pytest.raises(MalformedRequest):
        read_batch(batch, {})


def test_transactional_batches_and_markers_are_told_apart() -> None:
    from partita.records.batch import build_batch

    key, value = log_records.offset_key("g", "t", 0), log_records.offset_value(CommittedOffset(5))
    hard = HardState()
    hard.replay_batch(build_batch([(1, key, value, ())], producer_id=7, producer_epoch=0, is_transactional=True))
    assert hard.pending_partitions("g") == [("t", 0)]
    assert hard.committed("g", ("t", 0)) is None
    marker = build_batch(
        [(1, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", ())],
        producer_id=7,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    hard.replay_batch(marker)
    assert hard.pending_partitions("g") == []
    assert hard.committed("g", ("t", 0)) == CommittedOffset(5)
