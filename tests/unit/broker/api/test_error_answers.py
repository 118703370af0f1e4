"""Every API's answer when the whole request failed: it can be encoded at every version, and it says the code."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from partita.broker.api.apis import SERVED, ServedApi
from partita.broker.api.error_answers import error_answer
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import alter_replica_log_dirs, delete_groups, describe_groups, fetch, produce
from partita.protocol.primitives import Message, Structure
from support.every_case import every_case

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE
FILLED: dict[str, dict[str, Any]] = {
    "Produce": {"acks": 1},
    "JoinGroup": {"member_id": "m"},
}


def filled(kind: type[Structure]) -> Any:
    """A request with one entry in every list whose element type the class shows."""
    request = kind()
    hints = inspect.signature(kind.__init__).parameters
    module = vars(sys.modules[kind.__module__])
    for name, parameter in hints.items():
        text = str(parameter.annotation)
        if not text.startswith("list["):
            continue
        element = text.removeprefix("list[").partition("]")[0]
        known: dict[str, Any] = {"str": "x", "int": 0, "bytes": bytes(16)}
        value = known[element] if element in known else filled(module[element])
        setattr(request, name, [value])
    return request


def codes(answer: object) -> set[int]:
    found: set[int] = set()
    if isinstance(answer, list):
        for item in answer:
            found |= codes(item)
    elif isinstance(answer, Structure):
        for name in answer.__slots__:
            value = getattr(answer, name)
            found |= {value} if name.endswith("error_code") else codes(value)
    return found


HAS_NO_PLACE = {("DescribeLogDirs", 1), ("DescribeLogDirs", 2)}
"""A refusal looks like a broker without folders, in Kafka too."""


@every_case("api", SERVED.values(), lambda api: api.name)
def test_every_version_has_an_answer_for_errors(api: ServedApi) -> None:
    request = filled(api.request)
    for name, value in FILLED.get(api.name, {}).items():
        setattr(request, name, value)
    for version in range(api.min_version, api.max_version + 1):
        asked = api.request.decode(request.encode(version), version)
        answer = error_answer(api.key, version, asked, CODE)
        assert answer is not None
        assert CODE in codes(answer)
        written = answer.encode(version)
        again = api.response.decode(written, version)
        assert CODE in codes(again) or (api.name, version) in HAS_NO_PLACE


def test_a_produce_request_without_acks_has_none() -> None:
    request = filled(next(api for api in SERVED.values() if api.name == "Produce").request)
    request.acks = 0
    assert error_answer(0, 9, request, CODE) is None


def answer_of(request: Message, version: int) -> Any:
    """The error answer to a request, as a client of that version reads it."""
    kind = type(request)
    answer = error_answer(kind.API_KEY, version, kind.decode(request.encode(version), version), CODE)
    assert answer is not None
    return type(answer).decode(answer.encode(version), version)


def test_lists_of_the_answer_mirror_those_of_the_request() -> None:
    asked = produce.PartitionProduceData(index=7, records=b"r")
    topic = produce.TopicProduceData(name="t", partition_data=[asked])
    (answered,) = answer_of(produce.ProduceRequest(acks=1, topic_data=[topic]), 9).responses
    assert answered == produce.TopicProduceResponse(
        name="t",
        partition_responses=[produce.PartitionProduceResponse(index=7, error_code=CODE, base_offset=-1)],
    )


def test_items_without_a_name_stand_for_those_that_they_hold() -> None:
    """AlterReplicaLogDirs asks by directory, and is answered by topic."""
    topics = [alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=[1, 2]) for name in "ab"]
    dirs = [alter_replica_log_dirs.AlterReplicaLogDir(path="/", topics=topics)]
    results = answer_of(alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    found = [
        (topic.topic_name, part.partition_index, part.error_code) for topic in results for part in topic.partitions
    ]
    assert found == [("a", 1, CODE), ("a", 2, CODE), ("b", 1, CODE), ("b", 2, CODE)]


def test_a_name_asked_about_twice_is_answered_as_kafka_does() -> None:
    """Once where Kafka keeps the results in a set, twice elsewhere."""
    once = answer_of(delete_groups.DeleteGroupsRequest(groups_names=["g", "g"]), 2).results
    twice = answer_of(describe_groups.DescribeGroupsRequest(groups=["g", "g"]), 5).groups
    assert ([each.group_id for each in once], [each.group_id for each in twice]) == (["g"], ["g", "g"])


def test_the_code_stands_at_the_top_in_versions_that_have_a_place_there() -> None:
    topics = [fetch.FetchTopic(topic="t", partitions=[fetch.FetchPartition(partition=3)])]
    request = fetch.FetchRequest(session_id=5, topics=topics)
    before, since = answer_of(request, 6), answer_of(request, 12)
    (partition,) = before.responses[0].partitions
    assert (partition.partition_index, partition.error_code, partition.high_watermark) == (3, CODE, -1)
    assert (since.error_code, since.session_id, since.responses) == (CODE, 5, [])
