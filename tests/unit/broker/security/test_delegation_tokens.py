"""The rules of delegation tokens as Apache Kafka 4.3.1 has them, and what is kept of them. (Issue 25, item 10)"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.broker.config import BrokerConfig
from partita.broker.security.delegation_tokens import (
    KIND,
    REQUESTED_MAX,
    DelegationTokens,
    Lifetimes,
    Token,
    expired,
    is_shown,
    issued,
    renewed,
)
from partita.broker.security.users import shape_of
from partita.broker.storage.data_dir import DiskStore
from partita.broker.storage.memory_store import MemoryStore
from partita.broker.storage.store import Store
from partita.broker.topics.checks import Refused
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from partita.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from partita.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from partita.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from partita.secret import Secret
from partita.security import scram
from partita.security.errors import SaslError
from partita.security.principals import ANONYMOUS, KafkaPrincipal
from partita.security.sasl_server import Answer, ScramServer
from support.broker.data_plane import DataPlane, data_plane

ALICE, BOB, CAROL, DAVE = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol", "dave"))
NOW = 1_000_000
SECRET_KEY = "the secret of the tokens"
LIVES = Lifetimes(1_000, 100)
TOKEN = issued("id", ALICE, CAROL, [BOB], -1, NOW, LIVES)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.code.name


# Rules


@pytest.mark.parametrize(
    ("asked_ms", "expires_ms", "ends_ms"),
    [(-1, 100, 1_000), (0, 100, 1_000), (50, 50, 50), (500, 100, 500), (5_000, 100, 1_000)],
)
def test_a_new_token_lives_as_long_as_asked_and_allowed(asked_ms: int, expires_ms: int, ends_ms: int) -> None:
    token = issued("id", ALICE, ALICE, [], asked_ms, NOW, LIVES)
    assert (token.issued_ms, token.expires_ms, token.ends_ms) == (NOW, NOW + expires_ms, NOW + ends_ms)


def test_renewers_are_users_and_each_is_named_once() -> None:
    assert issued("id", ALICE, ALICE, [BOB, BOB], -1, NOW, LIVES).renewers == (BOB,)
    groups = [BOB, KafkaPrincipal("Group", "x")]
    assert refusal(lambda: issued("id", ALICE, ALICE, groups, -1, NOW, LIVES)) == "INVALID_PRINCIPAL_TYPE"


@pytest.mark.parametrize(
    ("now_ms", "period_ms", "expires_ms"),
    [(50, -1, 150), (50, 0, 150), (50, 10, 60), (50, 500, 150), (100, -1, 200)],
)
@pytest.mark.parametrize("asker", [ALICE, BOB])
def test_owner_and_renewers_renew(asker: KafkaPrincipal, now_ms: int, period_ms: int, expires_ms: int) -> None:
    assert renewed(TOKEN, asker, period_ms, NOW + now_ms, LIVES).expires_ms == NOW + expires_ms


def test_no_renewal_goes_beyond_the_end() -> None:
    token = TOKEN
    for now_ms in range(0, 1_000, 90):
        token = renewed(token, ALICE, -1, NOW + now_ms, LIVES)
    assert token.expires_ms == token.ends_ms == NOW + 1_000
    assert refusal(lambda: renewed(token, ALICE, -1, NOW + 1_001, LIVES)) == "DELEGATION_TOKEN_EXPIRED"


def test_what_is_refused_and_in_which_order() -> None:
    """The requester has no say in it; a renewal of what has expired says so to anyone, an expiry not."""
    for asker in (CAROL, DAVE):
        assert refusal(lambda asker=asker: renewed(TOKEN, asker, -1, NOW, LIVES)) == "DELEGATION_TOKEN_OWNER_MISMATCH"  # type: ignore[misc]
        assert refusal(lambda asker=asker: expired(TOKEN, asker, -1, NOW)) == "DELEGATION_TOKEN_OWNER_MISMATCH"  # type: ignore[misc]
    assert refusal(lambda: renewed(None, ALICE, -1, NOW, LIVES)) == "DELEGATION_TOKEN_NOT_FOUND"
    assert refusal(lambda: expired(None, ALICE, -1, NOW)) == "DELEGATION_TOKEN_NOT_FOUND"
    later = NOW + 101
    assert refusal(lambda: renewed(TOKEN, DAVE, -1, later, LIVES)) == "DELEGATION_TOKEN_EXPIRED"
    assert refusal(lambda: expired(TOKEN, DAVE, 5, later)) == "DELEGATION_TOKEN_OWNER_MISMATCH"
    assert refusal(lambda: expired(TOKEN, BOB, 5, later)) == "DELEGATION_TOKEN_EXPIRED"
    assert expired(TOKEN, BOB, -1, later) is None


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(0, 50), (10, 60), (5_000, 1_000)])
def test_an_expiry_sets_the_end(period_ms: int, expires_ms: int) -> None:
    token = expired(TOKEN, BOB, period_ms, NOW + 50)
    assert token is not None
    assert token.expires_ms == NOW + expires_ms


@pytest.mark.parametrize("asker", [ALICE, BOB, CAROL, DAVE])
@pytest.mark.parametrize("owners", [None, [], [ALICE], [BOB], [CAROL], [DAVE], [DAVE, BOB]])
@pytest.mark.parametrize("has_right", [False, True])
def test_who_is_told_of_a_token(asker: KafkaPrincipal, owners: list[KafkaPrincipal] | None, has_right: bool) -> None:
    """Being named is owning it, renewing it or having asked for it, of those asked for as of the asker."""
    is_asked_for = owners is None or bool(set(owners) - {DAVE})
    shown = is_shown(TOKEN, asker, owners, lambda token: has_right)
    assert shown == (is_asked_for and (asker != DAVE or has_right))


# What is kept


class Lent:
    """A broker without listeners, and logins with its tokens."""

    def __init__(self, store: Store, key: str = SECRET_KEY) -> None:
        self.context = data_plane(store, delegation_token_secret_key=key)
        self.plane: DataPlane

    def __enter__(self) -> Lent:
        self.plane = self.context.__enter__()
        self.plane.services.users().prepare(with_scram=True)
        self.plane.connection.identify(ALICE)
        return self

    def __exit__(self, *_: object) -> None:
        self.context.__exit__(None, None, None)

    @property
    def tokens(self) -> DelegationTokens:
        return self.plane.services.delegation_tokens()

    def create(self, **fields: Any) -> Any:
        answer = self.plane.ask("create_delegation_token", 3, CreateDelegationTokenRequest(**fields))
        assert answer.error_code == 0
        return answer

    def log_in(self, token_id: str, hmac: bytes, mechanism: str = "SCRAM-SHA-256") -> Answer:
        users = self.plane.services.users()
        server = ScramServer(mechanism, users.of(mechanism), "servernonce", self.tokens.of(mechanism))
        client = scram.ScramClient(mechanism, token_id, "n" * 16, is_delegation_token=True)
        challenge = client.challenged(server.step(client.first()).message)
        password = Secret(base64.b64encode(hmac).decode())
        salted = scram.salted_password(mechanism, password, challenge.salt, challenge.iterations)
        answer = server.step(client.final(challenge, salted))
        client.finish(answer.message)
        return answer


@pytest.fixture
def lent() -> Iterator[Lent]:
    with Lent(MemoryStore()) as running:
        yield running


@pytest.mark.parametrize("mechanism", scram.HASHES)
def test_a_token_logs_its_owner_in_until_it_ends(lent: Lent, mechanism: str) -> None:
    """The clock is the broker's own, which a test moves on."""
    token = lent.create(max_lifetime_ms=3_600_000)
    answer = lent.log_in(token.token_id, token.hmac, mechanism)
    assert (answer.user, answer.is_lent) == ("alice", True)
    assert answer.ends_s == token.expiry_timestamp_ms / 1000
    with pytest.raises(SaslError, match="invalid credentials"):
        lent.log_in(token.token_id, b"another", mechanism)
    lent.plane.cluster.clock.advance(3_600_001)
    with pytest.raises(SaslError, match="invalid credentials"):
        lent.log_in(token.token_id, token.hmac, mechanism)


