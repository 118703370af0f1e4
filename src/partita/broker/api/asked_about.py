"""Groups, topics and partitions of a request. Pure but for the names of topic ids and fetch sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from partita.broker.api.context import RequestContext

FETCH, METADATA, DESCRIBE_CONFIGS = 1, 3, 32
_TOPIC_LISTS = ("topics", "topic_data", "topic_names", "topic_partitions", "subscribed_topic_names")
_PARTITION_LISTS = ("partitions", "partition_data", "partition_indexes")
_PARTITION_NUMBERS = ("partition_index", "partition", "index")
_GROUP_NAMES = ("group_id", "key")
_GROUP_LISTS = ("groups", "groups_names", "group_ids", "coordinator_keys")
_TOPIC_RESOURCE = 2
Part: TypeAlias = Any
"""A structure of any request: its fields depend on the API and are looked up by name."""


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests are meant; None means any. A request fits a partition if it names it, or its whole topic.

    `api_key` is an API's number; `client_id` and `node_id` are the asker's and the node that was asked.
    """

    api_key: int | None = None
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    node_id: int | None = None

    def fits(self, ctx: RequestContext, request: Part) -> bool:
        """Is this request meant?"""
        return (
            self.api_key in (None, ctx.api_key)
            and self.client_id in (None, ctx.client_id)
            and self.node_id in (None, ctx.node_id)
            and (self.group_id is None or self.group_id in groups_of(request))
            and (self.topic is None or any(self.fits_partition(*asked) for asked in partitions_of(ctx, request)))
        )

    def fits_partition(self, topic: str | None, partition: int | None) -> bool:
        """Whether the fault is for this partition. None stands for all topics, and for all partitions of the topic."""
        return (topic is None or self.topic in (None, topic)) and (
            partition is None or self.partition in (None, partition)
        )


def groups_of(request: Part) -> set[str]:
    """The groups that a request names."""
    found = {str(getattr(request, name)) for name in _GROUP_NAMES if getattr(request, name, None)}
    for name in _GROUP_LISTS:
        for group in getattr(request, name, None) or ():
            found.add(group if isinstance(group, str) else group.group_id)
    return found


def partitions_of(ctx: RequestContext, request: Part) -> Iterator[tuple[str | None, int | None]]:
    """Yield the topics and partitions of a request; a topic of None means all of them, so does a partition.

    A fetch also includes the partitions of its session.
    """
    name_of = namer(ctx)
    yield from _named(request, name_of, asks_all=ctx.api_key == METADATA)
    for group in getattr(request, "groups", None) or ():
        if not isinstance(group, str):
            yield from _named(group, name_of, asks_all=True)
    if ctx.api_key == FETCH:
        session = ctx.fetch_sessions.sessions.get(request.session_id)
        for topic, partition in () if session is None else tuple(session.partitions):
            yield topic if isinstance(topic, str) else name_of(topic), partition
    if ctx.api_key >= DESCRIBE_CONFIGS:
        for resource in getattr(request, "resources", None) or ():
            if resource.resource_type == _TOPIC_RESOURCE:
                yield resource.resource_name, None


def namer(ctx: RequestContext) -> Callable[[bytes], str]:
    """Gives the names of topic ids; "" for those that are unknown."""
    by_id = ctx.catalogue.by_id

    def name_of(topic_id: bytes) -> str:
        topic = by_id.get(topic_id)
        return "" if topic is None else topic.name

    return name_of


def topic_name(topic: Part, name_of: Callable[[bytes], str]) -> str:
    """The name of a topic that a request or a response is about, by whichever of name and id it has."""
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    return name_of(topic_id) if topic_id != ZERO_UUID else getattr(topic, "name", "") or getattr(topic, "topic", "")


def partition_number(partition: Part) -> int:
    """The number of a partition in a request or a response."""
    if isinstance(partition, int):
        return partition
    return next(int(getattr(partition, name)) for name in _PARTITION_NUMBERS if hasattr(partition, name))


def _named(part: Part, name_of: Callable[[bytes], str], *, asks_all: bool) -> Iterator[tuple[str | None, int | None]]:
    for name in _TOPIC_LISTS:
        topics = getattr(part, name, ())
        if topics is None and asks_all:
            yield None, None
        for topic in topics or ():
            if isinstance(topic, str):
                yield topic, None
                continue
            partitions = next((found for field in _PARTITION_LISTS if (found := getattr(topic, field, None))), None)
            for partition in partitions or (None,):
                yield topic_name(topic, name_of), None if partition is None else partition_number(partition)
