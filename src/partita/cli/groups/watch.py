"""`partita groups watch`: a live view of groups with members, lag, and recent rebalances with their causes."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import complete_group, connected
from partita.cli.groups.changes import LoggedChanges, Look, News, ToldChanges
from partita.cli.groups.control_port import ControlPort
from partita.cli.groups.why import known_of
from partita.cli.terminal import redraw, say, table_lines
from partita.cli.variables import NumberRange, token_option
from partita.errors import KafkaError

if TYPE_CHECKING:
    from partita.admin import Admin
    from partita.explain import Account

KEPT_NEWS = 12


class Watcher:
    """Describes groups repeatedly and keeps the most recent changes."""

    def __init__(
        self, admin: Admin, wanted: tuple[str, ...], port: ControlPort | None, explained: Callable[[str], list[Account]]
    ) -> None:
        self.admin = admin
        self.wanted = wanted
        self._port = port
        self.news: deque[News] = deque(maxlen=KEPT_NEWS)
        self._before: dict[str, Look] = {}
        self._note_changes = ToldChanges()
        self._log_changes = LoggedChanges(explained)

    def look(self) -> list[Look]:
        """Describe the groups now and collect what has changed since the last call."""
        names = self.wanted or tuple(group.group_id for group in self.admin.list_groups())
        looks = [self._one(name) for name in sorted(names)]
        now_ms = time.time_ns() // 1_000_000
        if self._port is None:
            for look in looks:
                self.news.extend(self._log_changes.changes(self._before.get(look.group_id), look, now_ms))
        else:
            recent = self._note_changes.changes(self._port.new_notes())
            self.news.extend(item for item in recent if not self.wanted or item.group_id in self.wanted)
        self._before = {look.group_id: look for look in looks}
        return looks

    def _one(self, name: str) -> Look:
        group = self.admin.describe_group(name)
        lags = [row.lag for row in self.admin.group_lag(name) if row.lag is not None]
        members = {m.member_id: m.group_instance_id or m.client_id for m in group.members}
        return Look(name, group.state, members, sum(lags) if lags else None)


def picture(looks: list[Look], news: deque[News]) -> list[str]:
    """The live view as lines."""
    rows = [
        (look.group_id, look.state, len(look.members), None if look.lag is None else f"{look.lag:,}",
         ", ".join(sorted(look.members.values())) or None)
        for look in looks
    ]  # fmt: skip
    groups = table_lines(["group", "state", "members", "lag", "who"], rows) if rows else ["no groups"]
    return [*groups, "", "recent rebalances", *([_line(item) for item in reversed(news)] or ["none so far"])]


def _line(item: News) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(item.wall_ms / 1000))
    return f"{at}  {item.group_id}  {item.text}"


def as_json(looks: list[Look], news: list[News]) -> str:
    """One observation as one line of JSON."""
    groups = [{"group_id": g.group_id, "state": g.state, "members": dict(g.members), "lag": g.lag} for g in looks]
    recent = [{"wall_ms": n.wall_ms, "group_id": n.group_id, "text": n.text} for n in news]
    return json.dumps({"groups": groups, "news": recent})


@click.command()
@click.argument("group_ids", nargs=-1, metavar="[GROUP...]", shell_complete=complete_group)
@address_options
@click.option("--admin-port", type=click.IntRange(1, 65535),
              help="The --admin-port of a Partita broker; every rebalance is then shown with its cause.")  # fmt: skip
@token_option
@click.option("--every", type=NumberRange(min=0.1), default=1.0, show_default=True, help="Seconds between updates.")
@click.option("--looks", type=click.IntRange(min=1), help="Stop after this many updates.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object per update instead of the live view.")
def watch(
    group_ids: tuple[str, ...],
    bootstrap: Address,
    admin_port: int | None,
    admin_token: str | None,
    every: float,
    looks: int | None,
    as_lines: bool,
) -> None:
    """Watch groups live: state, members, lag, and recent rebalances. Ctrl-C ends it.

    Without GROUP, all groups are shown. With --admin-port, the broker's notes say why each rebalance began; without it,
    __consumer_offsets does, or if that cannot be read, what changed is shown.
    """

    def explained(group_id: str) -> list[Account]:
        try:
            return list(known_of(group_id, bootstrap).accounts)
        except (click.ClickException, KafkaError):
            return []

    with connected(bootstrap) as admin:
        port = None if admin_port is None else ControlPort(admin_port, admin_token)
        watcher = Watcher(admin, group_ids, port, explained)
        try:
            _print_lines(watcher, every, looks) if as_lines else _draw(watcher, every, looks)
        except KeyboardInterrupt:
            say()
            raise SystemExit(130) from None


def _turns(every: float, looks: int | None) -> Iterator[None]:
    done = 0
    while looks is None or done < looks:
        if done:
            time.sleep(every)
        yield
        done += 1


def _print_lines(watcher: Watcher, every: float, looks: int | None) -> None:
    for _ in _turns(every, looks):
        found = watcher.look()
        say(as_json(found, list(watcher.news)))
        watcher.news.clear()


def _draw(watcher: Watcher, every: float, looks: int | None) -> None:
    for _ in _turns(every, looks):
        redraw(picture(watcher.look(), watcher.news))
