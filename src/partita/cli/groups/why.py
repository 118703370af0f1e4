"""`partita groups why` and `partita groups history`: why a group rebalanced, in words, as rows and as a page."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import complete_group, connected, json_option
from partita.cli.groups.control_port import ControlPort
from partita.cli.groups.deliveries import SharePartition, share_partitions
from partita.cli.groups.log import LOG_TOPIC
from partita.cli.groups.why_page import why_page
from partita.cli.records.formats import iso_time
from partita.cli.records.where import parse_where
from partita.cli.terminal import complain, print_json, print_table, say
from partita.cli.variables import token_option
from partita.errors import KafkaError
from partita.explain import Fact, asides_of, explain
from partita.explain.facts import BeginSeen, Committed
from partita.explain.topics import gone_topics
from partita.lazy import later
from partita.options import nearest
from partita.wording import count

if TYPE_CHECKING:
    from partita.admin import Admin
    from partita.explain import Account
    from partita.observe import follow_group_log, note_facts
    from partita.observe import kept as kept_notes
else:
    follow_group_log = later("partita.observe.follow_group_log")
    kept_notes = later("partita.observe.kept")
    note_facts = later("partita.observe.note_facts")

LISTED_MAX = 20
GENERATIONS_MAX = 2_000
COLUMNS = ("time", "generation", "members", "added", "removed", "moved")
html_option = click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write a page with a picture of who read which partition, and every rebalance in words.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Known:
    """The known history of a group: its rebalances, oldest first, and the records that could not be read."""

    accounts: tuple[Account, ...]
    remarks: tuple[str, ...]
    asides: tuple[str, ...] = ()
    """Members that the coordinator refuses; only notes of a Partita broker have them."""
    shared: tuple[SharePartition, ...] | None = None
    """The stored partitions of a share group, which has no rebalances; None for any other group."""


@click.command()
@click.argument("group_id", metavar="GROUP", shell_complete=complete_group)
@address_options
@click.option("--generation", type=int, metavar="N", help="Explain this generation instead of the last one.")
@click.option("--since", metavar="WHEN", help="Only rebalances since this time or age, such as 1h or 2026-11-22T03:00.")
@click.option("--admin-port", type=click.IntRange(1, 65535),
              help="The --admin-port of a Partita broker, whose notes have every cause.")  # fmt: skip
@token_option
@html_option
@json_option
def why(
    group_id: str,
    bootstrap: Address,
    generation: int | None,
    since: str | None,
    admin_port: int | None,
    admin_token: str | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Explain why a group rebalanced, what it cost, and what to do about it; or which records hold up a share group.

    Reads __consumer_offsets, so it works on any Kafka: causes are seen or inferred there, with their evidence. With
    --admin-port, a Partita broker reports them. The last rebalance is shown in full; --generation picks another one.
    Of a share group, the delivery counts of __share_group_state are shown.
    """
    port = None if admin_port is None else ControlPort(admin_port, admin_token)
    known = known_of(group_id, bootstrap, port)
    if known.shared is not None:
        _print_shared(group_id, known.shared, as_json)
        return
    accounts = [account for account in known.accounts if account.ended_ms >= _since_ms(since)]
    chosen = [account for account in accounts if generation in (None, account.generation)]
    if generation is not None and not chosen:
        raise click.ClickException(f"nothing is known of generation {generation} of group {group_id}")
    if as_json:
        print_json([account.as_json() for account in chosen])
    elif not chosen:
        period = f" since {since}" if since and known.accounts else ""
        say(f"no rebalance of group {group_id} is known{period}")
    elif page is None:
        _print(accounts if generation is None else [], chosen[-1])
    if page is None and not as_json:
        for aside in known.asides:
            say(aside)
    _finish(group_id, known, accounts, page, as_json)


@click.command()
@click.argument("group_id", metavar="GROUP", shell_complete=complete_group)
@address_options
@html_option
@json_option
def history(group_id: str, bootstrap: Address, page: Path | None, as_json: bool) -> None:
    """Show how the members and partitions of a group changed, generation by generation.

    Read from __consumer_offsets. Compaction removes old generations, so the history has gaps. The same rows in Spark:
    view=rebalances and view=assignments. In words, with causes: partita groups why.
    """
    known = known_of(group_id, bootstrap)
    if as_json:
        print_json([_row(account) for account in known.accounts])
    elif not known.accounts:
        say(f"the log knows nothing of group {group_id}")
    elif page is None:
        print_table(list(COLUMNS), [_line(account) for account in known.accounts])
    _finish(group_id, known, list(known.accounts), page, as_json)


