"""Checks of rights that belong to one API each, where a right per request or per item does not tell the story.

Mirrors KafkaApis and ControllerApis of Apache Kafka 4.3.1. (security.md 15)
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from partita.broker.rights.checks import (
    REFUSED_WITH,
    Fields,
    NeedsEach,
    Verdict,
    completed,
    part_refused,
    refused,
)
from partita.broker.rights.keeper import Asking
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import ZERO_UUID
from partita.security.rights.acls import Operation, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_ATTRIBUTES_AT, _IS_TRANSACTIONAL = 22, 0x10
"""Where the lower byte of a batch's attributes is, and its bit for transactions."""
_BY_ID_FROM = {"metadata": 12, "offset_fetch": 10, "delete_topics": 6}
_MANY_GROUPS_FROM = 8
_BROKERS_ADD_FROM = 4
_CONFIGS_ANSWERED_FROM = 5
_CONFIG_RESOURCES = {2: TOPIC, 4: CLUSTER, 8: CLUSTER, 16: CLUSTER, 32: GROUP}
"""Whose settings a type of config resource are: topics, brokers, loggers, client metrics, groups."""


def transactional_batches(asking: Asking, request: Fields) -> Verdict | None:
    """Produce: a batch of a transaction needs the right to write with the transactional id."""
    if not any(_is_transactional(data.records) for topic in request.topic_data for data in topic.partition_data):
        return None
    transactional_id, kind = request.transactional_id, ResourceType.TRANSACTIONAL_ID
    if transactional_id is not None and asking.may(Operation.WRITE, kind, transactional_id):
        return None
    return refused(asking, request, REFUSED_WITH[kind])


def _is_transactional(records: Any) -> bool:
    return records is not None and len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & _IS_TRANSACTIONAL != 0


def add_partitions_to_txn(asking: Asking, request: Fields) -> Verdict | None:
    """A client needs the right to write with the transactional id, a broker the right to act as one."""
    kind, name = CLUSTER, ""
    if asking.version < _BROKERS_ADD_FROM:
        kind, name = ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id
        is_allowed = asking.may(Operation.WRITE, kind, name)
    else:
        is_allowed = asking.may(Operation.CLUSTER_ACTION, kind)
    return None if is_allowed else refused(asking, request, REFUSED_WITH[kind])


def metadata(asking: Asking, request: Fields) -> Verdict | None:
    """Topics that may not be described are refused by name or id, and left out where all are asked for."""
    asked = request.topics
    if asked is None or (asking.version == 0 and not asked):
        return Verdict(complete=lambda answer: _leave_out_undescribed(asking, answer))
    kept, out = [], []
    for topic in asked:
        name, shown = topic.name, (topic.name, topic.topic_id)
        if asking.version >= _BY_ID_FROM["metadata"] and topic.topic_id != ZERO_UUID:
            found = asking.catalogue.by_id.get(topic.topic_id)
            name, shown = None if found is None else found.name, (None, topic.topic_id)
        if name is None or asking.may(Operation.DESCRIBE, TOPIC, name):
            kept.append(topic)
        else:
            out.append(shown)
    if request.allow_auto_topic_creation and asking.config.bool("auto.create.topics.enable"):
        kept, not_created = _creatable(asking, kept)
        out += not_created
    if not out:
        return None
    from partita.protocol.messages.metadata import MetadataResponseTopic

    entries = [MetadataResponseTopic(error_code=TOPIC_REFUSED, name=name, topic_id=id_) for name, id_ in out]
    is_nothing_left = asking.version == 0 and not kept
    request.topics = None if is_nothing_left else kept  # an empty list would ask for all topics in version 0

    def complete(answer: Fields) -> None:
        answer.topics = entries if is_nothing_left else [*answer.topics, *entries]

    return Verdict(complete=complete)


def _leave_out_undescribed(asking: Asking, answer: Fields) -> None:
    answer.topics = [t for t in answer.topics if asking.may(Operation.DESCRIBE, TOPIC, t.name, is_logged=False)]


