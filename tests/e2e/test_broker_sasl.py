"""The way to a login, frame by frame, as Apache Kafka 4.3.1 walks it (security-cases.md B, C, D, F, G)."""

from __future__ import annotations

import base64
import json
import select
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from partita.broker.checks.gate import SaslSession
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest
from partita.secret import Secret
from partita.security import scram
from support.broker.secured import DELAY_MS, MECHANISMS, PASSWORD, Secured, SecuredRaw, plain, secured, set_scram, took
from support.clients.broker import until

SASL = ("SASL_PLAINTEXT", "SASL_SSL")
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
FAILED = 58
ILLEGAL_STATE = 34


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("sasl")) as running:
        set_scram(running.broker)
        set_scram(running.broker, "a=b,c")
        yield running


@pytest.fixture(params=SASL)
def raw(place: Secured, request: pytest.FixtureRequest) -> Iterator[SecuredRaw]:
    with place.raw(request.param) as client:
        yield client


def names(client: SecuredRaw) -> list[tuple[int, int, int]]:
    return [(a.api_key, a.min_version, a.max_version) for a in client.ask(ApiVersionsRequest(), 0).api_keys]


# Before authentication


@pytest.mark.case("SE-B01", "SE-B14", "SE-B15", "SE-B19", "SE-C01")
def test_a_login_needs_no_versions_and_is_asked_for_once(raw: SecuredRaw) -> None:
    answer = raw.log_in()
    assert (answer.error_code, answer.error_message, bytes(answer.auth_bytes)) == (0, "", b"")
    assert answer.session_lifetime_ms == 0
    assert raw.serves()
    again = raw.handshake("PLAIN")
    assert (again.error_code, again.mechanisms) == (ILLEGAL_STATE, [])
    refused = raw.authenticate(plain("alice", PASSWORD))
    assert refused.error_code == ILLEGAL_STATE
    assert refused.error_message == "SaslAuthenticate request received after successful authentication"
    assert raw.serves()


@pytest.mark.case("SE-B02")
def test_the_versions_are_the_same_before_and_after_the_login(raw: SecuredRaw) -> None:
    before = names(raw)
    assert {17, 36, 3} <= {key for key, _, _ in before}
    raw.log_in()
    assert names(raw) == before


@pytest.mark.case("SE-B03", "SE-B04", "SE-O05")
@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "", "SCRAM-SHA-1"])
def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are(raw: SecuredRaw, mechanism: str) -> None:
    begin = time.monotonic()
    answer = raw.handshake(mechanism)
    assert took(begin) >= DELAY_MS - 5
    assert (answer.error_code, answer.mechanisms) == (33, MECHANISMS.split(","))
    assert raw.is_closed()


@pytest.mark.case("SE-B05")
def test_a_token_without_a_handshake_closes(raw: SecuredRaw) -> None:
    raw.send(SaslAuthenticateRequest(auth_bytes=plain("alice", PASSWORD)), 2)
    assert raw.is_closed()


@pytest.mark.case("SE-B06")
@pytest.mark.parametrize("after_versions", [False, True])
def test_anything_else_closes_without_an_answer(raw: SecuredRaw, after_versions: bool) -> None:
    if after_versions:
        names(raw)
    raw.send(MetadataRequest(topics=[]), 9)
    assert raw.is_closed()


@pytest.mark.case("SE-B07")
def test_versions_are_told_once(raw: SecuredRaw) -> None:
    names(raw)
    raw.send(ApiVersionsRequest(), 0)
    assert raw.is_closed()


@pytest.mark.case("SE-B08")
def test_a_second_handshake_is_refused_and_closes(raw: SecuredRaw) -> None:
    raw.handshake("PLAIN")
    again = raw.handshake("PLAIN")
    assert (again.error_code, again.mechanisms) == (ILLEGAL_STATE, [])
    assert raw.is_closed()


@pytest.mark.case("SE-B09")
def test_another_request_after_the_handshake_tells_nothing(raw: SecuredRaw) -> None:
    raw.handshake("PLAIN")
    raw.send(MetadataRequest(topics=[]), 9)
    assert raw.is_closed()


