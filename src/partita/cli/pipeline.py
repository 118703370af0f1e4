"""`partita pipeline`: plan, run and check a data pipeline that a TOML file describes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.connecting import json_option
from partita.cli.terminal import complain, print_json, print_table, say

if TYPE_CHECKING:
    from partita.spark.pipeline.outlook import Outlook
    from partita.spark.pipeline.pipeline_file import Pipeline
    from partita.spark.pipeline.runner import BatchReport

FILE = click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def pipeline() -> None:
    """Plan and run a pipeline from a topic to tables, described by a TOML file."""


@pipeline.command()
@FILE
@json_option
def plan(file: Path, as_json: bool) -> None:
    """Show what a run would read: ranges, lag, batches. Starts no Spark and changes nothing."""
    from partita.spark.planning.starts import SourceError

    described = _read(file)
    try:
        ahead = _outlook(described)
    except SourceError as error:
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
    from partita.spark import session
    from partita.spark.pipeline.runner import start

    def tell(report: BatchReport) -> None:
        if as_json:
            say(json.dumps(asdict(report)))
        else:
            broken = "".join(f", {count} {name}" for name, count in report.broken.items() if count)
            say(f"batch {report.batch}: {report.rows} records, {report.good} good{broken}")

    from pyspark.errors import StreamingQueryException

    spark = session(described.name, master=master, config=dict(described.spark))
    query = start(spark, described, once=once, on_batch=tell)
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
    except StreamingQueryException as failure:
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


def cause_of(failure: str) -> str:
    """The line of a Spark failure that says why: our own error, else the first line."""
    found = re.findall(r"\b(?:QualityError|SourceError|DataLossError|ConfigError|CommitRefused): (.+)", failure)
    return str(found[-1] if found else failure.strip().partition("\n")[0])


def _read(file: Path) -> Pipeline:
    from partita.options import ConfigError
    from partita.spark.pipeline.pipeline_file import parse

    try:
        return parse(file.read_text(encoding="utf-8"), file.stem)
    except ConfigError as error:
        raise click.UsageError(f"{file}: {error}") from None


def _outlook(described: Pipeline) -> Outlook:
    from partita.spark.cluster.broker_link import link_to
    from partita.spark.cluster.cluster_lookups import ClusterLookups
    from partita.spark.pipeline.outlook import look_ahead

    options = described.source_options()
    lookups = ClusterLookups(link_to(options.client), read_committed=options.read_committed)
    return look_ahead(options, lookups, Path(described.checkpoint))


def _findings(file: Path) -> Iterator[tuple[str, str]]:
    """What was checked, and the fault, empty if there is none. A file that cannot be read ends the checks."""
    from partita.errors import KafkaError
    from partita.spark import JavaNotFound, ensure_java
    from partita.spark.planning.starts import SourceError

    try:
        described = _read(file)
    except click.UsageError as error:
        yield "file", error.message
        return
    yield "file", ""
    for package in ("pyspark", "pyarrow", "pandas"):
        yield package, "" if find_spec(package) else "not installed: pip install 'partita[spark]'"
    for sink in described.sinks:
        yield f"sink {sink.format} {sink.target}".rstrip(), described.lacking(sink)
    if described.decode.registry:
        yield "registry", "" if find_spec("fastavro") else "not installed: pip install 'partita[registry]'"
    try:
        ensure_java()
        yield "Java", ""
    except JavaNotFound as error:
        yield "Java", str(error)
    try:
        ahead = _outlook(described)
        yield f"cluster, {len(ahead.ranges)} partitions to read", ""
    except (KafkaError, SourceError) as error:
        yield "cluster", str(error)
