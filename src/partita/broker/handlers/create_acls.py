"""CreateAcls: each ACL is checked and answered for itself; the good ones are kept with one write. (Kafka: AclApis.)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import CHANGES_MAX, Errors, Served
from partita.broker.handlers._acls import NO_AUTHORIZER
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from partita.security.rights.acls import AclBinding, Operation, PatternType, Permission, ResourceType, problem_of

API = Served(
    CreateAclsRequest,
    rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),),
    elements_max=CHANGES_MAX,
    errors=Errors(says_why=True),
)


def handle(ctx: RequestContext, request: CreateAclsRequest) -> Steps[Answer]:
    """An ACL that is there already is a success and changes nothing."""
    rights = ctx.rights
    if rights is None:
        refusal = (ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return CreateAclsResponse(results=[_result(*refusal) for _ in request.creations])
    problems = []
    for asked in request.creations:
        yield None
        problems.append(_problem(asked))
    good = [_acl(asked) for asked, problem in zip(request.creations, problems, strict=True) if problem is None]
    done = _result(ErrorCode.NONE, "")
    try:
        rights.change(added=good)
    except StorageError as error:
        done = _result(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    return ctx.when_durable(
        CreateAclsResponse(
            results=[done if problem is None else _result(ErrorCode.INVALID_REQUEST, problem) for problem in problems]
        )
    )


def _problem(asked: AclCreation) -> str | None:
    return problem_of(
        asked.resource_type,
        asked.resource_name,
        asked.resource_pattern_type,
        asked.principal,
        asked.host,
        asked.operation,
        asked.permission_type,
    )


def _result(code: ErrorCode, message: str) -> AclCreationResult:
    return AclCreationResult(error_code=code, error_message=message)


def _acl(asked: AclCreation) -> AclBinding:
    return AclBinding(
        ResourceType(asked.resource_type),
        asked.resource_name,
        asked.principal,
        Operation(asked.operation),
        Permission(asked.permission_type),
        PatternType(asked.resource_pattern_type),
        asked.host,
    )
