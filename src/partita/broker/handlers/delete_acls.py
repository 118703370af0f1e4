"""DeleteAcls: each filter's ACLs are removed; one ACL may be reported by several filters. (Kafka: AclApis.)

Deviation: Partita refuses further filters of a DeleteAcls with INVALID_REQUEST once 100,000 ACLs are selected, where
Kafka reports every ACL.
"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps, settled
from partita.broker.api.needs import Needs
from partita.broker.api.served import CHANGES_MAX, Errors, Served
from partita.broker.handlers._acls import NO_AUTHORIZER, filter_of
from partita.broker.permits.rights import Rights
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from partita.security.rights.acls import AclBinding, Operation, ResourceType, filter_problem

API = Served(
    DeleteAclsRequest,
    rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),),
    elements_max=CHANGES_MAX,
    errors=Errors(says_why=True),
)

REPORTED_MAX = 100_000
"""Number of ACLs, counted per filter, that a request reports before it refuses filters."""
_TOO_MANY = "the filters before this one have selected too many ACLs for one answer; send it in a request of its own"


def handle(ctx: RequestContext, request: DeleteAclsRequest) -> Answer | Steps[Answer]:
    """Apply every filter to the ACLs as they were before the first removal."""
    rights = ctx.rights
    if rights is None:
        refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[refusal for _ in request.filters])
    return _answer(ctx, rights, request)


def _answer(ctx: RequestContext, rights: Rights, request: DeleteAclsRequest) -> Steps[DeleteAclsResponse]:
    results: list[DeleteAclsFilterResult] = []
    removed: dict[AclBinding, None] = {}
    reported = 0
    for asked in request.filters:
        yield None
        problem = _TOO_MANY if reported >= REPORTED_MAX else _problem(asked)
        if problem is not None:
            results.append(DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=problem))
            continue
        found = rights.found(filter_of(asked))
        reported += len(found)
        removed.update(dict.fromkeys(found))
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=[_matching(acl) for acl in found]))
    try:
        rights.change(removed=removed)
    except StorageError as error:
        refusal = DeleteAclsFilterResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(error))
        results = [refusal if result.matching_acls else result for result in results]
    durable: DeleteAclsResponse = yield from settled(ctx.when_durable(DeleteAclsResponse(filter_results=results)))
    return durable


def _problem(asked: DeleteAclsFilter) -> str | None:
    return filter_problem(asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)


def _matching(acl: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
