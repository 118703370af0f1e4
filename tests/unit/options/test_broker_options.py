"""Every option of the broker and of topics that docs/broker-options.md lists in its lists changes what is seen.

Sources, 003 rows 6 and 10: a mark that was wrong, and a setting that nothing read. A probe is a small program; what it
returns with the option changed differs from what it returns without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.config import BROKER_OPTIONS, TOPIC_OPTIONS, TopicConfig, parse
from partita.broker.storage.data_dir import DiskStore
from partita.broker.storage.store import Store
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.log.log_config import Durability
from partita.now import Now
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.fetch import FetchResponse
from partita.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from partita.protocol.messages.push_telemetry import PushTelemetryRequest
from partita.records.batch import iter_batches
from partita.records.builder import build_batch
from partita.records.header import HEADER_SIZE, seal
from support.broker.consumer_groups import CONSUMER_GROUPS
from support.broker.data_plane import DataPlane, data_plane, fetch_request
from support.broker.options_page import honoured, is_of_security
from support.broker.otlp import field
from support.broker.raw import Raw, commit_request, join_request
from support.broker.shard_world import error_of, shard_world
from support.broker.transaction_probes import TRANSACTIONS
from support.group.streams_probes import STREAMS
from support.log.logs import pairs
from support.share.leader_probes import LEADERS, letters_allowed
from support.share.probes import SHARES

Given = dict[str, object]
Probe = Callable[[Given], object]
HOUR_MS = 3_600_000


# --- answers of a broker without sockets ------------------------------------------------------------------------------


def plane_of(given: Given, store: Store | None = None, nodes: int = 1) -> DataPlane:
    """A cluster with these broker options; names that only topics have become settings of topic t."""
    broker = {name.replace(".", "_"): value for name, value in given.items() if name in BROKER_OPTIONS}
    plane = DataPlane(store, nodes, **broker)
    own = {name: value for name, value in given.items() if name not in BROKER_OPTIONS}
    settings = {name: parse(TOPIC_OPTIONS[name], value) for name, value in own.items()}
    plane.cluster.catalogue.create("t", [[1]], settings)
    return plane


def metadata(given: Given) -> MetadataResponse:
    plane = plane_of(given, nodes=3)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    answer = plane.ask("metadata", 9, request)
    plane.close()
    assert isinstance(answer, MetadataResponse)
    return answer


def new_topic(given: Given) -> object:
    (topic,) = metadata(given).topics
    return topic.error_code, [partition.replica_nodes for partition in topic.partitions]


def rack(given: Given) -> object:
    return metadata(given).brokers[0].rack


def described_by_nobody(given: Given) -> object:
    """What a client that has no ACL is told of a topic, with an authorizer unless the probe is about its absence."""
    with Broker({"authorizer.class.name": "standard", **given}) as broker, Raw(broker.port) as raw:
        broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
        return raw.ask(request, 9).topics[0].error_code


def node_ids(given: Given) -> object:
    with data_plane(**underscored(given)) as plane:
        return list(plane.cluster.nodes)


def deleted(given: Given) -> object:
    plane = plane_of(given)
    answer = plane.ask("delete_topics", 5, DeleteTopicsRequest(topic_names=["t"]))
    plane.close()
    return answer.responses[0].error_code


def produced(batch: Callable[[Now], bytes]) -> Probe:
    """The code of the answer to a batch, and codec and kind of timestamp it is stored with."""

    def probe(given: Given) -> object:
        plane = plane_of(given)
        code = plane.produce(batch(plane.cluster.clock.now())).error_code
        stored = [(h.codec, h.timestamp_type) for h, _ in iter_batches(plane.fetch(0).records or b"")]
        plane.close()
        return code, stored

    return probe


def stored_bytes(codec: str) -> Probe:
    """The size of a batch that the log compresses itself."""

    def probe(given: Given) -> object:
        plane = plane_of({"compression.type": codec, **given})
        text = " ".join(str(number * number) for number in range(3_000)).encode()
        plane.produce(build_batch([(plane.cluster.clock.now().wall_ms, None, text, ())]))
        size = len(plane.fetch(0).records or b"")
        plane.close()
        return size

    return probe


def one_record(ms: int = 0, *, key: bytes | None = b"k", size: int = 10, codec: int = 0) -> Callable[[Now], bytes]:
    """A batch of one record that is `ms` older than now (younger when negative)."""
    return lambda now: build_batch([(now.wall_ms - ms, key, b"x" * size, ())], codec=codec)


def misleading(now: Now) -> bytes:
    """A batch whose records do not add up: only who looks into it notices."""
    batch = bytearray(build_batch([(now.wall_ms, b"k", b"v", ())]))
    batch[HEADER_SIZE] = 100  # the first record's length, as a zigzag varint: 50
    seal(batch)
    return bytes(batch)


def fetched_bytes(given: Given) -> object:
    plane = plane_of(given)
    for _ in range(3):
        plane.produce(one_record(size=1_000)(plane.cluster.clock.now()))
    size = len(plane.fetch(0, max_bytes=1 << 20).records or b"")
    plane.close()
    return size


def sessions(given: Given) -> object:
    plane = plane_of(given)
    response: FetchResponse = plane.ask("fetch", 12, fetch_request([("t", 0, 0)], session_id=0, session_epoch=0))
    plane.close()
    return response.session_id != 0


# --- logs -------------------------------------------------------------------------------------------------------------


def segments(*, batches: int, wait_ms: int, size: int = 10) -> Probe:
    """How many segments so many batches make, with a wait before each."""

    def probe(given: Given) -> object:
        plane = plane_of(given)
        for _ in range(batches):
            plane.cluster.clock.advance(wait_ms)
            assert plane.produce(one_record(size=size)(plane.cluster.clock.now())).error_code == 0
        count = len(plane.cluster.catalogue.by_name["t"].partitions[0].log.segments)
        plane.close()
        return count

    return probe


def index_entries(given: Given) -> object:
    plane = plane_of(given)
    for _ in range(20):
        plane.produce(one_record(size=500)(plane.cluster.clock.now()))
    (segment,) = plane.cluster.catalogue.by_name["t"].partitions[0].log.segments
    entries = len(segment.index.positions)
    plane.close()
    return entries


def retained(*, wait_ms: int) -> Probe:
    """Where the log starts after retention, when three batches of 40 kB have become this old."""

    def probe(given: Given) -> object:
        plane = plane_of(given)
        log = plane.cluster.catalogue.by_name["t"].partitions[0].log
        for _ in range(3):
            plane.produce(one_record(size=40_000)(plane.cluster.clock.now()))
            log.roll(plane.cluster.clock.now())
        plane.cluster.clock.advance(wait_ms)
        plane.running.upkeep.retain_now()
        start = log.log_start_offset
        plane.close()
        return start

    return probe


def compacted(*, dirty: int, clean: int = 0, wait_ms: int = 0, tombstones: bool = False, extra_ms: int = 0) -> Probe:
    """How many records a compacted topic keeps after a compaction, and after another one `extra_ms` later."""

    def probe(given: Given) -> object:
        plane = plane_of({"cleanup.policy": "compact", **given})
        log = plane.cluster.catalogue.by_name["t"].partitions[0].log

        def put(count: int) -> None:
            for number in range(count):
                now = plane.cluster.clock.now()
                value = None if tombstones else b"x" * 100
                log.append(build_batch([(now.wall_ms, b"k%d" % (number % 2), value, ())]), 0, now)
            log.roll(plane.cluster.clock.now())

        if clean:
            put(clean)
            plane.loop.run_until_complete(plane.running.upkeep.compact_now(force=True))
            for number in range(clean):
                now = plane.cluster.clock.now()
                log.append(build_batch([(now.wall_ms, b"other %d" % number, b"x" * 100, ())]), 0, now)
            log.roll(plane.cluster.clock.now())
            plane.loop.run_until_complete(plane.running.upkeep.compact_now(force=True))
        put(dirty)
        plane.cluster.clock.advance(wait_ms)
        plane.loop.run_until_complete(plane.running.upkeep.compact_now())
        plane.cluster.clock.advance(extra_ms)
        if extra_ms:
            log.append(pairs(*((f"new {n}", "v" * 50) for n in range(20))), 0, plane.cluster.clock.now())
            log.roll(plane.cluster.clock.now())
            plane.loop.run_until_complete(plane.running.upkeep.compact_now())
        size = sum(segment.size for segment in log.segments)
        plane.close()
        return size

    return probe


def upkeep_timer(name: str) -> Probe:
    """When the next round of a chore is due, in whole seconds from now."""

    def probe(given: Given) -> object:
        plane = plane_of(given)
        due = getattr(plane.running.upkeep, name).when() - plane.loop.time()
        plane.close()
        return round(due)

    return probe


def idle_producers(given: Given) -> object:
    plane = plane_of(given)
    now = plane.cluster.clock.now()
    plane.produce(build_batch([(now.wall_ms, None, b"v", ())], producer_id=7, producer_epoch=0, base_sequence=0))
    plane.cluster.clock.advance(HOUR_MS)
    plane.running.upkeep.retain_now()
    known = list(plane.cluster.catalogue.by_name["t"].partitions[0].log.producers.last_known())
    plane.close()
    return known


# --- groups -----------------------------------------------------------------------------------------------------------


def joined(session_ms: int = 45_000) -> Probe:
    """The code of a join with this session timeout."""

    def probe(given: Given) -> object:
        with shard_world(**underscored(given)) as world:
            request = join_request("g", session_timeout_ms=session_ms)
            return world.ask(request, "g", 3).error_code

    return probe


def second_member(given: Given) -> object:
    """The first one stays meanwhile: with a short rebalance timeout it is gone when the loop is late."""
    with shard_world(**underscored(given)) as world:
        world.begin(join_request("g"), "g", 3)
        answer = world.begin(join_request("g"), "g", 3)
        return getattr(answer, "error_code", "waits")


def second_group(given: Given) -> object:
    with Broker({**given}) as broker, Raw(broker.port) as raw:
        raw.find("g")
        return [raw.join(group).error_code for group in ("g", "h")]


def first_join_waits(given: Given) -> object:
    with shard_world(**underscored(given)) as world:
        answer = world.begin(join_request("g"), "g", 3)
        return isinstance(answer, asyncio.Future) and not answer.done()


def long_note(given: Given) -> object:
    with shard_world(**underscored(given)) as world:
        return error_of(world.ask(commit_request("g", 1, metadata="x" * 100), "g", 8))


def expired(*, wait_ms: int) -> Probe:
    """What is committed in a group without members after a while."""

    def probe(given: Given) -> object:
        with shard_world(**underscored(given)) as world:
            world.commit(7)
            world.do(lambda: world.running.advance_clock(wait_ms))
            return world.committed()

    return probe


def static_restart(given: Given) -> object:
    """The group's generation after its static member restarted with other topics."""
    from partita.assignors.interface import Subscription
    from partita.assignors.payloads import encode_subscription
    from partita.protocol.messages.join_group import JoinGroupRequestProtocol

    def asking(topic: str) -> list[JoinGroupRequestProtocol]:
        metadata = encode_subscription(Subscription(topics=(topic,)))
        return [JoinGroupRequestProtocol(name="range", metadata=metadata)]

    with shard_world(**underscored(given)) as world:
        world.stable("g", group_instance_id="i", protocols=asking("t"))
        request = join_request("g", group_instance_id="i", protocols=asking("u"))
        return world.ask(request, "g", 9).generation_id