def test_an_id_is_no_user_and_a_user_is_no_id(lent: Lent) -> None:
    token = lent.create()
    users = lent.plane.services.users()
    assert users.credential(token.token_id, "SCRAM-SHA-256") is None
    server = ScramServer("SCRAM-SHA-256", users.of("SCRAM-SHA-256"), "servernonce", lent.tokens.of("SCRAM-SHA-256"))
    client = scram.ScramClient("SCRAM-SHA-256", token.token_id, "n" * 16)
    challenge = client.challenged(server.step(client.first()).message)
    password = Secret(base64.b64encode(token.hmac).decode())
    salted = scram.salted_password("SCRAM-SHA-256", password, challenge.salt, challenge.iterations)
    with pytest.raises(SaslError, match="invalid credentials"):
        server.step(client.final(challenge, salted))


@pytest.mark.parametrize("mechanism", scram.HASHES)
def test_an_unknown_token_is_challenged_like_a_known_one(lent: Lent, mechanism: str) -> None:
    """SE-P05 for tokens: the same shape of salt, the same iterations, and for one id always the same."""
    find = lent.tokens.of(mechanism)
    known = [find(lent.create().token_id).credential for _ in range(3)]
    unknown = [find(lent.tokens.new_id()).credential for _ in range(3)]
    assert len({shape_of(each.salt, each.iterations) for each in (*known, *unknown)}) == 1
    assert len({each.salt for each in (*known, *unknown)}) == 6
    assert find("no id") == find("no id")