def bare(client: SecuredRaw, token: bytes) -> bytes:
    client.socket.sendall(struct.pack(">i", len(token)) + token)
    header = client.socket.recv(4)
    if len(header) < 4:
        raise EOFError
    size = struct.unpack(">i", header)[0]
    return client.socket.recv(size) if size else b""


@pytest.mark.case("SE-B10")
def test_after_a_handshake_of_version_0_tokens_are_bare(raw: SecuredRaw) -> None:
    assert raw.handshake("PLAIN", version=0).error_code == 0
    assert bare(raw, plain("alice", PASSWORD)) == b""
    assert raw.serves()


@pytest.mark.case("SE-B10", "SE-B11")
def test_bare_tokens_may_be_short_and_wrong_ones_get_no_byte(raw: SecuredRaw) -> None:
    raw.handshake("PLAIN", version=0)
    begin = time.monotonic()
    with pytest.raises(EOFError):
        bare(raw, b"\0a\0b")
    assert took(begin) >= DELAY_MS - 5


@pytest.mark.case("SE-B10", "SE-D01")
def test_bare_tokens_of_scram(raw: SecuredRaw) -> None:
    raw.handshake("SCRAM-SHA-512", version=0)
    client = scram.ScramClient("SCRAM-SHA-512", "alice", "n" * 12)
    challenge = client.challenged(bare(raw, client.first()))
    salted = scram.salted_password("SCRAM-SHA-512", Secret(PASSWORD), challenge.salt, challenge.iterations)
    client.finish(bare(raw, client.final(challenge, salted)))
    assert raw.serves()


@pytest.mark.case("SE-B12")
def test_versions_of_the_future_are_answered_at_version_0_and_the_login_goes_on(raw: SecuredRaw) -> None:
    raw.socket.sendall(struct.pack(">ihhih", 12, 18, 99, 7, 1) + b"x\0")
    correlation_id, answer = raw.recv(18, 0)
    assert (correlation_id, answer.error_code) == (7, 35)
    assert names(raw)
    assert raw.log_in().error_code == 0


@pytest.mark.case("SE-B13")
@pytest.mark.parametrize("listener", SASL)
def test_a_frame_that_is_too_large_closes_before_its_body(place: Secured, listener: str) -> None:
    with place.raw(listener) as client:
        client.socket.sendall(struct.pack(">i", 524_289))
        assert client.is_closed()
    with place.raw(listener) as client:
        client.handshake("PLAIN")
        client.socket.sendall(struct.pack(">i", 600_000) + b"x" * 100)
        assert client.is_closed()
    with place.raw(listener) as client:
        client.handshake("PLAIN")
        assert client.authenticate(plain("alice", "x" * 500_000)).error_code == FAILED


@pytest.mark.case("SE-B16")
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SSL"])
def test_where_nobody_logs_in_a_login_is_refused_and_the_connection_stays(place: Secured, listener: str) -> None:
    with place.raw(listener) as client:
        assert client.handshake("PLAIN").error_code == ILLEGAL_STATE
        assert client.authenticate(b"x").error_code == ILLEGAL_STATE
        assert client.serves()


@pytest.mark.case("SE-B17")
def test_a_nonsense_name_of_software_is_refused(raw: SecuredRaw) -> None:
    request = ApiVersionsRequest(client_software_name="b@d!", client_software_version="1")
    assert raw.ask(request, 3).error_code == 42


@pytest.mark.case("SE-P01", "SE-P02", "SE-A11")
@pytest.mark.parametrize(
    "first",
    [
        struct.pack(">i", -1),
        struct.pack(">ihhih", 12, 17, 1, 1, -1) + struct.pack(">h", 500),
        struct.pack(">i", 0x60) + b"\x60" * 0x60,
    ],
    ids=["negative length", "string beyond its frame", "a token of GSSAPI"],
)
def test_what_is_no_request_closes(raw: SecuredRaw, first: bytes) -> None:
    raw.socket.sendall(first)
    assert raw.is_closed()


