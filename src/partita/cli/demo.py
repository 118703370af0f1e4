"""`partita demo`: show the progress and the result of `partita.demo.runner`, a complete example on real data."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.terminal import print_table, say
from partita.cli.variables import NumberRange
from partita.lazy import later

if TYPE_CHECKING:
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import table as rich_table

    from partita.cli.stories import inside
    from partita.demo import children, flights
    from partita.demo import runner as demo_runner
    from partita.demo import taste as demo_taste
    from partita.demo.story import Story
else:
    children = later("partita.demo.children")
    demo_runner = later("partita.demo.runner")
    demo_taste = later("partita.demo.taste")
    flights = later("partita.demo.flights")
    inside = later("partita.cli.stories.inside")
    rich_console = later("rich.console")
    rich_progress = later("rich.progress")
    rich_table = later("rich.table")

OUR_OWN = frozenset({"report.html", "logs", "usable", "delays", "checkpoint", "flights.toml", "spark-warehouse"})


class Bars:
    """Shows progress as bars on a terminal and as plain lines elsewhere."""

    def __init__(self, *, err: bool = False) -> None:
        self.console = rich_console.Console(highlight=False, stderr=err)
        self.progress = rich_progress.Progress(
            rich_progress.TextColumn("{task.description:>16}"), rich_progress.BarColumn(40),
            rich_progress.TextColumn("{task.completed:>9,.0f} of {task.total:,.0f}"),
            rich_progress.TimeElapsedColumn(), console=self.console,
        )  # fmt: skip
        self._tasks: dict[str, rich_progress.TaskID] = {}
        self._quarters: dict[str, int] = {}

    def say(self, text: str) -> None:
        """Print one line above the bars. Outside of a terminal no line is broken, however long it is."""
        self.progress.console.print(f"[bold]*[/bold] {text}", soft_wrap=not self.console.is_terminal)

    def at(self, bar: str, done: int, total: int) -> None:
        """Set how far a bar is. Without a terminal, print one line for each quarter."""
        if not total:
            return
        if not self.console.is_terminal:
            quarter = 4 * done // total
            if quarter > self._quarters.get(bar, 0):
                self._quarters[bar] = quarter
                self.console.print(f"  {bar}: {done:,} of {total:,}")
            return
        if bar not in self._tasks:
            self._tasks[bar] = self.progress.add_task(bar, total=total)
        self.progress.update(self._tasks[bar], completed=done, total=total)


def check_folder(folder: Path) -> None:
    """Empty the folder of an earlier run. Raises BadParameter if it holds any other files."""
    found = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if found - OUR_OWN:
        strangers = ", ".join(sorted(found - OUR_OWN)[:3])
        raise click.BadParameter(
            f"{folder} contains files that are not from the demo ({strangers}); choose another folder"
        )
    shutil.rmtree(folder, ignore_errors=True)


def print_story(bars: Bars, story: Story) -> None:
    """Print every check with its expected and actual value."""
    table = rich_table.Table(title="Checked against the CSV", title_justify="left")
    table.add_column("check")
    table.add_column("expected", justify="right")
    table.add_column("got", justify="right")
    table.add_column("")
    for check in story.checks:
        table.add_row(
            check.what, check.expected, check.got, "[green]holds[/green]" if check.holds else "[red]FAILS[/red]"
        )
    bars.console.print(table)
    for check in story.checks:
        if check.remark:
            bars.console.print(f"  {check.what}: {check.remark}")


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="partita-demo", show_default=True,
              help="Folder for the report, the Parquet files and the logs. An earlier run is replaced.")  # fmt: skip
@click.option("--rate", type=NumberRange(min=0), default=8_000, show_default=True,
              help="Flights replayed per second; 0 means as fast as possible.")  # fmt: skip
def demo(out: Path, rate: float) -> None:
    """Run a complete example on real flight data.

    An embedded broker starts; 336,776 flights of 2013 are replayed into a topic. A plain consumer and a Spark stream
    share one group: both apply the same rules, join the weather, write Parquet, and send unusable flights to a
    dead-letter topic. Each of them is killed on the way and comes back, and partitions move between them. At the end
    all results are checked against the CSV file. The exit code is 0 only if every check holds.
    """
    if find_spec("rich") is None:
        raise click.ClickException("the demo needs more packages; install them with: pip install 'partita[demo]'")
    check_folder(out)
    bars = Bars()
    try:
        flights.data_directory()
        with bars.progress:
            story = asyncio.run(demo_runner.Runner(out.resolve(), bars, rate, inside.section).run())
    except (flights.MissingData, children.ChildFailed, demo_runner.DemoFailed) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        bars.console.print("stopped; no process is left running")
        raise SystemExit(130) from None
    print_story(bars, story)
    bars.console.print(f"\nThe report with pictures: {out / 'report.html'}   ({story.took_s:.0f} s)")
    if not all(check.holds for check in story.checks):
        raise SystemExit(1)


@click.command()
def taste() -> None:
    """See a group survive a crash, in twenty seconds.

    An embedded broker starts, and two consumers in processes of their own share a topic. One of them is killed; the
    other takes its partitions over. At the end every order is counted, and `partita groups why` says what happened.
    The exit code is 0 only if none was lost.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = asyncio.run(
                demo_taste.run(Path(folder), lambda text: say(f"{time.monotonic() - began:4.1f} s  {text}"))
            )
        except (children.ChildFailed, TimeoutError) as error:
            raise click.ClickException(str(error) or "the story did not get to its end in a minute") from None
        except KeyboardInterrupt:
            say("stopped; no process is left running")
            raise SystemExit(130) from None
    counts = ((demo_taste.FIRST, "until it was killed"), (demo_taste.SECOND, "before and after"))
    print_table(
        ("orders", "number", ""),
        [
            ("sent", f"{found.sent:,}", ""),
            *((f"processed by {name}", f"{found.processed[name].total():,}", when) for name, when in counts),
            (
                "processed again",
                f"{found.repeated:,}",
                f"{demo_taste.FIRST} had not committed them" if found.repeated else "",
            ),
            ("lost", f"{found.lost:,}", ""),
        ],
    )
    say(f"\n$ partita groups why billing\n{found.why}")
    if found.lost:
        raise SystemExit(1)
