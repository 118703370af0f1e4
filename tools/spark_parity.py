"""Run random programs with Spark's own Kafka connector and with `format("partita")`, and compare what they do.

    python tools/spark_parity.py --seed 7 --batches 60 --streams 16 --sinks 24 --on kafka

Every program is the same but for its format: batch reads with random options and filters, streams of several runs with
records, partitions and limits that change between them, and sinks whose topics are read back. Rows, the batches that
they come in, and whether there is an error are compared; texts of errors are not. The jars of the connector come by
Maven, as for `bench/spark.py`. Prints each difference, then one JSON line; a difference makes the run fail.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from partita import Admin, NewTopic, Producer, TopicPartition

ROOT = Path(__file__).resolve().parent.parent
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMS = ("kafka", "partita")
EPOCH_MS = 1_700_000_000_000
"""The timestamps of all records lie in the hundred seconds behind this."""
STREAM_LIMIT_S = 90
CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
TOPICS = {"p-a": 3, "p-b": 4, "p-t": 2, "q-c": 2, "q-e": 2, "p-i": 3, "log.append": 2}
PATTERNS = ("p-.*", "q", "^p-[ab]$", "nothing", "-[ac]", r"log\.app.*", "p-a|q-c")
FILTERS = (
    *(None,) * 6,
    "partition = 1",
    "offset >= 30 and offset < 60",
    "topic = 'p-a'",
    "topic in ('p-a','q-c') and partition <> 0",
    "timestamp >= timestamp_millis(1700000050000)",
    "timestamp > timestamp_millis(1700000050000) and partition = 0",
    "timestamp = timestamp_millis(1700000050000)",
    "key is null",
    "offset = 3 or partition = 1",
    "partition in (0, 2) and offset > 100",
)
Options = dict[str, str]
Outcome = tuple[str, Any]
"""The word "rows" with what was read or written, or "error" with its text."""


@dataclass(slots=True)
class World:
    """One broker, one session, and the random numbers that decide what is run."""

    spark: SparkSession
    bootstrap: str
    admin: Admin
    dice: Random
    seed: int
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    same: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)

    @property
    def client(self) -> Options:
        """The options that every program has."""
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafkaConsumer.pollTimeoutMs": "3000",
            "fetchOffset.numRetries": "1",
            "fetchOffset.retryIntervalMs": "10",
        }

    def chance(self, share: float) -> bool:
        """True in this share of the calls."""
        return self.dice.random() < share

    def differ(self, kind: str, program: object, by_form: Mapping[str, object]) -> None:
        """Count a difference and print the program with what each format made of it."""
        self.different[kind] += 1
        print(f"DIFFERENT {kind}: {program}", *(f"  {form}: {by_form[form]}" for form in FORMS), sep="\n", flush=True)

    def create(self, topic: str, partitions: int, **configs: str) -> None:
        """A topic that keeps records of any age."""
        self.admin.create_topics(NewTopic(topic, partitions, configs={"retention.ms": "-1", **configs}))

    def look(self, topics: Mapping[str, int]) -> list[TopicPartition]:
        """Take down where these topics begin and end; return their partitions."""
        places = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
        first = self.admin.list_offsets({key: "earliest" for key in places})
        last = self.admin.list_offsets({key: "latest" for key in places})
        self.starts.update({key: first[key].offset for key in places})
        self.ends.update({key: last[key].offset for key in places})
        return places

    def produce(self, topic: str, partitions: int, count: int, transactional_id: str | None = None) -> None:
        """Random records; with an id in transactions, four of ten of which are aborted."""
        options: dict[str, Any] = {"compression_type": self.dice.choice(CODECS), "linger_ms": self.dice.choice((0, 5))}
        if transactional_id is not None:
            options["transactional_id"] = transactional_id
        with Producer(bootstrap_servers=self.bootstrap, **options) as producer:
            if transactional_id is not None:
                producer.init_transactions()
            left = count
            while left > 0:
                some = min(left, self.dice.randrange(1, 9))
                left -= some
                if transactional_id is not None:
                    producer.begin_transaction()
                for number in range(left, left + some):
                    self._send(producer, topic, partitions, number)
                if transactional_id is None:
                    producer.flush()
                elif self.chance(0.6):
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()

    def _send(self, producer: Producer, topic: str, partitions: int, number: int) -> None:
        dice = self.dice
        producer.send(
            topic,
            dice.choice((None, b"", b"v%d" % number, b"x" * dice.randrange(3000), "ä€".encode())),
            key=dice.choice((None, b"", b"k%d" % dice.randrange(9), b"\xff\x00")),
            headers=dice.choice(((), (), [("a", b"1"), ("a", None), ("b", b"")])),
            partition=dice.randrange(partitions),
            timestamp=EPOCH_MS + dice.randrange(100_000),
        )


def fill(world: World) -> None:
    """The topics of the batch reads: with gaps, transactions, several codecs, removed and no records."""
    for topic, partitions in TOPICS.items():
        world.create(
            topic, partitions, **({"message.timestamp.type": "LogAppendTime"} if topic == "log.append" else {})
        )
    for topic, count in {"p-a": 400, "p-b": 300, "q-c": 150, "p-i": 120, "log.append": 50}.items():
        world.produce(topic, TOPICS[topic], count)
    world.produce("p-t", TOPICS["p-t"], 200, f"parity-{world.seed}")
    world.admin.delete_records({TopicPartition("p-a", 1): 20, TopicPartition("q-c", 0): 10})
    world.look(TOPICS)


def outcome(work: Callable[[], object]) -> Outcome:
    """What a program came to."""
    try:
        return "rows", work()
    except Exception as error:  # whatever Spark raises is an outcome to compare
        text = str(error)
        lines = [line.strip()[:170] for line in text.splitlines() if "Error" in line or "Exception" in line]
        return "error", f"{type(error).__name__}: {text[:140]!r} ... {lines[-2:]}"


def rows_of(table: DataFrame) -> list[tuple[Any, ...]]:
    """All rows as plain values, in an order that does not depend on the format."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytearray):
            return bytes(value)
        return tuple(tuple(map(plain, entry)) for entry in value) if isinstance(value, list) else value

    return sorted((tuple(map(plain, row)) for row in table.collect()), key=repr)


