"""Cases of streams groups, SX-..., by heartbeats and what is answered: played on our coordinator and on Apache Kafka.

Topic "words" has three partitions and "lines" six. Targets are computed at once. A join is answered with epoch 2 in a
new group. Each step is (heartbeat, expected); what is not expected may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsCopartitionGroup,
    StreamsGroupHeartbeatRequest,
    StreamsSubtopology,
    StreamsTaskIds,
    StreamsTaskOffset,
    StreamsTopicInfo,
    StreamsTopology,
)

TOPICS = {"words": 3, "lines": 6}


class Step(NamedTuple):
    """One heartbeat, without its group, and the fields of its answer that are known."""

    fields: Mapping[str, Any]
    expected: Mapping[str, object]

    def request(self, group: str) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(group_id=group, **self.fields)


def told(answer: Any) -> dict[str, object]:
    """A StreamsGroupHeartbeatResponse in the words of `Step.expected`."""
    listed = answer.active_tasks
    return {
        "error": ErrorCode(answer.error_code).name,
        "epoch": answer.member_epoch,
        "active": None if listed is None else [number for each in listed for number in sorted(each.partitions)],
        "count": 0 if listed is None else sum(len(each.partitions) for each in listed),
        "status": sorted(status.status_code for status in answer.status or ()),
    }


def topology(epoch: int = 1, **fields: Any) -> StreamsTopology:
    sub = StreamsSubtopology(**{"subtopology_id": "0", "source_topics": ["words"], **fields})
    return StreamsTopology(epoch=epoch, subtopologies=[sub])


def listed(tasks: list[int]) -> list[StreamsTaskIds]:
    return [StreamsTaskIds(subtopology_id="0", partitions=tasks)] if tasks else []


def join(member: str, fields: Mapping[str, Any] | None = None, **expected: object) -> Step:
    whole = {
        "member_id": member, "member_epoch": 0, "process_id": f"process-{member}", "rebalance_timeout_ms": 60_000,
        "active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "topology": topology(),
    }  # fmt: skip
    return Step({**whole, **(fields or {})}, expected)


def beat(
    member: str, at: int, owned: list[int] | None = None, fields: Mapping[str, Any] | None = None, **expected: object
) -> Step:
    whole: dict[str, Any] = {"member_id": member, "member_epoch": at, **(fields or {})}
    if owned is not None:
        whole |= {"active_tasks": listed(owned), "standby_tasks": [], "warmup_tasks": []}
    return Step(whole, expected)


INVALID: dict[str, Any] = {"error": "INVALID_REQUEST"}
ALL = join("a", error="NONE", epoch=2, active=[0, 1, 2], status=[])
STATIC: dict[str, Any] = {"instance_id": "i"}
CHANGELOG = StreamsTopicInfo(name="never-made-changelog")
OFFSET = StreamsTaskOffset(subtopology_id="0", partition=0, offset=1)

CASES: dict[str, list[Step]] = {
    "SX-A01": [join("a", {"topology": None}, **INVALID)],
    "SX-A02": [join("a", {"active_tasks": listed([0])}, **INVALID)],
    "SX-A03": [join("a", {"rebalance_timeout_ms": -1}, **INVALID)],
    "SX-A04": [beat("a", -3, **INVALID), beat("a", -2, **INVALID)],
    "SX-A05": [ALL, beat("a", 2, fields={"topology": topology()}, **INVALID)],
    "SX-A06": [ALL, beat("a", 2, fields={"active_tasks": []}, **INVALID)],
    "SX-A07": [join(" ", **INVALID), join("a", {"instance_id": ""}, **INVALID)],
    "SX-A08": [join("a", {"topology": topology(source_topic_regex=["w.*"])}, **INVALID)],
    "SX-A09": [ALL, beat("a", 2, fields={"task_offsets": [OFFSET, OFFSET]}, **INVALID)],
    "SX-A10": [ALL, beat("a", 2, [7], **INVALID)],
    "SX-B01": [ALL, beat("a", 2, error="NONE", epoch=2, active=None)],
    "SX-B02": [
        ALL,
        join("b", epoch=3, active=[]),
        beat("a", 2, epoch=2, count=2),
        beat("b", 3, epoch=3, active=None),
        beat("a", 2, [0, 1], epoch=3),
        beat("b", 3, epoch=3, active=[2]),
    ],
    "SX-B03": [beat("a", 1, error="GROUP_ID_NOT_FOUND")],
    "SX-B04": [ALL, beat("b", 2, error="UNKNOWN_MEMBER_ID")],
    "SX-B05": [ALL, beat("a", 3, error="FENCED_MEMBER_EPOCH"), beat("a", 1, error="FENCED_MEMBER_EPOCH")],
    "SX-B06": [
        ALL,
        join("b", {"process_id": "process-a"}, epoch=3),
        beat("a", 2, count=2),
        beat("a", 2, [0, 1], epoch=3),
        beat("a", 2, [0, 1], error="NONE", epoch=3),
        beat("a", 2, error="FENCED_MEMBER_EPOCH"),
    ],
    "SX-B07": [ALL, beat("a", -1, error="NONE", epoch=-1), beat("a", 2, error="UNKNOWN_MEMBER_ID")],
    "SX-B08": [ALL, beat("a", -1, epoch=-1), join("b", epoch=4, active=[0, 1, 2])],
    "SX-B09": [ALL, join("a", epoch=2, active=[0, 1, 2])],
    "SX-B10": [
        join("a", {"process_id": None}, active=[0, 1, 2]),
        join("b", {"process_id": None}, active=[]),
        beat("a", 2, count=2),
        beat("b", 3, active=None),
    ],
    "SX-C01": [join("a", {"topology": topology(source_topics=["absent"])}, epoch=2, active=[], status=[1])],
    "SX-C02": [
        join(
            "a",
            {
                "topology": topology(
                    source_topics=["words", "lines"],
                    copartition_groups=[StreamsCopartitionGroup(source_topics=[0, 1])],
                )
            },
            active=[],
            status=[2],
        )
    ],
    "SX-C03": [join("a", {"topology": topology(state_changelog_topics=[CHANGELOG])}, active=[], status=[3])],
    "SX-C04": [ALL, join("b", {"topology": topology(source_topics=["lines"])}, **INVALID)],
    "SX-C05": [ALL, join("b", {"topology": topology(0)}, error="NONE", epoch=3, status=[0])],
    "SX-C06": [
        join(
            "a",
            {"topology": topology(source_topics=[], repartition_sink_topics=["r"])},
            error="STREAMS_INVALID_TOPOLOGY",
        )
    ],
    "SX-C07": [
        join(
            "a",
            {"topology": topology(state_changelog_topics=[StreamsTopicInfo(name="c", partitions=3)])},
            error="STREAMS_INVALID_TOPOLOGY",
        )
    ],
    "SX-D01": [join("a", STATIC, epoch=2), join("b", STATIC, error="UNRELEASED_INSTANCE_ID")],
    "SX-D02": [
        join("a", STATIC, epoch=2),
        beat("a", -2, fields=STATIC, error="NONE", epoch=-2),
        join("b", {**STATIC, "process_id": "process-a"}, error="NONE", epoch=2, active=[0, 1, 2]),
    ],
    "SX-D03": [join("a", STATIC, epoch=2), beat("b", 2, fields=STATIC, error="FENCED_INSTANCE_ID")],
    "SX-D04": [ALL, beat("a", 2, fields=STATIC, error="UNKNOWN_MEMBER_ID")],
    "SX-E01": [
        ALL,
        join("b", epoch=3),
        beat("a", -1, fields={"shutdown_application": True}, error="NONE"),
        beat("b", 3, error="NONE", status=[4]),
    ],
}
