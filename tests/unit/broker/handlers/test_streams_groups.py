"""Streams groups over a socket: the broker makes internal topics, rights, switching off, and a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from partita import Admin, Broker
from partita.cli.commands import cli
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsKeyValue,
    StreamsSubtopology,
    StreamsTopicInfo,
    StreamsTopology,
)
from partita.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from support.broker.raw import Raw

AT_ONCE: dict[str, Any] = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}


def join(*, changelog: str = "app-changelog", settings: dict[str, str] | None = None) -> StreamsGroupHeartbeatRequest:
    configs = [StreamsKeyValue(key=name, value=text) for name, text in (settings or {}).items()]
    info = StreamsTopicInfo(name=changelog, topic_configs=configs)
    sub = StreamsSubtopology(subtopology_id="0", source_topics=["t"], state_changelog_topics=[info])
    return StreamsGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=60_000, process_id="p",
        active_tasks=[], standby_tasks=[], warmup_tasks=[], topology=StreamsTopology(epoch=1, subtopologies=[sub]),
    )  # fmt: skip


def ready(raw: Raw) -> None:
    raw.ask(CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)]), 7)
    raw.find("g")


def test_internal_topics_are_made_with_their_settings_and_survive(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path), durability="os", **AT_ONCE) as broker, Raw(broker.port) as raw:
        ready(raw)
        first = raw.ask(join(settings={"cleanup.policy": "compact"}), 1)
        assert [status.status_detail for status in first.status] == ["Internal topics are missing: app-changelog"]
        again = raw.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=first.member_epoch), 1)
        assert [task.partitions for task in again.active_tasks] == [[0, 1, 2]]
        assert again.status == []
    with Broker(data_dir=str(tmp_path), **AT_ONCE) as broker, Raw(broker.port) as raw:
        raw.find("g")
        (group,) = raw.ask(StreamsGroupDescribeRequest(group_ids=["g"], include_topology_description=True), 1).groups
        assert (group.group_state, group.members[0].assignment.active_tasks[0].partitions) == ("Stable", [0, 1, 2])
        assert group.topology_description_status == 1
        went_on = raw.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=again.member_epoch), 1)
        assert (went_on.error_code, went_on.active_tasks) == (ErrorCode.NONE, None)
        (listed,) = raw.ask(ListGroupsRequest(types_filter=["streams"]), 5).groups
        assert (listed.group_id, listed.group_type) == ("g", "streams")


def test_topics_that_cannot_be_made_or_named_are_told() -> None:
    with Broker(**AT_ONCE) as broker, Raw(broker.port) as raw:
        ready(raw)
        wrong = raw.ask(join(settings={"cleanup.policy": "never"}), 1)
        assert "; Creation failed: app-changelog (" in wrong.status[0].status_detail
        for name, why in (("__consumer_offsets", "is prohibited"), ("no name", "are not valid topic names")):
            refused = raw.ask(join(changelog=name), 1)
            assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
            assert why in refused.error_message
        update = StreamsGroupTopologyDescriptionUpdateRequest(group_id="g", member_id="m", topology_epoch=1)
        assert raw.ask(update, 0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_status_that_is_too_long_for_an_answer_is_cut() -> None:
    with Broker(**AT_ONCE) as broker, Raw(broker.port) as raw:
        ready(raw)
        request = join()
        request.member_id, request.shutdown_application = "m" * 32_760, True
        details = [status.status_detail for status in raw.ask(request, 1).status]
        assert details[-1].startswith("Streams group member mmm")
        assert details[-1].endswith("m...")


@pytest.mark.parametrize("words", [["lag"], ["watch", "--looks", "1"]], ids=" ".join)
def test_a_streams_group_does_not_hide_the_lag_of_other_groups(words: list[str]) -> None:
    with Broker(**AT_ONCE) as broker, Raw(broker.port) as raw:
        ready(raw)
        raw.ask(join(), 1)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_group_offsets("readers", {("t", 0): 0})
        shown = CliRunner().invoke(cli, ["groups", *words, "-b", broker.bootstrap])
        assert shown.exit_code == 0, shown.output
        assert "readers" in shown.output
        broker.clear()
        assert raw.ask(ListGroupsRequest(), 5).groups == []


def test_streams_groups_can_be_switched_off() -> None:
    with Broker(group_coordinator_rebalance_protocols="classic,consumer") as broker, Raw(broker.port) as raw:
        ready(raw)
        assert raw.ask(join(), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        (group,) = raw.ask(StreamsGroupDescribeRequest(group_ids=["g"]), 1).groups
        assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
