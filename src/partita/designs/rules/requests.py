"""Requests to ZooKeeper and their answers, as plain values between the rules and a shell, or the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class Get:
    """Read the data of a node. Answer: Node or NO_NODE. A watch sees its next change."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Children:
    """List the names below a node, sorted. Answer: a tuple or NO_NODE. A watch sees the next child come or go."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Ask whether a node is there. Answer: Node or NO_NODE. A watch sees the node come, go or change."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node. Answer: None, NODE_EXISTS, or NO_NODE without a parent. Ephemeral: ends with the session."""

    path: str
    data: str = ""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Replace the data of a node, if it has this version. Answer: None, NO_NODE or BAD_VERSION."""

    path: str
    data: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node. Answer: None, NO_NODE or NOT_EMPTY."""

    path: str


@dataclass(frozen=True, slots=True)
class Check:
    """Only inside Multi: the node must have this version. Answer: None, NO_NODE or BAD_VERSION."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Multi:
    """All of these writes or none. Answer: None, or the first failure."""

    requests: tuple[Create | Put | Delete | Check, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """The data of a node, how often it was changed, and the session it ends with: 0 for a persistent one."""

    data: str
    version: int
    session: int = field(default=0, compare=False)


class Failure(Enum):
    """Why a request was not carried out."""

    NO_NODE = "no node"
    NODE_EXISTS = "node exists"
    BAD_VERSION = "bad version"
    NOT_EMPTY = "not empty"
    CONNECTION_LOSS = "connection loss"
    SESSION_EXPIRED = "session expired"


Read = Get | Children | Exists
Write = Create | Put | Delete | Multi
Request = Read | Write
Answer = Node | tuple[str, ...] | Failure | None


class Change(Enum):
    """The change that a watch saw."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One watch fired. It will not fire again."""

    change: Change
    path: str
