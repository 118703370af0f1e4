"""Mistakes people make, and the one clear error or warning that each gets at once (finding clients 5).

An error says what was expected, what came, and where it helps what to do. What is no error yet, because it may become
right (a topic that does not exist), is a warning, told once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from partita import Admin, Broker, Consumer, NewTopic, OffsetAndMetadata, Producer, RebalanceListener, TopicPartition
from partita.admin import ScramUser
from partita.consumer.errors import IllegalStateError
from partita.errors import (
    GroupIdNotFoundError,
    InvalidConfigError,
    InvalidGroupIdError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    KafkaError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from partita.options import ConfigError
from partita.producer.errors import NoMetadataError, ProducerClosedError, RecordTooLargeError
from support.clients.broker import until

T0 = ("t", 0)
NOTE: Any = "a note where the leader epoch belongs"
NO_COROUTINE = ValueError if sys.version_info < (3, 14) else TypeError
AT_ONCE_SECONDS = 10.0
"""A bound for a busy machine; timeouts that would hide a mistake are of 30 s and more."""
Mistake: TypeAlias = tuple[Callable[[Any], Any], type[Exception], str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(auto_create_topics_enable=False) as running:
        running.create_topics({"t": 2})
        yield running


def expect(do: Callable[[], Any], error: type[Exception], told: str) -> None:
    """The error comes at once, is just this one, and says this."""
    began = time.monotonic()
    with pytest.raises(error, match=told) as raised:
        do()
    assert raised.type is error
    assert time.monotonic() - began < AT_ONCE_SECONDS


# -- options ---------------------------------------------------------------------------------------------------------

AnyConsumer: Any = Consumer  # a type checker would refuse what follows
AnyProducer: Any = Producer
AnyAdmin: Any = Admin


def C(bootstrap: str, **options: Any) -> Any:
    return AnyConsumer(bootstrap_servers=bootstrap, **options)


def P(bootstrap: str, **options: Any) -> Any:
    return AnyProducer(bootstrap_servers=bootstrap, **options)


OPTIONS: list[Mistake] = [
    (lambda b: AnyConsumer("t", bootstrap_servers=b), ConfigError, "not 't'; give servers as bootstrap_servers=..., t"),
    (lambda b: AnyConsumer([b]), ConfigError, r"takes a dict of options or keyword arguments, not \["),
    (lambda b: AnyProducer(b), ConfigError, "takes a dict of options or keyword arguments, not '127"),
    (lambda b: AnyAdmin(b), ConfigError, "takes a dict of options or keyword arguments, not '127"),
    (lambda b: AnyConsumer(group_id="g"), ConfigError, "bootstrap_servers is required: host:port list"),
    (lambda b: AnyConsumer(bootstrap_servers=9092), ConfigError, "must be a list or comma-separated text, not 9092"),
    (lambda b: AnyConsumer(bootstrap_servers=""), ValueError, "bootstrap_servers is empty; give at least one host:por"),
    (lambda b: AnyConsumer(bootstrap_servers="h:99999"), ValueError, "'h:99999' is not an address; expected host:port"),
    (lambda b: AnyConsumer(bootstrap_servers="kafka://h:1"), ValueError, "expected host:port .* without kafka://"),
    (lambda b: AnyConsumer(bootstrap_servers="http://h:1"), ValueError, "expected host:port .* without http://"),
    (lambda b: AnyConsumer(bootstrap_servers=("localhost", 9092)), ValueError, "9092 is not an address; expected text"),
    (lambda b: AnyConsumer(bootstrap_servers=[b"h:1"]), ValueError, "b'h:1' is not an address; expected text ho"),
    (lambda b: C(b, auto_ofset_reset="x"), ConfigError, "did you mean 'auto_offset_reset'"),
    (lambda b: C(b, consumer_timeout_ms=1), ConfigError, r"give poll\(\) a timeout instead"),
    (lambda b: C(b, api_version=(2, 0)), ConfigError, "versions are agreed with each broker"),
    (lambda b: C(b, auto_offset_reset="first"), ConfigError, "must be earliest, latest, none"),
    (lambda b: C(b, auto_offset_reset=None), ConfigError, "auto_offset_reset must not be None"),
    (lambda b: C(b, enable_auto_commit="no"), ConfigError, "must be true or false, not 'no'"),
    (lambda b: C(b, max_poll_records="x"), ConfigError, "must be a whole number, not 'x'"),
    (lambda b: C(b, max_poll_records=0), ConfigError, "must be at least 1, not 0"),
    (lambda b: C(b, session_timeout_ms=9, heartbeat_interval_ms=9), ConfigError,
     r"heartbeat_interval_ms \(9\) must be less than session_timeout_ms \(9\)"),
    (lambda b: C(b, group_id=" "), ConfigError, "leave it out to consume without a group"),
    (lambda b: C(b, value_deserializer="jsn"), ConfigError, "expected one of bytes, str, json"),
    (lambda b: C(b, value_deserializer=5), ConfigError, "must be a function of bytes, a name"),
    (lambda b: P(b, value_serializer="jsn"), ConfigError, "expected bytes, str, json, .* a function"),
    (lambda b: P(b, acks=2), ConfigError, "acks must be one of all, -1, 0, 1, not '2'"),
    (lambda b: P(b, acks=0, enable_idempotence=True), ConfigError, "acks must be all, not 0"),
    (lambda b: P(b, compression_type="zip"), ConfigError, "none, gzip, snappy, lz4, zstd, not"),
    (lambda b: C(b, client_id="\ud800"), ConfigError, "client_id is no text that can be sent"),
    (lambda b: P(b, transactional_id="x" * 40_000), ConfigError, "takes 40000 bytes; at most 32767 can be sent"),
    (lambda b: P(b, topic="t"), ConfigError, r"topics are given to subscribe\(\) or send\(\)"),
]  # fmt: skip


@pytest.mark.parametrize(("do", "error", "told"), OPTIONS)
def test_a_wrong_option_is_refused_when_the_client_is_made(
    broker: Broker, do: Callable[[str], Any], error: type[Exception], told: str
) -> None:
    expect(lambda: do(broker.bootstrap), error, told)


# -- the consumer ----------------------------------------------------------------------------------------------------


class WithoutItsMethods(RebalanceListener):
    """Its author misspelt the name of the method."""

    def on_partition_assigned(self, partitions: list[TopicPartition]) -> None:
        raise AssertionError("nobody calls it")


BEFORE_READING: list[Mistake] = [
    (lambda c: c.poll(1), IllegalStateError, r"nothing is subscribed or assigned; call subscribe\(\) or assign\(\) fi"),
    (lambda c: next(iter(c)), IllegalStateError, "nothing is subscribed or assigned"),
    (lambda c: next(c.until_end()), IllegalStateError, "nothing is subscribed or assigned"),
    (lambda c: c.subscribe(), ValueError, "subscribe takes either topics or a pattern"),
    (lambda c: c.subscribe(5), TypeError, "subscribe takes a list of topic names, not 5"),
    (lambda c: c.subscribe([1]), ValueError, r"topic names must be text that is not blank, not \[1\]"),
    (lambda c: c.subscribe([""]), ValueError, "topic names must be text that is not blank"),
    (lambda c: c.subscribe(pattern="("), ValueError, r"'\(' is no regular expression: missing \)"),
    (lambda c: c.subscribe(["t"], on_assigned=5), TypeError, "on_assigned must be a function of a list of partitions,"),
    (lambda c: c.subscribe(["t"], listener=print), TypeError, "a listener is an object with .* functions are given"),
    (lambda c: c.subscribe(["t"], "t.*"), TypeError, "'t.*' has none of them; .*, a regular expression as pattern="),
    (lambda c: c.subscribe(["t"], RebalanceListener), TypeError, r"not a class; give RebalanceListener\(\)"),
    (lambda c: c.subscribe(["t"], WithoutItsMethods()), TypeError, "WithoutItsMethods object .* has none of them"),
    (lambda c: (c.assign([T0]), c.subscribe(["t"])), IllegalStateError, r"reads what assign\(\) said, which excludes "),
    (lambda c: (c.subscribe(["t"]), c.assign([T0])), IllegalStateError, r"subscribe\(topics\) said, which excludes as"),
    (lambda c: (c.subscribe(["a b"]), c.poll(5)), InvalidTopicError, "a b: the topic name is not valid"),
    (lambda c: c.assign(T0), TypeError, r"takes a list of \(topic, partition\) pairs such as \[\('orders', 0\)\], not"),
    (lambda c: c.assign(TopicPartition("t", 0)), TypeError, r"assign takes a list of \(topic, partition\) pairs"),
    (lambda c: c.assign(["t"]), TypeError, r"assign takes a list of \(topic, partition\) pairs .*, not \['t'\]"),
    (lambda c: c.assign(5), TypeError, r"assign takes a list of \(topic, partition\) pairs .*, not 5"),
    (lambda c: c.assign([("t", -1)]), ValueError, r"a partition is 0 or more, not -1 \(of t\)"),
    (lambda c: c.seek(T0, 5), IllegalStateError, "t-0 is not assigned to this consumer"),
    (lambda c: c.close(-1), ValueError, "a timeout is 0 s or more, not -1"),
    (lambda c: (c.close(), c.poll(1)), IllegalStateError, "the consumer is closed"),
    (lambda c: c.hold(None), TypeError, "hold takes what a poll returned, not None"),
    (lambda c: c.done(7), TypeError, "done takes a record, not 7"),
]  # fmt: skip


@pytest.mark.parametrize(("do", "error", "told"), BEFORE_READING)
def test_a_wrong_call_before_reading(
    broker: Broker, do: Callable[[Any], Any], error: type[Exception], told: str
) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="before") as consumer:
        expect(lambda: do(consumer), error, told)


WHILE_READING: list[Mistake] = [
    (lambda c: c.poll(None), TypeError, r"poll takes a number of seconds, not None; poll\(\) returns what is there at"),
    (lambda c: c.poll("1"), TypeError, "poll takes a number of seconds, not '1'"),
    (lambda c: c.poll(-1), ValueError, "a timeout is 0 s or more, not -1"),
    (lambda c: c.poll(timeout_ms=5), TypeError, "unexpected keyword argument 'timeout_ms'"),
    (lambda c: c.poll(1, max_records=-5), ValueError, "max_records must be 0 or more, not -5"),
    (lambda c: c.poll(1, max_records="x"), TypeError, "max_records must be a whole number, not 'x'"),
    (lambda c: c.commit([T0]), TypeError, r"a dict such as \{\('orders', 0\): 42\}, a record, or what a poll returned"),
    (lambda c: c.commit({T0: "5"}), TypeError, "the offset to commit for t-0 must be a whole number, not '5'"),
    (lambda c: c.commit({"t": 5}), TypeError, r"commit takes a dict from \(topic, partition\) pairs to offsets, not "),
    (lambda c: c.commit({T0: -5}), ValueError, "cannot commit offset -5 for t-0; offsets are 0 or more"),
    (lambda c: c.commit(timeout="5"), TypeError, "a timeout is a number of seconds, not '5'"),
    (lambda c: c.commit_async([T0]), TypeError, "commit takes a dict such as"),
    (lambda c: c.committed(T0), TypeError, r"committed takes a list of \(topic, partition\) pairs"),
    (lambda c: c.committed("t"), TypeError, r"committed takes a list of \(topic, partition\) pairs .*, not 't'"),
    (lambda c: c.seek("t", 1), TypeError, r"seek takes a \(topic, partition\) pair such as \('orders', 0\), not 't'"),
    (lambda c: c.seek(T0, "1"), TypeError, "an offset must be a whole number, not '1'"),
    (lambda c: c.seek(T0, -1), ValueError, "an offset must be 0 or more, not -1"),
    (lambda c: c.seek("t", 0, 1), TypeError, "seek.* takes 3 positional arguments but 4 were given"),
    (lambda c: c.seek_to_beginning(T0), TypeError, r"seek_to_beginning takes a list of .*\[\('t', 0\)\]"),
    (lambda c: c.seek_to_end("t"), TypeError, r"seek_to_end takes a list of \(topic, partition\) pairs .*, not 't'"),
    (lambda c: c.pause(T0), TypeError, r"pause takes a list of \(topic, partition\) pairs"),
    (lambda c: c.pause([("t", 7)]), IllegalStateError, "t-7 is not assigned to this consumer"),
    (lambda c: c.position("t"), TypeError, r"position takes a \(topic, partition\) pair such as"),
    (lambda c: c.current_lag("t"), TypeError, r"current_lag takes a \(topic, partition\) pair such as"),
    (lambda c: c.end_offsets(T0), TypeError, r"end_offsets takes a list of \(topic, partition\) pairs"),
    (lambda c: c.beginning_offsets("t"), TypeError, r"beginning_offsets takes a list of \(topic, partition\) pairs"),
    (lambda c: c.offsets_for_times([T0]), TypeError, r"from \(topic, partition\) pairs to timestamps in ms, not"),
    (lambda c: c.offsets_for_times({T0: -1}), ValueError, r"\(beginning_offsets and end_offsets give the ends\) must"),
    (lambda c: c.offsets_for_times({T0: 0.5}), TypeError, r"a timestamp in ms .* must be a whole number, not 0\.5"),
    (lambda c: c.offsets_for_times({T0: 2**63}), ValueError, "must be at most 9223372036854775807, not"),
    (lambda c: c.seek(T0, 2**63), ValueError, "an offset must be at most 9223372036854775807, not"),
    (lambda c: c.commit({T0: 2**63}), ValueError, "offsets are at most 9223372036854775807"),
    (lambda c: c.commit({("t", 2**31): 0}), ValueError, "a partition is at most 2147483647, not 2147483648"),
    (lambda c: c.commit({T0: OffsetAndMetadata(1, -1, "\ud800")}), ValueError, "metadata to commit for t-0 is no text"),
    (lambda c: c.commit({T0: OffsetAndMetadata(1, -1, "x" * 40_000)}), ValueError, "takes 40000 bytes; at most 32767"),
    (lambda c: c.commit({T0: OffsetAndMetadata(1, NOTE)}), TypeError, "an offset, a leader epoch and text, in this"),
    (lambda c: c.commit(timeout=float("nan")), ValueError, "a timeout is 0 s or more, not nan"),
    (lambda c: c.close(None), TypeError, "a timeout is a number of seconds, not None"),
    (lambda c: c.close(membership="leave"), ValueError, "membership is one of default, leave_group, remain_in_group"),
    (lambda c: c.subscribe(["t"]), IllegalStateError, "which excludes"),
    (lambda c: asyncio.run(c.poll(0)), NO_COROUTINE, "a coroutine"),
    (lambda c: next(iter(c)).value(), TypeError, "'bytes' object is not callable"),
]  # fmt: skip


@pytest.mark.parametrize(("do", "error", "told"), WHILE_READING)
def test_a_wrong_call_while_reading_leaves_the_consumer_as_it_was(
    broker: Broker, do: Callable[[Any], Any], error: type[Exception], told: str
) -> None:
    broker.produce("t", "a", partition=0)
    options = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
    with Consumer(options, group_id="while", enable_auto_commit=False) as consumer:
        consumer.assign([T0])
        expect(lambda: do(consumer), error, told)
        assert consumer.assignment() == {T0}
        assert next(consumer).value == b"a"


@pytest.mark.parametrize("call", ["subscribe", "commit", "committed", "group_metadata", "enforce_rebalance"])
def test_what_needs_a_group_says_so(broker: Broker, call: str) -> None:
    arguments: dict[str, Any] = {"subscribe": (["t"],), "committed": ([T0],)}
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        expect(
            lambda: getattr(consumer, call)(*arguments.get(call, ())),
            InvalidGroupIdError,
            f"{call} needs a group; give the consumer a group_id",
        )


def test_a_loop_of_the_wrong_kind_is_refused(broker: Broker) -> None:
    async def over_the_blocking_face() -> None:
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            async for _ in consumer:
                raise AssertionError

    async def over_the_asyncio_face() -> None:
        async with Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            for _ in consumer:  # type: ignore[attr-defined]  # that is the mistake
                raise AssertionError

    expect(lambda: asyncio.run(over_the_blocking_face()), TypeError, "`async for` needs an AsyncConsumer")
    expect(lambda: asyncio.run(over_the_asyncio_face()), TypeError, "'AsyncConsumer' object is not iterable")


def test_each_client_keeps_to_the_face_that_it_was_entered_with(broker: Broker) -> None:
    """A producer that was started by `async with` and used by its blocking calls hung in its close for 30 s."""
    consumer = C(broker.bootstrap, group_id="g")
    producer, admin, used = P(broker.bootstrap), AnyAdmin(bootstrap_servers=broker.bootstrap), P(broker.bootstrap)
    used.send("t", b"x").result(60)

    async def mix() -> None:
        async with consumer as reader, producer as writer, admin as asker:
            reader.subscribe(["t"])
            expect(lambda: consumer.poll(1), IllegalStateError, "Make an AsyncConsumer instead: `async with AsyncC")
            for call in (lambda: producer.send("t", b"x"), producer.flush, producer.close):
                expect(call, RuntimeError, "`async with`; .*Make an AsyncProducer instead")
            for call in (admin.list_topics, admin.close):
                expect(call, RuntimeError, "Make an AsyncAdmin instead: `async with AsyncAdmin")
            assert (await writer.send("t", b"y")).topic == "t"
            assert [topic.name for topic in await asker.list_topics()] == ["t"]
        with pytest.raises(RuntimeError, match="this Producer has made blocking calls"):
            await used.__aenter__()

    asyncio.run(asyncio.wait_for(mix(), 60))
    used.close()


def test_a_listener_may_be_the_second_argument(broker: Broker) -> None:
    class Listener(RebalanceListener):
        heard = 0

        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            self.heard += len(partitions)

    with Consumer(bootstrap_servers=broker.bootstrap, group_id="second") as consumer:
        consumer.subscribe(["t"], listener := Listener())
        while not consumer.assignment():
            consumer.poll(0.1)
    assert listener.heard == 2


# -- warnings --------------------------------------------------------------------------------------------------------


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and r.name.startswith("partita")]


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (lambda c: c.subscribe(["nosuch"]), "topic nosuch does not exist; looking for it again until it does"),
        (lambda c: c.assign([("nosuch", 0)]), "topic nosuch does not exist; looking for it again until it does"),
        (lambda c: c.assign([("t", 9)]), "partition t-9 does not exist; topic t has 2. Looking for it until it does"),
    ],
)
def test_what_is_not_there_yet_is_told_once(
    broker: Broker, caplog: pytest.LogCaptureFixture, begin: Callable[[Any], Any], told: str
) -> None:
    options = {"bootstrap_servers": broker.bootstrap, "metadata_max_age_ms": 50, "retry_backoff_ms": 20}
    with Consumer(options, group_id="g", allow_auto_create_topics=False) as consumer:
        begin(consumer)
        end = time.monotonic() + 60
        while not warned(caplog) and time.monotonic() < end:
            consumer.poll(0.1)
        for _ in range(5):
            consumer.poll(0.1)
    (line,) = warned(caplog)
    assert told in line


@pytest.mark.parametrize("servers", ["127.0.0.1:1", "no.such.host.invalid:9092"])
def test_a_wrong_host_is_told_once_with_what_was_tried(caplog: pytest.LogCaptureFixture, servers: str) -> None:
    with Consumer(bootstrap_servers=servers, group_id="g") as consumer:
        consumer.subscribe(["t"])
        end = time.monotonic() + 60
        while not warned(caplog) and time.monotonic() < end:
            consumer.poll(0.1)
        consumer.poll(0.3)
    (line,) = warned(caplog)
    assert re.search(f"no broker can be reached; trying again until one answers. Tried: .*{servers}", line)


def test_milliseconds_for_seconds_are_told_once(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.produce("t", "a", "b", partition=0)
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", max_poll_records=1) as consumer:
        consumer.assign([T0])
        consumer.poll(1000)
        consumer.poll(1000)
    (line,) = warned(caplog)
    assert "poll(1000) waits up to 1000 seconds; the time is in seconds, not milliseconds" in line


# -- the producer ----------------------------------------------------------------------------------------------------

SENDING: list[Mistake] = [
    (lambda p: p.send("t", 5), TypeError, "the value is int; expected bytes or str, or give a value_serializer"),
    (lambda p: p.send("t", {"a": 1}), TypeError, "the value is dict; expected bytes or str, or give a value_serialize"),
    (lambda p: p.send("t", b"x", key=5), TypeError, "the key is int; expected bytes or str, or give a key_serializer"),
    (lambda p: p.send(None, b"x"), ValueError, "topic must be a name, not None"),
    (lambda p: p.send("\ud800", b"x"), ValueError, "topic must be text of at most 249 characters, not"),
    (lambda p: p.send_many("x" * 40_000, [b"x"]), ValueError, "topic must be text of at most 249 characters, not"),
    (lambda p: p.send("t", b"x", partition=2**31), ValueError, "partition must be at most 2147483647, not 2147483648"),
    (lambda p: p.send("t", b"x", timestamp=2**63), ValueError, "timestamp must be at most 9223372036854775807, not"),
    (lambda p: p.send("t", b"x", partition=-1), ValueError, "partition must be 0 or more, not -1"),
    (lambda p: p.send("t", b"x", partition="0"), TypeError, "partition must be a whole number, not '0'"),
    (lambda p: p.send("t", b"x", timestamp=1.5), TypeError, "timestamp must be a whole number of ms, not 1.5"),
    (lambda p: p.send("t", b"x", timestamp=-5), ValueError, "timestamp must be 0 or more, not -5"),
    (lambda p: p.send("t", b"x", headers=["a"]), TypeError, r"pairs such as \[\('source', b'web'\)\]; 'a' is no pair"),
    (lambda p: p.send("t", b"x", headers=[("a", 1)]), TypeError, "the header is int; expected bytes or str$"),
    (lambda p: p.send("t", b"x" * 2_000_000), RecordTooLargeError, "the record takes 2000096 bytes, more than max_req"),
    (lambda p: p.send_many("t", None), TypeError, "values must be a list or another iterable with one for each record"),
    (lambda p: p.partitions_for(None), ValueError, "topic must be a name, not None"),
    (lambda p: p.send("t", b"x").result("5"), TypeError, "a timeout is a number of seconds, not '5'"),
    (lambda p: p.send("t", b"x").add_done_callback(None), TypeError, "takes a function of the future, not None"),
    (lambda p: p.flush(float("nan")), ValueError, "a timeout is 0 s or more, not nan"),
    (lambda p: p.close("5"), TypeError, "a timeout is a number of seconds, not '5'"),
    (lambda p: p.close(without_broker=-1), ValueError, "a timeout is 0 s or more, not -1"),
    (lambda p: p.flush("5"), TypeError, "a timeout is a number of seconds, not '5'"),
    (lambda p: (p.close(), p.send("t", b"x")), ProducerClosedError, "the producer is closed"),
    (lambda p: p.send("a b", b"x").result(60), InvalidTopicError, "topic 'a b': the topic name is not valid"),
    (lambda p: p.send("t", b"x", partition=9).result(60), NoMetadataError, "the topic has 2 partitions"),
    (lambda p: p.send("nosuch", b"x").result(60), NoMetadataError, "topic 'nosuch' did not turn up in the cluster"),
]  # fmt: skip


@pytest.mark.parametrize(("do", "error", "told"), SENDING)
def test_a_wrong_send_fails_alone(broker: Broker, do: Callable[[Any], Any], error: type[Exception], told: str) -> None:
    waits = 500 if error is NoMetadataError else 60_000
    with Producer(bootstrap_servers=broker.bootstrap, max_block_ms=waits) as producer:
        until(lambda: knows_the_topic(producer), "the producer knows the topic")
        expect(lambda: do(producer), error, told)
        if error is not ProducerClosedError:
            assert producer.send("t", b"right").result(60).offset >= 0


def knows_the_topic(producer: Any) -> bool:
    """A busy machine may need longer than `max_block_ms` for the first connection."""
    try:
        return bool(producer.send("t", b"first").result(60).offset >= 0)
    except NoMetadataError:
        return False


def test_what_an_interceptor_spoils_fails_alone(broker: Broker) -> None:
    """A record that could not be encoded was tried again for ever, and everything behind it waited."""

    class Spoils:
        def on_send(self, record: Any) -> Any:
            return record._replace(timestamp=0.5) if record.value == b"bad" else record

        def on_acknowledgement(self, metadata: Any, error: Any) -> None: ...

    with Producer(bootstrap_servers=broker.bootstrap, interceptor_classes=[Spoils()]) as producer:
        bad = producer.send("t", b"bad")
        good = producer.send("t", b"good")
        assert good.result(60).offset >= 0
        with pytest.raises(TypeError):
            bad.result(60)


# -- the admin client ------------------------------------------------------------------------------------------------

ADMIN: list[Mistake] = [
    (lambda a: a.create_topic("t", 1), TopicAlreadyExistsError, "Topic 't' already exists"),
    (lambda a: a.create_topic("n", 0), InvalidPartitionsError, "non-positive"),
    (lambda a: a.create_topic("n", 1, replication_factor=3), InvalidReplicationFactorError, "only 1 broker"),
    (lambda a: a.create_topic("n", 1, configs={"retention": 5}), InvalidConfigError, "did you mean retention.ms"),
    (lambda a: a.create_topics(["x"]), TypeError, r"takes names and NewTopics one after the other, not \['x'\]"),
    (lambda a: a.create_topics([NewTopic("x")]), TypeError, "takes names and NewTopics one after the other"),
    (lambda a: a.delete_topics(["zz"]), UnknownTopicOrPartitionError, "does not host this topic"),
    (lambda a: a.describe_topics("zz"), UnknownTopicOrPartitionError, "topic 'zz': this broker knows no such topic"),
    (lambda a: a.create_partitions("t", 1), InvalidPartitionsError, r"currently has 2 partition\(s\); 1 would not be "),
    (lambda a: a.group_lag("zz"), GroupIdNotFoundError, "there is no group 'zz'"),
    (lambda a: a.delete_records({T0: "5"}), ValueError, "offset must be a whole number, not '5'"),
    (lambda a: a.create_topic("n", "3"), ValueError, "num_partitions must be a whole number, not '3'"),
    (lambda a: a.describe_configs("topics", "t"), ValueError, "kind must be one of topic, .*, not 'topics'"),
    (lambda a: a.alter_configs("topics", "t", {}), ValueError, "kind must be one of topic, .*, not 'topics'"),
    (lambda a: a.list_offsets({T0: "latest"}, isolation_level="committed"), ValueError, "isolation_level must be"),
    (lambda a: a.alter_group_offsets("g", {T0: -1}), ValueError, "cannot commit offset -1 for t-0"),
    (lambda a: a.wait_for_topics(["t"], timeout="1"), TypeError, "a timeout is a number of seconds, not '1'"),
    (lambda a: a.plan_reset("g", "earliest"), TypeError, r"made by Target, such as Target\.earliest\(\), and not"),
]  # fmt: skip


@pytest.mark.parametrize(("do", "error", "told"), ADMIN)
def test_a_wrong_call_of_the_admin_client(
    broker: Broker, do: Callable[[Any], Any], error: type[Exception], told: str
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        expect(lambda: do(admin), error, told)


def test_a_single_name_is_no_list_of_letters(broker: Broker) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_configs("topic", "t", {"retention.ms": 5})
        assert [one.value for one in admin.describe_configs("topic", "t", "retention.ms")] == ["5"]
        admin.alter_configs("topic", "t", delete="retention.ms")
        assert [one.is_default for one in admin.describe_configs("topic", "t", "retention.ms")] == [True]
        admin.alter_group_offsets("named", {T0: 1})
        assert "named" in [one.group_id for one in admin.list_groups(states="Empty", types="classic")]
        admin.alter_scram_users({"alice": ScramUser("secret of alice")})
        assert [one.user for one in admin.describe_scram_users("alice")] == ["alice"]


def test_an_admin_client_of_a_wrong_host_says_where_it_tried() -> None:
    with (
        pytest.raises(KafkaError, match=r"cannot connect to 127\.0\.0\.1:1"),
        Admin(bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=300) as admin,
    ):
        admin.list_topics()
