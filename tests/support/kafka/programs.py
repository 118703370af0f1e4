"""Apache Kafka's own programs on any cluster: Streams, Connect and MirrorMaker 2, each with the checks it passes."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partita import Admin, Broker, Consumer, NewTopic, Producer
from partita.designs.zookeeper.ports import free_ports
from support.clients.broker import until
from support.kafka.node import RELEASE, jars

NEWEST = "4.3.1"
"""The last release of which Connect and MirrorMaker are published."""
WORD_COUNT = Path(__file__).parent / "WordCount.java"
WITHIN_S = 120.0
Way = Mapping[str, str]
"""A client's options, as Java spells them, to reach a cluster; ours read them, too."""
WORKER = """
group.id=connect
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=500
scheduled.rebalance.max.delay.ms=0
session.timeout.ms=6000
heartbeat.interval.ms=2000
exactly.once.source.support=enabled
plugin.discovery=service_load
"""
MIRROR = """
clusters=near,far
near->far.enabled=true
far->near.enabled=false
topics=mirrored
groups=readers
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
offset.lag.max=0
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
emit.heartbeats.interval.seconds=1
refresh.topics.interval.seconds=1
refresh.groups.interval.seconds=1
sync.topic.configs.interval.seconds=1
sync.topic.acls.enabled=false
"""


