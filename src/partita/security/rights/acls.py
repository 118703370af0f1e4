"""ACLs as values: their fields, filters and checks.

Codes are those of the wire. Mirrors AclBinding, ResourcePatternFilter and AccessControlEntryFilter of Apache Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

from partita.security.rights.operations import CLUSTER_NAME as CLUSTER_NAME
from partita.security.rights.operations import Operation as Operation
from partita.security.rights.operations import ResourceType as ResourceType


class PatternType(IntEnum):
    """Meaning of a resource name. ANY and MATCH stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether an ACL forbids or allows."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD = "*"
"""As a literal resource name: every resource of the type. As a host: every host."""
EVERYBODY = "User:*"
"""As a principal: every user."""
OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}  # fmt: skip
"""Operations of each resource type, as in the fields of authorized operations. (AclEntry.supportedOperations)"""

Key: TypeAlias = tuple[int, str, int, str, str, int, int]


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One ACL. `principal` is written `User:alice`, `host` is an address as text, a network or `*`."""

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: Operation
    permission: Permission = Permission.ALLOW
    pattern_type: PatternType = PatternType.LITERAL
    host: str = WILDCARD

    def fits(self, name: str) -> bool:
        """Whether it speaks of the resource of this name (its type is not looked at)."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)

    def as_json(self) -> dict[str, str]:
        """Plain texts, in Kafka's words."""
        return {
            "principal": self.principal,
            "permission": self.permission.name,
            "operation": self.operation.name,
            "resource_type": self.resource_type.name,
            "resource_name": self.resource_name,
            "pattern_type": self.pattern_type.name,
            "host": self.host,
        }

    def __str__(self) -> str:
        """In Kafka's words, as audit lines have it."""
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name}) on {self.resource_type.name}:{self.pattern_type.name}:"
            f"{self.resource_name}"
        )


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Selects ACLs. None, ANY and MATCH leave a field open; MATCH selects whatever applies to `resource_name`."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def selects(self, acl: AclBinding) -> bool:
        """Whether the ACL is among those meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._selects_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _selects_pattern(self, acl: AclBinding) -> bool:
        if self.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED) and self.pattern_type != acl.pattern_type:
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type is PatternType.MATCH:
            return acl.fits(self.resource_name)
        return self.resource_name == acl.resource_name

    def select(self, acls: Iterable[AclBinding]) -> Iterator[AclBinding]:
        """Those of the ACLs that are meant, in their order."""
        return (acl for acl in acls if self.selects(acl))


@lru_cache(1024)
def network_of(host: str) -> IPv4Network | IPv6Network | None:
    """The network that an ACL's host names by address and length, `10.1.0.0/16`; None for any other host."""
    # A mask instead of the length is none, as in Kafka.
    if not re.fullmatch(r"[^/]+/[0-9]{1,3}", host):
        return None
    try:
        return ip_network(host, strict=False)
    except ValueError:
        return None


def problem_of(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> str | None:
    """Why these fields make no ACL, in Kafka's words where Kafka has words; None when they do. (security.md 14)

    Deviation: Partita answers INVALID_REQUEST for an ACL with UNKNOWN, ANY or MATCH in CreateAcls, where Kafka closes
    the connection or answers UNKNOWN_SERVER_ERROR.
    """
    fields = (
        ("resourceType", ResourceType, resource_type, 2),
        ("patternType", PatternType, pattern_type, 3),
        ("operation", Operation, operation, 2),
        ("permissionType", Permission, permission, 2),
    )
    for field, kind, code, first in fields:
        if not 0 < code <= max(kind):
            return f"Invalid {field} UNKNOWN"
        if code < first:
            return f"Invalid {field} {kind(code).name}"
    if not name:
        return "Invalid empty resource name"
    if resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if ":" not in principal:
        return (
            f"Could not parse principal from `{principal}` (no colon is present separating the principal type from "
            "the principal name)"
        )
    if not host:
        return "Host pattern cannot be null or empty"
    if "/" in host and network_of(host) is None:
        return f"Invalid CIDR notation '{host}': it needs an address and a length, such as 10.1.0.0/16"
    return None


def filter_problem(resource_type: int, pattern_type: int, operation: int, permission: int) -> str | None:
    """Why these fields make no filter; None when they do.

    Deviation: Partita answers INVALID_REQUEST to an ACL filter with an UNKNOWN type, pattern, operation or permission,
    where Kafka closes the connection.
    """
    fields = (
        ("resourceType", ResourceType, resource_type),
        ("patternType", PatternType, pattern_type),
        ("operation", Operation, operation),
        ("permissionType", Permission, permission),
    )
    for field, kind, code in fields:
        if not 0 < code <= max(kind):
            return f"Invalid {field} UNKNOWN"
    return None


def key_of(acl: AclBinding) -> str:
    """Return a text that no other ACL has: its name in the catalogue."""
    return (
        f"{int(acl.resource_type)} {int(acl.pattern_type)} {int(acl.operation)} {int(acl.permission)} "
        f"{len(acl.resource_name)} {acl.resource_name} {len(acl.principal)} {acl.principal} {acl.host}"
    )


def stored(acl: AclBinding) -> Key:
    """The ACL as the catalogue keeps it."""
    return (
        int(acl.resource_type), acl.resource_name, int(acl.pattern_type), acl.principal, acl.host, int(acl.operation),
        int(acl.permission),
    )  # fmt: skip


def restored(kept: Key) -> AclBinding:
    """The ACL that `stored` was given."""
    resource_type, name, pattern_type, principal, host, operation, permission = kept
    return AclBinding(
        ResourceType(resource_type),
        name,
        principal,
        Operation(operation),
        Permission(permission),
        PatternType(pattern_type),
        host,
    )
