"""Decides about operations of principals. Mirrors StandardAuthorizer of Apache Kafka 4.4.0. (security.md 13)

A DENY that applies beats every ALLOW. ACLs are found by name, prefix and principal, so a decision costs the same for
ten ACLs as for ten thousand; decisions are remembered until an ACL changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TypeAlias

from partita.security.rights.acls import (
    CLUSTER_NAME,
    EVERYBODY,
    OPERATIONS,
    WILDCARD,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    network_of,
)

DECISIONS_MAX = 65_536
"""Number of remembered decisions; the next one empties the memory."""
NO_SUCH_NAME = "hardcode"
"""The name Kafka asks about to learn whether a principal may use every resource of a type."""
_IMPLIED_BY: dict[int, frozenset[int]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Allowed operations that imply another one."""

_Decision: TypeAlias = tuple[str, str, int, int, str]
_ByPrincipal: TypeAlias = dict[str, list[AclBinding]]


class SuperUser:
    """The rule of a decision for one of super.users."""

    def __str__(self) -> str:
        return "SuperUser"


class DefaultRule:
    """The rule of a decision for which no ACL speaks."""

    def __init__(self, *, allows: bool) -> None:
        self._allows = allows

    def __str__(self) -> str:
        return "DefaultAllow" if self._allows else "DefaultDeny"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and by which rule."""

    allowed: bool
    rule: AclBinding | SuperUser | DefaultRule

    def __str__(self) -> str:
        """In Kafka's words, for the audit log."""
        return f"MatchingAcl(acl={self.rule})" if isinstance(self.rule, AclBinding) else str(self.rule)


_SUPER_USER = Decision(True, SuperUser())
_NO_ACL = {allows: Decision(allows, DefaultRule(allows=allows)) for allows in (True, False)}
_NOT_ALLOWED = Decision(False, DefaultRule(allows=False))


def super_users(text: str) -> frozenset[str]:
    """The principals of the option super.users, `User:a;User:b`. Raises ValueError for one without its type."""
    names = [name.strip() for name in text.split(";") if name.strip()]
    for name in names:
        if ":" not in name:
            raise ValueError(f"super.users: {name!r} names no type; write User:{name}")
    return frozenset(names)


def spellings(host: str) -> tuple[str, ...]:
    """The texts by which an ACL may name the host: an IPv6 address has a short form and, in Java, a long one."""
    if "::" not in host:
        return (host,)
    try:
        parts = IPv6Address(host.partition("%")[0]).exploded.split(":")
    except ValueError:
        return (host,)
    return (host, ":".join(f"{int(part, 16):x}" for part in parts))


class _Hosts:
    """One host, to be looked for in ACLs."""

    def __init__(self, host: str) -> None:
        self._texts = (WILDCARD, *spellings(host))
        self._host = host.partition("%")[0]

    def __contains__(self, named: str) -> bool:
        if named in self._texts:
            return True
        network = network_of(named)
        try:
            return network is not None and ip_address(self._host) in network
        except ValueError:
            return False


class _Patterns:
    """The ACLs of one resource type, by pattern and principal."""

    def __init__(self) -> None:
        self.literal: dict[str, _ByPrincipal] = {}
        self.prefixed: dict[str, _ByPrincipal] = {}
        self.lengths: dict[int, int] = {}
        """Number of prefixes of this length."""

    def add(self, acl: AclBinding) -> None:
        if acl.pattern_type is PatternType.PREFIXED:
            if acl.resource_name not in self.prefixed:
                size = len(acl.resource_name)
                self.lengths[size] = self.lengths.get(size, 0) + 1
            self.prefixed.setdefault(acl.resource_name, {}).setdefault(acl.principal, []).append(acl)
        else:
            self.literal.setdefault(acl.resource_name, {}).setdefault(acl.principal, []).append(acl)

    def remove(self, acl: AclBinding) -> None:
        is_prefix = acl.pattern_type is PatternType.PREFIXED
        by_name = self.prefixed if is_prefix else self.literal
        by_principal = by_name[acl.resource_name]
        by_principal[acl.principal].remove(acl)
        if not by_principal[acl.principal]:
            del by_principal[acl.principal]
        if by_principal:
            return
        del by_name[acl.resource_name]
        if is_prefix:
            size = len(acl.resource_name)
            self.lengths[size] -= 1
            if not self.lengths[size]:
                del self.lengths[size]

    def fitting(self, name: str) -> Iterator[_ByPrincipal]:
        """Yield the entries that apply to the name, pattern by pattern."""
        for literal in (name, WILDCARD) if name != WILDCARD else (name,):
            if literal in self.literal:
                yield self.literal[literal]
        for size in self.lengths:
            found = self.prefixed.get(name[:size]) if size <= len(name) else None
            if found is not None:
                yield found

    def about(self, principal: str) -> Iterator[AclBinding]:
        """Everything said of the principal."""
        for by_name in (self.literal, self.prefixed):
            for by_principal in by_name.values():
                yield from by_principal.get(principal, ())
                yield from by_principal.get(EVERYBODY, ())