def _creatable(asking: Asking, topics: list[Any]) -> tuple[list[Any], list[tuple[str, bytes]]]:
    """(Topics that exist or may be created, names and ids of those that may not)."""
    missing = {t.name for t in topics if t.name is not None and asking.catalogue.get(t.name) is None}
    if not missing or asking.may(Operation.CREATE, CLUSTER, is_logged=False):
        return topics, []
    not_created = missing - asking.may_all(Operation.CREATE, TOPIC, sorted(missing))
    kept = [topic for topic in topics if topic.name not in not_created]
    return kept, [(name, ZERO_UUID) for name in sorted(not_created)]


def consumer_group_heartbeat(asking: Asking, request: Fields) -> Verdict | None:
    """Whoever names a topic must be allowed to describe it, whether it exists or not."""
    names = list(dict.fromkeys(request.subscribed_topic_names or ()))
    if len(asking.may_all(Operation.DESCRIBE, TOPIC, names)) == len(names):
        return None
    return refused(asking, request, TOPIC_REFUSED)


def consumer_group_describe(asking: Asking, request: Fields) -> Verdict | None:
    """A group is told with all its topics or not at all."""

    def complete(answer: Fields) -> None:
        for group in answer.groups:
            topics = [name for member in group.members for name in _topics_of(member)]
            if len(asking.may_all(Operation.DESCRIBE, TOPIC, topics)) < len(set(topics)):
                group.error_code, group.members = TOPIC_REFUSED, []
                group.error_message = "The described group uses topics that the client is not authorized to describe."

    return Verdict(complete=complete)


