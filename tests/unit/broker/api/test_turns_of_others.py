"""A handler that walks an array of its request offers others their turn at each element (decision 100).

For every array of every API that is served, one request makes it wide; the steps that its handler takes are counted.
A new API is in this test as soon as it is served.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from partita.broker.api import context
from partita.broker.api.apis import SERVED, ServedApi
from partita.broker.api.context import AT_ONCE, RequestContext, handled
from partita.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from partita.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from partita.protocol.primitives import Message
from partita.security.principals import KafkaPrincipal
from support.broker.data_plane import DataPlane, data_plane
from support.share.persister import MemoryPersister

Path = tuple[str, ...]


def element_of(hint: Any) -> tuple[Any, bool]:
    """The type of a field without None, or of its elements; and whether it is an array."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)


def fields_of(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind.__init__, vars(sys.modules[kind.__module__]))
    return {name: element_of(hint) for name, hint in hints.items() if name != "return"}


def is_structure(kind: Any) -> bool:
    return kind not in (bool, int, str, float, bytes) and hasattr(kind, "__slots__")


def arrays_of(kind: Any) -> Iterator[Path]:
    for name, (element, is_array) in fields_of(kind).items():
        if is_array:
            yield (name,)
        if is_structure(element):
            for path in arrays_of(element):
                yield (name, *path)


def arrays_named(api: str, request: type[Message]) -> list[tuple[str, str]]:
    return [(api, ".".join(path)) for path in arrays_of(request)]


WIDE = AT_ONCE + 50
BY_A_SHARD = "its shard takes a request in one step"
AS_A_SET = "it is made a set, in one step"
OF_ONE = "of one topic or resource, which is changed in one step"
OF_NO_GROUP = "it is not looked at, since the group does not exist"
FEW = "2,000 elements at most"
IN_ONE_STEP = {
    ("JoinGroup", "protocols"): BY_A_SHARD,
    ("LeaveGroup", "members"): BY_A_SHARD,
    ("SyncGroup", "assignments"): BY_A_SHARD,
    ("ConsumerGroupHeartbeat", "subscribed_topic_names"): BY_A_SHARD,
    ("ConsumerGroupHeartbeat", "topic_partitions"): BY_A_SHARD,
    ("ConsumerGroupHeartbeat", "topic_partitions.partitions"): BY_A_SHARD,
    ("ShareGroupHeartbeat", "subscribed_topic_names"): BY_A_SHARD,
    **dict.fromkeys(arrays_named("StreamsGroupHeartbeat", StreamsGroupHeartbeatRequest), BY_A_SHARD),
    **dict.fromkeys(
        arrays_named("StreamsGroupTopologyDescriptionUpdate", StreamsGroupTopologyDescriptionUpdateRequest),
        "it is not looked at",
    ),
    ("AlterShareGroupOffsets", "topics"): BY_A_SHARD,
    ("AlterShareGroupOffsets", "topics.partitions"): BY_A_SHARD,
    ("DeleteShareGroupOffsets", "topics"): BY_A_SHARD,
    ("DescribeShareGroupOffsets", "groups.topics"): OF_NO_GROUP,
    ("DescribeShareGroupOffsets", "groups.topics.partitions"): OF_NO_GROUP,
    ("Fetch", "forgotten_topics_data"): "one look-up each, of a session that nobody else sees",
    ("Fetch", "forgotten_topics_data.partitions"): "one look-up each, of a session that nobody else sees",
    ("ShareFetch", "topics.partitions.acknowledgement_batches.acknowledge_types"): "one comparison each",
    ("ShareAcknowledge", "topics.partitions.acknowledgement_batches.acknowledge_types"): "one comparison each",
    ("ListGroups", "states_filter"): AS_A_SET,
    ("ListGroups", "types_filter"): AS_A_SET,
    ("ListTransactions", "state_filters"): AS_A_SET,
    ("ListTransactions", "producer_id_filters"): AS_A_SET,
    ("ListConfigResources", "resource_types"): AS_A_SET,
    ("DescribeConfigs", "resources.configuration_keys"): AS_A_SET,
    ("ListPartitionReassignments", "topics"): "it is not looked at",
    ("ListPartitionReassignments", "topics.partition_indexes"): "it is not looked at",
    ("CreateTopics", "topics.assignments"): OF_ONE,
    ("CreateTopics", "topics.assignments.broker_ids"): OF_ONE,
    ("CreateTopics", "topics.configs"): OF_ONE,
    ("CreatePartitions", "topics.assignments"): OF_ONE,
    ("CreatePartitions", "topics.assignments.broker_ids"): OF_ONE,
    ("AlterConfigs", "resources.configs"): OF_ONE,
    ("IncrementalAlterConfigs", "resources.configs"): OF_ONE,
    ("AlterPartitionReassignments", "topics.partitions.replicas"): OF_ONE,
    ("AlterClientQuotas", "entries.entity"): FEW,
    ("AlterClientQuotas", "entries.ops"): FEW,
    ("CreateDelegationToken", "renewers"): FEW,
}
"""Arrays that are walked without turns, and why that is short."""


