"""Counters of requests: records, bytes, times, and error codes.

Plain integers, one addition each, since every request pays for them; everything else happens when they are read.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, MutableMapping
from time import perf_counter
from typing import NamedTuple, TypeAlias

from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Structure

HALF_WINDOW_SECONDS = 150.0
STEPS = 16
STEP_BITS = STEPS.bit_length()


def step_of(microseconds: int) -> int:
    """The number of the step that a time falls into; steps grow with the times."""
    shift = max(0, microseconds.bit_length() - STEP_BITS)
    return shift * STEPS + (microseconds >> shift)


def longest_of(step: int) -> int:
    """The longest time that falls into a step, in microseconds."""
    if step < 2 * STEPS:
        return step
    shift = step // STEPS - 1
    return ((step - shift * STEPS + 1) << shift) - 1


class Times:
    """Times of one kind of request, in seconds where they are given and milliseconds where they are read.

    A histogram of constant size, with mean and maximum for ever and percentiles of late. Steps are a sixteenth of a
    power of two wide, so a percentile is at most 6 % too high. Percentiles cover the last two and a half to five
    minutes, as Kafka's do about five. (Yammer: Histogram, ExponentiallyDecayingReservoir.)

    `instant` says how many requests were answered in no time that is worth a clock's reading; they count as 0 ms.
    """

    __slots__ = ("_count", "_earlier", "_instant", "_instant_marks", "_now", "_since", "_total", "most")

    def __init__(self, now: float, instant: Callable[[], int]) -> None:
        self._instant = instant
        self._count = 0
        self._total = 0.0
        self.most = 0.0
        self._since = now
        self._now: defaultdict[int, int] = defaultdict(int)
        self._earlier: defaultdict[int, int] = defaultdict(int)
        self._instant_marks = (0, 0)
        """How many instant answers there had been when the earlier half of the window began, and when this one did."""

    def record(self, took: float, now: float) -> None:
        """Add one time."""
        if now - self._since >= HALF_WINDOW_SECONDS:
            self._turn(now)
        self._count += 1
        self._total += took
        if took > self.most:
            self.most = took
        microseconds = int(took * 1e6)
        shift = microseconds.bit_length() - STEP_BITS
        self._now[microseconds if shift <= 0 else shift * STEPS + (microseconds >> shift)] += 1

    @property
    def count(self) -> int:
        """How many times there have been."""
        return self._count + self._instant()

    @property
    def mean_ms(self) -> float:
        """The mean of all times there have been; 0 without any."""
        return self._total * 1000 / self.count if self.count else 0.0

    def percentile_ms(self, share: float, now: float) -> float:
        """A time that so large a share of the late requests did not exceed; 0 without any."""
        if now - self._since >= HALF_WINDOW_SECONDS:
            self._turn(now)
        instant = self._instant() - self._instant_marks[0]
        total = instant + sum(self._now.values()) + sum(self._earlier.values())
        seen = instant
        if seen >= share * total:
            return 0.0
        for step in sorted({*self._now, *self._earlier}):
            seen += self._now.get(step, 0) + self._earlier.get(step, 0)
            if seen >= share * total:
                return min(longest_of(step) / 1000, self.most * 1000)
        raise AssertionError("all times together are the whole")

    def _turn(self, now: float) -> None:
        """Begin another half of the window; after a long pause, both."""
        is_long_ago = now - self._since >= 2 * HALF_WINDOW_SECONDS
        instant = self._instant()
        self._earlier = defaultdict(int) if is_long_ago else self._now
        self._instant_marks = (instant if is_long_ago else self._instant_marks[1], instant)
        self._now = defaultdict(int)
        self._since = now


PARTS_MAX = 200
"""How many parts of a response are looked at: one of a thousand partitions shall not pay for being counted."""
Errors: TypeAlias = MutableMapping[tuple[int, int], int]
"""How often each error code was sent, by API key and code; a code that is missing reads as 0."""
_LIST = re.compile(r"list\[(\w+)\]")


class _Plan(NamedTuple):
    """The error codes in a class of structures: its own, and the fields with parts that hold some."""

    has_code: bool
    lists: tuple[str, ...]


_PLANS: dict[type[Structure], _Plan] = {}


def _plan_of(kind: type[Structure]) -> _Plan:
    plan = _PLANS.get(kind)
    if plan is None:
        plan = _PLANS[kind] = _make_plan(kind)
    return plan


def _make_plan(kind: type[Structure]) -> _Plan:
    lists = []
    for name, annotation in kind.__init__.__annotations__.items():
        found = _LIST.match(annotation)
        part = getattr(sys.modules[kind.__module__], found[1], None) if found else None
        if isinstance(part, type) and issubclass(part, Structure):
            below = _plan_of(part)
            if below.has_code or below.lists:
                lists.append(name)
    return _Plan("error_code" in kind.__slots__, tuple(lists))


def count_errors(errors: Errors, api_key: int, response: Message) -> None:
    """Count the codes of a response, NONE included; of a long one, those of its first 200 parts.

    (Kafka: AbstractResponse.errorCounts)
    """
    kind = type(response)
    plan = _PLANS.get(kind) or _plan_of(kind)
    if plan.has_code:
        errors[api_key, response.error_code] += 1  # type: ignore[attr-defined]  # `has_code` says that it is there
    if plan.lists:
        _count_parts(errors, api_key, response, plan, PARTS_MAX)


def _count_parts(errors: Errors, api_key: int, whole: Structure, plan: _Plan, left: int) -> int:
    """Count below `whole`; how many more parts may be looked at."""
    for name in plan.lists:
        for part in getattr(whole, name) or ():
            if left <= 0:
                return 0
            left -= 1
            below = _plan_of(type(part))
            if below.has_code:
                errors[api_key, part.error_code] += 1
            if below.lists:
                left = _count_parts(errors, api_key, part, below, left)
    return left


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
        """Return the counter of requests that are answered from memory."""
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
        """Count the batch of one partition: `records` were appended, or it was refused."""
        for counts in (self.all, self.of(topic)):
            counts.produces += 1
            if refused:
                counts.failed_produces += 1
                counts.bytes_rejected += size
            else:
                counts.messages_in += records
                counts.bytes_in += size

    def fetched(self, topic: str, size: int, *, failed: bool) -> None:
        """Count a read of one partition for a client."""
        for counts in (self.all, self.of(topic)):
            counts.fetches += 1
            counts.bytes_out += size
            counts.failed_fetches += failed
