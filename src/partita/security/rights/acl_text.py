"""ACLs in one line of words: `allow User:alice read,describe topic orders-*`.

    allow|deny PRINCIPAL OPERATIONS RESOURCE [NAME] [from HOST]

Operations and resources are Kafka's words in either case, with - or _ between them; `all` is every operation. A name
that ends with `*` is a prefix, `*` alone means every resource; the cluster has no name. Words with spaces stand in
quotes.
"""

from __future__ import annotations

import shlex
from enum import IntEnum
from typing import TypeVar

from partita.security.rights.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

E = TypeVar("E", bound=IntEnum)
_SHAPE = "allow|deny PRINCIPAL OPERATIONS RESOURCE [NAME] [from HOST]"


class AclTextError(ValueError):
    """The line is no ACL; the message says what is wrong with it."""


def acls_of(line: str) -> list[AclBinding]:
    """The ACLs of one line, one for each operation. Raises AclTextError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise AclTextError(f"{line!r}: {error}") from None
    host = WILDCARD
    if len(words) > 2 and words[-2] == "from":
        host = words.pop()
        words.pop()
    if len(words) not in (4, 5):
        raise AclTextError(f"{line!r} is not of the form: {_SHAPE}")
    permission, principal, operations, kind, *name = words
    resource_type = word(ResourceType, kind)
    resource_name, pattern_type = _pattern(resource_type, name, line)
    if ":" not in principal:
        raise AclTextError(f"{line!r}: the principal {principal!r} names no type; write User:{principal}")
    return [
        AclBinding(
            resource_type,
            resource_name,
            principal,
            word(Operation, operation),
            word(Permission, permission),
            pattern_type,
            host,
        )
        for operation in operations.split(",")
    ]


def _pattern(kind: ResourceType, name: list[str], line: str) -> tuple[str, PatternType]:
    if kind is ResourceType.CLUSTER:
        if name not in ([], [CLUSTER_NAME]):
            raise AclTextError(f"{line!r}: the cluster has no other name than {CLUSTER_NAME}")
        return CLUSTER_NAME, PatternType.LITERAL
    if not name or not name[0]:
        raise AclTextError(f"{line!r}: which {kind.name.lower()}? * means every one")
    if name[0] != WILDCARD and name[0].endswith(WILDCARD):
        return name[0].removesuffix(WILDCARD), PatternType.PREFIXED
    return name[0], PatternType.LITERAL


def word(kind: type[E], text: str) -> E:
    """The member of an enum of ACLs that a word means. Raises AclTextError with the words there are."""
    members = {member.name: member for member in kind if member.name not in ("UNKNOWN", "ANY", "MATCH")}
    found = members.get(text.upper().replace("-", "_"))
    if found is None:
        listed = ", ".join(name.lower().replace("_", "-") for name in members)
        raise AclTextError(f"{text!r} is none of {listed}")
    return found
