"""An idle query sees a record when it comes, not after its pause. Issue 13, item 6: latency of a record."""

from __future__ import annotations

import threading
import time

from partita import Broker
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.settings.options import TopicSelection

SELECTION = TopicSelection(names=("t",))


def test_a_record_ends_the_pause_and_silence_does_not(partita_broker: Broker) -> None:
    partita_broker.create_topics({"t": 2})
    lookups = ClusterLookups(link_to({"bootstrap.servers": partita_broker.bootstrap}))
    ends = {key: facts.latest for key, facts in lookups.view(SELECTION).partitions.items()}
    begun = time.monotonic()
    lookups.view(SELECTION, pause_ms=300, news=ends)
    assert time.monotonic() - begun >= 0.29
    producer = threading.Timer(0.2, lambda: partita_broker.produce("t", b"x", partition=1))
    producer.start()
    begun = time.monotonic()
    view = lookups.view(SELECTION, pause_ms=20_000, news=ends)
    assert time.monotonic() - begun < 10
    producer.join()
    assert view.partitions["t", 1].latest == 1


def test_what_cannot_be_waited_for_is_slept_for(partita_broker: Broker) -> None:
    partita_broker.create_topics({"t": 1})
    lookups = ClusterLookups(link_to({"bootstrap.servers": partita_broker.bootstrap}))
    for news in ({("nosuch", 0): 0}, {("t", 0): 99}):
        begun = time.monotonic()
        lookups.view(SELECTION, pause_ms=200, news=news)
        assert time.monotonic() - begun >= 0.19
