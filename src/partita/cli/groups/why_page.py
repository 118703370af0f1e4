"""Why a group rebalanced, as one self-contained HTML page: the timeline, then each rebalance in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from partita.cli.groups.timeline import STYLE as TIMELINE_STYLE
from partita.cli.groups.timeline import both_widths, counts_by_name
from partita.explain import Account, Sure
from partita.explain.account import Cause
from partita.explain.wording import duration, partition_name
from partita.pictures.page import STYLE, table
from partita.wording import count

IN_FULL_MAX = 100
"""Number of rebalances, the last ones, that are described in words."""
_SURE = {
    Sure.TOLD: "told by the coordinator",
    Sure.SEEN: "seen in the group's log",
    Sure.INFERRED: "inferred from the group's log",
    Sure.UNKNOWN: "not known for sure",
}
_STYLE = """
article { border-left: 4px solid var(--line); padding: .1rem 0 .1rem 1rem; margin: 1.6rem 0; }
article h3 { margin: 0; font-size: 1.05rem; } article .when { color: var(--soft); font-size: .9rem; margin: 0; }
.do { border-left: 4px solid var(--good); padding: .3rem .8rem; margin: .6rem 0; }
.sure { color: var(--soft); font-size: .85rem; } details { margin: .4rem 0; } summary { cursor: pointer; }
ul { margin: .3rem 0; padding-left: 1.2rem; } .kept { color: var(--soft); }
"""


def why_page(group: str, accounts: Sequence[Account], remarks: Iterable[str] = ()) -> str:
    """Return the page of these rebalances, given oldest first. `remarks` name the records that could not be read."""
    articles = "".join(_article(account) for account in reversed(accounts[-IN_FULL_MAX:]))
    notes = "".join(f'<p class="bad">{escape(remark)}</p>' for remark in remarks)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Why group {escape(group)} rebalanced</title><style>{STYLE}{TIMELINE_STYLE}{_STYLE}</style></head>"
        f"<body><h1>Why group {escape(group)} rebalanced</h1>{_lead(accounts)}{notes}"
        f'<h2>Who read which partition</h2><p class="note">One row per partition. A dashed line is a rebalance with its'
        f" generation; hatched means that nobody read the partition. Times are UTC.</p>{both_widths(accounts)}"
        f"<h2>Rebalance by rebalance</h2>{articles}"
        f"<footer><p>Made by <code>partita groups why</code> from what the group's coordinator wrote. Compaction of its"
        f" log removes old generations, so the history may have gaps.</p></footer></body></html>"
    )


def _lead(accounts: Sequence[Account]) -> str:
    first, last = (_moment(account.ended_ms) for account in (accounts[0], accounts[-1]))
    causes = ", ".join(f"{escape(name)} ({times})" for name, times in list(counts_by_name(accounts).items())[:4])
    longest = max(accounts, key=lambda account: account.unread_ms)
    cost = (
        f" The longest time that a partition had no reader was {duration(longest.unread_ms)}, at generation"
        f" {longest.generation}."
        if longest.unread_ms
        else ""
    )
    return (
        f'<p class="lead">{count(len(accounts), "rebalance")} from {first} to {last}. First causes: {causes}.{cost}</p>'
    )


def _article(account: Account) -> str:
    story = " ".join(escape(sentence) for sentence in account.story)
    advice = f'<p class="do"><b>What to do:</b> {escape(account.advice)}</p>' if account.advice else ""
    number = f"{'epoch' if account.is_incremental else 'generation'} {account.generation}"
    return (
        f'<article id="g{account.generation}"><p class="when">{_moment(account.ended_ms)}, {number}'
        f"</p><h3>{escape(account.headline)}</h3><p>{story}</p>{advice}{_evidence(account)}{_moves(account)}</article>"
    )


def _evidence(account: Account) -> str:
    items = "".join(f"<li>{_cause(cause)}</li>" for cause in account.causes)
    places = f'<p class="sure">Read from {escape(", ".join(account.places))}.</p>' if account.places else ""
    return f"<details><summary>How this is known</summary><ul>{items}</ul>{places}</details>"


def _cause(cause: Cause) -> str:
    who = f"{escape(cause.who)}: " if cause.who else ""
    evidence = escape("; ".join(cause.evidence))
    return f'{who}{escape(cause.what.value)} <span class="sure">({_SURE[cause.sure]})</span><br>{evidence}'


def _moves(account: Account) -> str:
    """Every partition that has another owner than before."""
    if not account.moves or account.previous_generation is None:
        return ""
    rows = [
        (escape(partition_name(m.partition)), escape(m.before or "nobody"), escape(m.after or "nobody"),
         "" if m.is_needed else "not needed for balance")
        for m in account.moves
    ]  # fmt: skip
    head = ("partition", "before", "after", "")
    return (
        f"<details><summary>{count(len(account.moves), 'partition')} with another owner, {account.kept} kept</summary>"
        f"{table(head, rows)}</details>"
    )


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