def as_json(values: Mapping[TopicPartition, int]) -> str:
    """The JSON of startingOffsets and the like."""
    by_topic: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, number), value in values.items():
        by_topic[topic][str(number)] = value
    return json.dumps(by_topic)


def selection(world: World) -> tuple[Options, list[TopicPartition]]:
    """Which topics a batch reads, with their partitions."""
    kind = world.dice.choice(("subscribe", "subscribe", "subscribePattern", "assign"))
    if kind == "assign":
        chosen = world.dice.sample(sorted(key for key in world.ends if key[0] in TOPICS), world.dice.randrange(1, 6))
        numbers: dict[str, list[int]] = defaultdict(list)
        for topic, number in chosen:
            numbers[topic].append(number)
        return {kind: json.dumps(numbers)}, chosen
    if kind == "subscribe":
        topics = world.dice.sample(list(TOPICS), world.dice.randrange(1, 4))
        text = world.dice.choice((",", " , ")).join(topics)
    else:
        text = world.dice.choice(PATTERNS)
        topics = [topic for topic in TOPICS if re.search(text, topic)]
    return {kind: text}, [TopicPartition(topic, number) for topic in topics for number in range(TOPICS[topic])]


def positions(world: World, places: Sequence[TopicPartition], *, in_stream: bool) -> Options:
    """Where a read starts and ends; now and then where it cannot."""
    dice, options, kind = world.dice, Options(), world.dice.random()
    begin: dict[TopicPartition, int] = {}
    if kind < 0.3:
        options["startingOffsets"] = dice.choice(("earliest", "EARLIEST", "latest" if in_stream else "earliest"))
    elif kind < 0.6 and places:
        begin = {key: dice.choice((-2, dice.randint(world.starts[key], world.ends[key]))) for key in places}
        if world.chance(0.08):
            begin[places[0]] = dice.choice((world.ends[places[0]] + 5, -3, 0))
        if world.chance(0.05):
            del begin[places[-1]]
        options["startingOffsets"] = as_json(begin)
    elif kind < 0.75:
        options["startingTimestamp"] = str(EPOCH_MS + dice.choice((0, 50_000, dice.randrange(100_000), 99_000)))
    elif kind < 0.9 and places:
        options["startingOffsetsByTimestamp"] = as_json({key: EPOCH_MS + dice.randrange(105_000) for key in places})
    if 0.6 <= kind < 0.9 and world.chance(0.5):
        options["startingOffsetsByTimestampStrategy"] = dice.choice(("latest", "LATEST", "latest", "error"))
    return options if in_stream else options | ending(world, places, begin)


