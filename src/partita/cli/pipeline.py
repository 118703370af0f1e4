"""`partita pipeline`: plan, run and check a data pipeline that a TOML file describes."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.connecting import json_option
from partita.cli.terminal import complain, print_json, print_table, say
from partita.lazy import later
from partita.options import ConfigError

if TYPE_CHECKING:
    from pyspark import errors as spark_errors
    from pyspark.sql import SparkSession

    from partita import errors as kafka_errors
    from partita import spark as partita_spark
    from partita import system_clock
    from partita.spark.cluster import broker_link, cluster_lookups
    from partita.spark.pipeline import outlook as pipeline_outlook
    from partita.spark.pipeline import pipeline_file
    from partita.spark.pipeline import runner as pipeline_runner
    from partita.spark.planning import offsets, starts
    from partita.spark.settings import options as settings_options
else:
    broker_link = later("partita.spark.cluster.broker_link")
    cluster_lookups = later("partita.spark.cluster.cluster_lookups")
    kafka_errors = later("partita.errors")
    offsets = later("partita.spark.planning.offsets")
    partita_spark = later("partita.spark")
    pipeline_file = later("partita.spark.pipeline.pipeline_file")
    pipeline_outlook = later("partita.spark.pipeline.outlook")
    pipeline_runner = later("partita.spark.pipeline.runner")
    settings_options = later("partita.spark.settings.options")
    spark_errors = later("pyspark.errors")
    starts = later("partita.spark.planning.starts")
    system_clock = later("partita.system_clock")

PLAN_TIMEOUT_MS = "10000"
"""Time for a cluster to answer a plan, unless the file says more."""
PYTHON_ERROR = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(?!py4j\.)(?:\w+\.)*(\w+: .+)$", re.M
)
"""The last line of a Python traceback, whatever the class of its error."""
FILE = click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def pipeline() -> None:
    """Plan and run a pipeline from a topic to tables, described by a TOML file."""


@pipeline.command()
@FILE
@click.option("--sql", "checks_sql", is_flag=True, help="Let a local Spark check the SQL of rules and transforms.")
@json_option
def plan(file: Path, checks_sql: bool, as_json: bool) -> None:
    """Show what a run would read: ranges, lag, batches. Changes nothing, and starts no Spark without --sql."""
    described = _read(file)
    try:
        if checks_sql:
            pipeline_runner.prepare(session_of(described, "local[1]"), described)
        ahead = _outlook(described)
    except ConfigError as error:
        raise click.UsageError(f"{file}: {error}") from None
    except offsets.OffsetFormatError as error:
        raise click.ClickException(f"{described.checkpoint}: {error}") from None
    except (starts.SourceError, kafka_errors.KafkaError) as error:
        raise click.ClickException(str(error)) from None
    rows = [
        (f"{topic}-{partition}", r.begin, r.end, r.size, ahead.came_from[topic, partition])
        for (topic, partition), r in sorted(ahead.ranges.items())
    ]
    names = ("partition", "begin", "end", "lag", "begin from")
    if as_json:
        found = [dict(zip(names, row, strict=True)) for row in rows]
        print_json({"partitions": found, "lag": ahead.lag, "batches": ahead.batches, "unfinished": ahead.unfinished})
        return
    print_table(list(names), rows)
    batches = "very many batches" if ahead.batches is None else f"{ahead.batches} batch{'es' * (ahead.batches != 1)}"
    say(f"{ahead.lag} offsets to read, in {batches}")
    if ahead.unfinished:
        say("a batch of the last run is unfinished and will be run again first")
    for sink in described.sinks:
        say(f"{sink.table} goes to {sink.format} {sink.target}".rstrip())


@pipeline.command()
@FILE
@click.option("--once", is_flag=True, help="End when everything that is there now has been read.")
@click.option("--master", default="local[*]", show_default=True, help="The Spark cluster to run on.")
@json_option
def run(file: Path, once: bool, master: str, as_json: bool) -> None:
    """Run the pipeline until Ctrl-C, printing one line for each batch."""
    described = _read(file)

    def tell(report: pipeline_runner.BatchReport) -> None:
        if as_json:
            say(json.dumps(asdict(report)))
        else:
            broken = "".join(f", {count} {name}" for name, count in report.broken.items() if count)
            say(f"batch {report.batch}: {report.rows} records, {report.good} good{broken}")

    # The error that ends the pipeline is printed as one line below; Spark would put hundreds in front of it.
    for logger in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    spark = session_of(described, master)
    try:
        query = pipeline_runner.start(spark, described, once=once, on_batch=tell)
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
    except ConfigError as error:
        raise click.UsageError(f"{file}: {error}") from None
    except pipeline_runner.QualityError as failure:
        raise click.ClickException(str(failure)) from None
    except spark_errors.PySparkException as failure:
        raise click.ClickException(cause_of(str(failure))) from None


@pipeline.command()
@FILE
@click.pass_context
def doctor(context: click.Context, file: Path) -> None:
    """Check what the pipeline needs: the file, packages, Java, the cluster, its topics."""
    is_good = True
    for what, fault in _findings(file):
        (say if not fault else complain)(f"{what}: {fault or 'good'}")
        is_good &= not fault
    context.exit(0 if is_good else 1)


def session_of(described: pipeline_file.Pipeline, master: str) -> SparkSession:
    """Return the session that a pipeline runs in; an existing one is reused."""
    return partita_spark.session(described.name, master=master, config={"spark.log.level": "OFF", **described.spark})


def cause_of(failure: str) -> str:
    """Return the reason in a Spark failure: ours, else Python's, else the innermost of Java's, else the first line."""
    ours = re.findall(r"\b(?:QualityError|SourceError|DataLossError|ConfigError|CommitRefused): (.+)", failure)
    ours = ours or PYTHON_ERROR.findall(failure)
    javas = re.findall(r"^(?:Caused by)?: (?!py4j\.)(?:[\w$]+\.)+[\w$]+: (.+)", failure, re.M)
    return str((ours or javas or [failure.strip().partition("\n")[0]])[-1])


def _read(file: Path) -> pipeline_file.Pipeline:
    try:
        return pipeline_file.parse(file.read_text(encoding="utf-8"), file.stem)
    except ConfigError as error:
        raise click.UsageError(f"{file}: {error}") from None


def _outlook(described: pipeline_file.Pipeline) -> pipeline_outlook.Outlook:
    options = described.source_options()
    client = {"default.api.timeout.ms": PLAN_TIMEOUT_MS} | dict(options.client)
    lookups = cluster_lookups.ClusterLookups(broker_link.link_to(client), read_committed=options.read_committed)
    now_ms = system_clock.SystemClock().now().wall_ms
    return pipeline_outlook.look_ahead(options, lookups, Path(described.checkpoint), now_ms=now_ms)


def _topics_there(described: pipeline_file.Pipeline) -> set[str]:
    """Return the topics of the file that exist, except those of the stream."""
    lookups = cluster_lookups.ClusterLookups(broker_link.link_to(described.source_options().client))
    view = lookups.view(settings_options.TopicSelection(names=tuple(described.other_topics())))
    return {topic for topic, _ in view.partitions}


def _findings(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each check with its fault, empty if there is none. A file that cannot be read ends the checks."""
    try:
        described = _read(file)
    except click.UsageError as error:
        yield "file", error.message
        return
    yield "file", ""
    for package in ("pyspark", "pyarrow", "pandas"):
        yield package, "" if find_spec(package) else "not installed: pip install 'partita[spark]'"
    for sink in described.sinks:
        if sink.format != "topic":
            yield f"sink {sink.format} {sink.target}".rstrip(), described.lacking(sink)
    if described.decode.registry:
        yield "registry", "" if find_spec("fastavro") else "not installed: pip install 'partita[registry]'"
    try:
        partita_spark.ensure_java()
        yield "Java", ""
    except partita_spark.JavaNotFound as error:
        yield "Java", str(error)
    try:
        ahead = _outlook(described)
        yield f"cluster, {len(ahead.ranges)} partitions to read", ""
        there = _topics_there(described)
        for topic, what in described.other_topics().items():
            yield f"{what}, topic {topic}", "" if topic in there else "not found in the cluster"
    except offsets.OffsetFormatError as error:
        yield f"checkpoint {described.checkpoint}", str(error)
    except (kafka_errors.KafkaError, starts.SourceError, ConfigError) as error:
        yield "cluster", str(error)
