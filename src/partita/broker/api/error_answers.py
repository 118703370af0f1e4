"""The answer each API has when the whole request failed with one code.

Mirrors `getErrorResponse` of Kafka's request classes. The code goes to the top where the version has a place for it,
otherwise onto every group, topic or partition asked for: lists of the response mirror those of the request. A handler
declares differences of its API as `errors`; its function `finish_error(answer, request, version)`, if there is one, has
the last word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

from partita.broker.api.apis import SERVED
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Structure

Asked: TypeAlias = Any
"""A structure of a request, or a name or number in one."""
Part: TypeAlias = Any
"""A structure of a response, whose fields depend on the API."""
Kind: TypeAlias = Any
"""A class of structures, whose fields are found by name."""

MESSAGE_CHARACTERS_MAX = 1000
_TEXTS = ("error_message", "status_detail")
_CODES = frozenset({"error_code", "partition_error_code"})
_NAMES = (
    ("name", "topic", "topic_name", "user"), ("index", "partition_index", "partition", "partition_id"), ("topic_id",),
    ("group_id",), ("key",), ("transactional_id",), ("producer_id",), ("resource_name",), ("resource_type",),
    ("entity",),
)  # fmt: skip
"""Identifying fields of list items, each with its names in other lists."""


def error_answer(
    api_key: int, version: int, request: Any, code: int, pause: Callable[[], object] = int, *, is_part: bool = False
) -> Message | None:
    """The response to `request` that says `code`; None where no answer is due (Produce with acks=0).

    `pause` is called for each item of the answer. `is_part`: the request as a whole has not failed, its items have.
    """
    api = SERVED[api_key]
    errors = api.declared.errors
    answer: Part = _blank(api.response, api_key, 0 if is_part else code)
    if errors.has_items and (is_part or errors.also_in_items or not _has_place(api_key, version)):
        _fill(answer, request, api_key, code, pause)
    finish = getattr(api.module, "finish_error", None)
    message: Message | None = answer if finish is None else finish(answer, request, version)
    return message


def shortened(message: Structure) -> bool:
    """Cut every text of an error or status that is too long for an answer, as by a long name; say whether any was."""
    was_cut = False
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, list):
            for element in value:
                was_cut = (isinstance(element, Structure) and shortened(element)) or was_cut
        elif name.endswith(_TEXTS) and isinstance(value, str) and len(value) > MESSAGE_CHARACTERS_MAX:
            setattr(message, name, f"{value[:MESSAGE_CHARACTERS_MAX]}...")
            was_cut = True
    return was_cut


@cache
def _has_place(api_key: int, version: int) -> bool:
    """Whether this version's response has a code for the whole request: one that does is written differently."""
    response: Any = SERVED[api_key].response
    if "error_code" not in response.__slots__:
        return False
    fine, failed = (_blank(response, api_key, code).encode(version) for code in (0, 1))
    return bool(fine != failed)


def _blank(kind: Kind, api_key: int, code: int) -> Part:
    """A structure of a response that says the code, where it has a place for it, and nothing else."""
    made: Part = kind()
    for name, value in _values(kind, api_key, code):
        setattr(made, name, value)
    return made


@cache
def _values(kind: Kind, api_key: int, code: int) -> tuple[tuple[str, Any], ...]:
    errors = SERVED[api_key].declared.errors
    usual = {"error_message": _text(code) if errors.says_why else None} | dict.fromkeys(_CODES, code)
    values = usual | dict(errors.fields)
    return tuple((name, values[name]) for name in kind.__slots__ if name in values)


def _text(code: int) -> str:
    """Return Kafka's text for a refusal, else the meaning of the code."""
    kind, found, _ = ErrorCode(code).name.partition("_AUTHORIZATION_FAILED")
    return f"{kind.capitalize()} authorization failed." if found else ErrorCode(code).meaning


def _fill(answer: Part, asked: Asked, api_key: int, code: int, pause: Callable[[], object]) -> None:
    """Give each list of the answer that can say the code an item for each item asked about."""
    says_once = SERVED[api_key].declared.errors.says_once
    for name, kind in _lists(answer.__class__).items():
        items = [_about(kind, item, api_key, code, pause) for item in _mirrored(asked, name)]
        if says_once:
            items = list({repr(item): item for item in items}.values())
        setattr(answer, name, items)


def _about(kind: Kind, asked: Asked, api_key: int, code: int, pause: Callable[[], object]) -> Part:
    pause()
    made = _blank(kind, api_key, code)
    if isinstance(asked, str | int):
        setattr(made, next(_names(kind)), asked)
    else:
        for ours, theirs in _names_of_both(kind, asked.__class__):
            setattr(made, ours, getattr(asked, theirs))
    if not _CODES.intersection(kind.__slots__):
        _fill(made, asked, api_key, code, pause)
    return made


def _mirrored(asked: Asked, name: str) -> list[Asked]:
    """The items of a request that a list of its response is about: its list of the same name, else all its lists.

    An item that has no name of its own stands for those that it holds.
    """
    if name in getattr(asked, "__slots__", ()):
        return getattr(asked, name) or []
    found = []
    for item in chain.from_iterable(_held(asked)):
        found += _mirrored(item, name) if _held(item) and not _is_named(item) else [item]
    return found


def _held(asked: Asked) -> list[list[Asked]]:
    """The lists of an item."""
    values = [getattr(asked, name) for name in getattr(asked, "__slots__", ())]
    return [value for value in values if isinstance(value, list)]


def _is_named(asked: Structure) -> bool:
    return any(_names(type(asked)))


def _names(kind: Kind) -> Iterator[str]:
    """The identifying fields of a structure, in the order of `_NAMES`."""
    return (name for names in _NAMES for name in names if name in kind.__slots__)


@cache
def _names_of_both(kind: Kind, asked: Kind) -> tuple[tuple[str, str], ...]:
    """The fields of a response's item that an item of the request has as well, each with its name there."""
    pairs = ((ours, names) for names in _NAMES for ours in names if ours in kind.__slots__)
    return tuple((ours, theirs) for ours, names in pairs for theirs in names if theirs in asked.__slots__)


@cache
def _lists(kind: Kind) -> dict[str, Kind]:
    """The lists of a structure whose items, or theirs, have a place for a code; with the items' classes."""
    found = {}
    for name, annotation in kind.__init__.__annotations__.items():
        item = str(annotation).removesuffix(" | None").removeprefix("list[").removesuffix("]")
        inner = getattr(sys.modules[kind.__module__], item, None) if "list[" in str(annotation) else None
        if inner is not None and (_CODES.intersection(inner.__slots__) or _lists(inner)):
            found[name] = inner
    return found