def ending(world: World, places: Sequence[TopicPartition], begin: Mapping[TopicPartition, int]) -> Options:
    """Where a batch ends, seldom before its start."""
    dice, kind = world.dice, world.dice.random()
    if kind < 0.3 and places:
        ends: dict[TopicPartition, int] = {}
        for key in places:
            least = max(world.starts[key], begin.get(key, 0))
            ends[key] = dice.choice((-1, dice.randint(min(least, world.ends[key]), world.ends[key])))
        if world.chance(0.1):
            ends[places[0]] = world.ends[places[0]] + 3
        return {"endingOffsets": as_json(ends)}
    if kind < 0.4:
        return {"endingTimestamp": str(EPOCH_MS + dice.randrange(120_000))}
    if kind < 0.5 and places:
        return {"endingOffsetsByTimestamp": as_json({key: EPOCH_MS + dice.randrange(120_000) for key in places})}
    return {"endingOffsets": "latest"} if kind < 0.55 else {}


def other_options(world: World) -> Options:
    """Options that decide how is read."""
    dice = world.dice
    may_be = (
        (0.3, "minPartitions", str(dice.randrange(1, 15))),
        (0.3, "maxRecordsPerPartition", str(dice.choice((1, 7, 50, 1000, dice.randrange(10, 200))))),
        (0.4, "includeHeaders", dice.choice(("true", "TRUE", "false"))),
        (0.5, "kafka.isolation.level", dice.choice(("read_committed", "read_uncommitted"))),
        (0.4, "failOnDataLoss", dice.choice(("true", "false"))),
        (0.1, dice.choice(("groupIdPrefix", "kafka.group.id")), "gg"),
        (0.1, "kafka.max.partition.fetch.bytes", dice.choice(("1000", "100000"))),
        (0.1, "kafka.fetch.max.bytes", "2000"),
    )
    return {name: value for share, name, value in may_be if world.chance(share)}


def batches(world: World, count: int) -> None:
    """Batch reads of the same topics."""
    for _ in range(count):
        chosen, places = selection(world)
        options = chosen | positions(world, places, in_stream=False) | other_options(world)
        wanted = world.dice.choice(FILTERS)

        found = {form: outcome(partial(read, world, form, options, wanted)) for form in FORMS}
        (first, rows), (second, others) = (found[form] for form in FORMS)
        if first != second or (first == "rows" and rows != others):
            shown = {form: text if word == "error" else f"{len(text)} rows" for form, (word, text) in found.items()}
            world.differ("batch", (wanted, options), shown)
        else:
            world.same[f"batch {first}"] += 1


def read(world: World, form: str, options: Options, wanted: str | None) -> list[tuple[Any, ...]]:
    """The rows of one batch read, filtered."""
    table = world.spark.read.format(form).options(**world.client, **options).load()
    return rows_of(table if wanted is None else table.where(wanted))


@dataclass(frozen=True, slots=True)
class Run:
    """One life of a query, and what happens to its topics afterwards."""

    trigger: str
    options: Options
    more: int
    more_of_other: int
    grows: bool