def known_of(group_id: str, bootstrap: Address, port: ControlPort | None = None) -> Known:
    """Return the history from the group's log and, if given, the broker's notes.

    Raises ClickException, naming the nearest group, if the log knows nothing and the cluster has no such group.
    """
    kept = kept_notes.Kept(generations_max=GENERATIONS_MAX)
    with connected(bootstrap) as admin:
        groups = {group.group_id: group.type for group in admin.list_groups()}
        if groups.get(group_id) == "share":
            return Known((), (), shared=tuple(share_partitions(admin, bootstrap, group_id)))
        if LOG_TOPIC not in {topic.name for topic in admin.list_topics(include_internal=True)}:
            raise _no_such_group(group_id, groups)
        log = follow_group_log.GroupLog(
            bootstrap.client_options(), kept, groups=[group_id], name_of=_topic_names(admin).get
        )
        asyncio.run(log.read())
        now_ms = time.time_ns() // 1_000_000
        existing = {topic.name for topic in admin.list_topics(include_internal=True)}
        for gone in gone_topics(kept.of(group_id), existing, now_ms):
            kept.add(gone)
        begins = _begins(admin, kept.of(group_id), existing, now_ms)
    for fact in note_facts.facts_of_notes(port.new_notes()) if port is not None else ():
        if getattr(fact, "group", "") in ("", group_id):
            kept.add(fact)
    remarks = [f"{place}: {reason}" for place, reason in log.problems.items()]
    if log.unreadable:
        remarks.append(f"{count(log.unreadable, 'record')} of the log could not be understood")
    facts = [*kept.of(group_id), *begins]
    accounts = explain(facts)
    if not accounts and group_id not in groups:
        raise _no_such_group(group_id, groups)
    return Known(accounts, tuple(remarks), asides_of(facts))


def _begins(admin: Admin, facts: Iterable[Fact], existing: set[str], now_ms: int) -> list[BeginSeen]:
    """Return the log start offsets of the topics that the group has committed; none without the right to see them."""
    parts = {fact.partition for fact in facts if isinstance(fact, Committed) and fact.partition[0] in existing}
    try:
        found = admin.list_offsets(dict.fromkeys(parts, "earliest"))
    except KafkaError:
        return []
    return [BeginSeen(now_ms, part, at.offset) for part, at in found.items()]


def _no_such_group(group_id: str, groups: Iterable[str]) -> click.ClickException:
    near = nearest(group_id, sorted(groups), 0.6)
    return click.ClickException(f"there is no group {group_id}{f'; did you mean {near[0]}?' if near else ''}")


def _topic_names(admin: Admin) -> dict[bytes, str]:
    """Topics by their ids, which the records of KIP-848 groups name."""
    return {
        base64.urlsafe_b64decode(topic.topic_id + "=="): topic.name for topic in admin.list_topics() if topic.topic_id
    }


def _since_ms(since: str | None) -> int:
    if since is None:
        return 0
    try:
        where = parse_where(since, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not where.is_time:
        raise click.UsageError(f"--since expects a time or an age such as 1h, not {since!r}")
    return int(where.value)


def _print(listed: list[Account], in_full: Account) -> None:
    """One line per rebalance, then one of them in full."""
    if len(listed) > 1:
        if len(listed) > LISTED_MAX:
            say(f"{count(len(listed) - LISTED_MAX, 'earlier rebalance')}; see them with --json or --html")
        for account in listed[-LISTED_MAX:]:
            say(f"{_moment(account.ended_ms)}  g{account.generation:<4} {account.headline}")
        say()
    say(f"{'epoch' if in_full.is_incremental else 'generation'} {in_full.generation}: {in_full.headline}")
    for sentence in in_full.story:
        say(f"  {sentence}")
    if in_full.advice:
        say(f"  What to do: {in_full.advice}")


def _print_shared(group_id: str, shared: Iterable[SharePartition], as_json: bool) -> None:
    if as_json:
        print_json([part.as_json() for part in shared])
        return
    sentences = [sentence for part in shared for sentence in part.sentences]
    say("\n".join(sentences) or f"no record of share group {group_id} was given back, given up or overtaken")


def _finish(group_id: str, known: Known, accounts: list[Account], page: Path | None, as_json: bool) -> None:
    for remark in known.remarks:
        complain(remark)
    if page is not None and accounts:
        page.write_text(why_page(group_id, accounts, (*known.asides, *known.remarks)), encoding="utf-8")
        if not as_json:
            say(f"wrote {page}")


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _row(account: Account) -> dict[str, object]:
    names = sorted(account.name_of(m.member_id) for m in account.members)
    before = sorted(account.name_of(m.member_id) for m in account.members_before)
    ids, ids_before = {m.member_id for m in account.members}, {m.member_id for m in account.members_before}
    return {
        "group": account.group,
        "generation": account.generation,
        "at_ms": account.ended_ms,
        "members": names,
        "added": [n for n in names if n in _named(account, ids - ids_before)],
        "removed": [n for n in before if n in _named(account, ids_before - ids)],
        "moved": [f"{m.partition[0]}-{m.partition[1]}" for m in account.moves if m.before and m.after],
        "owners": {
            f"{topic}-{number}": account.name_of(m.member_id)
            for m in account.members
            for topic, number in sorted(m.partitions)
        },
    }


def _named(account: Account, member_ids: set[str]) -> set[str]:
    return {account.name_of(member_id) for member_id in member_ids}


def _line(account: Account) -> tuple[str, ...]:
    row = _row(account)
    lists = (row["members"], row["added"], row["removed"], row["moved"])
    shown = (" ".join(some) if isinstance(some, list) and some else "-" for some in lists)
    return (iso_time(account.ended_ms), str(account.generation), *shown)
