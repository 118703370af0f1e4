"""AlterClientQuotas: each entity is checked and answered for itself. (Kafka: ClientQuotaControlManager.)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import CHANGES_MAX, Errors, Served
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntryData,
    EntityData,
    EntryData,
)
from partita.security.quotas import Entity, entity_of, entity_problem, key_problem, value_problem
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    AlterClientQuotasRequest,
    rights=(Needs(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),),
    elements_max=CHANGES_MAX,
    errors=Errors(says_why=True),
    deviation="Partita keeps the quota request_percentage and does not enforce it, where Kafka limits request threads",
)


def handle(ctx: RequestContext, request: AlterClientQuotasRequest) -> Steps[Answer]:
    """The good entries are kept with one write; with `validate_only` nothing is."""
    quotas = ctx.make_quotas()
    good: list[tuple[Entity, EntryData]] = []
    answers: list[AlteredEntryData] = []
    for entry in request.entries:
        yield None
        parts = [(part.entity_type, part.entity_name) for part in entry.entity]
        problem = entity_problem(parts) or _problem(entity_of(parts), entry)
        if problem is None:
            good.append((entity_of(parts), entry))
        answers.append(_answer(parts, problem))
    if not request.validate_only:
        changes: dict[Entity, dict[str, float]] = {}
        for entity, entry in good:  # without turns of others, who may change the same entities
            values = changes.setdefault(entity, dict(quotas.table.of(entity)))
            for op in entry.ops:
                values.pop(op.key, None)
                if not op.remove:
                    values[op.key] = op.value
        try:
            quotas.change(changes)
        except StorageError as error:
            for answer in answers:
                if not answer.error_code:
                    answer.error_code, answer.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return ctx.when_durable(AlterClientQuotasResponse(entries=answers))


def _problem(entity: Entity, entry: EntryData) -> str | None:
    found = (key_problem(entity, op.key) if op.remove else value_problem(entity, op.key, op.value) for op in entry.ops)
    return next((problem for problem in found if problem is not None), None)


def _answer(parts: list[tuple[str, str | None]], problem: str | None) -> AlteredEntryData:
    return AlteredEntryData(
        error_code=ErrorCode.NONE if problem is None else ErrorCode.INVALID_REQUEST,
        error_message=problem,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
    )