def streams(world: World, count: int) -> None:
    """Streams into `foreachBatch`, each of several runs over one checkpoint."""
    for number in range(count):
        topics = {f"s{world.seed}-{number}-{letter}": world.dice.randrange(1, 4) for letter in "ab"}
        for topic, partitions in topics.items():
            world.create(topic, partitions)
        first, second = topics
        world.produce(first, topics[first], world.dice.randrange(60))
        if world.chance(0.5):
            aborting = world.dice.choice((None, f"parity-{world.seed}-{number}"))
            world.produce(second, topics[second], world.dice.randrange(1, 60), aborting)
        _stream(world, topics, runs_of(world, topics))


def runs_of(world: World, topics: Mapping[str, int]) -> list[Run]:
    """What the runs of one query do."""
    places, first, dice = world.look(topics), next(iter(topics)), world.dice
    numbers = [number for topic, number in places if topic == first]
    chosen = dice.choice(
        (
            {"subscribe": ",".join(topics)},
            {"subscribePattern": f"{first[:-1]}.*"},
            {"subscribe": first},
            {"assign": json.dumps({first: numbers})},
        )
    )
    reads_both = "subscribePattern" in chosen or "," in chosen.get("subscribe", "")
    mine = places if reads_both else [key for key in places if key[0] == first]
    options = {"startingOffsets": dice.choice(("earliest", "earliest", "latest"))} | chosen
    options |= positions(world, mine, in_stream=True) | other_options(world)
    if world.chance(0.6):
        options["maxOffsetsPerTrigger"] = str(dice.randrange(1, 40))
    elif world.chance(0.5):
        options["minOffsetsPerTrigger"] = str(dice.randrange(1, 40))
    runs = []
    for _ in range(dice.randrange(1, 4)):
        again = "minOffsetsPerTrigger" not in options and world.chance(0.2)
        limit = {"maxOffsetsPerTrigger": str(dice.randrange(1, 40))} if again else {}
        trigger = dice.choice(("availableNow", "availableNow", "once"))
        more_of_other = dice.randrange(40) if world.chance(0.3) else 0
        runs.append(Run(trigger, options | limit, dice.randrange(40), more_of_other, world.chance(0.25)))
    return runs


def _stream(world: World, topics: Mapping[str, int], runs: Sequence[Run]) -> None:
    """Both formats in turns, so that both see the same topics; then compare their batches."""
    (first, second), partitions = topics, dict(topics)
    got: dict[str, list[tuple[int, list[Any]]]] = {form: [] for form in FORMS}
    failed: dict[str, str] = {}
    with checkpoints() as folders:
        for run in runs:
            for form in FORMS:
                if form not in failed:
                    word, text = outcome(partial(_live, world, form, run, folders[form], got[form]))
                    if word == "error":
                        failed[form] = text
            if run.grows:
                partitions[first] += 1
                world.admin.create_partitions(first, partitions[first])
            world.produce(first, partitions[first], run.more)
            world.produce(second, partitions[second], run.more_of_other)
    one, other = (got[form] for form in FORMS)
    filled = [[rows for _, rows in each if rows] for each in (one, other)]
    if len(failed) == 1 or filled[0] != filled[1]:
        shown = {form: (failed.get(form), [(batch, len(rows)) for batch, rows in got[form]]) for form in FORMS}
        world.differ("stream", runs, shown)
    elif one != other:
        world.same["stream but for empty batches"] += 1
    else:
        world.same["stream error" if failed else "stream rows"] += 1


def _live(world: World, form: str, run: Run, folder: str, got: list[tuple[int, list[Any]]]) -> None:
    """One life of one format's query. Raises what ended it, or TimeoutError."""

    def take(rows: DataFrame, batch: int) -> None:
        got.append((batch, rows_of(rows)))

    table = world.spark.readStream.format(form).options(**world.client, **run.options).load()
    writer: Any = table.writeStream.foreachBatch(take).option("checkpointLocation", folder)
    finish(writer.trigger(**{run.trigger: True}).start())


def finish(query: Any) -> None:
    """Wait for a query that ends by itself. Raises TimeoutError when it does not."""
    if not query.awaitTermination(STREAM_LIMIT_S):
        query.stop()
        raise TimeoutError(f"the query runs for more than {STREAM_LIMIT_S} s")


