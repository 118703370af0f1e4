"""What an orderly stop of the broker leaves for its next start: silences of members, generations told."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from partita import Broker
from partita.broker.groups.handovers import decode_handovers, encode_handovers
from partita.broker.shard_life import State
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.group.contract import NO_HANDOVER, Handover
from partita.protocol.messages.join_group import JoinGroupResponse
from support.broker.raw import Raw, join_request, sync_request
from support.broker.shard_world import shard_world

SESSION_MS = 10_000


def joined(broker: Broker) -> JoinGroupResponse:
    """The generation that a new member of group "g" is told, by JoinGroup version 3."""
    broker.run(lambda: broker.cluster.ensure_state_topic(OFFSETS_TOPIC))
    with Raw(broker.port) as raw:
        answer = raw.ask(join_request("g", session_timeout_ms=SESSION_MS), 3)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == 0
        return answer


def stable(broker: Broker) -> str:
    """The member id of the only member of a stable group "g"."""
    answer = joined(broker)
    with Raw(broker.port) as raw:
        assert raw.ask(sync_request("g", answer), 5).error_code == 0
    return answer.member_id


@pytest.mark.case("BM-073", "GC-S13")
def test_orderly_restarts_keep_no_dead_member_alive(tmp_path: Path) -> None:
    """Finding C3."""
    with Broker(data_dir=str(tmp_path)) as broker:
        member_id = stable(broker)
    restarts = 0
    while True:
        with Broker(data_dir=str(tmp_path)) as broker:
            broker.control.advance_clock(SESSION_MS * 4 // 10)
            if member_id not in broker.control.members("g"):
                break
        restarts += 1
        assert restarts < 3


def test_after_a_kill_a_member_has_a_whole_session_as_in_kafka(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "running"), durability="sync") as broker:
        member_id = stable(broker)
        broker.control.advance_clock(SESSION_MS * 9 // 10)
        shutil.copytree(tmp_path / "running", tmp_path / "killed")
    with Broker(data_dir=str(tmp_path / "killed")) as broker:
        broker.control.advance_clock(SESSION_MS * 9 // 10)
        assert member_id in broker.control.members("g")
        broker.control.advance_clock(SESSION_MS * 2 // 10)
        assert member_id not in broker.control.members("g")


def test_what_was_left_counts_once(tmp_path: Path) -> None:
    """A kill after an orderly restart does not bring the silences of the earlier stop back."""
    with Broker(data_dir=str(tmp_path / "data"), durability="sync") as broker:
        member_id = stable(broker)
        broker.control.advance_clock(SESSION_MS * 9 // 10)
    assert (tmp_path / "data" / "handover").exists()
    with Broker(data_dir=str(tmp_path / "data"), durability="sync"):
        assert not (tmp_path / "data" / "handover").exists()
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    with Broker(data_dir=str(tmp_path / "killed")) as broker:
        broker.control.advance_clock(SESSION_MS * 5 // 10)
        assert member_id in broker.control.members("g")


@pytest.mark.parametrize("damage", [None, b"00000000 {}\n", b"nonsense", b"d202ef8d 7\n"])
def test_a_generation_told_before_an_orderly_stop_is_never_told_again(
    tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """S5, decision 0070. A file that cannot be read counts as an unclean stop, which skips a number."""
    with Broker(data_dir=str(tmp_path)) as broker:
        told = joined(broker).generation_id
    if damage is not None:
        (tmp_path / "handover").write_bytes(damage)
    with caplog.at_level(logging.WARNING, logger="partita.broker"), Broker(data_dir=str(tmp_path)) as broker:
        assert joined(broker).generation_id > told
    assert ("cannot be read" in caplog.text) == (damage is not None)


def test_a_shard_that_nobody_leads_for_a_while_forgets_nothing() -> None:
    with shard_world() as world:
        told = world.ask(join_request("g"), "g", 3).generation_id
        world.do(lambda: world.groups.resigned(0))
        world.do(lambda: world.cluster.elect(world.partition(), 1))
        assert world.ask(join_request("g"), "g", 3).generation_id > told


def test_a_shard_whose_load_was_cut_short_hands_on_what_it_was_told() -> None:
    with shard_world(nodes=2, offsets_load_buffer_size=1) as world:
        for offset in range(20):
            world.commit(offset, "other")
        told = world.ask(join_request("g"), "g", 3).generation_id
        for node in (2, 1, 2, 1):
            world.cluster.elect(world.partition(), node)
        while world.runner().state is State.LOADING:
            world.do(lambda: None)
        assert world.ask(join_request("g"), "g", 3).generation_id == told + 1


def test_handovers_are_read_as_they_were_written() -> None:
    left = {0: NO_HANDOVER, 7: None, 9: Handover({("g\n", "m-1"): 5, ("ü", "m"): 6_000}, {"g\n": 3})}
    content = encode_handovers(left)
    assert b"\n" not in content
    assert decode_handovers(content) == left


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"7", b'{"x": null}', b'{"0": {}}', b'{"0": {"silences": 1}}', b"\xff"]
)
def test_what_is_no_handover_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decode_handovers(content)