def _topics_of(member: Fields) -> list[str]:
    parts = (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
    return [*member.subscribed_topic_names, *(part.topic_name for part in parts)]


def create_topics(asking: Asking, request: Fields) -> Verdict | None:
    """Creating needs a right on the cluster or on the topic; seeing the settings of a new topic needs another one."""
    verdict = _CREATED(asking, request)
    if verdict is not None and verdict.answer is not None:
        _say_authorization_failed(verdict.answer)
        return verdict

    def complete(answer: Fields) -> None:
        if asking.version >= _CONFIGS_ANSWERED_FROM:
            _hide_configs(asking, answer)
        if verdict is not None and verdict.complete is not None:
            verdict.complete(answer)
            _say_authorization_failed(answer)

    return Verdict(complete=complete)


_CREATED = NeedsEach(Operation.CREATE, TOPIC, "topics", "topics", "name", unless=Operation.CREATE)


def _say_authorization_failed(answer: Fields) -> None:
    for result in answer.topics:
        if result.error_code == TOPIC_REFUSED:
            result.error_message = "Authorization failed."


def _hide_configs(asking: Asking, answer: Fields) -> None:
    for result in answer.topics:
        may_see = asking.may(Operation.DESCRIBE_CONFIGS, TOPIC, result.name, is_logged=False)
        if not result.error_code and not may_see:
            result.topic_config_error_code = TOPIC_REFUSED
            result.configs, result.num_partitions, result.replication_factor = [], -1, -1


def delete_topics(asking: Asking, request: Fields) -> Verdict | None:
    """By name the refusal tells nothing; by id it tells the name to those who may describe the topic."""
    from partita.protocol.messages.delete_topics import DeletableTopicResult

    def refusal(name: str | None, topic_id: bytes = ZERO_UUID) -> DeletableTopicResult:
        message = "Topic authorization failed."
        return DeletableTopicResult(name=name, topic_id=topic_id, error_code=TOPIC_REFUSED, error_message=message)

    has_ids = asking.version >= _BY_ID_FROM["delete_topics"]
    kept, entries = [], []
    for item in request.topics if has_ids else request.topic_names:
        is_by_id = has_ids and item.name is None
        found = asking.catalogue.by_id.get(item.topic_id) if is_by_id else None
        name = (found.name if found is not None else None) if is_by_id else item.name if has_ids else item
        if name is None:
            kept.append(item)
        elif not asking.may(Operation.DESCRIBE, TOPIC, name):
            entries.append(refusal(None, item.topic_id) if is_by_id else refusal(name))
        elif not asking.may(Operation.DELETE, TOPIC, name):
            entries.append(refusal(name, item.topic_id if is_by_id else ZERO_UUID))
        else:
            kept.append(item)
    if not entries:
        return None
    setattr(request, "topics" if has_ids else "topic_names", kept)
    from partita.protocol.messages.delete_topics import DeleteTopicsResponse

    return completed(entries, "responses", None if kept else DeleteTopicsResponse(responses=entries))


def find_coordinator(asking: Asking, request: Fields) -> Verdict | None:
    """Each key needs DESCRIBE on the group or the transactional id that it names."""
    each = {0: _GROUP_KEYS, 1: _TRANSACTION_KEYS}.get(request.key_type if asking.version else 0)
    if each is None:
        return None
    if asking.version >= 4:
        return each(asking, request)
    is_allowed = asking.may(each.operation, each.kind, request.key)
    return None if is_allowed else refused(asking, request, REFUSED_WITH[each.kind])


_GROUP_KEYS = NeedsEach(Operation.DESCRIBE, GROUP, "coordinator_keys", "coordinators")
_TRANSACTION_KEYS = NeedsEach(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "coordinator_keys", "coordinators")


def sync_group(asking: Asking, request: Fields) -> Verdict | None:
    """From version 5 on a sync without protocol type or name is wrong, whoever sends it."""
    if asking.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return refused(asking, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return None


def list_groups(asking: Asking, request: Fields) -> Verdict | None:
    """Whoever may describe the cluster sees all groups, others those that they may describe."""
    if asking.may(Operation.DESCRIBE, CLUSTER, is_logged=False):
        return None

    def complete(answer: Fields) -> None:
        answer.groups = [
            group for group in answer.groups if asking.may(Operation.DESCRIBE, GROUP, group.group_id, is_logged=False)
        ]

    return Verdict(complete=complete)


def offset_fetch(asking: Asking, request: Fields) -> Verdict | None:
    """DESCRIBE on each group, then on each topic: named ones are refused, others left out."""
    if asking.version < _MANY_GROUPS_FROM:
        if not asking.may(Operation.DESCRIBE, GROUP, request.group_id):
            return refused(asking, request, REFUSED_WITH[GROUP])
        change = _offsets_of(asking, request)
        return Verdict(complete=lambda answer: None if answer.error_code else change(answer))
    verdict = _OFFSET_GROUPS(asking, request)
    if verdict is not None and verdict.answer is not None:
        return verdict
    changes = {group.group_id: _offsets_of(asking, group) for group in request.groups}

    def complete(answer: Fields) -> None:
        for group in answer.groups:
            if not group.error_code:
                changes[group.group_id](group)
        if verdict is not None and verdict.complete is not None:
            verdict.complete(answer)

    return Verdict(complete=complete)


_OFFSET_GROUPS = NeedsEach(Operation.DESCRIBE, GROUP, "groups", "groups", "group_id")


def _offsets_of(asking: Asking, asked: Fields) -> Any:
    """Take out of a group's request the topics that may not be described; return what changes its answer."""
    if asked.topics is None:

        def leave_out(answer: Fields) -> None:
            names = asking.may_all(Operation.DESCRIBE, TOPIC, [topic.name for topic in answer.topics])
            answer.topics = [topic for topic in answer.topics if topic.name in names]

        return leave_out
    by_id = asking.version >= _BY_ID_FROM["offset_fetch"]
    kept: list[Any] = []
    out: list[Any] = []
    for topic in asked.topics:
        found = asking.catalogue.by_id.get(topic.topic_id) if by_id else None
        name = (found.name if found is not None else None) if by_id else topic.name
        is_allowed = name is None or asking.may(Operation.DESCRIBE, TOPIC, name)
        (kept if is_allowed else out).append(topic)
    asked.topics = kept

    def add(answer: Fields) -> None:
        answer.topics = [*answer.topics, *(_refused_offsets(asking.version, topic) for topic in out)]

    return add


def _refused_offsets(version: int, topic: Fields) -> Any:
    from partita.protocol.messages import offset_fetch as m

    many = version >= _MANY_GROUPS_FROM
    kind: Any = m.OffsetFetchResponsePartitions if many else m.OffsetFetchResponsePartition
    partitions = [
        kind(partition_index=index, committed_offset=-1, metadata="", error_code=TOPIC_REFUSED)
        for index in topic.partition_indexes
    ]
    if many:
        return m.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
    return m.OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


def offset_delete(asking: Asking, request: Fields) -> Verdict | None:
    """READ on each topic. What is wrong with the group is told first."""
    from partita.protocol.messages.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic

    allowed = asking.may_all(Operation.READ, TOPIC, [topic.name for topic in request.topics])
    entries = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=TOPIC_REFUSED)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
        if topic.name not in allowed
    ]
    if not entries:
        return None
    request.topics = [topic for topic in request.topics if topic.name in allowed]

    def complete(answer: Fields) -> None:
        if not answer.error_code:
            answer.topics = [*answer.topics, *entries]

    return Verdict(complete=complete)