def offsets_topic(read: Callable[[TopicConfig], object]) -> Probe:
    """Something about `__consumer_offsets` on three nodes."""

    def probe(given: Given) -> object:
        with data_plane(nodes=3, **underscored(given)) as plane:
            topic = plane.cluster.ensure_state_topic(OFFSETS_TOPIC)
            if topic is None:
                return None
            return len(topic.partitions), len(topic.partitions[0].replicas), read(topic.config)

    return probe


def stored_codec(given: Given) -> object:
    with shard_world(**underscored(given)) as world:
        world.commit(7)
        log = world.partition().log
        return [header.codec for header, _ in iter_batches(log.read(0, 1 << 20))]


def patience(given: Given) -> object:
    with shard_world(**underscored(given)) as world:
        return world.runner()._patience_ms() - world.cluster.clock.mono_ms() > 3_000


def load_slices(given: Given) -> object:
    """Turns of the loop a load of 200 commits takes."""
    with shard_world(**underscored(given)) as world:
        for offset in range(200):
            world.commit(offset)
        index = world.partition()
        world.do(lambda: world.groups.resigned(0))
        world.cluster.elect(index, 1)
        turns = 0
        while world.runner().state.value == "loading":
            world.do(lambda: None)
            turns += 1
        return turns > 5


