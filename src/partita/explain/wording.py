"""Names, durations and lists as a person reads them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from partita.explain.facts import Member, Partition

LISTED_MAX = 3
"""Longer lists end with "and 4 more"."""
NAME_MAX = 40
_UUID = re.compile(r"(.+)-([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHOICE = re.compile(r"\{([^|{}]*)\|([^|{}]*)\}")
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def duration(ms: float) -> str:
    """Milliseconds as a person says them: 850 ms, 3.1 s, 47 s, 5 min 20 s, 2 h 5 min, 3 d 4 h."""
    ms = max(round(ms), 0)
    if ms < _SECOND:
        return f"{ms} ms"
    if ms < 10 * _SECOND:
        return f"{ms / _SECOND:.1f}".removesuffix(".0") + " s"
    if ms < 2 * _MINUTE:
        return f"{round(ms / _SECOND)} s"
    for unit, part, names in ((_MINUTE, _SECOND, "min s"), (_HOUR, _MINUTE, "h min"), (_DAY, _HOUR, "d h")):
        if ms < 60 * unit or unit == _DAY:
            whole, rest = divmod(round(ms / part), unit // part)
            name, part_name = names.split()
            return f"{whole} {name}" + (f" {rest} {part_name}" if rest else "")
    raise AssertionError("days take everything")


def listed(names: Sequence[str], most: int = LISTED_MAX) -> str:
    """a; a and b; a, b and c; a, b, c and 4 more."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def agree(text: str, number: int) -> str:
    """The text with each `{one|several}` as the number asks for: `{is|are} gone` is "is gone" for 1 member."""
    return _CHOICE.sub(lambda found: found[1 if number == 1 else 2], text)


def partition_name(partition: Partition) -> str:
    """topic-number."""
    return f"{partition[0]}-{partition[1]}"


def sentence(text: str) -> str:
    """The text with a full stop."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def clean(text: str) -> str:
    """Names and reasons are other people's text: no character stays that is invisible or steers a terminal."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def shortened(text: str) -> str:
    """The clean text, cut to 40 characters."""
    shown = clean(text)
    return shown if len(shown) <= NAME_MAX else f"{shown[: NAME_MAX - 1]}…"


def names_of(generations: Iterable[Sequence[Member]]) -> dict[str, str]:
    """A name for each member id: its instance id, or its client id, with the start of its id if two share that."""
    clients: dict[str, int] = {}
    members: dict[str, Member] = {}
    for generation in generations:
        for client, number in Counter(m.client_id for m in generation if m.instance_id is None).items():
            clients[client] = max(clients.get(client, 0), number)
        members.update((member.member_id, member) for member in generation)
    return {member_id: _name(member, clients) for member_id, member in members.items()}


def _name(member: Member, clients: dict[str, int]) -> str:
    if member.instance_id is not None:
        return shortened(member.instance_id)
    if member.client_id and clients.get(member.client_id, 0) <= 1:
        return shortened(member.client_id)
    return short_id(member.member_id)


def short_id(member_id: str) -> str:
    """A member id is a client id and 36 random characters, the first of which distinguish members."""
    found = _UUID.fullmatch(member_id)
    return shortened(member_id if found is None else f"{found[1][: NAME_MAX - 5]}-{found[2]}")