# PLAIN


@pytest.mark.parametrize(
    ("token", "text"),
    [
        pytest.param(plain("alice", "x"), "Authentication failed: Invalid username or password", id="SE-C02"),
        pytest.param(plain("eve", "x"), "Authentication failed: Invalid username or password", id="SE-C03"),
        pytest.param(plain("", "x"), "Authentication failed: username not specified", id="SE-C04"),
        pytest.param(plain("alice", ""), "Authentication failed: password not specified", id="SE-C05"),
        pytest.param(b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", id="SE-C06 none"),
        pytest.param(b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2", id="SE-C06 one"),
        pytest.param(b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", id="SE-C06 four"),
        pytest.param(
            plain("alice", PASSWORD, "bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
            id="SE-C08",
        ),
        pytest.param(b"\0al\xff\0x", "Authentication failed: the SASL/PLAIN response is not UTF-8", id="SE-P07"),
        pytest.param(
            plain("a\r\n2026 ERROR fake", "x"), "Authentication failed: Invalid username or password", id="SE-P06"
        ),
    ],
)
@pytest.mark.case("SE-C02", "SE-C03", "SE-C04", "SE-C05", "SE-C06", "SE-C08", "SE-C10", "SE-C11", "SE-P06", "SE-P07")
def test_what_plain_refuses_is_told_late_and_closes(place: Secured, token: bytes, text: str) -> None:
    with place.raw("SASL_SSL") as client:
        client.handshake("PLAIN")
        begin = time.monotonic()
        answer = client.authenticate(token)
        assert took(begin) >= DELAY_MS - 5
        assert (answer.error_code, answer.error_message) == (FAILED, text)
        assert client.is_closed()


@pytest.mark.case("SE-C07", "SE-C09")
def test_an_authorization_id_that_is_the_user_and_a_password_with_signs(raw: SecuredRaw) -> None:
    raw.handshake("PLAIN")
    assert raw.authenticate(plain("alice", PASSWORD, "alice")).error_code == 0


@pytest.mark.case("SE-P04")
def test_refusals_wait_side_by_side(place: Secured) -> None:
    count = 60
    with ExitStack() as stack:
        refused = [stack.enter_context(place.raw("SASL_PLAINTEXT")) for _ in range(count)]
        for client in refused:
            client.handshake("PLAIN")
        begin = time.monotonic()
        for client in refused:
            client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "wrong")), 2)
        for client in refused:
            assert client.recv(36, 2)[1].error_code == FAILED
        assert took(begin) < 0.9 * count * DELAY_MS, "less than one after the other"


@pytest.mark.case("SE-P04")
def test_refusals_that_wait_hold_up_nobody(tmp_path: Path) -> None:
    with (
        secured(tmp_path, connection__failed__authentication__delay__ms=60_000) as place,
        place.raw("SASL_PLAINTEXT") as refused,
        place.raw("SASL_PLAINTEXT") as good,
    ):
        refused.handshake("PLAIN")
        refused.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "wrong")), 2)
        assert good.log_in().error_code == 0


# SCRAM


@pytest.mark.case("SE-D01", "SE-D02", "SE-D14", "SE-D15")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", ["alice", "a=b,c"])
def test_scram_logs_in_and_proves_the_broker(raw: SecuredRaw, mechanism: str, user: str) -> None:
    assert raw.log_in_by_scram(mechanism, user).error_code == 0
    assert raw.serves()


