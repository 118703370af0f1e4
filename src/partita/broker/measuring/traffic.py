"""What handlers and dispatch count: plain integers, one addition each; everything else happens when they are read."""

from __future__ import annotations

from collections import Counter


class TopicTraffic:
    """Records and bytes of one topic, or of all."""

    __slots__ = (
        "bytes_in", "bytes_out", "bytes_rejected", "failed_fetches", "failed_produces", "fetches", "messages_in",
        "produces",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = self.bytes_rejected = 0
        self.produces = self.fetches = self.failed_produces = self.failed_fetches = 0


class Traffic:
    """Counts of one broker process. Kept for topics that are gone, too, as counters may only grow."""

    def __init__(self) -> None:
        self.all = TopicTraffic()
        self.topics: dict[str, TopicTraffic] = {}
        self.requests: Counter[tuple[int, int]] = Counter()
        """Requests by API key and version."""
        self.offset_commits = 0

    def of(self, topic: str) -> TopicTraffic:
        """The counts of a topic."""
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicTraffic()
        return found

    def produced(self, topic: str, records: int, size: int, *, refused: bool) -> None:
        """One partition's batch came: `records` were appended, or the batch was refused."""
        for counts in (self.all, self.of(topic)):
            counts.produces += 1
            if refused:
                counts.failed_produces += 1
                counts.bytes_rejected += size
            else:
                counts.messages_in += records
                counts.bytes_in += size

    def fetched(self, topic: str, size: int, *, failed: bool) -> None:
        """One partition was read for a client."""
        for counts in (self.all, self.of(topic)):
            counts.fetches += 1
            counts.bytes_out += size
            counts.failed_fetches += failed
