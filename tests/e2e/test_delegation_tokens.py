"""Delegation tokens from login to login: our clients against a broker of ours. (Issue 25, item 10)

No other Python client asks for tokens or logs in with one; Java's tools do so in the conformance tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita import Admin, AsyncAdmin, Broker, Consumer, Producer
from partita.admin import DelegationToken
from partita.errors import (
    AuthenticationError,
    DelegationTokenAuthDisabledError,
    DelegationTokenOwnerMismatchError,
    DelegationTokenRequestNotAllowedError,
)
from partita.secret import Secret
from partita.security import scram
from support.broker.secured import SecuredRaw
from support.loops import in_loop

ACLS = ["allow User:alice all topic *", "allow User:alice all group *"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    users = {"alice": "alice's", "bob": "bob's"}
    with Broker({"delegation.token.secret.key": "key"}, users=users, acls=ACLS) as running:
        running.create_topics({"orders": 1})
        yield running


@pytest.fixture
def alice(broker: Broker) -> Iterator[Admin]:
    with Admin(**broker.client_options("alice")) as admin:
        yield admin


def by_token(broker: Broker, token: DelegationToken, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
    login = {"sasl_username": token.token_id, "sasl_password": token.password, "sasl_scram_tokenauth": True}
    return {**broker.client_options("alice"), **login, "sasl_mechanism": mechanism}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_whoever_has_a_token_is_its_owner(broker: Broker, alice: Admin, mechanism: str) -> None:
    login = by_token(broker, alice.create_delegation_token(), mechanism)
    with Producer(**login) as producer, Consumer(**login) as consumer:
        offset = producer.send("orders", mechanism.encode()).result(60).offset
        consumer.assign([("orders", 0)])
        consumer.seek(("orders", 0), offset)
        assert [record.value for record in consumer.poll(60)] == [mechanism.encode()]


def test_a_token_makes_no_tokens_and_is_managed_by_owner_and_renewers(broker: Broker, alice: Admin) -> None:
    token = alice.create_delegation_token(renewers="bob")
    with Admin(**by_token(broker, token)) as lent, pytest.raises(DelegationTokenRequestNotAllowedError):
        lent.create_delegation_token()
    with Admin(**broker.client_options("bob")) as bob:
        assert bob.describe_delegation_tokens() == [token]
        ends_ms = bob.renew_delegation_token(token, renew_period_ms=60_000)
        (shortened,) = bob.describe_delegation_tokens("alice")
        assert shortened.expiry_timestamp_ms == ends_ms < token.expiry_timestamp_ms
        another = alice.create_delegation_token()
        with pytest.raises(DelegationTokenOwnerMismatchError):
            bob.expire_delegation_token(another)
        bob.expire_delegation_token(token.password)
        assert bob.describe_delegation_tokens() == []
    refused = pytest.raises(AuthenticationError, match="invalid credentials")
    with refused, Admin(**by_token(broker, token)):
        pass
    assert repr(token.hmac) not in repr(token)
    with pytest.raises(ValueError, match="this text is not base64"):
        alice.renew_delegation_token("no base64!")
    with pytest.raises(ValueError, match="a principal is written User:alice"):
        alice.create_delegation_token(owner="User:")


def test_a_running_client_goes_on_with_another_token(broker: Broker, alice: Admin) -> None:
    first, second = alice.create_delegation_token(), alice.create_delegation_token()
    with Admin(**by_token(broker, first)) as lent:
        alice.expire_delegation_token(first)
        assert [topic.name for topic in lent.list_topics()] == ["orders"], "open connections stay"
        lent.set_sasl_credentials(second.token_id, second.password)
        broker.control.drop("Metadata")
        assert [topic.name for topic in lent.list_topics()] == ["orders"]


def test_a_session_ends_with_its_token(broker: Broker, alice: Admin) -> None:
    """Raw, since a client of ours renews its login in time, which fails then."""
    token = alice.create_delegation_token(max_lifetime_ms=1_500)
    with SecuredRaw(broker.port) as raw:
        assert raw.handshake("SCRAM-SHA-256").error_code == 0
        client = scram.ScramClient("SCRAM-SHA-256", token.token_id, "n" * 16, is_delegation_token=True)
        challenge = client.challenged(bytes(raw.authenticate(client.first()).auth_bytes))
        password = Secret(token.password)
        salted = scram.salted_password("SCRAM-SHA-256", password, challenge.salt, challenge.iterations)
        answer = raw.authenticate(client.final(challenge, salted))
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= 1_500
        with pytest.raises((EOFError, ConnectionError)):
            asked_for_ever(raw)
    refused = pytest.raises(AuthenticationError, match="invalid credentials")
    with refused, Admin(**by_token(broker, token)):
        pass


def test_what_has_expired_is_removed_as_often_as_the_settings_say() -> None:
    options = {"delegation.token.secret.key": "key", "delegation.token.expiry.check.interval.ms": 50}
    with Broker(options, users={"alice": "alice's"}) as broker, Admin(**broker.client_options("alice")) as admin:
        kept = admin.create_delegation_token()
        admin.create_delegation_token(max_lifetime_ms=200)
        while admin.describe_delegation_tokens() != [kept]:
            pass


def asked_for_ever(raw: SecuredRaw) -> None:
    while raw.serves():
        pass


@in_loop
async def test_the_asyncio_face_lends_too(broker: Broker) -> None:
    async with AsyncAdmin(**broker.client_options("alice")) as admin:
        token = await admin.create_delegation_token()
        assert token in await admin.describe_delegation_tokens(["alice"])
        await admin.expire_delegation_token(token)
        assert token not in await admin.describe_delegation_tokens()


def test_without_a_secret_key_there_are_no_tokens() -> None:
    with (
        Broker(users={"alice": "alice's"}) as broker,
        Admin(**broker.client_options("alice")) as admin,
        pytest.raises(DelegationTokenAuthDisabledError),
    ):
        admin.create_delegation_token()
