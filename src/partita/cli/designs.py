"""`partita designs`: the designs of a rebalance that Kafka has had, run beside each other on a real ZooKeeper."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.terminal import print_json, print_table, say
from partita.cli.variables import NumberRange
from partita.designs.ownership import listed
from partita.lazy import later

if TYPE_CHECKING:
    from rich import console as rich_console
    from rich import live as rich_live
    from rich import table as rich_table

    from partita.cli import demo
    from partita.designs import compare as comparing
    from partita.designs import lab
    from partita.designs import live as live_designs
    from partita.designs import report as design_report
    from partita.designs import scenarios as designs_scenarios
    from partita.designs.members import settings as member_settings
    from partita.designs.zookeeper import jars as zookeeper_jars
else:
    comparing = later("partita.designs.compare")
    demo = later("partita.cli.demo")
    design_report = later("partita.designs.report")
    designs_scenarios = later("partita.designs.scenarios")
    zookeeper_jars = later("partita.designs.zookeeper.jars")
    lab = later("partita.designs.lab")
    live_designs = later("partita.designs.live")
    member_settings = later("partita.designs.members.settings")
    rich_console = later("rich.console")
    rich_live = later("rich.live")
    rich_table = later("rich.table")

FLOWS = """
Design 1 (Kafka 0.8): every consumer for itself
  join     create an ephemeral node -> every member is told -> every member reads everybody's node,
           computes its own share, deletes its old owner nodes and claims new ones
  trouble  a claim that fails is tried four times; then the member stays and owns nothing
  offsets  written to ZooKeeper by whoever believes to own the partition

Design 2 (planned in 2012 and 2015): a coordinator watches for them
  join     create an ephemeral node -> one coordinator is told; members hear at their next heartbeat
           (ILLEGAL_GENERATION), send JoinGroup, and get their share in its answer
  plan     written to ZooKeeper by one multi that checks who coordinates
  price    the broker assigns: a new strategy needs a new broker

Design 3 (Kafka 0.9 and later): the coordinator is in the broker, a member assigns
  join     JoinGroup -> members hear at their next heartbeat (REBALANCE_IN_PROGRESS), join again;
           one of them assigns and sends the shares by SyncGroup
  offsets  in __consumer_offsets; the coordinator refuses old generations

Design 848 (Kafka 4): the broker assigns again, member by member, without stopping the others
  join     ConsumerGroupHeartbeat -> the coordinator computes a target; each member hears of its own change