@contextmanager
def checkpoints() -> Iterator[dict[str, str]]:
    """A folder for each format."""
    folders = {form: tempfile.mkdtemp(prefix="partita-parity-") for form in FORMS}
    try:
        yield folders
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Table:
    """What is written to a topic of `partitions`; a topic of None stands for the topic of the format."""

    schema: StructType
    rows: list[dict[str, Any]]
    partitions: int
    slices: int
    in_stream: bool
    names_topic: bool

    @property
    def names(self) -> list[str]:
        """Its columns."""
        return [column.name for column in self.schema.fields]

    def for_topic(self, topic: str) -> list[tuple[Any, ...]]:
        """The rows for this topic."""
        return [tuple(topic if row[name] == "TOPIC" else row[name] for name in self.names) for row in self.rows]


def sinks(world: World, count: int) -> None:
    """Random tables written by both formats to a topic each, in a batch or a stream."""
    for number in range(count):
        table, options = random_table(world), sink_options(world)
        small = {"max.message.bytes": "65536"} if world.chance(0.3) else {}
        found: dict[str, Outcome] = {}
        for form in FORMS:
            topic = f"k{world.seed}-{number}-{form}"
            world.create(topic, table.partitions, **small)
            told = options | ({"topic": topic} if table.names_topic else {})
            found[form] = outcome(partial(write, world, form, table, topic, told))
        (first, one), (second, other) = (found[form] for form in FORMS)
        if first != second or (first == "rows" and comparable(table, one) != comparable(table, other)):
            shown = {form: text if word == "error" else f"{len(text)} records" for form, (word, text) in found.items()}
            world.differ("sink", (table.names, len(table.rows), table.slices, table.in_stream, options), shown)
        else:
            world.same[f"sink {first}"] += 1


def sink_options(world: World) -> Options:
    """Options of a write."""
    dice = world.dice
    may_be = (
        (0.5, "kafka.compression.type", dice.choice(CODECS)),
        (0.4, "kafka.acks", dice.choice(("all", "1", "-1"))),
        (0.4, "kafka.batch.size", dice.choice(("1000", "16384", "200000"))),
        (0.3, "kafka.linger.ms", "5"),
        (0.2, "includeHeaders", dice.choice(("true", "false"))),
    )
    return {"kafka.max.block.ms": "4000"} | {name: value for share, name, value in may_be if world.chance(share)}