def configs(operation: Operation, answers: str) -> Any:
    """The check of the APIs about settings: a right on the topic, the group, or for brokers on the cluster."""

    def check(asking: Asking, request: Fields) -> Verdict | None:
        kept: list[Any] = []
        out: dict[ErrorCode, list[Any]] = defaultdict(list)
        for resource in request.resources:
            kind = _CONFIG_RESOURCES.get(resource.resource_type)
            names = (resource.resource_name,) if kind in (TOPIC, GROUP) else ()
            if kind is None or asking.may(operation, kind, *names):
                kept.append(resource)
            else:
                out[REFUSED_WITH[kind]].append(resource)
        request.resources = []
        parts = [part_refused(asking, request, code, "resources", each, answers) for code, each in out.items()]
        request.resources = kept
        if not parts:
            return None
        entries = [entry for part in parts for entry in getattr(part.answer, answers)]
        if kept:
            return completed(entries, answers)
        whole = parts[0].answer
        setattr(whole, answers, entries)
        return Verdict(whole)

    return check


def init_producer_id(asking: Asking, request: Fields) -> Verdict | None:
    """Without a transactional id, whoever may write to some topic may have a producer id."""
    if request.transactional_id is not None or asking.may(Operation.IDEMPOTENT_WRITE, CLUSTER, is_logged=False):
        return None
    if asking.may_some(Operation.WRITE, TOPIC):
        return None
    asking.may(Operation.IDEMPOTENT_WRITE, CLUSTER)  # for the audit log
    return refused(asking, request, REFUSED_WITH[CLUSTER])


def describe_topic_partitions(asking: Asking, request: Fields) -> Verdict | None:
    """Named topics are refused, others left out."""
    if request.topics:
        return _DESCRIBED(asking, request)
    from partita.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsResponse,
        DescribeTopicPartitionsTopic,
    )

    first = "" if request.cursor is None else request.cursor.topic_name
    names = [
        name
        for name in asking.catalogue.by_name
        if name >= first and asking.may(Operation.DESCRIBE, TOPIC, name, is_logged=False)
    ]
    if not names:
        return Verdict(DescribeTopicPartitionsResponse())
    request.topics = [DescribeTopicPartitionsTopic(name=name) for name in names]
    if first not in names:
        request.cursor = None
    return None


_DESCRIBED = NeedsEach(Operation.DESCRIBE, TOPIC, "topics", "topics", "name")