@contextmanager
def java(release: str, profile: str, log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """One process on the jars of a profile, killed at the end; the end of its log is shown if the block fails."""
    options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = ["java", *options, "-cp", f"{jars(release, profile)}/*", *words]
    with log.open("ab") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield process
        except BaseException:
            print(log.read_text(errors="replace")[-6000:])
            raise
        finally:
            process.kill()


def streams(way: Way, folder: Path, *, whole: bool) -> Iterator[str]:
    """Word count with `exactly_once_v2` and `group.protocol=classic`; over a kill -9 if it is to be the whole."""
    _create(way, lines=3, counts=1)
    client = folder / "client.properties"
    client.write_text(_lines(way, ""))

    def run(name: str) -> Any:
        words = (way["bootstrap.servers"], str(folder / name), "exactly_once_v2", "classic", str(client))
        return java(RELEASE, "streams", folder / f"{name}.log", str(WORD_COUNT), *words)

    with run("one") as first, _reader(way, "counts") as reader:
        counts: dict[str, int] = {}
        _feed(way, 700)
        _count(reader, counts, 1_400)
        assert counts == {"all": 700, **{f"w{number}": 100 for number in range(7)}}
        yield "each word is counted once"
        with Admin(way) as admin:
            names = {topic.name for topic in admin.list_topics()}
            assert {"words-store-changelog", "words-store-repartition"} <= names
            yield "internal topics are there"
            assert admin.describe_group("words").state == "Stable"
            yield "its group is described"
        if whole:
            with run("two"):
                first.kill()
                _feed(way, 700)
                _count(reader, counts, 2_800)
                assert counts == {"all": 1_400, **{f"w{number}": 200 for number in range(7)}}
                yield "each word is counted once over a kill -9 of the application"


def connect(way: Way, folder: Path, *, whole: bool) -> Iterator[str]:
    """An exactly-once source and a sink in a distributed worker; with a second one and a kill -9 if it is the whole."""
    _create(way, **{"from-file": 1})
    source, sink = folder / "source.txt", folder / "sink.txt"
    lines = [f"line {number}" for number in range(200)]
    source.write_text("".join(f"{line}\n" for line in lines))
    with _worker(way, folder, "one") as (first, rest), _reader(way, "from-file") as reader:
        yield "the worker serves REST"
        connectors = {
            "source": {"connector.class": "FileStreamSource", "file": str(source), "topic": "from-file"},
            "sink": {"connector.class": "FileStreamSink", "file": str(sink), "topics": "from-file"},
        }
        for name, settings in connectors.items():
            rest.call("PUT", f"/connectors/{name}/config", {**settings, "tasks.max": "1"})
        read = _take(reader, len(lines))
        assert read == lines
        yield "each line is a record, once and in order"
        until(lambda: sink.exists() and sink.read_text().splitlines() == lines, "the sink has the lines", WITHIN_S)
        yield "the sink writes each record, in order"
        until(lambda: (_offset(rest, "sink") or 0) >= len(lines), "the sink's offsets are committed", WITHIN_S)
        assert _offset(rest, "source") == source.stat().st_size
        yield "offsets of source and sink are told by REST"
        if whole:
            with _worker(way, folder, "two") as (_, rest):
                first.kill()
                more = [f"more {number}" for number in range(300)]
                with source.open("a") as file:
                    file.write("".join(f"{line}\n" for line in more))
                assert _take(reader, len(more)) == more
                yield "each line once and in order over a kill -9 of a worker"
                until(lambda: set(sink.read_text().splitlines()) == {*lines, *more}, "the sink goes on", WITHIN_S)
                yield "the sink goes on"
                _stop(rest)
        else:
            _stop(rest)
        yield "offsets of a stopped connector are deleted, and so is the connector"


def mirror(way: Way, folder: Path, *, whole: bool) -> Iterator[str]:
    """A topic, its settings and a group's offsets, mirrored to Partita; over a kill -9 if it is to be the whole."""
    with Admin(way) as admin, Broker({"auto.create.topics.enable": False}) as target:
        admin.create_topics(NewTopic("mirrored", 2, 1, {"retention.ms": 7_200_000}))
        _write(way, range(200))
        admin.alter_group_offsets("readers", {("mirrored", 0): 100})
        settings, there = folder / "mirror.properties", target.client_options(style="java")
        settings.write_text(MIRROR + _lines(way, "near.") + _lines(there, "far."))

        def run(name: str) -> Any:
            return java(NEWEST, "connect", folder / name, "org.apache.kafka.connect.mirror.MirrorMaker", str(settings))

        with Admin(there) as far:
            with run("one.log"):
                until(lambda: "near.mirrored" in _topics(far), "the topic is mirrored", WITHIN_S)
                with _reader(there, "near.mirrored") as reader:
                    assert sorted(_take(reader, 200), key=int) == [str(number) for number in range(200)]
                yield "every record, once"
                until(lambda: _retention(far) == "7200000", "the settings are copied", WITHIN_S)
                yield "settings of the topic"
                until(lambda: 0 < _committed(far) <= 100, "the group's offset is translated, and not too far", WITHIN_S)
                yield "offsets of the group"
                until(lambda: {"heartbeats", "near.checkpoints.internal"} <= _topics(far), "internal topics", WITHIN_S)
                yield "heartbeats and checkpoints"
            if whole:
                _write(way, range(200, 400))
                with run("two.log"), _reader(there, "near.mirrored") as reader:
                    read = set(_take(reader, 200))
                    while len(read) < 400:
                        read |= set(_take(reader, 1))
                yield "every record over a kill -9 of MirrorMaker"


PROGRAMS = {
    f"Kafka Streams {RELEASE}, `exactly_once_v2`": streams,
    f"Kafka Connect {NEWEST}, distributed, exactly-once source": connect,
    f"MirrorMaker {NEWEST}, to Partita": mirror,
}


class Rest:
    """A worker's REST interface."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """One call. It is made again while the worker starts, rebalances, or has not read of a change yet."""
        answers: list[Any] = []
        until(lambda: self._try(method, path, body, answers), f"{method} {path} is answered", WITHIN_S)
        return answers[0]

    def _try(self, method: str, path: str, body: Mapping[str, str] | None, answers: list[Any]) -> bool:
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode() if body is not None else None,
            {"Content-Type": "application/json"}, method=method,
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                answers.append(json.loads(answer.read() or b"null"))
        except OSError:
            return False
        return True


@contextmanager
def _worker(way: Way, folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[bytes], Rest]]:
    (port,) = free_ports(1)
    settings = folder / f"{name}.properties"
    settings.write_text(WORKER.format(port=port) + _lines(way, "", "producer.", "consumer."))
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    with java(NEWEST, "connect", folder / f"{name}.log", main, str(settings)) as process:
        rest = Rest(port)
        rest.call("GET", "/connectors")
        yield process, rest


def _offset(rest: Rest, connector: str) -> int | None:
    """The one offset of a connector: a position in its file, or of its topic."""
    found = rest.call("GET", f"/connectors/{connector}/offsets")["offsets"]
    return next((value for each in found for value in each["offset"].values()), None)


def _stop(rest: Rest) -> None:
    rest.call("PUT", "/connectors/source/stop")
    rest.call("DELETE", "/connectors/source/offsets")
    assert _offset(rest, "source") is None
    rest.call("DELETE", "/connectors/source")
    until(lambda: rest.call("GET", "/connectors") == ["sink"], "the connector is gone", WITHIN_S)


def _lines(way: Way, *prefixes: str) -> str:
    """A client's options for a file of properties, once with each prefix."""
    return "".join(f"{prefix}{name}={value}\n" for prefix in prefixes for name, value in way.items())


def _create(way: Way, **partitions: int) -> None:
    with Admin(way) as admin:
        admin.create_topics(*(NewTopic(name, number, 1) for name, number in partitions.items()))


def _reader(way: Way, topic: str) -> Consumer[Any, Any]:
    """A consumer without a group, from the beginning of the topic."""
    consumer = Consumer(way, isolation_level="read_committed", enable_auto_commit=False)
    places = [(topic, number) for number in consumer.partitions_for(topic)]
    consumer.assign(places)
    consumer.seek_to_beginning(places)
    return consumer


def _poll(reader: Consumer[Any, Any]) -> list[str]:
    return [(record.value or b"").decode() for record in reader.poll(0.5)]


def _take(reader: Consumer[Any, Any], number: int) -> list[str]:
    """So many values, and what comes within half a second behind them."""
    read: list[str] = []

    def more() -> bool:
        read.extend(_poll(reader))
        return len(read) >= number

    until(more, f"{number} records are there", WITHIN_S)
    return read + _poll(reader)


def _count(reader: Consumer[Any, Any], counts: dict[str, int], words: int) -> None:
    """Read counts until they are those of so many words."""

    def more() -> bool:
        for record in reader.poll(0.5):
            counts[(record.key or b"").decode()] = int(record.value or b"0")
        return sum(counts.values()) >= words

    until(more, f"{words} words are counted", WITHIN_S)


def _feed(way: Way, lines: int) -> None:
    with Producer(way) as producer:
        for number in range(lines):
            producer.send("lines", f"all w{number % 7}".encode(), partition=number % 3)


def _write(way: Way, numbers: range) -> None:
    with Producer(way) as producer:
        for number in numbers:
            producer.send("mirrored", str(number), partition=number % 2)


def _topics(admin: Admin) -> set[str]:
    return {topic.name for topic in admin.list_topics(include_internal=True)}


def _retention(admin: Admin) -> str | None:
    found = admin.describe_configs("topic", "near.mirrored")
    return next((one.value for one in found if one.name == "retention.ms"), None)


def _committed(admin: Admin) -> int:
    groups = {group.group_id for group in admin.list_groups()}
    rows = admin.group_offsets("readers") if "readers" in groups else []
    return next((row.offset for row in rows if (row.topic, row.partition) == ("near.mirrored", 0)), -1)
