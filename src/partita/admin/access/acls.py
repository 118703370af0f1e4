"""ACLs of a cluster: create, describe and delete them."""

from __future__ import annotations

from collections.abc import Iterable

from partita.admin.results import raise_failures
from partita.admin.topics import ask_controller
from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from partita.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from partita.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
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


async def create_acls(cluster: Cluster, acls: list[AclBinding]) -> None:
    """Add ACLs; those that are there already stay. Raises KafkaError or SomeFailed for those that are refused."""
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
        for acl in acls
    ]
    answer: CreateAclsResponse = await ask_controller(
        cluster, CreateAclsRequest(creations=creations), lambda a: [result.error_code for result in a.results]
    )
    failures: dict[str, KafkaError] = {
        str(acl): error_for(result.error_code, result.error_message)
        for acl, result in zip(acls, answer.results, strict=True)
        if result.error_code
    }
    raise_failures(failures, len(acls))


async def describe_acls(cluster: Cluster, wanted: AclFilter) -> list[AclBinding]:
    """The ACLs that the filter selects. Raises SecurityDisabledError where there is no authorizer."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer: DescribeAclsResponse = await ask_controller(cluster, request, lambda a: [a.error_code])
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    return [
        _binding(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


async def delete_acls(cluster: Cluster, wanted: list[AclFilter]) -> list[AclBinding]:
    """Remove the ACLs that the filters select and return them, each once. Raises KafkaError or SomeFailed."""
    filters = [
        DeleteAclsFilter(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        for each in wanted
    ]
    answer: DeleteAclsResponse = await ask_controller(
        cluster, DeleteAclsRequest(filters=filters), lambda a: [result.error_code for result in a.filter_results]
    )
    failures: dict[str, KafkaError] = {}
    removed: dict[AclBinding, None] = {}
    for each, result in zip(wanted, answer.filter_results, strict=True):
        if result.error_code:
            failures[repr(each)] = error_for(result.error_code, result.error_message)
        for acl in result.matching_acls:
            found = _binding(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            if acl.error_code:
                failures[str(found)] = error_for(acl.error_code, acl.error_message)
            else:
                removed[found] = None
    raise_failures(failures, len(wanted))
    return list(removed)


def filter_for(acl: AclBinding) -> AclFilter:
    """The filter that selects this ACL and no other."""
    return AclFilter(
        acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal, acl.host, acl.operation, acl.permission
    )


def _binding(
    kind: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int
) -> AclBinding:
    """Return an ACL of the wire; a code that only a later Kafka has is UNKNOWN."""
    return AclBinding(
        ResourceType(kind) if kind <= max(ResourceType) else ResourceType.UNKNOWN,
        name,
        principal,
        Operation(operation) if operation <= max(Operation) else Operation.UNKNOWN,
        Permission(permission),
        PatternType(pattern),
        host,
    )