"""


@click.group()
def designs() -> None:
    """Run the designs of a rebalance that Kafka has had, side by side."""


@designs.command()
def explain() -> None:
    """Show how a member joins in each design, without running anything."""
    say(FLOWS.strip("\n"))


@designs.command()
@click.option("--from", "repository", metavar="URL", help="A Maven repository instead of Maven Central.")
def jars(repository: str | None) -> None:
    """Download the five jars that are a ZooKeeper server, 4 MB, into the user's cache.

    A pyspark that is installed has them too. They are checked against known SHA-256 sums, and need Java 17 to run.
    """
    try:
        fetched = zookeeper_jars.fetch_jars(repository or zookeeper_jars.REPOSITORY)
    except zookeeper_jars.NoZooKeeper as error:
        raise click.ClickException(str(error)) from error
    for jar in fetched:
        say(f"{jar}  {jar.stat().st_size:,} bytes")


@designs.command()
@click.option("--members", default="5,20,50", show_default=True, metavar="N,...",
              help="Sizes of the group. Scenario join runs with each of them, the others with the first.")  # fmt: skip
@click.option("--partitions", type=click.IntRange(1, 200), default=12, show_default=True,
              help="Partitions of the topic; join has two for each member of the largest group.")  # fmt: skip
@click.option("--designs", "which", default="1,2,3,848", show_default=True, metavar="NAME,...",
              help="Designs to run: 1, 2, 3, 3c (cooperative) and 848.")  # fmt: skip
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Only this scenario; may be repeated.")
@click.option("--kafka-timings", is_flag=True, help="Kafka 0.8's timeouts instead of a quarter of them.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with pictures.")
def compare(
    members: str, partitions: int, which: str, scenarios: tuple[str, ...], kafka_timings: bool, as_json: bool,
    html: Path | None,
) -> None:  # fmt: skip
    """Run every design with the same groups and failures, and measure the outcome.

    Starts a ZooKeeper, a broker, and the members as processes of their own. Takes a few
    minutes; Ctrl-C ends it with the results so far. The exit code is 1 only if a design of today breaks a promise: that
    the old ones do is the result.
    """
    reason = zookeeper_jars.why_not()
    if reason is not None:
        raise click.ClickException(reason)
    plan = comparing.Plan(
        sizes=_sizes(members), partitions=partitions, designs=_designs(which), scenarios=_scenarios(scenarios),
        kafka_timings=kafka_timings,
    )  # fmt: skip
    bars = demo.Bars(err=as_json)
    try:
        with bars.progress:
            result = comparing.compare(plan, bars)
    except zookeeper_jars.NoZooKeeper as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json(result.as_json())
    else:
        _print(result)
    if html is not None:
        html.write_text(design_report.page(result), encoding="utf-8")
        say(f"The pictures: {html}", err=as_json)
    broken = result.broken()
    for line in broken:
        say(f"BROKEN: {line}", err=True)
    if result.missing:
        say(f"ended after {len(result.runs)} of {len(plan.runs())} runs", err=True)
        raise SystemExit(130)
    if broken:
        raise SystemExit(1)


@designs.command()
@click.argument("design")
@click.option("--members", type=click.IntRange(1, 20), default=5, show_default=True, help="Members of the group.")
@click.option(
    "--partitions", type=click.IntRange(1, 200), default=12, show_default=True, help="Partitions of the topic."
)
@click.option("--kafka-timings", is_flag=True, help="Kafka 0.8's timeouts instead of a quarter of them.")
@click.option("--for", "for_s", type=NumberRange(min=0, min_open=True), metavar="SECONDS",
              help="End by itself after so long.")  # fmt: skip
def run(design: str, members: int, partitions: int, kafka_timings: bool, for_s: float | None) -> None:
    """Run one design (1, 2, 3, 3c or 848) and show who reads which partition, until Ctrl-C.

    Each member is a process of its own. Take its number from the table and stop, continue or kill it from another
    terminal (kill -STOP, kill -CONT, kill -9): the table shows how the others react.
    In designs 1 and 2 the nodes in ZooKeeper follow whenever the group has settled.
    """
    if reason := zookeeper_jars.no_kazoo():
        raise click.ClickException(reason)
    (name,) = _designs(design)[:1]
    if not comparing.is_built(name):
        raise click.ClickException(f"design {name} is not built")
    reason = zookeeper_jars.why_not() if name in lab.OLD else None
    if reason is not None:
        raise click.ClickException(reason)
    timings = member_settings.Timings() if kafka_timings else member_settings.Timings().faster(comparing.FASTER)
    with contextlib.suppress(KeyboardInterrupt), Watching(timings.session_ms / 1000) as watching:
        try:
            live_designs.run(name, members, partitions, timings, watching.show, for_s)
        except zookeeper_jars.NoZooKeeper as error:
            raise click.ClickException(str(error)) from error


class Watching:
    """Shows a running group: a table on a terminal, a line for each change elsewhere."""

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._console = rich_console.Console(highlight=False)
        self._live = rich_live.Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    def __enter__(self) -> Watching:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, look: live_designs.Look) -> None:
        """Show one view of the group."""
        for line in look.lines:
            self._console.print(f"{look.at_s:7.1f} s  {line}", markup=False, soft_wrap=True)
        if self._live is not None:
            self._live.update(self._table(look), refresh=True)

    def _table(self, look: live_designs.Look) -> rich_console.RenderableType:
        table = rich_table.Table(title=look.ownership.summary(), title_justify="left", box=None, header_style="bold")
        for head in ("MEMBER", "PROCESS", "READS", "RECORDS", "FAILED", "HEARD"):
            table.add_column(head, justify="left" if head in ("MEMBER", "READS", "HEARD") else "right")
        for name, seen in look.ownership.members.items():
            silent_s = None if seen.heard_s is None else max(0.0, look.now_s - seen.heard_s)
            heard = "dead" if seen.is_dead else "not yet" if silent_s is None else f"{silent_s:.1f} s ago"
            style = "dim" if seen.is_dead else "yellow" if silent_s is not None and silent_s > self._session_s else ""
            table.add_row(
                name, str(seen.pid), listed(seen.reads), f"{seen.records:,}", str(seen.failed), heard, style=style
            )
        return table


COLUMNS = (
    "TOLD: how often a member was told of a change. READS, WRITES: of ZooKeeper. REQUESTS: to the coordinator.\n"
    "FAILED: attempts to share. TWO READERS: time in which two members read one partition, of all partitions.\n"
    "TWICE: records read again; in design 2 all since the last commit, as the change forbids one more.\n"
    "BACK: how far a committed offset went back. ORPHANS: partitions left without a reader."
)


def _print(result: comparing.Comparison) -> None:
    rows = []
    for run in result.runs:
        found = run.measures
        if found is None:
            rows.append([run.scenario, run.members, run.design, "?", *[None] * 8])
            continue
        settled = "never" if found.settled_ms is None else f"{found.settled_ms / 1000:.1f} s"
        rows.append(
            [
                run.scenario, run.members, run.design, settled, found.notifications, found.zk_reads, found.zk_writes,
                found.group_requests, found.failed, f"{found.two_readers_ms / 1000:.1f} s", found.twice, found.back,
                found.orphans,
            ]
        )  # fmt: skip
    head = (
        "SCENARIO", "MEMBERS", "DESIGN", "SETTLED", "TOLD", "READS", "WRITES", "REQUESTS", "FAILED", "TWO READERS",
        "TWICE", "BACK", "ORPHANS",
    )  # fmt: skip
    print_table(head, rows)
    say(COLUMNS)
    missing = [design for design in result.plan.designs if not comparing.is_built(design)]
    if missing:
        say(f"not built: {', '.join(missing)}")
    say(f"took {result.took_s:.0f} s")


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise click.BadParameter(f"must be numbers such as 5,20,50, not {text!r}", param_hint="--members") from None
    if not sizes or not 2 <= sizes[0] <= sizes[-1] <= 100:
        raise click.BadParameter("groups have 2 to 100 members", param_hint="--members")
    return sizes


def _designs(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in comparing.TITLES:
            raise click.BadParameter(
                f"there is no design {name!r}; there are {', '.join(comparing.TITLES)}", param_hint="--designs"
            )
    return names


def _scenarios(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in designs_scenarios.BY_NAME:
            raise click.BadParameter(
                f"there is no scenario {name!r}; there are {', '.join(designs_scenarios.BY_NAME)}",
                param_hint="--scenario",
            )
    return names or tuple(designs_scenarios.BY_NAME)