@pytest.mark.case("SE-D03", "SE-D04", "SE-P05")
def test_a_wrong_password_and_an_unknown_user_fail_alike_at_the_last_message(place: Secured) -> None:
    salts = []
    for user in ("alice", "eve", "eve"):
        with place.raw("SASL_PLAINTEXT") as client:
            client.handshake("SCRAM-SHA-256")
            exchange = scram.ScramClient("SCRAM-SHA-256", user, "n" * 12)
            first = client.authenticate(exchange.first())
            assert first.error_code == 0
            challenge = exchange.challenged(bytes(first.auth_bytes))
            assert (len(challenge.salt), challenge.iterations) == (16, 4096)
            salts.append(challenge.salt)
            begin = time.monotonic()
            answer = client.authenticate(exchange.final(challenge, b"x" * 32))
            assert took(begin) >= DELAY_MS - 5
            assert (answer.error_code, answer.error_message) == (FAILED, INVALID.format("SCRAM-SHA-256"))
            assert client.is_closed()
    assert salts[1] == salts[2] != salts[0]


@pytest.mark.case("SE-D05")
def test_a_credential_of_the_other_mechanism_does_not_help(place: Secured) -> None:
    users = place.broker.running.services.users()
    set_scram(place.broker, "dora")
    place.broker.run(lambda: users.store({("dora", "SCRAM-SHA-512"): None}))
    with place.raw("SASL_PLAINTEXT") as client:
        assert client.log_in_by_scram("SCRAM-SHA-512", "dora").error_message == INVALID.format("SCRAM-SHA-512")
    with place.raw("SASL_PLAINTEXT") as client:
        assert client.log_in_by_scram("SCRAM-SHA-256", "dora").error_code == 0


@pytest.mark.case("SE-D08", "SE-D09", "SE-D12", "SE-D13")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("n,a=bob,n=alice,r=abc", "Authentication failed: Client requested an authorization id that is different"),
        ("y,,n=alice,r=abc", INVALID.format("SCRAM-SHA-256")),
        ("p=tls-unique,,n=alice,r=abc", INVALID.format("SCRAM-SHA-256")),
        ("n,,n=alice,r=abc,tokenauth=true", INVALID.format("SCRAM-SHA-256")),
        ("nonsense", INVALID.format("SCRAM-SHA-256")),
        ("", INVALID.format("SCRAM-SHA-256")),
        ("n,,n==3x,r=abc", INVALID.format("SCRAM-SHA-256")),
        ("n,,n=alice,r=", INVALID.format("SCRAM-SHA-256")),
        ("n,,n=,r=abc", INVALID.format("SCRAM-SHA-256")),
        ("n,,n=\xe4,r=abc", INVALID.format("SCRAM-SHA-256")),
        ("n,,r=abc,n=alice", INVALID.format("SCRAM-SHA-256")),
    ],
)
def test_first_messages_that_are_refused(place: Secured, message: str, text: str) -> None:
    with place.raw("SASL_PLAINTEXT") as client:
        client.handshake("SCRAM-SHA-256")
        answer = client.authenticate(message.encode())
        assert (answer.error_code, (answer.error_message or "").startswith(text)) == (FAILED, True)


@pytest.mark.case("SE-D06", "SE-D07", "SE-D10", "SE-D13")
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-3] + ("A" if text[-3] != "A" else "B") + text[-2:],
        lambda text: text.replace("r=", "r=x"),
        lambda text: text.replace(",p=", "x,p="),
        lambda text: text.replace("r=" + "n" * 12, "r=" + "n" * 11),
        lambda text: text.replace("c=biws", "c=eSws"),
        lambda text: "nonsense",
    ],
    ids=["proof", "nonce before", "nonce behind", "nonce cut", "channel binding", "nonsense"],
)
def test_last_messages_that_are_refused(place: Secured, change: object) -> None:
    assert callable(change)
    with place.raw("SASL_PLAINTEXT") as client:
        client.handshake("SCRAM-SHA-256")
        exchange = scram.ScramClient("SCRAM-SHA-256", "alice", "n" * 12)
        challenge = exchange.challenged(bytes(client.authenticate(exchange.first()).auth_bytes))
        salted = scram.salted_password("SCRAM-SHA-256", Secret(PASSWORD), challenge.salt, challenge.iterations)
        answer = client.authenticate(change(exchange.final(challenge, salted).decode()).encode())
        assert (answer.error_code, answer.error_message) == (FAILED, INVALID.format("SCRAM-SHA-256"))