def random_table(world: World) -> Table:
    """Columns and rows; now and then a row that cannot be written."""
    from pyspark.sql import types as t

    dice, partitions = world.dice, world.dice.randrange(1, 5)
    header = t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())])
    text_or_bytes = (t.StringType(), t.BinaryType())
    columns: list[tuple[str, t.DataType]] = [("value", dice.choice(text_or_bytes))]
    may_be: tuple[tuple[float, str, t.DataType], ...] = (
        (0.66, "key", dice.choice(text_or_bytes)),
        (0.3, "partition", t.IntegerType()),
        (0.4, "headers", t.ArrayType(header)),
        (0.2, "other", t.IntegerType()),
        (0.4, "topic", t.StringType()),
    )
    columns += [(name, kind) for share, name, kind in may_be if world.chance(share)]
    dice.shuffle(columns)
    schema = t.StructType([t.StructField(name, kind) for name, kind in columns])
    count = dice.choice((0, 1, 50, 3000))
    rows = [random_row(world, number, partitions, dict(columns)) for number in range(count)]
    if rows and world.chance(0.05):
        rows[count // 2]["partition"] = partitions + 3
    if rows and world.chance(0.05):
        rows[count // 2]["topic"] = None
    has_topic = any(name == "topic" for name, _ in columns)
    in_stream = dice.choice((False, False, True))
    return Table(schema, rows, partitions, dice.choice((1, 1, 3)), in_stream, not has_topic or world.chance(0.3))


def random_row(world: World, number: int, partitions: int, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """One value for each column that a table may have."""
    dice = world.dice
    texts = {
        "value": dice.choice((None, "", f"v{number}", "é" * dice.randrange(200))),
        "key": dice.choice((None, "", f"k{dice.randrange(50)}")) if world.chance(0.3) else f"k{dice.randrange(500)}",
    }
    is_bytes = {name for name, kind in kinds.items() if kind.typeName() == "binary"}
    return {
        **{name: text.encode() if text is not None and name in is_bytes else text for name, text in texts.items()},
        "partition": None if world.chance(0.25) else dice.randrange(partitions),
        "headers": dice.choice((None, [], [("h", b"1"), ("h", None)])),
        "other": number,
        "topic": "TOPIC",
    }


def write(world: World, form: str, table: Table, topic: str, options: Options) -> list[tuple[Any, ...]]:
    """Write the table with one format; read the topic back with the connector, in the order of offsets."""
    plain = world.spark.createDataFrame(table.for_topic(topic), table.schema)
    rows = plain.coalesce(1) if table.slices == 1 else plain.repartition(table.slices)
    told = world.client | options
    if not table.in_stream:
        rows.write.format(form).options(**told).mode("append").save()
    else:
        with checkpoints() as folders:
            rows.write.mode("overwrite").parquet(folders["kafka"])
            stream = world.spark.readStream.schema(table.schema).parquet(folders["kafka"])
            writer = stream.writeStream.format(form).options(**told, checkpointLocation=folders["partita"])
            finish(writer.trigger(availableNow=True).start())
    back = world.spark.read.format("kafka").options(**world.client, subscribe=topic, includeHeaders="true").load()
    found = back.orderBy("partition", "offset").select("partition", "key", "value", "headers").collect()
    return [
        (
            row.partition,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            None if row.headers is None else tuple((h.key, h.value and bytes(h.value)) for h in row.headers),
        )
        for row in found
    ]


def comparable(table: Table, written: Sequence[tuple[Any, ...]]) -> object:
    """What must be equal: rows with a key or a partition of their own have one partition, others may be anywhere.

    One task keeps the order of the rows with keys in each partition.
    """
    has_partition = "partition" in table.names
    if has_partition and all(row["partition"] is not None for row in table.rows):
        return sorted(written, key=repr)
    rows = sorted(((None if has_partition or row[1] is None else row[0], *row[1:]) for row in written), key=repr)
    in_order = table.slices == 1 and not table.in_stream and not has_partition and "key" in table.names
    return rows, [row[:2] for row in written if row[1] is not None] if in_order else None


@contextmanager
def broker(which: str) -> Iterator[str]:
    """A fresh broker of this kind; its address."""
    if which == "kafka":
        from support.kafka.node import KafkaNode

        with KafkaNode() as node:
            yield node.bootstrap
    else:
        from harness import partita

        with partita() as server:
            yield server.bootstrap


def main() -> int:
    """Run all programs; 0 without a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="decides every program (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=30, help="batch reads (default: %(default)s)")
    parser.add_argument("--streams", type=int, default=8, help="streams of one to three runs (default: %(default)s)")
    parser.add_argument("--sinks", type=int, default=12, help="tables to write (default: %(default)s)")
    parser.add_argument(
        "--on", choices=("partita", "kafka"), default="partita", help="the broker (default: %(default)s)"
    )
    asked = parser.parse_args()
    sys.path += [str(ROOT / "bench"), str(ROOT / "tests")]
    from spark import connector_jars

    jars = connector_jars()
    if jars is None:
        return 1
    from partita.spark import session

    config = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
    with broker(asked.on) as bootstrap, Admin(bootstrap_servers=bootstrap) as admin:
        spark = session("parity", master="local[2]", config=config)
        world = World(spark, bootstrap, admin, Random(asked.seed), asked.seed)
        fill(world)
        batches(world, asked.batches)
        streams(world, asked.streams)
        sinks(world, asked.sinks)
        spark.stop()
    told = {"on": asked.on, "seed": asked.seed, "same": dict(world.same), "different": dict(world.different)}
    print(json.dumps(told), flush=True)
    return 1 if world.different else 0


if __name__ == "__main__":
    sys.exit(main())
