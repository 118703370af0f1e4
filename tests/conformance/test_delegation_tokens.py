"""Delegation tokens: one story with our clients on Apache Kafka and on our broker. (Issue 25, item 10)"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.admin import DelegationToken
from partita.errors import AuthenticationError, KafkaError
from partita.protocol.error_codes import ErrorCode
from partita.security.rights.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from support.kafka.node import KafkaNode, settle

pytestmark = pytest.mark.conformance
SECRET_KEY = "the key of the tests"
USERS = ("admin", "alice", "bob", "carol", "dave")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
DAY_MS = 86_400_000
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.login.plain.sasl.jaas.config": " ".join([PLAIN, *(f'user_{u}="{u}"' for u in USERS)]) + ";",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "delegation.token.secret.key": SECRET_KEY,
    "offsets.topic.num.partitions": "1",
}


class Side:
    """One of the two brokers, and admin clients of its users."""

    def __init__(self, plain: str, login: str, stack: ExitStack) -> None:
        self.plain = plain
        self.login = login
        self.stack = stack
        self.admins: dict[str, Admin] = {}

    def options(self, user: str, password: str, mechanism: str = "PLAIN", **more: Any) -> dict[str, Any]:
        way = {"bootstrap_servers": self.login, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
        return {**way, "sasl_username": user, "sasl_password": password, **more}

    def by_token(self, token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
        return self.options(token.token_id, token.password, mechanism, sasl_scram_tokenauth=True)

    def admin(self, user: str) -> Admin:
        if user not in self.admins:
            self.admins[user] = self.stack.enter_context(Admin(**self.options(user, user)))
        return self.admins[user]

    def settled(self) -> None:
        settle(self.admin("admin"))

    def create(self, user: str, **given: Any) -> DelegationToken:
        token = self.admin(user).create_delegation_token(**given)
        self.settled()
        return token

    def seen(self, user: str, owners: list[str] | None = None) -> set[str]:
        return {token.token_id for token in self.admin(user).describe_delegation_tokens(owners)}

    def allow(self, operation: Operation, kind: ResourceType, name: str) -> None:
        self.admin("admin").create_acls(
            AclBinding(kind, name, "User:dave", operation, Permission.ALLOW, PatternType.LITERAL)
        )
        self.settled()


def code_of(call: Callable[[], object]) -> str:
    """The error with which a call fails."""
    with pytest.raises(KafkaError) as caught:
        call()
    assert caught.value.code is not None
    return ErrorCode(caught.value.code).name


@pytest.fixture(scope="module", params=["ours", "kafka"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    more = {f"listener.name.login.scram-sha-{bits}.sasl.jaas.config": SCRAM for bits in (256, 512)}
    with ExitStack() as stack:
        if request.param == "ours":
            way = {
                "listeners": "OPEN://127.0.0.1:0,LOGIN://127.0.0.1:0",
                "listener.security.protocol.map": "OPEN:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
            }
            broker = stack.enter_context(Broker({**way, **SETTINGS}))
            yield Side(broker.bootstrap_by("OPEN"), broker.bootstrap_by("LOGIN"), stack)
            return
        node = stack.enter_context(KafkaNode({"LOGIN": "SASL_PLAINTEXT"}, **SETTINGS, **more))
        yield Side(node.bootstrap, f"localhost:{node.ports['LOGIN']}", stack)


def test_a_token_says_whose_it_is_and_how_long_it_lives(side: Side) -> None:
    token = side.create("alice", renewers=["bob", "User:carol"])
    assert (token.owner, token.requester) == ("User:alice", "User:alice")
    assert token.renewers == ("User:bob", "User:carol")
    assert token.hmac == hmac.digest(SECRET_KEY.encode(), token.token_id.encode(), "sha512")
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * DAY_MS
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
    assert token in side.admin("alice").describe_delegation_tokens(["alice"])
    short = side.create("alice", max_lifetime_ms=60_000)
    assert short.max_timestamp_ms == short.expiry_timestamp_ms == short.issue_timestamp_ms + 60_000
    for lifetime_ms in (0, 8 * DAY_MS):
        bounded = side.create("alice", max_lifetime_ms=lifetime_ms)
        assert bounded.max_timestamp_ms - bounded.issue_timestamp_ms == 7 * DAY_MS


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_clients_log_in_with_a_token_and_are_its_owner(side: Side, mechanism: str) -> None:
    """The admin, producer and consumer may do what the owner may."""
    topic = f"orders-{mechanism}"
    side.admin("admin").create_topic(topic)
    side.admin("admin").create_acls(f"allow User:alice all topic {topic}", "allow User:alice all group g")
    side.settled()
    login = side.by_token(side.create("alice"), mechanism)
    with Producer(**login) as producer:
        assert producer.send(topic, b"1").result(60).offset == 0
    with Consumer(group_id="g", auto_offset_reset="earliest", **login) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in consumer.poll(60)] == [b"1"]
    with Admin(**login) as admin:
        assert [found.name for found in admin.list_topics()] == [topic]
        assert code_of(lambda: admin.create_topic("another")) == "TOPIC_AUTHORIZATION_FAILED"
    side.admin("admin").delete_topics(topic)


def test_only_a_real_login_may_deal_with_tokens(side: Side) -> None:
    token = side.create("alice")
    with Admin(bootstrap_servers=side.plain) as anonymous, Admin(**side.by_token(token)) as lent:
        for admin in (anonymous, lent):
            calls: list[Callable[[], object]] = [
                admin.create_delegation_token,
                admin.describe_delegation_tokens,
                lambda admin=admin: admin.renew_delegation_token(token),  # type: ignore[misc]
                lambda admin=admin: admin.expire_delegation_token(token),  # type: ignore[misc]
            ]
            assert {code_of(call) for call in calls} == {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}


def test_owner_and_renewers_renew_and_expire(side: Side) -> None:
    token = side.create("alice", renewers=["bob"])
    alice, bob, carol = map(side.admin, ("alice", "bob", "carol"))
    for call in (
        carol.renew_delegation_token,
        carol.expire_delegation_token,
        side.admin("admin").renew_delegation_token,
    ):
        assert code_of(lambda call=call: call(token)) == "DELEGATION_TOKEN_OWNER_MISMATCH"  # type: ignore[misc]
        assert code_of(lambda call=call: call(b"no token")) == "DELEGATION_TOKEN_NOT_FOUND"  # type: ignore[misc]
    assert bob.renew_delegation_token(token.password, renew_period_ms=60_000) - time.time() * 1000 < 61_000
    for period_ms in (-1, 0, 3 * DAY_MS):
        assert bob.renew_delegation_token(token.hmac, renew_period_ms=period_ms) - time.time() * 1000 > DAY_MS - 60_000
        side.settled()
    assert side.admin("alice").expire_delegation_token(token, expiry_period_ms=9 * DAY_MS) == token.max_timestamp_ms
    side.settled()
    alice.expire_delegation_token(token, expiry_period_ms=0)
    side.settled()
    for renew in (alice.renew_delegation_token, bob.renew_delegation_token):
        assert code_of(lambda renew=renew: renew(token)) == "DELEGATION_TOKEN_EXPIRED"  # type: ignore[misc]
    assert code_of(lambda: alice.expire_delegation_token(token, expiry_period_ms=9)) == "DELEGATION_TOKEN_EXPIRED"
    alice.expire_delegation_token(token)
    side.settled()
    assert code_of(lambda: alice.expire_delegation_token(token)) == "DELEGATION_TOKEN_NOT_FOUND"
    assert token.token_id not in side.seen("admin")


def test_a_token_for_another_user_needs_a_right(side: Side) -> None:
    dave, user = side.admin("dave"), ResourceType.USER
    for owner in ("alice", "Group:alice"):
        create = lambda owner=owner: dave.create_delegation_token(owner=owner)  # noqa: E731
        assert code_of(create) == "DELEGATION_TOKEN_AUTHORIZATION_FAILED"
    assert code_of(lambda: dave.create_delegation_token(renewers=["Group:x"])) == "INVALID_PRINCIPAL_TYPE"
    side.allow(Operation.CREATE_TOKENS, user, "User:alice")
    token = side.create("dave", owner="alice")
    assert (token.owner, token.requester) == ("User:alice", "User:dave")
    assert code_of(lambda: dave.renew_delegation_token(token)) == "DELEGATION_TOKEN_OWNER_MISMATCH"
    assert token.token_id in side.seen("dave") & side.seen("alice") & side.seen("dave", ["alice"])


def test_others_tokens_are_seen_by_right(side: Side) -> None:
    alices, bobs = side.create("alice", renewers=["bob"]).token_id, side.create("bob").token_id
    assert not {alices, bobs} & side.seen("dave")
    assert {alices, bobs} <= side.seen("bob") & side.seen("admin")
    assert side.seen("admin", []) == set()
    shown = {user: {alices, bobs} & side.seen("admin", [user]) for user in ("alice", "bob", "carol")}
    assert shown == {"alice": {alices}, "bob": {alices, bobs}, "carol": set()}
    side.allow(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, bobs)
    assert {alices, bobs} & side.seen("dave") == {bobs}
    side.allow(Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:alice")
    assert {alices, bobs} & side.seen("dave") == {alices, bobs}
    assert {alices, bobs} & side.seen("dave", ["carol"]) == set()


def test_a_removed_token_logs_in_no_more_and_open_connections_stay(side: Side) -> None:
    token = side.create("alice")
    with Admin(**side.by_token(token)) as lent:
        lent.list_topics()
        side.admin("alice").expire_delegation_token(token)
        side.settled()
        lent.list_topics()
        with (
            pytest.raises(AuthenticationError, match=f"login of delegation token {token.token_id!r}"),
            Admin(**side.by_token(token)),
        ):
            pass