def underscored(given: Given) -> dict[str, Any]:
    """The names as keyword arguments."""
    return {name.replace(".", "_"): value for name, value in given.items()}


# --- sockets ----------------------------------------------------------------------------------------------------------


def address(given: Given) -> object:
    with Broker(given) as broker:
        return broker.bootstrap.rpartition(":")[0], len(broker.running.servers[1])


def connections(*, count: int, ticks: int = 0) -> Probe:
    """Which of so many connections, opened one after another, still answer after a while."""

    def probe(given: Given) -> object:
        with Broker(given) as broker:
            server = broker.running.servers[1][0]
            broker.run(server._on_tick)
            held = [Raw(broker.port) for _ in range(count)]
            for _ in range(ticks):
                broker.run(server._on_tick)
            answers = [answers_a_request(raw) for raw in held]
            for raw in held:
                raw.socket.close()
            return answers.count(True)

    return probe


def answers_a_request(raw: Raw) -> bool:
    try:
        return bool(raw.ask(MetadataRequest(topics=[]), 1).brokers)
    except (EOFError, OSError):
        return False


def push_limit(given: Given) -> object:
    with Broker(given) as broker, Raw(broker.port) as raw:
        asked = raw.ask(GetTelemetrySubscriptionsRequest(), 0)
        wanted = {"client_instance_id": asked.client_instance_id, "subscription_id": asked.subscription_id}
        pushed = raw.ask(PushTelemetryRequest(**wanted, metrics=field(9, "unknown")), 0)
        return asked.telemetry_max_bytes, pushed.error_code


