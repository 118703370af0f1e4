"""Every API's answer when the whole request failed: it can be encoded at every version, and it says the code."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from typing import Any

import pytest

from partita.broker.requests.apis import TABLE, ServedApi, markdown_table
from partita.broker.requests.error_answers import error_answer
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Structure

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


@pytest.mark.parametrize("api", TABLE, ids=lambda api: api.name)
def test_every_version_has_an_answer_for_errors(api: ServedApi) -> None:
    request = filled(api.request)
    for name, value in FILLED.get(api.name, {}).items():
        setattr(request, name, value)
    for version in range(api.min_version, api.max_version + 1):
        answer = error_answer(api.key, version, request, CODE)
        assert answer is not None
        assert CODE in codes(answer)
        written = answer.encode(version)
        again = api.response.decode(written, version)
        assert CODE in codes(again) or (api.name, version) in HAS_NO_PLACE


def test_a_produce_request_without_acks_has_none() -> None:
    request = filled(next(api for api in TABLE if api.name == "Produce").request)
    request.acks = 0
    assert error_answer(0, 9, request, CODE) is None


@pytest.mark.parametrize("api", TABLE, ids=lambda api: api.name)
def test_every_row_of_the_table_has_its_handler(api: ServedApi) -> None:
    assert callable(api.handler)
    assert f"| {api.name} | {api.key} | {api.min_version}-{api.max_version} |" in markdown_table()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_row_of_the_table_names_a_handler_that_takes_its_request(row: ServedApi) -> None:
    """Handlers are imported at their first request, by the name in the table; this is what finds a wrong one."""
    module = import_module(f"partita.broker.handlers.{row.module}")
    assert row.module == re.sub(r"(?<!^)(?=[A-Z])", "_", row.name).lower(), "a handler's file is named after its API"
    context, request = inspect.signature(module.handle).parameters.values()
    assert (context.name, context.annotation) == ("ctx", "RequestContext")
    assert (request.name, request.annotation) == ("request", row.request.__name__)
    assert row.handler is module.handle
