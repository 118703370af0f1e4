"""The clients that push metrics: their subscriptions, how soon they may ask again, and the numbers they sent last.

Everything here is in memory, and bounded: the client that was quiet longest makes room. (Kafka: ClientMetricsManager)
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from partita.broker.client_metrics.otlp import Point
from partita.broker.client_metrics.subscriptions import (
    DEFAULT_INTERVAL_MS,
    INTERVAL,
    MATCH,
    METRICS,
    criteria,
    listed,
    subscriptions,
)
from partita.metrics.registry import MetricName, Reading, exported_name
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import TopicCatalogue
    from partita.expressions import Matches

CLIENTS_MAX = 10_000
SERIES_MAX = 20_000
SERIES_OF_CLIENT_MAX = 1_000
"""Numbers that are kept of all clients, and of one; further ones are counted and left out."""
LABEL_CHARACTERS_MAX, NAME_CHARACTERS_MAX = 128, 200
GROUP = "client_metrics"
_QUIET_INTERVALS, _ROOM_SOUGHT_MS = 3, 1_000
_ALL = "*"


def _tag(label: str) -> str:
    """A label's name for Prometheus, which refuses a page with one that is empty or begins with a digit or "__"."""
    name = exported_name(label).lstrip("_")
    return name if name[:1].isalpha() else f"label_{name}"


def id_text(instance_id: bytes) -> str:
    """An id of a client as Kafka prints it."""
    return urlsafe_b64encode(instance_id).decode().rstrip("=")


class Wanted(NamedTuple):
    """The metrics that the subscriptions ask of one client."""

    metrics: tuple[str, ...]
    interval_ms: int

    def subscription_id(self, instance_id: bytes) -> int:
        """The number by which a client says what it was asked for."""
        return zlib.crc32(repr(self).encode() + instance_id) - (1 << 31)


_Subscriptions: TypeAlias = "list[tuple[dict[str, Matches], Wanted]]"


