"""What shows that each option counts that the leaders of share partitions read, for `tests/unit/options`."""

from __future__ import annotations

from partita.broker.config import parse_topic_settings
from partita.broker.groups import settings
from support.broker.consumer_groups import Given, Probe, bounds
from support.share.plane import REJECT, RELEASE, SharePlane, acquired


def plane_of(given: Given) -> SharePlane:
    return SharePlane(None, None, **{name.replace(".", "_"): value for name, value in given.items()})


def deliveries(given: Given) -> object:
    """How often a record is given that is released each time."""
    plane = plane_of(given)
    try:
        plane.put(1)
        m = plane.member()
        found, got = 0, acquired(m.open())
        while got:
            found += 1
            m.ack((0, 0, RELEASE))
            got = acquired(m.fetch())
        return found
    finally:
        plane.close()


def in_flight(given: Given) -> object:
    """The last record that a member holds of many."""
    plane = plane_of(given)
    try:
        plane.put(100, batches=30)
        return acquired(plane.member().open(max_records=10_000))[-1][1]
    finally:
        plane.close()


def lock(given: Given) -> object:
    """How long a member holds what it acquires."""
    plane = plane_of(given)
    try:
        return plane.member().open().acquisition_lock_timeout_ms
    finally:
        plane.close()


def sessions(given: Given) -> object:
    """The outcome for a second member."""
    plane = plane_of({"group.share.max.size": 1, **given})
    try:
        plane.member("m").open()
        return plane.member("n").fetch(0).error_code
    finally:
        plane.close()


def letters(given: Given) -> object:
    """Whether the record that a member rejects is written to topic dlq.t."""
    plane = plane_of({"errors.deadletterqueue.auto.create.topics.enable": True, **given})
    try:
        plane.setting("errors.deadletterqueue.topic.name", "dlq.t")
        plane.put(1)
        m = plane.member()
        m.open()
        m.ack((0, 0, REJECT))
        plane.settle()
        return "dlq.t" in plane.cluster.catalogue.by_name
    finally:
        plane.close()


def letters_allowed(given: Given) -> object:
    """How many letters a topic holds that had these settings before a record was rejected."""
    plane = plane_of({})
    try:
        plane.setting("errors.deadletterqueue.topic.name", "dlq.t")
        topic = plane.run(lambda: plane.cluster.create_topic("dlq.t", 1, 1, parse_topic_settings(given)))
        plane.put(1)
        m = plane.member()
        m.open()
        m.ack((0, 0, REJECT))
        plane.settle()
        return topic.partitions[0].log.log_end_offset
    finally:
        plane.close()


LEADERS: dict[str, tuple[object, Probe]] = {
    "errors.deadletterqueue.auto.create.topics.enable": (False, letters),
    "errors.deadletterqueue.topic.name.prefix": ("letters.", letters),
    "group.share.delivery.count.limit": (3, deliveries),
    "group.share.max.delivery.count.limit": (20, bounds(settings.DELIVERIES, 15)),
    "group.share.max.partition.max.record.locks": (5_000, bounds(settings.LOCKS, 4_500)),
    "group.share.max.record.lock.duration.ms": (90_000, bounds(settings.LOCK, 70_000)),
    "group.share.max.share.sessions": (1, sessions),
    "group.share.min.delivery.count.limit": (4, bounds(settings.DELIVERIES, 3)),
    "group.share.min.partition.max.record.locks": (500, bounds(settings.LOCKS, 200)),
    "group.share.min.record.lock.duration.ms": (1_000, bounds(settings.LOCK, 2_000)),
    "group.share.partition.max.record.locks": (200, in_flight),
    "group.share.record.lock.duration.ms": (20_000, lock),
}
