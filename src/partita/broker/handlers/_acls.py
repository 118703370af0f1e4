"""Filters of ACLs as requests carry them."""

from __future__ import annotations

from typing import Protocol

from partita.security.rights.acls import AclFilter, Operation, PatternType, Permission, ResourceType

NO_AUTHORIZER = "No Authorizer is configured."


class FilterFields(Protocol):
    """The fields of a filter, in whatever request."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(asked: FilterFields) -> AclFilter:
    """The filter that the fields make; their codes are checked already."""
    return AclFilter(
        ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        PatternType(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        Operation(asked.operation),
        Permission(asked.permission_type),
    )