def large_request(given: Given) -> object:
    with Broker(given) as broker, Raw(broker.port) as raw:
        try:
            raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 30_000)] * 100), 4)
        except (EOFError, OSError):
            return "closed"
        return "answered"


def failing_disk(path: Path, given: Given) -> object:
    """Whether a failed disk ends the broker."""
    with data_plane(DiskStore(str(path), Durability.OS), **underscored(given)) as plane:
        plane.store.fail("staged")
        return plane.running.failure is not None


GROUP: dict[str, tuple[object, Probe]] = {
    "group.initial.rebalance.delay.ms": (500, first_join_waits),
    "group.max.session.timeout.ms": (40_000, joined()),
    "group.max.size": (1, second_member),
    "group.min.session.timeout.ms": (46_000, joined()),
    "offset.metadata.max.bytes": (10, long_note),
    "offsets.commit.timeout.ms": (100, patience),
    "offsets.load.buffer.size": (100, load_slices),
    "offsets.retention.check.interval.ms": (30 * 24 * HOUR_MS, expired(wait_ms=8 * 24 * HOUR_MS)),
    "offsets.retention.minutes": (30 * 24 * 60, expired(wait_ms=8 * 24 * HOUR_MS)),
    "offsets.topic.compression.codec": (1, stored_codec),
    "offsets.topic.num.partitions": (7, offsets_topic(lambda config: None)),
    "offsets.topic.replication.factor": (2, offsets_topic(lambda config: None)),
    "offsets.topic.segment.bytes": (1 << 20, offsets_topic(lambda config: config.int("segment.bytes"))),
    "partita.groups.max": (1, second_group),
    "partita.rebalance.on.static.change": (True, static_restart),
}
LOG: dict[str, tuple[object, Probe]] = {
    "compression.gzip.level": (1, stored_bytes("gzip")),
    "compression.lz4.level": (1, stored_bytes("lz4")),
    "compression.zstd.level": (19, stored_bytes("zstd")),
    "compression.type": ("gzip", produced(one_record(size=1_000))),
    "log.cleaner.backoff.ms": (60_000, upkeep_timer("_cleaner_timer")),
    "log.cleaner.delete.retention.ms": (HOUR_MS, compacted(dirty=10, tombstones=True, extra_ms=2 * HOUR_MS)),
    "log.cleaner.max.compaction.lag.ms": (HOUR_MS, compacted(clean=20, dirty=2, wait_ms=2 * HOUR_MS)),
    "log.cleaner.min.cleanable.ratio": (0.01, compacted(clean=20, dirty=2)),
    "log.cleaner.min.compaction.lag.ms": (HOUR_MS, compacted(dirty=10)),
    "log.cleanup.policy": ("compact", produced(one_record(key=None))),
    "log.index.interval.bytes": (100, index_entries),
    "log.message.timestamp.after.max.ms": (1_000, produced(one_record(-60_000))),
    "log.message.timestamp.before.max.ms": (1_000, produced(one_record(60_000))),
    "log.message.timestamp.type": ("LogAppendTime", produced(one_record())),
    "log.retention.bytes": (50_000, retained(wait_ms=0)),
    "log.retention.check.interval.ms": (60_000, upkeep_timer("_retention_timer")),
    "log.retention.hours": (1, retained(wait_ms=2 * HOUR_MS)),
    "log.retention.minutes": (1, retained(wait_ms=HOUR_MS)),
    "log.retention.ms": (1, retained(wait_ms=HOUR_MS)),
    "log.roll.hours": (1, segments(batches=2, wait_ms=2 * HOUR_MS)),
    "log.roll.ms": (1_000, segments(batches=2, wait_ms=2_000)),
    "log.segment.bytes": (1 << 20, segments(batches=3, wait_ms=0, size=600_000)),
    "max.decompressed.message.bytes": (600, produced(one_record(size=1_000, codec=1))),
    "message.max.bytes": (100, produced(one_record(size=1_000))),
    "partita.validate.records": ("full", produced(misleading)),
    "producer.id.expiration.ms": (1_000, idle_producers),
}
BROKER: dict[str, tuple[object, Probe]] = {
    "advertised.listeners": ("PLAINTEXT://localhost:9092", address),
    "allow.everyone.if.no.acl.found": (True, described_by_nobody),
    "authorizer.class.name": ("", described_by_nobody),
    "auto.create.topics.enable": (False, new_topic),
    "broker.rack": ("here", rack),
    "connections.max.idle.ms": (3_000, connections(count=1, ticks=10)),
    "default.replication.factor": (2, new_topic),
    "delete.topic.enable": (False, deleted),
    "fetch.max.bytes": (1_024, fetched_bytes),
    "listeners": ("PLAINTEXT://localhost:0", address),
    "max.connection.creation.rate": (1, connections(count=3)),
    "max.connections": (1, connections(count=3)),
    "max.connections.per.ip": (1, connections(count=3)),
    "max.incremental.fetch.session.cache.slots": (0, sessions),
    "node.id": (5, node_ids),
    "num.partitions": (3, new_topic),
    "socket.request.max.bytes": (1_000_000, large_request),
    "super.users": ("User:ANONYMOUS", described_by_nobody),
    "telemetry.max.bytes": (5, push_limit),
    **GROUP,
    **CONSUMER_GROUPS,
    **LEADERS,
    **SHARES,
    **STREAMS,
    **LOG,
    **TRANSACTIONS,
}
OF_TOPICS = {TOPIC_OPTIONS[name].synonym: name for name in TOPIC_OPTIONS if TOPIC_OPTIONS[name].synonym}
TOPIC: dict[str, tuple[object, Probe]] = {
    "errors.deadletterqueue.group.enable": (True, letters_allowed),
    "internal.segment.bytes": (1_000, segments(batches=3, wait_ms=0, size=600)),
    **{OF_TOPICS[name]: shown for name, shown in LOG.items() if name in OF_TOPICS},
}


@pytest.mark.parametrize(("name", "value", "probe"), [(name, *shown) for name, shown in BROKER.items()])
def test_an_option_of_the_broker_has_an_effect(name: str, value: object, probe: Probe) -> None:
    assert probe({name: value}) != probe({})


@pytest.mark.parametrize(("name", "value", "probe"), [(name, *shown) for name, shown in TOPIC.items()])
def test_an_option_of_a_topic_has_an_effect(name: str, value: object, probe: Probe) -> None:
    assert probe({name: value}) != probe({})


def test_the_failure_of_a_disk_ends_the_broker_or_not_as_told(tmp_path: Path) -> None:
    seen = [failing_disk(tmp_path / told, {"partita.log.failure": told}) for told in ("exit", "offline")]
    assert seen == [True, False]


def test_each_option_that_counts_is_shown_and_none_that_is_only_accepted() -> None:
    honoured_here = {name for name in honoured("Broker") if not is_of_security(name)}
    assert honoured_here ^ BROKER.keys() == {"partita.log.failure"}
    assert honoured("Topics") ^ TOPIC.keys() == set()