class Instance:
    """One client, by the id that it was given."""

    def __init__(self, instance_id: bytes, facts: Mapping[str, str], wanted: Wanted) -> None:
        self.instance_id = instance_id
        self.facts = facts
        self.ask_for(wanted)
        self.asked_by: _Subscriptions = []
        """The subscriptions at its last request."""
        self.asked_ms: int | None = None
        self.pushed_ms: int | None = None
        self.has_ended = False
        self.last_error = ErrorCode.NONE
        self.series: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, bool]] = {}

    def ask_for(self, wanted: Wanted) -> None:
        """Ask this of the client from now on."""
        self.wanted = wanted
        self.subscription_id = wanted.subscription_id(self.instance_id)

    def may_ask(self, now_ms: int) -> bool:
        """Whether it may ask for its subscription: an interval after its last request, or when that was out of date."""
        last = max((each for each in (self.asked_ms, self.pushed_ms) if each is not None), default=None)
        if last is not None and now_ms - last < self.wanted.interval_ms:
            return self.last_error in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        self.asked_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether it may push: once after it asked, then an interval after its last push."""
        pushed, asked = self.pushed_ms, self.asked_ms
        has_asked_since = asked is not None and (pushed is None or asked > pushed)
        if not has_asked_since and pushed is not None and now_ms - pushed < self.wanted.interval_ms:
            return False
        self.pushed_ms = now_ms
        return True

    def is_quiet(self, now_ms: int) -> bool:
        """Whether its numbers are out of date; those of its last push stay until then, too."""
        return self.pushed_ms is None or now_ms - self.pushed_ms > _QUIET_INTERVALS * self.wanted.interval_ms


class ClientMetrics:
    """All clients of a cluster that ask about their subscription or push."""

    def __init__(self, catalogue: TopicCatalogue, mono_ms: Callable[[], int]) -> None:
        self._catalogue = catalogue
        self._mono_ms = mono_ms
        self._instances: OrderedDict[bytes, Instance] = OrderedDict()
        self._series = 0
        self._sought_ms: int | None = None
        """When room for a number was last sought among all clients."""
        self.left_out = 0
        """Numbers that were not kept, as there were too many."""
        self._subscriptions = self._read()

    def subscriptions_changed(self) -> None:
        """Ask every client anew, at its next request: the ids that they know are out of date."""
        self._subscriptions = self._read()

    def instance(self, instance_id: bytes, facts: Mapping[str, str]) -> Instance:
        """The client with this id; a new one if there was none."""
        found = self._instances.get(instance_id)
        if found is None:
            while len(self._instances) >= CLIENTS_MAX:
                self._series -= len(self._instances.popitem(last=False)[1].series)
            found = self._instances[instance_id] = Instance(instance_id, facts, self._wanted_of(facts))
            found.asked_by = self._subscriptions
        elif found.asked_by is not self._subscriptions:
            found.ask_for(self._wanted_of(facts))
            found.asked_by = self._subscriptions
        self._instances.move_to_end(instance_id)
        return found

    def keep(self, instance: Instance, point: Point) -> None:
        """Take a number into the client's; one that says what was added is added."""
        shortened = tuple((name[:LABEL_CHARACTERS_MAX], text[:LABEL_CHARACTERS_MAX]) for name, text in point.labels)
        key = (point.name[:NAME_CHARACTERS_MAX], shortened)
        known = instance.series.get(key)
        if known is None:
            if self._instances.get(instance.instance_id) is not instance:
                return  # it made room for another while its push was read
            if self._series >= SERIES_MAX:
                self._seek_room()
            if self._series >= SERIES_MAX or len(instance.series) >= SERIES_OF_CLIENT_MAX:
                self.left_out += 1
                return
            self._series += 1
        before = known[0] if known is not None and point.is_delta else 0.0
        instance.series[key] = (before + point.value, point.is_counter)

    def readings(self) -> Iterator[Reading]:
        """The numbers of all clients that are not out of date, under the clients' names of them."""
        self._forget_quiet()
        for instance in list(self._instances.values()):
            own = {fact: instance.facts[fact] for fact in ("client_id", "client_instance_id")}
            shown: set[tuple[str, frozenset[tuple[str, str]]]] = set()
            for (name, labels), (value, is_counter) in list(instance.series.items()):
                tags = {_tag(label): text for label, text in labels} | own
                exported = exported_name(name), frozenset(tags.items())
                # Names that differ elsewhere may be the same here, and a page with a number twice is refused.
                if exported not in shown:
                    shown.add(exported)
                    what = MetricName(GROUP, name, tuple(tags.items()))
                    yield Reading(what, value, "pushed by clients", is_counter)
        help = "numbers that clients pushed and that are not shown, as there are too many"
        yield Reading(MetricName(GROUP, "left_out", ()), self.left_out, help, is_counter=True)

    def _seek_room(self) -> None:
        """Forget quiet clients, but not again for each of very many numbers: to look at all takes a millisecond."""
        now_ms = self._mono_ms()
        if self._sought_ms is None or now_ms - self._sought_ms >= _ROOM_SOUGHT_MS:
            self._sought_ms = now_ms
            self._forget_quiet()

    def _forget_quiet(self) -> None:
        now_ms = self._mono_ms()
        for instance in self._instances.values():
            if instance.series and instance.is_quiet(now_ms):
                self._series -= len(instance.series)
                instance.series.clear()

    def _read(self) -> _Subscriptions:
        return [
            (
                criteria(settings.get(MATCH, "")),
                Wanted(tuple(listed(settings.get(METRICS, ""))), int(settings.get(INTERVAL, DEFAULT_INTERVAL_MS))),
            )
            for settings in subscriptions(self._catalogue).values()
        ]

    def _wanted_of(self, facts: Mapping[str, str]) -> Wanted:
        found = [
            wanted
            for matches, wanted in self._subscriptions
            if all(has_matched(facts[fact]) for fact, has_matched in matches.items())
        ]
        names = tuple(dict.fromkeys(name for wanted in found for name in wanted.metrics))
        interval_ms = min((wanted.interval_ms for wanted in found), default=DEFAULT_INTERVAL_MS)
        return Wanted((_ALL,) if _ALL in names else names, interval_ms)