# OAUTHBEARER


def unsigned(**claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


def bearer(token: str, header: str = "n,,", more: str = "") -> bytes:
    return f"{header}\x01auth=Bearer {token}{more}\x01\x01".encode()


def good(**claims: object) -> str:
    return unsigned(**{"sub": "alice", "exp": time.time() + 3600, **claims})


@pytest.mark.case("SE-F01", "SE-F04", "SE-F05")
@pytest.mark.parametrize(
    ("header", "more"), [("n,,", ""), ("n,a=alice,", ""), ("n,,", "\x01logicalCluster=lkc-1\x01identityPoolId=pool-1")]
)
def test_a_token_logs_in_for_what_is_left_of_it(raw: SecuredRaw, header: str, more: str) -> None:
    raw.handshake("OAUTHBEARER")
    answer = raw.authenticate(bearer(good(), header, more))
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
    assert 3_590_000 < answer.session_lifetime_ms <= 3_600_000
    assert raw.serves()


@pytest.mark.case("SE-F02", "SE-F12")
@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: good(exp=time.time() - 1), id="expired"),
        pytest.param(lambda: unsigned(exp=time.time() + 60), id="no subject"),
        pytest.param(lambda: unsigned(sub="alice"), id="no end"),
        pytest.param(lambda: good(nbf=time.time() + 600), id="not yet"),
        pytest.param(lambda: "not-a-token", id="no token"),
        pytest.param(lambda: good() + "c2lnbmVk", id="signed"),
        pytest.param(lambda: good(exp=1e300), id="endless"),
    ],
)
def test_a_token_that_is_not_accepted_is_refused_in_two_steps(place: Secured, token: object) -> None:
    assert callable(token)
    with place.raw("SASL_SSL") as client:
        client.handshake("OAUTHBEARER")
        first = client.authenticate(bearer(token()))
        assert (first.error_code, bytes(first.auth_bytes)) == (0, b'{"status":"invalid_token"}')
        last = client.authenticate(b"\x01")
        assert (last.error_code, last.error_message) == (FAILED, '{"status":"invalid_token"}')
        assert client.is_closed()


@pytest.mark.case("SE-F03", "SE-F13")
@pytest.mark.parametrize(
    "message",
    [
        b"\x01auth=Bearer x\x01\x01",
        bearer("x", more="\x01auth=y"),
        bearer("x", more="\x01a b=y"),
        b"n,,\x01auth=Basic x\x01\x01",
    ],
)
def test_a_malformed_message_is_refused(place: Secured, message: bytes) -> None:
    with place.raw("SASL_SSL") as client:
        client.handshake("OAUTHBEARER")
        answer = client.authenticate(message)
        assert (answer.error_code, answer.error_message) == (FAILED, INVALID.format("OAUTHBEARER"))


@pytest.mark.case("SE-F04")
def test_a_token_of_somebody_else_names_both(place: Secured) -> None:
    with place.raw("SASL_SSL") as client:
        client.handshake("OAUTHBEARER")
        answer = client.authenticate(bearer(good(), "n,a=bob,"))
        assert answer.error_message == (
            "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
            "principal name (alice)"
        )


# Re-authentication

LASTS_MS = 60_000
"""How long a login lasts, by the clock that `let_pass` sets forward."""


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    own: dict[str, Any] = {
        "connections.max.reauth.ms": LASTS_MS,
        "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": 2 * LASTS_MS,
    }
    with secured(tmp_path_factory.mktemp("reauth"), **own) as running:
        set_scram(running.broker)
        yield running


def let_pass(place: Secured, seconds: float) -> None:
    """Let every login there is be so many seconds older."""
    running = place.broker.running
    loop = place.broker.cluster.loop

    def grow_older() -> None:
        connections = [c for servers in running.servers.values() for server in servers for c in server.connections]
        for session in [connection._answerer for connection in connections]:
            if isinstance(session, SaslSession):
                session._logged_in_at -= seconds
                if session._ends_at is not None and session._timer is not None:
                    session._ends_at -= seconds
                    session._timer.cancel()
                    session._timer = loop.call_at(session._ends_at, session._end)

    place.broker.run(grow_older)


