"""The rights that a request needs, as its handler declares them, in the order in which Kafka checks them.

Mirrors KafkaApis and ControllerApis (security.md 15). Each is a check that looks at a request
before its handler does. It answers the whole request, or takes refused items out of it and returns how to complete the
handler's answer. Rights come before coordinators, group ids and existence, so that a refusal reveals nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from partita.broker.api.error_answers import error_answer
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message
from partita.security.rights.operations import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

REFUSED_WITH: dict[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
Fields: TypeAlias = Any
"""A generated message or structure; each check knows which fields it has."""


class Verdict(NamedTuple):
    """The result of a check. With an `answer` the handler is not asked; `complete` adds refused items to an answer."""

    answer: Message | None = None
    complete: Callable[[Fields], None] | None = None
    is_silent: bool = False
    """No answer is due at all (Produce with acks=0): the connection closes, and the handler is not asked either."""


class Needs(NamedTuple):
    """The whole request needs a right; without it every part of the request is refused with the type's code."""

    operation: Operation
    kind: ResourceType
    name: str = ""
    """The field of the request that names the resource; empty for the cluster."""
    or_else: Operation | None = None
    """Another operation whose right will do."""
    optional: bool = False
    """There is no resource if the field is None, and then nothing is needed."""

    def __call__(self, asking: Asking, request: Fields) -> Verdict | None:
        name = getattr(request, self.name) if self.name else CLUSTER_NAME
        if self.optional and name is None:
            return None
        if self.or_else is not None and asking.may(self.or_else, self.kind, name, is_logged=False):
            return None
        if asking.may(self.operation, self.kind, name):
            return None
        return refused(asking, request, REFUSED_WITH[self.kind])

    @property
    def needed(self) -> str:
        """In words, for the documents."""
        what = f"{self.operation.name} {self.kind.name}"
        other = f", or {self.or_else.name}" if self.or_else is not None else ""
        return f"{what}{other}, if one is given" if self.optional else f"{what}{other}"

    @property
    def outcome(self) -> str:
        """The form of a refusal, for the documents."""
        return REFUSED_WITH[self.kind].name


class NeedsEach(NamedTuple):
    """Each item of a list needs a right; the others are answered with the type's code, and the rest goes on.

    Items are named by a field, or are the names themselves; topics by their ids where the version has ids. A topic
    with an unknown id is left to the handler.
    """

    operation: Operation
    kind: ResourceType
    items: str
    answers: str
    """The list of the response that the refused items are added to."""
    name: str = ""
    ids_from: int = 1 << 15
    """The version from which topics are named by id."""
    unless: Operation | None = None
    """A cluster-wide grant of this operation covers every item."""

    def __call__(self, asking: Asking, request: Fields) -> Verdict | None:
        items = getattr(request, self.items)
        if not items or (self.unless is not None and asking.may(self.unless, ResourceType.CLUSTER, is_logged=False)):
            return None
        names = [self._name_of(asking, item) for item in asking.each(items)]
        allowed = asking.may_all(self.operation, self.kind, [name for name in names if name is not None])
        named = list(zip(items, names, strict=True))
        kept = [item for item, name in asking.each(named) if name is None or name in allowed]
        if len(kept) == len(items):
            return None
        out = [item for item, name in asking.each(named) if name is not None and name not in allowed]
        setattr(request, self.items, kept)
        return part_refused(asking, request, REFUSED_WITH[self.kind], self.items, out, self.answers)

    def _name_of(self, asking: Asking, item: Fields) -> str | None:
        if not self.name:
            return str(item)
        if asking.version >= self.ids_from:
            topic = asking.catalogue.by_id.get(item.topic_id)
            return None if topic is None else topic.name
        name: str | None = getattr(item, self.name)
        return name

    @property
    def needed(self) -> str:
        """In words, for the documents."""
        unless = "" if self.unless is None else f"{self.unless.name} CLUSTER, or "
        return f"{unless}{self.operation.name} on each {self.kind.name}"

    @property
    def outcome(self) -> str:
        """The form of a refusal, for the documents."""
        return f"{REFUSED_WITH[self.kind].name} for it"


class Checked(NamedTuple):
    """A check that no other API has: the function `check_rights(asking, request)` of the handler's module."""

    needed: str
    outcome: str


class InHandler(NamedTuple):
    """A right that the handler itself checks, since only it knows the resource."""

    needed: str
    outcome: str


READ_GROUP = Needs(Operation.READ, ResourceType.GROUP, "group_id")
WRITE_ID = Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")
OTHERS_GO_ON = "TOPIC_AUTHORIZATION_FAILED for it"
LEFT_OUT_OF_ALL = "named: TOPIC_AUTHORIZATION_FAILED, whether it exists or not; all: left out"


def refused(asking: Asking, request: Fields, code: ErrorCode) -> Verdict:
    """The whole request is answered with this code."""
    answer = error_answer(asking.api_key, asking.version, request, int(code), asking.pause)
    return Verdict(answer) if answer is not None else Verdict(is_silent=True)


def part_refused(asking: Asking, request: Fields, code: ErrorCode, items: str, out: list[Any], answers: str) -> Verdict:
    """The items `out`, which are no longer in the request, are answered with this code; the handler answers the rest.

    Without a rest the handler is not asked: for some APIs an empty list means everything.
    """
    about = copy.copy(request)
    setattr(about, items, out)
    part: Fields = error_answer(asking.api_key, asking.version, about, int(code), asking.pause, is_part=True)
    if part is None:
        return Verdict() if getattr(request, items) else Verdict(is_silent=True)
    return completed(getattr(part, answers), answers, part if not getattr(request, items) else None)


def completed(entries: list[Any], answers: str, whole: Message | None = None) -> Verdict:
    """These entries belong into the list `answers` of the response; `whole` is the response if nothing else is."""
    if whole is not None:
        return Verdict(whole)

    def complete(answer: Fields) -> None:
        setattr(answer, answers, [*(getattr(answer, answers) or ()), *entries])

    return Verdict(complete=complete)
