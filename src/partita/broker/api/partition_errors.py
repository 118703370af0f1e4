"""An error for some of the partitions of a request, while the others are served as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, NamedTuple, TypeAlias

from partita.broker.api.asked_about import FETCH, partition_number, topic_name
from partita.broker.api.error_answers import error_answer
from partita.protocol.messages.fetch import FetchableTopicResponse, PartitionData
from partita.protocol.primitives import ZERO_UUID, Message

Part: TypeAlias = Any
"""A structure of one of the APIs of `LAYOUTS`, whose fields are found by name."""
IsMeant: TypeAlias = Callable[[Part, Part], bool]
"""Says of a topic's structure and a partition's whether the partition is to fail."""
NameOf: TypeAlias = Callable[[bytes], str]


class Layout(NamedTuple):
    """Places of topics and partitions in a request and its response."""

    topics: str
    partitions: str
    answer_topics: str = "topics"
    answer_partitions: str = "partitions"


LAYOUTS = {
    0: Layout("topic_data", "partition_data", "responses", "partition_responses"),
    FETCH: Layout("topics", "partitions", "responses"),
    2: Layout("topics", "partitions"),
    8: Layout("topics", "partitions"),
    21: Layout("topics", "partitions"),
    23: Layout("topics", "partitions"),
}
"""The APIs whose answers have an error for each partition: Produce, Fetch, ListOffsets, OffsetCommit, DeleteRecords,
OffsetForLeaderEpoch."""


def divided(api_key: int, request: Part, is_meant: IsMeant) -> tuple[Part | None, Part | None]:
    """The request for the partitions that are meant, and the request for the others; None where there are none."""
    layout = LAYOUTS[api_key]
    meant = _keep(request, layout, is_meant)
    others = _keep(request, layout, lambda topic, partition: not is_meant(topic, partition))
    return meant, others


def joined(api_key: int, version: int, answer: Part, meant: Part, code: int) -> Message | None:
    """The answer for the other partitions with the error for those that were meant."""
    refusal: Part = error_answer(api_key, version, meant, code)
    if answer is None or refusal is None:
        return None
    layout = LAYOUTS[api_key]
    topics = getattr(answer, layout.answer_topics)
    for refused in getattr(refusal, layout.answer_topics):
        same = next((topic for topic in topics if _key(topic) == _key(refused)), None)
        if same is None:
            topics.append(refused)
        else:
            getattr(same, layout.answer_partitions).extend(getattr(refused, layout.answer_partitions))
    return answer if isinstance(answer, Message) else None


def replaced(api_key: int, answer: Part, is_meant: IsMeant, code: int) -> Message | None:
    """The answer with the error, and nothing else, for the partitions that are meant."""
    layout = LAYOUTS[api_key]
    for topic in getattr(answer, layout.answer_topics, ()):
        partitions = getattr(topic, layout.answer_partitions)
        for at, partition in enumerate(partitions):
            if is_meant(topic, partition):
                blank = type(partition)(error_code=code)
                for name in ("partition_index", "partition", "index"):
                    if hasattr(partition, name):
                        setattr(blank, name, getattr(partition, name))
                if api_key == FETCH:
                    blank.high_watermark, blank.records = -1, b""
                partitions[at] = blank
    return answer if isinstance(answer, Message) else None


def meant_by(fits: Callable[[str | None, int | None], bool], name_of: NameOf) -> IsMeant:
    """Asks `fits` with the name of the topic and the number of the partition."""
    return lambda topic, partition: fits(topic_name(topic, name_of), partition_number(partition))


def _keep(request: Part, layout: Layout, keep: IsMeant) -> Part | None:
    topics = []
    for topic in getattr(request, layout.topics):
        kept = [partition for partition in getattr(topic, layout.partitions) if keep(topic, partition)]
        if kept:
            smaller = copy(topic)
            setattr(smaller, layout.partitions, kept)
            topics.append(smaller)
    if not topics:
        return None
    divided = copy(request)
    setattr(divided, layout.topics, topics)
    return divided


def _key(topic: Part) -> tuple[Part, Part]:
    return getattr(topic, "topic_id", None), getattr(topic, "name", None) or getattr(topic, "topic", None)


def added_to_fetch(answer: Part, asked: Iterable[tuple[bytes | str, int]], code: int) -> None:
    """Add the error also for partitions that a fetch answer leaves out: in a session it holds only changes."""
    told = {(_fetch_key(topic), data.partition_index) for topic in answer.responses for data in topic.partitions}
    for key, index in asked:
        if (key, index) not in told:
            failed = PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b"")
            topic = {"topic": key} if isinstance(key, str) else {"topic_id": key}
            answer.responses.append(FetchableTopicResponse(**topic, partitions=[failed]))


def _fetch_key(topic: FetchableTopicResponse) -> bytes | str:
    return topic.topic_id if topic.topic_id != ZERO_UUID else topic.topic
