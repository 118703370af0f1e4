"""An API that does not exist, added by the recipe of CONTRIBUTING alone: a schema and a handler."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import Any

import pytest

from partita import Broker
from partita.broker import handlers
from partita.broker.api.apis import SERVED, ServedApi
from partita.protocol import messages
from partita.protocol.api_table import APIS, Api
from partita.protocol.error_codes import ErrorCode
from partita.protocol.generate import index_source, module_source
from partita.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.schema_file import parse
from partita.security.rights.acls import Operation
from support.broker.askers import acl, allow, raw_as, secured

KEY, NAME = 900, "count_letters"
TOOL = Path(__file__).parents[2] / "tools" / "apis.py"
SCHEMA = """api 900 CountLetters
# Versions: 1 flexible.

request CountLettersRequest 0-1 flexible 1+
  topics []CountedTopic
    name string
    partitions []int32

response CountLettersResponse 0-1 flexible 1+
  throttle_time_ms int32
  results []CountedTopicResult
    name string
    partitions []CountedPartitionResult
      partition_index int32
      error_code int16
      letters int32
"""
HANDLER = '''"""CountLetters: how many letters the name of a topic has."""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Errors, Quota, Served
from partita.protocol.messages.count_letters import (
    CountedPartitionResult,
    CountedTopicResult,
    CountLettersRequest,
    CountLettersResponse,
)
from partita.security.rights.acls import Operation, ResourceType

API = Served(
    CountLettersRequest,
    rights=(NeedsEach(Operation.DESCRIBE, ResourceType.TOPIC, "topics", "results", "name"),),
    elements_max=20,
    errors=Errors(fields={"letters": -1}),
    quota=Quota("producer_byte_rate"),
    deviation="Partita counts letters, where Kafka counts none",
)


def handle(ctx: RequestContext, request: CountLettersRequest) -> CountLettersResponse:
    """Count the letters of each topic that exists."""
    results = []
    for topic in request.topics:
        letters = len(ctx.catalogue.by_name[topic.name].name)
        parts = [CountedPartitionResult(partition_index=number, letters=letters) for number in topic.partitions]
        results.append(CountedTopicResult(name=topic.name, partitions=parts))
    return CountLettersResponse(results=results)
'''


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The messages. The recipe is followed in a folder of its own; `make generate` would write into the source."""
    parsed = parse(SCHEMA)
    for package, source in ((messages, module_source(NAME, parsed)), (handlers, HANDLER)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / f"{NAME}.py").write_text(source)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    importlib.invalidate_caches()
    written: dict[str, Any] = {}
    exec(index_source({NAME: parsed}), written)
    (row,) = written["INDEX"]
    monkeypatch.setitem(APIS, KEY, Api(*row))
    handler = importlib.import_module(f"{handlers.__name__}.{NAME}")
    monkeypatch.setitem(SERVED, KEY, ServedApi(*run_path(str(TOOL))["index_row"](NAME, handler.API)))
    yield importlib.import_module(f"{messages.__name__}.{NAME}")
    for package in (messages, handlers):
        del sys.modules[f"{package.__name__}.{NAME}"]
        delattr(package, NAME)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with secured() as running:
        for name in ("open", "secret"):
            running.run(partial(running.cluster.create_topic, name, 1, 1))
        allow(running, acl("alice", Operation.DESCRIBE, "open"), acl("alice", Operation.DESCRIBE, "gone"))
        yield running


def letters(made_up: ModuleType, *names: str) -> Any:
    """A request about partitions 0 and 1 of these topics."""
    return made_up.CountLettersRequest(topics=[made_up.CountedTopic(name=name, partitions=[0, 1]) for name in names])


def facts(answer: Any) -> dict[str, list[tuple[int, int, int]]]:
    return {
        topic.name: [(part.partition_index, part.error_code, part.letters) for part in topic.partitions]
        for topic in answer.results
    }


@pytest.mark.parametrize("version", [0, 1])
def test_it_is_served_and_its_rights_are_kept(made_up: ModuleType, broker: Broker, version: int) -> None:
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with raw_as(broker, "alice") as alice:
        rows = {row.api_key: row for row in alice.ask(ApiVersionsRequest(), 0).api_keys}
        assert (rows[KEY].min_version, rows[KEY].max_version) == (0, 1)
        found = facts(alice.ask(letters(made_up, "open", "secret"), version))
        assert found == {"open": [(0, 0, 4), (1, 0, 4)], "secret": [(0, refused, -1), (1, refused, -1)]}


def test_its_errors_stand_where_the_schema_has_a_place_for_them(made_up: ModuleType, broker: Broker) -> None:
    """The handler fails for a topic that is gone, so the whole request does."""
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    with raw_as(broker, "alice") as alice:
        found = facts(alice.ask(letters(made_up, "open", "gone"), 1))
        assert found == {name: [(0, failed, -1), (1, failed, -1)] for name in ("open", "gone")}


def test_its_requests_count_against_the_quota(made_up: ModuleType, broker: Broker) -> None:
    entity, change = EntityData(entity_type="user", entity_name="alice"), OpData(key="producer_byte_rate", value=1)
    with raw_as(broker, "admin") as admin, raw_as(broker, "alice") as alice:
        assert alice.ask(letters(made_up, "open"), 1).throttle_time_ms == 0
        admin.ask(AlterClientQuotasRequest(entries=[EntryData(entity=[entity], ops=[change])]), 1)
        assert alice.ask(letters(made_up, "open"), 1).throttle_time_ms > 0
        assert admin.ask(letters(made_up, "open"), 1).throttle_time_ms == 0


def test_its_bounds_hold(made_up: ModuleType, broker: Broker) -> None:
    with raw_as(broker, "admin") as admin:
        admin.send(letters(made_up, *["open"] * 7), 1)
        assert admin.socket.recv(1) == b"", "7 topics with 2 partitions each are 21 elements"


def test_the_pages_show_it(made_up: ModuleType) -> None:
    rows = list(run_path(str(TOOL))["rights_rows"]([SERVED[KEY].declared]))
    assert rows == ["- **CountLetters**: DESCRIBE on each TOPIC"]