class Authorizer:
    """The ACLs and the decisions that follow from them. Free of IO."""

    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._acls: dict[AclBinding, None] = {}
        self._patterns: dict[int, _Patterns] = {int(kind): _Patterns() for kind in OPERATIONS}
        self._decided: dict[_Decision, Decision] = {}
        self._decided_any: dict[tuple[str, str, int, int], bool] = {}

    def __len__(self) -> int:
        return len(self._acls)

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._acls)

    def __contains__(self, acl: AclBinding) -> bool:
        return acl in self._acls

    def change(self, *, added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()) -> None:
        """Add and remove ACLs; those that are there already, or are not, change nothing. Decisions are forgotten."""
        for acl in removed:
            if acl in self._acls:
                del self._acls[acl]
                self._patterns[acl.resource_type].remove(acl)
        for acl in added:
            if acl not in self._acls:
                self._acls[acl] = None
                self._patterns[acl.resource_type].add(acl)
        self._decided.clear()
        self._decided_any.clear()

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether the principal may do this to the resource. `host` is an address as text."""
        return self.decide(principal, host, operation, resource_type, name).allowed

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Decision:
        """The decision with its rule.

        Deviation: Partita applies an ACL on the literal `*` also to names that begin with `*`, such as a group called
        `*x`, where Kafka does not, so that a DENY on every group misses it.
        """
        key = (principal, host, operation, resource_type, name)
        known = self._decided.get(key)
        if known is None:
            known = self._decide(principal, host, operation, resource_type, name)
            if len(self._decided) >= DECISIONS_MAX:
                self._decided.clear()
            self._decided[key] = known
        return known

    def _decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Decision:
        if principal in self.super_users:
            return _SUPER_USER
        hosts = _Hosts(host)
        implied = _IMPLIED_BY.get(operation, frozenset())
        allowing: AclBinding | None = None
        is_spoken_of = False
        for by_principal in self._patterns[resource_type].fitting(name):
            is_spoken_of = True
            for who in (principal, EVERYBODY):
                for acl in by_principal.get(who, ()):
                    if acl.host not in hosts:
                        continue
                    is_exact = acl.operation in (operation, Operation.ALL)
                    if acl.permission is Permission.DENY and is_exact:
                        return Decision(False, acl)
                    if acl.permission is Permission.ALLOW and (is_exact or acl.operation in implied):
                        allowing = allowing or acl
        if allowing is not None:
            return Decision(True, allowing)
        return _NOT_ALLOWED if is_spoken_of else _NO_ACL[self._allow_everyone]

    def allows_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether the principal may do this to at least one resource of the type. (authorizeByResourceType)

        An ALLOW counts if no DENY covers all that it allows: a literal `*`, the same name, or a prefix of it.
        """
        key = (principal, host, operation, resource_type)
        known = self._decided_any.get(key)
        if known is None:
            known = self._decided_any[key] = self.allows(
                principal, host, operation, resource_type, NO_SUCH_NAME
            ) or self._decide_some(principal, host, operation, resource_type)
            if len(self._decided_any) >= DECISIONS_MAX:
                self._decided_any.clear()
        return known

    def _decide_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        hosts = _Hosts(host)
        of_permission: Mapping[Permission, list[AclBinding]] = {Permission.DENY: [], Permission.ALLOW: []}
        for acl in self._patterns[resource_type].about(principal):
            if acl.host in hosts and acl.operation in (operation, Operation.ALL):
                of_permission[acl.permission].append(acl)
        denied = {(acl.pattern_type, acl.resource_name) for acl in of_permission[Permission.DENY]}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(not _is_covered(acl, denied) for acl in of_permission[Permission.ALLOW])

    def operations(self, principal: str, host: str, resource_type: int, name: str = CLUSTER_NAME) -> int:
        """Return the operations allowed to the principal on the resource, as bits: 1 << the operation's code."""
        supported = OPERATIONS[ResourceType(resource_type)]
        return sum(1 << op for op in map(int, supported) if self.allows(principal, host, op, resource_type, name))


def _is_covered(acl: AclBinding, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether nothing is left of what the ACL allows."""
    name = acl.resource_name
    if acl.pattern_type is PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:size]) in denied for size in range(1, len(name) + 1))
