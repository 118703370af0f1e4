"""Loading a log that other versions wrote, and logs a cleaner has been at."""

from __future__ import annotations

from itertools import combinations

import pytest

from partita.group.contract import Record
from partita.group.records import log_records
from partita.group.records.log_records import CommittedOffset
from partita.now import Now
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from support.group.compaction import compacted
from support.group.shell import Entry, GroupShell, replayed
from support.group.world import World

START_MS = 1_000_000_000_000


def old_group(version: int, *, members: int = 0) -> Record:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range" if members else None,
        leader="m0" if members else None,
        current_state_timestamp=START_MS if version >= 2 else -1,
        members=[
            GroupMetadataValueMember(
                member_id=f"m{n}",
                client_id="c",
                client_host="/h",
                session_timeout=10_000,
                rebalance_timeout=30_000 if version else -1,
                subscription=b"\0\0\0\0\0\0\xff\xff\xff\xff",
                assignment=b"part",
            )
            for n in range(members)
        ],
    )
    return Record(log_records.group_key("g"), version.to_bytes(2, "big") + value.encode(version))


def world(*records: Record, **config: int) -> World:
    made = World()
    made.run([f"config {name.replace('_', '.')}={value}" for name, value in config.items()])
    made.shell.log = [Entry((record,)) for record in records]
    made.shell.reload()
    return made


@pytest.mark.case("GC-R02", "GC-L27")
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_group_of_any_version_is_stable_again(version: int) -> None:
    made = world(old_group(version, members=2))
    group = made.shell.shard.groups["g"]
    assert (group.state.value, group.generation, group.leader_id) == ("Stable", 5, "m0")
    assert group.static == {}
    assert [m.rebalance_timeout_ms for m in group.members.values()] == [30_000 if version else 10_000] * 2
    assert made.run(["X heartbeat id=m1 g=5"]) == ["X <- Heartbeat NONE"]
    assert made.run(["X sync id=m1 g=5 v=4"]) == ["X <- SyncGroup NONE assignment=part"]


@pytest.mark.case("GC-Q09", "BM-077")
@pytest.mark.parametrize(("version", "kept"), [(1, False), (2, True)])
def test_an_empty_group_of_unknown_age_expires_by_commit_times(version: int, kept: bool) -> None:
    """Version 1 does not say since when the group is empty; version 2 does."""
    key = log_records.offset_key("g", "t", 0)
    offset = log_records.offset_value(CommittedOffset(7, commit_ms=START_MS - 50_000))
    made = world(
        old_group(version),
        Record(key, offset),
        offsets_retention_minutes=1,
        offsets_retention_check_interval_ms=1000,
    )
    made.run(["+20000"])
    assert made.run(["X fetch t-0"]) == [f"X <- OffsetFetch NONE t-0={7 if kept else -1}"]


@pytest.mark.case("BM-077")
def test_an_offset_of_the_oldest_format_without_an_expiry_does_not_expire_at_once() -> None:
    value = b"\x00\x01" + (7).to_bytes(8, "big") + b"\x00\x00" + START_MS.to_bytes(8, "big") + b"\xff" * 8
    made = world(Record(log_records.offset_key("g", "t", 0), value))
    made.run(["+3000000"])
    assert made.run(["X fetch t-0"]) == ["X <- OffsetFetch NONE t-0=7"]


def test_both_versions_of_an_offsets_key_mean_the_same_offset() -> None:
    new = log_records.offset_key("g", "t", 0)
    old = b"\x00\x00" + new[2:]
    made = world(
        Record(new, log_records.offset_value(CommittedOffset(1))),
        Record(old, log_records.offset_value(CommittedOffset(2))),
    )
    assert made.run(["X fetch t-0"]) == ["X <- OffsetFetch NONE t-0=2"]


HISTORY = [
    "stable A B/two",
    "A commit t-0=1 t-1=2",
    "X commit group=h z-0=1",
    "A commit t-0=3",
    "X delete group=h",
    "B join new",
    "X commit group=h z-0=2",
    "A leave",
    "X leave /two",
    "X forget t-1",
    "stable C",
    "C commit t-1=9",
]


@pytest.mark.case("BM-056", "BM-057", "BM-058", "GC-R09")
def test_every_cut_a_cleaner_can_leave_loads_to_the_same() -> None:
    """S29: any first part cleaned, also while the log is read; and every prefix of the log loads to a legal state."""
    made = World()
    made.run(HISTORY)
    log = made.shell.log
    whole = replayed(log)
    for upto in range(len(log) + 1):
        assert replayed(compacted(log, upto)) == whole
        assert replayed(log[:upto]) == replayed(compacted(log[:upto]))
        shell = GroupShell()
        shell.log = list(log[:upto])
        shell.reload(tell=False)
    for read, cleaned in combinations(range(len(log) + 1), 2):
        resumed = log[:read] + [entry for entry in compacted(log, cleaned) if entry not in log[:read]]
        assert replayed(resumed) == whole


@pytest.mark.case("BM-073")
def test_a_member_that_died_is_gone_however_often_the_broker_restarts() -> None:
    made = World()
    made.run(["stable A S=10000"])
    restarts = 0
    while made.shell.shard.groups["g"].members:
        made.run(["+8000", "reload handover"])
        restarts += 1
        assert restarts < 3


def test_loading_starts_from_nothing() -> None:
    """A coordinator is made anew for each leadership: no state a late unload could wipe, or a load merge into."""
    made = World()
    made.run(["X commit t-0=1"])
    old = made.shell.shard
    made.run(["reload"])
    old.unload()
    assert made.shell.shard is not old
    assert made.run(["X fetch t-0"]) == ["X <- OffsetFetch NONE t-0=1"]


def test_resuming_tells_when_the_next_deadline_is() -> None:
    shell = GroupShell()
    assert shell.shard.next_deadline_ms() == shell.config.offsets_retention_check_interval_ms
    shell.shard.on_deadline(Now(0, 0))
    assert shell.shard.next_deadline_ms() == shell.config.offsets_retention_check_interval_ms
