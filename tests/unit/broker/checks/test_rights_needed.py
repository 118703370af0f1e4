"""The rights that handlers declare: a client without any learns nothing. (security.md 15)"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Broker
from partita.broker.api.apis import SERVED, ServedApi
from partita.broker.api.needs import Checked
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Structure
from support.broker.askers import forbid_all, raw_as, secured
from support.broker.everything import GROUP, TOPIC, one_of_each
from support.broker.raw import Raw
from support.every_case import every_case

OPEN_TO_ALL = {17, 18, 36, 60, 71, 72}
"""SaslHandshake, ApiVersions, SaslAuthenticate, DescribeCluster: nothing is needed."""
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
}
LISTS, DESCRIBE_LOG_DIRS = {16: "groups", 41: "tokens", 66: "transaction_states"}, 35
"""ListGroups, DescribeDelegationToken and ListTransactions have no error: what may not be seen is left out."""
OF_ONES_OWN = {(38, 1), (38, 2)}
"""CreateDelegationToken before version 3 lends one's own login alone, which needs no right."""
CASES = {48: "SE-M08", 49: "SE-M08", 50: "SE-E14", 51: "SE-E14"}
VERSIONS = [
    pytest.param(key, version, id=f"{api.name}-{version}", marks=[pytest.mark.case(CASES[key])] if key in CASES else [])
    for key, api in SERVED.items()
    if key not in OPEN_TO_ALL
    for version in range(api.min_version, api.max_version + 1)
    if (key, version) not in OF_ONES_OWN
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured(delegation_token_secret_key="key") as running:
        running.run(lambda: running.cluster.create_topic(TOPIC, 1, 1))
        with raw_as(running, "admin") as admin:
            admin.stable(GROUP)
            assert admin.ask(one_of_each(38), 1).error_code == 0, "a token of the admin's"
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


def test_every_served_api_but_these_needs_rights() -> None:
    assert {key for key, api in SERVED.items() if not api.declared.rights} == OPEN_TO_ALL


@pytest.mark.case("SE-K34")
@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_whoever_has_no_right_is_told_nothing(broker: Broker, nobody: Raw, key: int, version: int) -> None:
    request = one_of_each(key)
    if key in (0, 1) and version >= 13:
        topic_id = broker.run(lambda: broker.cluster.catalogue.by_name[TOPIC].topic_id)
        for topic in request.topic_data if key == 0 else request.topics:  # type: ignore[attr-defined]  # of these two
            topic.topic_id = topic_id
    if key in (39, 40):
        (token,) = broker.run(broker.running.services.delegation_tokens().every)
        request.hmac = broker.running.services.delegation_tokens().hmac_of(token.token_id)  # type: ignore[attr-defined]
    answer: Message = nobody.ask(request, version)
    if key in LISTS:
        assert not getattr(answer, LISTS[key])
        return
    if key == DESCRIBE_LOG_DIRS and version < 3:
        assert not answer.results  # type: ignore[attr-defined]  # DescribeLogDirs has them, and no place for a code
        return
    refused = set(codes(answer)) - {ErrorCode.NONE}
    assert refused, answer
    assert refused <= REFUSALS, answer


@every_case("api", SERVED.values(), lambda api: api.name)
def test_a_check_of_its_own_stands_beside_its_declaration(api: ServedApi) -> None:
    is_declared = any(isinstance(need, Checked) for need in api.declared.rights)
    assert is_declared == hasattr(api.module, "check_rights")
