"""ACLs of a cluster: create, describe and delete them."""

from __future__ import annotations

from collections.abc import Iterable

from partita.admin.asking import Connected, ask_controller, ask_decided, ask_for_each
from partita.admin.missing_rights import needs
from partita.admin.results import raise_failures
from partita.errors import KafkaError, error_for
from partita.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from partita.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from partita.protocol.messages.describe_acls import AclDescription, DescribeAclsRequest, DescribeAclsResource
from partita.security.rights.acl_text import acls_of
from partita.security.rights.acls import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType


def bindings(given: Iterable[AclBinding | str]) -> list[AclBinding]:
    """Return ACLs given as such, or as lines of words. Raises AclTextError."""
    return [acl for each in given for acl in ([each] if isinstance(each, AclBinding) else acls_of(each))]


def filters(given: Iterable[AclFilter | AclBinding | str]) -> list[AclFilter]:
    """Filters as they are; for ACLs, filters that select just these. Raises AclTextError."""
    return [
        wanted
        for each in given
        for wanted in ([each] if isinstance(each, AclFilter) else map(filter_for, bindings([each])))
    ]


@needs(cluster="ALTER")
async def create_acls(self: Connected, *acls: AclBinding | str) -> None:
    """Add ACLs, each given as AclBinding or in words: "allow User:alice read,describe topic orders-*".

    Existing ACLs stay. Raises SecurityDisabledError where the cluster has no authorizer.
    """
    wanted = bindings(acls)
    creations = [
        AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in wanted
    ]
    await ask_for_each(
        self.cluster, CreateAclsRequest(creations=creations), lambda a: zip(map(str, wanted), a.results, strict=True)
    )


@needs(cluster="DESCRIBE")
async def describe_acls(self: Connected, wanted: AclFilter | None = None) -> list[AclBinding]:
    """The ACLs that a filter selects; all of them without one."""
    wanted = wanted or AclFilter()
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer = await ask_decided(self.cluster, request)
    return [_binding(resource, acl) for resource in answer.resources for acl in resource.acls]


@needs(cluster="ALTER")
async def delete_acls(self: Connected, *wanted: AclFilter | AclBinding | str) -> list[AclBinding]:
    """Remove the ACLs that filters select, or just these ACLs, and return the removed ones."""
    selected = filters(wanted)
    asked = [
        DeleteAclsFilter(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        for each in selected
    ]
    answer: DeleteAclsResponse = await ask_controller(
        self.cluster, DeleteAclsRequest(filters=asked), lambda a: [result.error_code for result in a.filter_results]
    )
    failures: dict[str, KafkaError] = {}
    removed: dict[AclBinding, None] = {}
    for each, result in zip(selected, answer.filter_results, strict=True):
        if result.error_code:
            failures[repr(each)] = error_for(result.error_code, result.error_message)
        for acl in result.matching_acls:
            found = _binding(acl, acl)
            if acl.error_code:
                failures[str(found)] = error_for(acl.error_code, acl.error_message)
            else:
                removed[found] = None
    raise_failures(failures, len(selected))
    return list(removed)


def filter_for(acl: AclBinding) -> AclFilter:
    """The filter that selects this ACL and no other."""
    return AclFilter(
        acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal, acl.host, acl.operation, acl.permission
    )


def _binding(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl, acl: AclDescription | DeleteAclsMatchingAcl
) -> AclBinding:
    """Return an ACL of the wire; a code that only a later Kafka has is UNKNOWN."""
    kind, operation = resource.resource_type, acl.operation
    return AclBinding(
        ResourceType(kind) if kind <= max(ResourceType) else ResourceType.UNKNOWN,
        resource.resource_name,
        acl.principal,
        Operation(operation) if operation <= max(Operation) else Operation.UNKNOWN,
        Permission(acl.permission_type),
        PatternType(resource.pattern_type),
        acl.host,
    )
