"""Words for everything that a person reads: notes, numbers with their nouns, and text from the wire made harmless."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TEXT_BYTES_MAX, _SHOWN = 32_767, 40
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text around them and so can hide what it says."""


class Note(NamedTuple):
    """A fact worth a log line or a metric; `kind` is one word, `fields` are for machines."""

    kind: str
    text: str
    fields: Mapping[str, Any] = {}


def count(number: int, noun: str, plural: str = "") -> str:
    """1 member, 2 members, 1,200 records. `plural` is for nouns that do not just take an "s"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def printable(text: str, keep: str = "") -> str:
    r"""The text with control characters written as escapes such as `\x1b`, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(char if char in keep or not _is_unsafe(char) else _escape(char) for char in text)


def unsendable(text: str) -> str:
    """Why no request can carry this text, as the rest of a sentence about it; "" if one can."""
    if text.isascii() and len(text) <= _TEXT_BYTES_MAX:
        return ""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # as of a path that holds what is no text
        return f"is no text that can be sent: {text[:_SHOWN]!r}"
    return f"takes {size} bytes; at most {_TEXT_BYTES_MAX} can be sent" if size > _TEXT_BYTES_MAX else ""


def _is_unsafe(char: str) -> bool:
    return unicodedata.category(char) in _UNSAFE_CATEGORIES or char in _BIDI


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


class What(StrEnum):
    """A reason for a rebalance, in notes of a coordinator and in explanations. Notes hold those of the first block."""

    JOINED = "member joined"
    LEFT = "member left"
    EXPIRED = "session expired"
    EVICTED = "member evicted"
    SUBSCRIPTION_CHANGED = "subscription changed"
    PROTOCOLS_CHANGED = "protocols changed"
    PARTITIONS_CHANGED = "partitions of a subscribed topic changed"
    PARTITIONS_GIVEN_UP = "member gave partitions up"
    ENFORCED = "rebalance enforced"
    LEADER_REJOINED = "group leader rejoined"
    MEMBER_REJOINED = "member rejoined"
    STATIC_REPLACED = "static member replaced"
    DID_NOT_REJOIN = "member did not rejoin in time"
    DID_NOT_SYNC = "member did not sync in time"
    REFUSED_FULL = "member refused, group is full"
    ASSIGNMENT_TOO_LARGE = "assignment could not be stored"
    DID_NOT_REVOKE = "member did not give partitions up in time"
    TOPICS_CHANGED = "subscribed topics changed"
    TOPIC_CREATED = "subscribed topic created"
    TOPIC_DELETED = "subscribed topic deleted"
    SETTINGS_CHANGED = "settings of the group changed"
    CONVERTED = "group changed its protocol"
    LOADED_UNASSIGNED = "loaded in a generation without an assignment"
    LOADED_OVER_SIZE = "loaded with more members than group.max.size"

    POLLED_TOO_LATE = "poll too late"
    """A member left because its application did not poll within max.poll.interval.ms."""
    GONE = "member gone"
    """A member is gone; whether it left or its session expired is not known."""
    COORDINATOR_MOVED = "coordinator moved"
    """Another broker coordinates the group, or the same one has loaded it again."""
    UNEXPLAINED = "nothing visible changed"
    """Members, subscriptions and partitions are unchanged: a member rejoined for a reason that is not recorded."""
