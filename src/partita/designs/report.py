"""A comparison as one self-contained page: no script, no font, no address from outside; light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

from partita.designs import pictures
from partita.designs.compare import TITLES, Comparison, Run, is_built
from partita.designs.measure import Measures
from partita.designs.scenarios import BY_NAME, SCENARIOS
from partita.explain.wording import listed
from partita.pictures.page import STYLE as PAGE_STYLE
from partita.pictures.page import table, wide

COLUMNS = (
    ("settled", "settled_ms"), ("told", "notifications"), ("ZooKeeper reads", "zk_reads"), ("writes", "zk_writes"),
    ("group requests", "group_requests"), ("failed attempts", "failed"), ("gave up", "gave_up"),
    ("unread", "unowned_ms"), ("two readers", "two_readers_ms"), ("records twice", "twice"), ("offset back", "back"),
    ("orphans", "orphans"),
)  # fmt: skip
IN_MS = frozenset({"settled_ms", "unowned_ms", "two_readers_ms"})
EXPLAINED = {
    "zk-partition": "One member loses the one that decides: ZooKeeper in designs 1 and 2, the coordinating"
    " node later. It still reaches its data. In design 2 it only loses its node, so it is informed at its next"
    " heartbeat. The later designs refuse its commits.",
    "pause": "One process stands still for longer than the others try. In design 1 a bystander that needs one of its"
    " partitions may give up and stay in the group without owning anything. A coordinator waits for the member"
    " instead.",
    "stale": "Half of the members are connected to a ZooKeeper server that is late. Each decides for itself, from what"
    " it sees. One coordinator has one view.",
    "crash": "A killed member is missed when its session ends. All designs wait for about as long.",
    "slow": "One member takes two sessions to process what it has. ZooKeeper's client keeps its session from a thread"
    " of its own, so in design 1 the others do not notice.",
}


class Claim(NamedTuple):
    """An outcome that a scenario may have in some designs, and the measure that shows whether it had it."""

    designs: tuple[str, ...]
    holds: Callable[[Measures], bool]
    text: str


CLAIMS = {
    "zk-partition": (
        Claim(("1",), lambda m: m.two_readers_ms > 0, "the member goes on reading what others have taken over"),
        Claim(("1",), lambda m: m.back > 0, "connected again, it writes an old offset"),
        Claim(
            ("3", "3c", "848"), lambda m: m.two_readers_ms > 0, "it goes on reading too, as Kafka's own consumer does"
        ),
    ),
    "pause": (
        Claim(("1",), lambda m: m.gave_up > 0, "a bystander gives up"),
        Claim(
            ("1",), lambda m: m.orphans > 0, "its share has no reader until the next event, when all are healthy again"
        ),
        Claim(("2", "3", "3c", "848"), lambda m: m.settled_ms is not None, "after the pause all go on"),
    ),
    "stale": (Claim(("1",), lambda m: m.failed > 0, "members claim what others have not released"),),
}
TOLD = ("zk-partition", "pause")
"""The scenarios whose outcome in design 1 is described at the top."""
READ_NEXT = "docs/why-a-group-coordinator.md"


def page(comparison: Comparison) -> str:
    """The whole page."""
    sections = [
        *_herd(comparison),
        *_join(comparison),
        *(s for name in EXPLAINED for s in _trouble(comparison, name)),
        *_offsets(comparison),
        ("Every measure", _measure_note(comparison), "".join(_tables(comparison))),
        ("What is simplified", _simplified(), ""),
    ]
    body = "".join(f'<h2>{escape(title)}</h2><p class="note">{note}</p>{content}' for title, note, content in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Designs of a rebalance</title>'
        f"<style>{PAGE_STYLE}{pictures.STYLE}</style></head><body><h1>Designs of a rebalance, side by side</h1>"
        f'<p class="lead">{_lead(comparison)}</p>{body}{_foot(comparison)}</body></html>'
    )


def _lead(comparison: Comparison) -> str:
    sentences = ["The same groups and the same troubles, on a real ZooKeeper and a real broker."]
    joins = comparison.of("join")
    if joins:
        size = max(run.members for run in joins)
        costs = [
            f"design {run.design} {pictures.messages(run):,}"
            for run in joins
            if run.members == size and run.measures is not None
        ]
        sentences.append(f"One member joining a group of {size} cost so many messages: {', '.join(costs)}.")
    for run in comparison.runs:
        found = run.measures
        if run.design == "1" and found is not None and run.scenario in TOLD and (found.orphans or found.back):
            sentences.append(f"In <i>{run.scenario}</i>, design 1 ended with: {escape(pictures.summary(run))}.")
    missing = [design for design in comparison.plan.designs if not is_built(design)]
    if missing:
        sentences.append(f"Not built here: {', '.join(missing)}.")
    if comparison.missing:
        sentences.append(f"It was ended early: {comparison.missing} of {len(comparison.plan.runs())} runs are missing.")
    return " ".join(sentences)


def _herd(comparison: Comparison) -> Iterable[tuple[str, str, str]]:
    runs = [run for run in comparison.of("join") if run.measures is not None]
    if runs:
        note = (
            "One member joins a settled group. In design 1 every member is informed, and each reads the registration"
            " of all: N times N reads."
        )
        if len({run.members for run in runs}) > 1:
            note += " Both axes are logarithmic, so a line twice as steep grows with the square."
        yield "The herd", note, wide(pictures.herd(runs))


def _join(comparison: Comparison) -> Iterable[tuple[str, str, str]]:
    runs = [run for run in comparison.of("join") if run.measures is not None]
    if runs:
        smallest = min(run.members for run in runs)
        note = f"The join into the group of {smallest}: every frame that a tap between member and server saw."
        yield "One join on the wire", note, wide(pictures.one_join([run for run in runs if run.members == smallest]))


def _trouble(comparison: Comparison, name: str) -> Iterable[tuple[str, str, str]]:
    runs = [run for run in comparison.of(name) if run.measures is not None]
    if runs:
        scenario = BY_NAME[name]
        partitions = runs[0].journal.partitions
        note = f"{escape(' '.join([EXPLAINED[name], *_outcomes(name, runs)]))} The axis counts from the cause."
        if partitions > pictures.ROWS_MAX:
            note += f" Of {partitions} partitions the {pictures.ROWS_MAX} with the most trouble are shown."
        yield (
            scenario.what,
            note,
            wide(pictures.timelines(runs, scenario.what)),
        )


def _outcomes(name: str, runs: Sequence[Run]) -> Iterable[str]:
    """Each claim about the scenario, with the designs that bore it out in this run and those that did not."""
    for claim in CLAIMS.get(name, ()):
        its = [run for run in runs if run.design in claim.designs and run.measures is not None]
        shown = [run.design for run in its if run.measures is not None and claim.holds(run.measures)]
        others = [run.design for run in its if run.design not in shown]
        if shown:
            yield f"In {_designs(shown)} {claim.text}{f' (not in this run of {_designs(others)})' if others else ''}."
        elif others:
            yield f"Not in this run: in {_designs(others)} {claim.text}."
    if busy := [run.design for run in runs if run.is_busy]:
        yield f"The machine was too busy during {_designs(busy)}, so that sessions may have ended for that alone."


def _designs(names: Sequence[str]) -> str:
    return f"{'design' if len(names) == 1 else 'designs'} {listed(names, len(names))}"


def _offsets(comparison: Comparison) -> Iterable[tuple[str, str, str]]:
    runs = [run for run in comparison.of("zk-partition") if run.measures is not None and run.journal.commits]
    if runs:
        note = (
            "The same cut: how far one partition of the member that was cut off is committed. Nothing checks who"
            " writes an offset into ZooKeeper in design 1; a coordinator refuses a member of an older generation."
        )
        if not any(run.measures is not None and run.measures.back for run in runs):
            note += " In this run no offset went back."
        yield "Committed offsets", note, wide(pictures.offsets(runs))


def _measure_note(comparison: Comparison) -> str:
    session = comparison.plan.timings.session_ms
    return (
        f"Session timeout {session} ms. Times count from the cause; counts are frames seen by taps until watching"
        " ended. <i>never</i>: the group did not settle. <i>Unread</i> is the worst partition's time without a reader;"
        " <i>two readers</i> is the sum over all partitions. <i>Records twice</i> were read again after a change of"
        " readers: all since the last commit, where a member could not commit before it gave a partition up. In design"
        " 2 that is each of them, since a member hears of the change by an error (ILLEGAL_GENERATION), and with its old"
        " generation it may not commit any more. Times compare rules, not implementations: everything is"
        " Python on one machine."
    )


def _tables(comparison: Comparison) -> Iterable[str]:
    head = ["design", *(title for title, _ in COLUMNS)]
    numbers = frozenset(range(1, len(head)))
    for scenario in SCENARIOS:
        runs = comparison.of(scenario.name)
        if runs:
            sizes = sorted({run.members for run in runs})
            for size in sizes:
                its = [run for run in runs if run.members == size]
                rows = [[escape(TITLES[run.design]), *_cells(run, its)] for run in its]
                title = f"{scenario.what} ({scenario.name}, {size} members, {its[0].journal.partitions} partitions)"
                yield f"<h3>{escape(title)}</h3>" + table(head, rows, numbers)


def _cells(run: Run, beside: list[Run]) -> Iterable[str]:
    """Return the table cells of a run; the worst figure of a column is bold, if the designs differ in it."""
    for _, name in COLUMNS:
        if run.measures is None:
            yield "?"
            continue
        value = getattr(run.measures, name)
        others = [getattr(other.measures, name) for other in beside if other.measures is not None]
        comparable = [float("inf") if other is None else other for other in others]
        mine = float("inf") if value is None else value
        shown = "never" if value is None else f"{value / 1000:.1f} s" if name in IN_MS else f"{value:,}"
        yield f"<b>{shown}</b>" if mine == max(comparable) and mine > min(comparable) else shown


def _simplified() -> str:
    return (
        "One stream for each consumer; no wildcard subscriptions. Fetcher threads and chunk queues of Kafka 0.8 are"
        " replaced by our consumer. Design 2 never was in a release; it follows the code of 2015 with the choices"
        " written down in docs/decisions. Offsets of design 1 are in ZooKeeper only."
    )


def _foot(comparison: Comparison) -> str:
    return (
        f"<footer>Partita {comparison.version}, {comparison.started}, took {comparison.took_s:.0f} s on"
        f" {escape(comparison.machine)}. Made by <code>partita designs compare</code>. Read next: {READ_NEXT}.</footer>"
    )