def test_what_has_expired_is_removed_when_it_is_time(lent: Lent) -> None:
    short, long = lent.create(max_lifetime_ms=3_600_000), lent.create()
    lent.plane.running.advance_clock(1_800_000)
    assert {token.token_id for token in lent.tokens.every()} == {short.token_id, long.token_id}
    lent.plane.running.advance_clock(1_800_001)
    assert [token.token_id for token in lent.tokens.every()] == [long.token_id]
    assert set(lent.plane.cluster.catalogue.kept[KIND]) == {long.token_id}
    assert lent.tokens.find(bytes(short.hmac)) is None


def test_the_options_say_how_long_tokens_live_and_when_they_are_looked_at(lent: Lent) -> None:
    options = {
        "delegation.token.secret.key": "k",
        "delegation.token.max.lifetime.ms": 5_000,
        "delegation.token.expiry.time.ms": 1_000,
        "delegation.token.expiry.check.interval.ms": 250,
    }
    cluster = lent.plane.cluster
    tokens = DelegationTokens(cluster.catalogue, BrokerConfig(options), lent.plane.services.users(), cluster.clock)
    assert (tokens.lifetimes, tokens.sweep_seconds, tokens.is_enabled) == (Lifetimes(5_000, 1_000), 0.25, True)
    assert tokens.hmac_of("id") != lent.tokens.hmac_of("id")


def test_no_user_fills_the_broker_with_tokens(lent: Lent) -> None:
    for number in range(REQUESTED_MAX):
        lent.tokens.add(issued(f"{number}", BOB, ALICE, [], -1, lent.tokens.now_ms(), lent.tokens.lifetimes), {})
    asked = CreateDelegationTokenRequest()
    refused = lent.plane.ask("create_delegation_token", 3, asked)
    assert refused.error_code == ErrorCode.POLICY_VIOLATION
    wide = [CreatableRenewers(principal_type="User", principal_name=f"{n:01000}") for n in range(17)]
    lent.plane.connection.identify(CAROL)
    refused = lent.plane.ask("create_delegation_token", 3, CreateDelegationTokenRequest(renewers=wide))
    assert refused.error_code == ErrorCode.POLICY_VIOLATION
    assert lent.plane.ask("create_delegation_token", 3, asked).error_code == 0


def test_tokens_outlive_the_broker_and_not_its_key(tmp_path: Path) -> None:
    """Nothing on the disk logs in: neither HMACs nor the key are there."""
    with Lent(DiskStore(str(tmp_path))) as lent:
        token = lent.create(renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
        renewed_ms = lent.plane.ask(
            "renew_delegation_token", 2, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=60_000)
        ).expiry_timestamp_ms
        (before,) = lent.tokens.every()
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert token.token_id.encode() in written
    for secret in (token.hmac, token.hmac.hex().encode(), base64.b64encode(token.hmac), SECRET_KEY.encode()):
        assert secret not in written
    with Lent(DiskStore(str(tmp_path))) as again:
        (after,) = again.tokens.every()
        assert (after, after.expires_ms) == (before, renewed_ms)
        assert again.log_in(token.token_id, token.hmac).user == "alice"
    with Lent(DiskStore(str(tmp_path)), key="another key") as other:
        assert other.tokens.every() == []
        with pytest.raises(SaslError, match="invalid credentials"):
            other.log_in(token.token_id, token.hmac)
        other.tokens.sweep()
        assert not other.plane.cluster.catalogue.kept.get(KIND)


