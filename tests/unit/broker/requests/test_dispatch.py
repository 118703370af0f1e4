"""The dispatcher: whatever goes wrong with one request stays with that request."""

from __future__ import annotations

import logging

import pytest

from partita import Broker
from partita.broker.handlers import list_groups
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.broker.raw import Raw


@pytest.mark.parametrize("version", [10, 11, 12])
def test_a_topic_with_neither_name_nor_the_right_to_an_id_is_an_invalid_request(raw: Raw, version: int) -> None:
    """C5: Kafka's answer; before version 12 a topic must have a name."""
    topic = MetadataRequestTopic(name=None, topic_id=bytes(16) if version == 12 else b"\7" * 16)
    answer = raw.ask(MetadataRequest(topics=[topic]), version)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
    assert (answer.brokers, answer.controller_id) == ([], -1)


@pytest.mark.parametrize(
    ("version", "code"), [(10, ErrorCode.INVALID_REQUEST), (11, ErrorCode.INVALID_REQUEST), (12, 0)]
)
def test_a_topic_has_no_id_beside_its_name_before_version_12(broker: Broker, raw: Raw, version: int, code: int) -> None:
    topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=topic_id)])
    assert [topic.error_code for topic in raw.ask(request, version).topics] == [code]


def test_a_response_that_cannot_be_encoded_becomes_the_error_answer(
    broker: Broker, raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C5: the error stays inside the dispatcher, and the connection goes on."""
    broken = ListGroupsResponse(throttle_time_ms="soon")  # type: ignore[arg-type]  # what cannot be encoded
    monkeypatch.setattr(list_groups, "handle", lambda ctx, request: broken)
    broker.run(lambda: _forget_handler(16))
    with caplog.at_level(logging.ERROR, "partita.broker"):
        assert raw.ask(ListGroupsRequest(), 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert raw.ask(ApiVersionsRequest(), 0).error_code == 0
    assert "ListGroups v4" in caplog.text
    monkeypatch.undo()
    broker.run(lambda: _forget_handler(16))


def _forget_handler(api_key: int) -> None:
    from partita.broker.api.apis import SERVED

    vars(SERVED[api_key]).pop("handler", None)


def test_failures_are_logged_at_a_limited_rate_and_escaped(
    broker: Broker, raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C5, H36: a request that fails again and again, with bytes of the peer in its error, does not fill the log."""

    def fail(ctx: object, request: object) -> None:
        raise LookupError("\x1b]0;owned\n")

    monkeypatch.setattr(list_groups, "handle", fail)
    broker.run(lambda: _forget_handler(16))
    try:
        with caplog.at_level(logging.ERROR, "partita.broker"):
            for _ in range(30):
                assert raw.ask(ListGroupsRequest(), 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    finally:
        monkeypatch.undo()
        broker.run(lambda: _forget_handler(16))
    assert len(caplog.records) == 10
    assert "\x1b" not in caplog.text
    assert "LookupError: '\\x1b]0;owned\\n'" in caplog.text