@pytest.fixture(scope="module")
def plane() -> Iterator[DataPlane]:
    settings: dict[str, Any] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:u",
        "delegation.token.secret.key": "secret",
    }
    with data_plane(**settings) as made:
        made.services.persister = MemoryPersister().answer
        yield made


def filled(kind: Any, path: Path, number: int, *, is_bare: bool) -> Any:
    """A structure whose array at `path` is wide; arrays on the way and, unless it `is_bare`, below have one element."""
    if kind is str:
        return f"t-{number}"
    if kind is bytes:
        return number.to_bytes(16, "big")
    if not is_structure(kind):
        return kind(number)
    values: dict[str, Any] = {}
    for name, (element, is_array) in fields_of(kind).items():
        is_on_path = path[:1] == (name,)
        below = path[1:] if is_on_path else ()
        count = WIDE if is_on_path and not below else 1 if is_on_path or not is_bare else 0
        if is_array:
            values[name] = [filled(element, below, at, is_bare=is_bare) for at in range(count)]
        elif is_structure(element) and is_on_path:
            values[name] = filled(element, below, number, is_bare=is_bare)
        elif element is str or (element is bytes and name.endswith("id")):
            values[name] = filled(element, (), number, is_bare=is_bare)
        elif element is int and name in ("partition", "index", "partition_index"):
            values[name] = number
        elif name == "acks":
            values[name] = 1
    return kind(**values)


def length_at(value: Any, path: Path) -> int:
    found = getattr(value, path[0])
    if len(path) == 1:
        return len(found or ())
    inner = found if isinstance(found, list) else [found]
    return max((length_at(each, path[1:]) for each in inner), default=0)


def served_version(api: ServedApi, request: Message, path: Path) -> int:
    """The last version that carries the array."""
    for version in range(api.max_version, api.min_version - 1, -1):
        try:
            if length_at(api.request.decode(request.encode(version), version), path) == WIDE:
                return version
        except (ValueError, AttributeError):
            continue
    raise AssertionError(f"no version of {api.name} carries {path}")


ARRAYS = [(api, path) for api in SERVED.values() for path in arrays_of(api.request)]
CASES = [(api, path) for api, path in ARRAYS if (api.name, ".".join(path)) not in IN_ONE_STEP]


@pytest.mark.parametrize("is_bare", [False, True], ids=["filled", "bare"])
@pytest.mark.parametrize(("api", "path"), CASES, ids=[f"{api.name}-{'.'.join(path)}" for api, path in CASES])
def test_each_element_is_a_turn(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch, api: ServedApi, path: Path, *, is_bare: bool
) -> None:
    """Issue 26.3: 20,000 elements of one request must not be one slice."""
    request = filled(api.request, path, 0, is_bare=is_bare)
    version = served_version(api, request, path)
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    turns = []
    wait = plane.services.turns.wait

    def counted(go_on: Any) -> None:
        turns.append(go_on)
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "wait", counted)
    ctx = RequestContext(plane.services, plane.node, api.key, version, client_id="wide", connection=plane.connection)
    ctx.principal = KafkaPrincipal("User", "u")

    async def answer() -> Any:
        given = handled(ctx, api.handler, api.request.decode(request.encode(version), version))
        return given if given is None or isinstance(given, Message) else await given

    assert isinstance(plane.loop.run_until_complete(answer()), Message)
    assert len(turns) >= WIDE


def test_what_takes_one_step_is_still_served() -> None:
    assert IN_ONE_STEP.keys() <= {(api.name, ".".join(path)) for api, path in ARRAYS}