@pytest.mark.case("SE-G01", "SE-G02", "SE-G03", "SE-G09")
def test_a_login_ends_unless_it_is_renewed(short: Secured) -> None:
    with short.raw("SASL_PLAINTEXT") as renewed, short.raw("SASL_PLAINTEXT") as lazy:
        for client in (renewed, lazy):
            assert client.log_in().session_lifetime_ms == LASTS_MS
        let_pass(short, 30)
        assert renewed.log_in().session_lifetime_ms == LASTS_MS
        let_pass(short, 31)
        assert renewed.serves()
        lazy.send(MetadataRequest(topics=[]), 12)
        assert lazy.is_closed()


@pytest.mark.case("SE-G08")
def test_who_is_told_nothing_is_closed_all_the_same(short: Secured) -> None:
    with short.raw("SASL_PLAINTEXT") as client:
        client.handshake("PLAIN")
        assert client.authenticate(plain("alice", PASSWORD), version=0).session_lifetime_ms == 0
        let_pass(short, 61)
        client.send(MetadataRequest(topics=[]), 12)
        assert client.is_closed()


@pytest.mark.case("SE-G04", "SE-G05", "SE-G06", "SE-G07")
def test_what_a_renewal_may_not_change(short: Secured) -> None:
    clients = [short.raw("SASL_PLAINTEXT") for _ in range(4)]
    for client in clients:
        client.log_in()
    let_pass(short, 2)
    other_user, other_mechanism, wrong, impatient = clients
    refused = other_user.log_in("bob", "bob")
    assert refused.error_code == FAILED
    expected = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert refused.error_message == expected
    assert other_mechanism.handshake("SCRAM-SHA-256").error_code == 0
    other_mechanism.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abc"), 2)
    assert wrong.log_in("alice", "wrong").error_code == FAILED
    impatient.handshake("PLAIN")
    impatient.send(MetadataRequest(topics=[]), 12)
    for client in clients:
        assert client.is_closed()
        client.socket.close()


@pytest.mark.case("SE-G10", "SE-G11")
def test_the_lifetime_is_of_the_mechanism_and_of_the_token(short: Secured) -> None:
    with short.raw("SASL_PLAINTEXT") as client:
        assert client.log_in_by_scram().session_lifetime_ms == 2 * LASTS_MS
    with short.raw("SASL_SSL") as client:
        client.handshake("OAUTHBEARER")
        assert client.authenticate(bearer(good(exp=time.time() + 40))).session_lifetime_ms <= 40_000


@pytest.mark.case("SE-P18")
def test_renewing_all_the_time_is_refused_and_ends(short: Secured) -> None:
    with short.raw("SASL_PLAINTEXT") as client:
        client.log_in()
        for _ in range(10):
            assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ILLEGAL_STATE
        assert client.is_closed()


def test_the_files_of_the_broker_stay_its_own(tmp_path: Path) -> None:
    """A JAAS line without a prefix is refused by name."""
    with (
        pytest.raises(Exception, match="needs the prefix of listener and mechanism"),
        secured(tmp_path, sasl__jaas__config="PlainLoginModule required user_a='b';"),
    ):
        pass


def is_waited_for(place: Secured) -> bool:
    """Whether an answer of the broker is being waited for."""
    running = place.broker.running
    return any(c.is_waiting for servers in running.servers.values() for server in servers for c in server.connections)


@pytest.mark.case("SE-G13")
def test_a_fetch_that_waits_is_answered_before_the_renewal_behind_it(short: Secured) -> None:
    short.broker.create_topics({"waits": 1})
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="waits", partitions=[wanted])])
    with short.raw("SASL_PLAINTEXT") as client:
        client.log_in()
        client.send(fetch, 12)
        until(lambda: short.broker.run(lambda: is_waited_for(short)), "the fetch waits")
        let_pass(short, 61)
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", PASSWORD)), 2)
        short.broker.produce("waits", "a")
        assert client.recv(FetchRequest.API_KEY, 12)[1].error_code == 0
        assert client.recv(SaslHandshakeRequest.API_KEY, 1)[1].error_code == 0
        assert client.recv(SaslAuthenticateRequest.API_KEY, 2)[1].error_code == 0
        assert client.serves()