def test_a_disk_that_takes_no_change_changes_nothing(tmp_path: Path) -> None:
    """The dispatcher answers KAFKA_STORAGE_ERROR for what is raised here."""
    with Lent(DiskStore(str(tmp_path))) as lent:
        token = lent.create()
        before = lent.tokens.every()
        lent.plane.store.fail("the disk is gone")
        calls = {
            "create_delegation_token": CreateDelegationTokenRequest(),
            "renew_delegation_token": RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5),
            "expire_delegation_token": ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1),
        }
        for handler, request in calls.items():
            with pytest.raises(StorageError):
                lent.plane.ask(handler, 2, request)
        lent.plane.cluster.clock.advance(10 * 86_400_000)
        lent.tokens.sweep()
        assert lent.tokens.every() == before


# Answers


def ask_all(plane: DataPlane) -> dict[str, Any]:
    """What each API answers without a token."""
    return {
        "create": plane.ask("create_delegation_token", 3, CreateDelegationTokenRequest(max_lifetime_ms=-1)),
        "renew": plane.ask("renew_delegation_token", 2, RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1)),
        "expire": plane.ask(
            "expire_delegation_token", 2, ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1)
        ),
        "describe": plane.ask("describe_delegation_token", 3, DescribeDelegationTokenRequest(owners=None)),
    }


@pytest.mark.parametrize(("principal", "is_lent"), [(ANONYMOUS, False), (ALICE, True)])
def test_without_a_login_of_ones_own_all_is_refused(lent: Lent, principal: KafkaPrincipal, is_lent: bool) -> None:
    """The fields of the refusals are those that Kafka answers."""
    lent.plane.connection.identify(principal, is_lent=is_lent)
    answers = ask_all(lent.plane)
    assert {answer.error_code for answer in answers.values()} == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    assert {answers[name].expiry_timestamp_ms for name in ("create", "renew", "expire")} == {-1}
    assert (answers["create"].principal_name, answers["create"].token_id) == (principal.name, "")


def test_without_a_secret_key_there_are_no_tokens() -> None:
    with data_plane() as plane:
        plane.connection.identify(ALICE)
        answers = ask_all(plane)
        assert {answer.error_code for answer in answers.values()} == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}
        assert {answers[name].expiry_timestamp_ms for name in ("create", "renew", "expire")} == {0}
        groups = [CreatableRenewers(principal_type="Group", principal_name="x")]
        refused = plane.ask("create_delegation_token", 3, CreateDelegationTokenRequest(renewers=groups))
        assert (refused.error_code, refused.expiry_timestamp_ms) == (ErrorCode.INVALID_PRINCIPAL_TYPE, -1)
        users = plane.services.users()
        server = ScramServer("SCRAM-SHA-256", users.of("SCRAM-SHA-256"), "servernonce")
        with pytest.raises(SaslError, match="invalid credentials"):
            server.step(b"n,,n=alice,r=abc,tokenauth=true")


def test_the_answers_of_no_token_are_kafkas(lent: Lent) -> None:
    answers = ask_all(lent.plane)
    found = {
        ErrorCode(answers[name].error_code).name: answers[name].expiry_timestamp_ms for name in ("renew", "expire")
    }
    assert found == {"DELEGATION_TOKEN_NOT_FOUND": 0}
    assert [token.token_id for token in answers["describe"].tokens] == [answers["create"].token_id]


def test_the_rules_hold_of_a_token_as_it_is_kept(lent: Lent) -> None:
    token = lent.create()
    kept = lent.tokens.find(bytes(token.hmac))
    assert isinstance(kept, Token)
    assert kept.issued_ms == token.issue_timestamp_ms
    gone = lent.plane.ask(
        "expire_delegation_token", 2, ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
    )
    assert gone.error_code == 0
    assert gone.expiry_timestamp_ms >= token.issue_timestamp_ms
    assert lent.tokens.find(bytes(token.hmac)) is None
