"""Counters of handlers and dispatch: plain integers, one addition each; everything else happens when they are read."""

from __future__ import annotations

from collections import Counter
from time import perf_counter

from partita.broker.counts.error_counts import count_errors
from partita.broker.counts.times import Times
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message

TOPICS_MAX = 1_000
"""How many topics are counted one by one; those that come later count among all only."""


class TopicTraffic:
    """Records and bytes of one topic, or of all."""

    __slots__ = (
        "bytes_in", "bytes_out", "bytes_rejected", "failed_fetches", "failed_produces", "fetches", "messages_in",
        "produces",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = self.bytes_rejected = 0
        self.produces = self.fetches = self.failed_produces = self.failed_fetches = 0


class Tally:
    """Requests of one API and version that were answered from memory; those that were refused count as errors."""

    __slots__ = ("_api_key", "_errors", "count")

    def __init__(self, api_key: int, errors: Counter[tuple[int, int]]) -> None:
        self._api_key = api_key
        self._errors = errors
        self.count = 0

    def refused(self, code: int, times: int) -> None:
        """So many of those counted were answered with an error."""
        self._errors[self._api_key, code] += times
        self._errors[self._api_key, ErrorCode.NONE] -= times


class Traffic:
    """Counts of one broker process. A topic's own are kept as long as the topic is there."""

    def __init__(self) -> None:
        self.all = TopicTraffic()
        self.topics: dict[str, TopicTraffic] = {}
        self._of_others = TopicTraffic()
        self.requests: Counter[tuple[int, int]] = Counter()
        """Requests by API key and version; those answered from memory apart."""
        self.from_memory: dict[tuple[int, int], Tally] = {}
        self.errors: Counter[tuple[int, int]] = Counter()
        """Error codes sent, by API key and code, without the answers from memory."""
        self.times: dict[int, Times] = {}
        """How long requests took, by API key."""
        self.offset_commits = 0

    def answered(self, api_key: int, began: float, response: Message | None) -> None:
        """The answer of a request that `perf_counter` saw come at `began` is ready to be sent; None: none is due."""
        now = perf_counter()
        times = self.times.get(api_key)
        if times is None:
            times = self.times[api_key] = Times(now, lambda: self.instant(api_key))
        times.record(now - began, now)
        if response is not None:
            count_errors(self.errors, api_key, response)

    def tally(self, api_key: int, version: int) -> Tally:
        """Where to count the requests that are answered from memory."""
        tally = self.from_memory.get((api_key, version))
        if tally is None:
            tally = self.from_memory[api_key, version] = Tally(api_key, self.errors)
        return tally

    def instant(self, api_key: int) -> int:
        """How many requests of an API were answered from memory."""
        return sum(tally.count for (key, _), tally in self.from_memory.items() if key == api_key)

    def told(self, api_key: int, code: int) -> int:
        """Return how often an API has sent an error code; 0 stands for none."""
        return self.errors[api_key, code] + (0 if code else self.instant(api_key))

    def count_requests(self, api_key: int, version: int) -> int:
        """How many requests of an API there were at a version."""
        tally = self.from_memory.get((api_key, version))
        return self.requests[api_key, version] + (0 if tally is None else tally.count)

    def of(self, topic: str) -> TopicTraffic:
        """The counts of a topic; of no topic's in particular when too many are counted already."""
        found = self.topics.get(topic)
        if found is None:
            if len(self.topics) >= TOPICS_MAX:
                return self._of_others
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