@pytest.mark.case("SE-D11")
def test_an_unknown_extension_of_scram_is_ignored(place: Secured) -> None:
    with place.raw("SASL_PLAINTEXT") as client:
        client.handshake("SCRAM-SHA-256")
        answer = client.authenticate(b"n,,n=alice,r=abc,tokenauth=false,other=thing")
        assert (answer.error_code, bytes(answer.auth_bytes)[:5]) == (0, b"r=abc")


@pytest.mark.case("SE-P13", "SE-P12")
def test_described_options_tell_no_secret(place: Secured) -> None:
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    with place.raw("PLAINTEXT") as client:
        (result,) = client.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4).results
    rows = {row.name: row for row in result.configs}
    for name in ("sasl.jaas.config", "ssl.keystore.password", "ssl.keystore.key", "ssl.truststore.password"):
        assert (rows[name].value, rows[name].is_sensitive) == (None, True)
    told = [row.value for row in rows.values()] + [synonym.value for row in rows.values() for synonym in row.synonyms]
    assert not any(PASSWORD in value for value in told if value)
    assert PASSWORD not in repr(place.broker.cluster.config.given)


# Frames that are never whole


def begun(place: Secured, announced: int) -> SecuredRaw:
    """A connection with a frame of which only 9,000 bytes came."""
    client = place.raw("SASL_PLAINTEXT")
    client.handshake("OAUTHBEARER")
    client.socket.sendall(struct.pack(">i", announced) + bytes(9_000))
    return client


def closed(clients: list[SecuredRaw]) -> list[int]:
    """Those that the broker has closed; it sends none of them anything."""
    readable, _, _ = select.select([client.socket for client in clients], [], [], 0)
    return [number for number, client in enumerate(clients) if client.socket in readable]


def test_unfinished_logins_of_an_address_are_bounded_by_default(place: Secured) -> None:
    """A thousand connections with half a frame of 512 KiB each held 546 MB (an audit); an address has 16 MiB."""
    with ExitStack() as stack:
        clients = [stack.enter_context(begun(place, 512 * 1024)) for _ in range(40)]
        until(lambda: len(closed(clients)) >= 8, "the address holds no more than its share")
        assert len(closed(clients)) == 8
        with place.raw("SASL_PLAINTEXT") as usual:
            assert usual.log_in().error_code == 0, "a message of a common size is not counted"


def test_the_room_of_an_address_is_given_back(tmp_path: Path) -> None:
    """By a frame that becomes whole, and by a connection that closes."""
    with secured(tmp_path, partita__login__bytes__per__ip=20_000) as place, ExitStack() as stack:
        first = stack.enter_context(place.raw("SASL_PLAINTEXT"))
        first.handshake("PLAIN")
        token = first.frame(SaslAuthenticateRequest(auth_bytes=plain("alice", "x" * 12_000)), 2)
        first.socket.sendall(token[:9_000])
        second = stack.enter_context(begun(place, 12_000))
        until(lambda: closed([second]) == [0], "the first has taken the room")
        first.socket.sendall(token[9_000:])
        assert first.recv(SaslAuthenticateRequest.API_KEY, 2)[1].error_code == FAILED
        third = stack.enter_context(begun(place, 12_000))
        fourth = stack.enter_context(begun(place, 12_000))
        until(lambda: closed([third, fourth]) == [1], "the third has taken it")
        third.socket.close()

        def has_room() -> bool:
            taken, refused = begun(place, 12_000), begun(place, 12_000)
            with taken, refused:
                until(lambda: bool(closed([taken, refused])), "there is room for one at most")
                return closed([taken, refused]) == [1]

        until(has_room, "the third has given it back")
