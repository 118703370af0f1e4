"""DescribeAcls: the ACLs that a filter selects, resource by resource. (Kafka: AclApis.)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.broker.handlers._acls import filter_of
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from partita.security.rights.acls import AclBinding, Operation, ResourceType, filter_problem

API = Served(
    DescribeAclsRequest,
    rights=(Needs(Operation.DESCRIBE, ResourceType.CLUSTER),),
    errors=Errors(says_why=True),
)


def handle(ctx: RequestContext, request: DescribeAclsRequest) -> Steps[DescribeAclsResponse]:
    """Resources stand in the order in which their first ACL was added."""
    rights = ctx.rights
    if rights is None:
        message = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)
    problem = filter_problem(
        request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
    )
    if problem is not None:
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=problem)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in rights.found(filter_of(request)):
        yield None
        pattern = (int(acl.resource_type), acl.resource_name, int(acl.pattern_type))
        if pattern not in resources:
            kind, name, pattern_type = pattern
            resources[pattern] = DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern_type)
        resources[pattern].acls.append(_described(acl))
    return DescribeAclsResponse(resources=list(resources.values()))


def _described(acl: AclBinding) -> AclDescription:
    return AclDescription(
        principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
    )
