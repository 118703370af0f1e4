"""The table of rights: a row for every API, and nothing told to whoever has no right. (security.md 15)"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from partita import Broker
from partita.broker.requests.apis import SERVED
from partita.broker.rights.table import RIGHTS, TABLE, markdown_table
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Structure
from support.broker.askers import forbid_all, raw_as, secured
from support.broker.everything import GROUP, REQUESTS, TOPIC
from support.broker.raw import Raw

OPEN_TO_ALL = {17, 18, 36, 60}
"""SaslHandshake, ApiVersions, SaslAuthenticate, DescribeCluster: nothing is needed."""
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
LISTS, DESCRIBE_LOG_DIRS = (16, 66), 35
"""ListGroups and ListTransactions have no error: what may not be seen is left out."""
CASES = {48: "SE-M08", 49: "SE-M08", 50: "SE-E14", 51: "SE-E14"}
VERSIONS = [
    pytest.param(key, version, id=f"{api.name}-{version}", marks=[pytest.mark.case(CASES[key])] if key in CASES else [])
    for key, api in SERVED.items()
    if key not in OPEN_TO_ALL
    for version in range(api.min_version, api.max_version + 1)
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured() as running:
        running.run(lambda: running.cluster.create_topic(TOPIC, 1, 1))
        with raw_as(running, "admin") as admin:
            admin.stable(GROUP)
        yield running


@pytest.fixture(scope="module")
def nobody(broker: Broker) -> Iterator[Raw]:
    forbid_all(broker)
    with raw_as(broker, "nobody") as raw:
        yield raw


def codes(value: object) -> Iterator[int]:
    """Every error code in a message."""
    if isinstance(value, Structure):
        for name in value.__slots__:
            inner = getattr(value, name)
            if name.endswith("error_code"):
                yield inner
            else:
                yield from codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from codes(inner)


def test_every_served_api_has_a_row_and_a_request_here() -> None:
    assert set(SERVED) <= set(RIGHTS)
    assert set(SERVED) - OPEN_TO_ALL <= set(REQUESTS), "tests/support/broker/everything.py needs another request"
    assert {row.api_key for row in TABLE if not row.checks} == OPEN_TO_ALL


@pytest.mark.case("SE-K34")
@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_whoever_has_no_right_is_told_nothing(broker: Broker, nobody: Raw, key: int, version: int) -> None:
    request = REQUESTS[key](version)
    if key in (0, 1) and version >= 13:
        topic_id = broker.run(lambda: broker.cluster.catalogue.by_name[TOPIC].topic_id)
        for topic in request.topic_data if key == 0 else request.topics:  # type: ignore[attr-defined]  # of these two
            topic.topic_id = topic_id
    answer: Message = nobody.ask(request, version)
    if key in LISTS:
        assert not getattr(answer, "groups" if key == LISTS[0] else "transaction_states")
        return
    if key == DESCRIBE_LOG_DIRS and version < 3:
        assert not answer.results  # type: ignore[attr-defined]  # DescribeLogDirs has them, and no place for a code
        return
    refused = set(codes(answer)) - {ErrorCode.NONE}
    assert refused, answer
    assert refused <= REFUSALS, answer


def test_the_page_is_printed_from_the_table() -> None:
    page = Path(__file__).parents[4] / "docs" / "rights.md"
    assert markdown_table() in page.read_text()
