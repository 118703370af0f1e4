"""Wait for records with a held-back fetch, so that an idle query sees one at once and not after its pause.

The brokers hold a fetch back until there is something to read. The requests have connections of their own, since a
broker answers a connection in order and a held-back fetch would stop everything behind it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from partita.errors import KafkaError
from partita.net.errors import Disconnected
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.spark.cluster.broker_link import BrokerLink, link_to
from partita.spark.settings.positions import TopicPartition

FETCH_BY_NAME = 12


class NewsWait:
    """Waits for new records; uses a link of its own, created by the first wait."""

    def __init__(self, link: BrokerLink, *, isolation_level: int) -> None:
        self._client = link.client
        self._isolation = isolation_level

    def until_news(self, offsets: Mapping[TopicPartition, int], pause_ms: int) -> bool:
        """Return whether a record came at or after one of the offsets within `pause_ms`; returns as soon as one does.

        Any error counts as no news, and the rest of the pause is slept.
        """
        name = self._client.get("client.id", "partita-spark")
        link = link_to({**self._client, "client.id": f"{name}-wait"})
        return link.call(self._wait(link, offsets, pause_ms))

    async def _wait(self, link: BrokerLink, offsets: Mapping[TopicPartition, int], pause_ms: int) -> bool:
        try:
            async with asyncio.timeout(pause_ms / 1000):
                pending = {
                    asyncio.ensure_future(self._ask(link, node, topics, pause_ms))
                    for node, topics in (await self._by_leader(link, offsets)).items()
                }
                try:
                    while pending:
                        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                        if any(task.result() for task in done):
                            return True
                    await asyncio.Event().wait()  # until the time is over
                finally:
                    for task in pending:
                        task.cancel()
        except TimeoutError:
            pass
        return False

    @staticmethod
    async def _by_leader(
        link: BrokerLink, offsets: Mapping[TopicPartition, int]
    ) -> dict[int, dict[str, list[tuple[int, int]]]]:
        found: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for (topic, partition), offset in offsets.items():
            try:
                leader = await link.cluster.leader_for(topic, partition)
            except (KafkaError, Disconnected):
                continue
            found[leader.id][topic].append((partition, offset))
        return found

    async def _ask(
        self, link: BrokerLink, node: int, topics: Mapping[str, list[tuple[int, int]]], pause_ms: int
    ) -> bool:
        request = FetchRequest(
            max_wait_ms=pause_ms,
            min_bytes=1,
            isolation_level=self._isolation,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=1) for p, offset in wanted
                    ],
                )
                for topic, wanted in topics.items()
            ],
        )
        try:
            answer = await link.cluster.request(node, request, max_version=FETCH_BY_NAME)
        except (KafkaError, Disconnected, OSError):
            link.cluster.expire_metadata()
            return False
        if any(p.error_code for t in answer.responses for p in t.partitions):
            link.cluster.expire_metadata()
        return any(p.records for t in answer.responses for p in t.partitions)
