"""How clients log in, against a broker that keeps to the rules and against hostile ones (security.md 7 to 12, 19)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita.broker.wire.tls_transport import first_record_bytes
from partita.consumer.config import ConsumerConfig
from partita.errors import AuthenticationError, TlsError
from partita.net.config import ClientConfig
from partita.net.connection import Connection
from partita.net.errors import Disconnected
from partita.net.pool import ConnectionPool
from partita.net.refusals import SUSPICIONS_MAX
from partita.options import ConfigError
from partita.protocol.framing import encode_response
from partita.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.sasl_handshake import SaslHandshakeResponse
from partita.secret import Secret
from partita.security import scram
from support.broker.wire_server import CLOSE, WireServer
from support.certificates import Certificates
from support.loops import in_loop
from support.sasl_server import SaslAnswers

SCRAMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def client(mechanism: str, protocol: str = "SASL_PLAINTEXT", **options: Any) -> ClientConfig:
    if mechanism in ("PLAIN", *SCRAMS):
        options = {"sasl_username": "alice", "sasl_password": "secret"} | options
    values = ConsumerConfig.of(
        bootstrap_servers="127.0.0.1:1", security_protocol=protocol, sasl_mechanism=mechanism, **options
    ).values
    return ClientConfig(security=values["security"], reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)


async def log_in(answers: SaslAnswers, config: ClientConfig) -> None:
    async with WireServer(answers) as server:
        connection = await Connection.open("127.0.0.1", server.port, config)
        assert connection.is_open
        connection.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAMS])
@in_loop
async def test_the_right_password_logs_in(mechanism: str) -> None:
    answers = SaslAnswers({"alice": "secret"})
    await log_in(answers, client(mechanism))
    assert answers.logins == 1


@pytest.mark.parametrize("mechanism", SCRAMS)
@in_loop
async def test_a_login_with_a_delegation_token_says_that_it_is_one(mechanism: str) -> None:
    answers = SaslAnswers({"alice": "secret"})
    await log_in(answers, client(mechanism))
    assert (answers.logins, answers.extensions) == (1, {})
    await log_in(answers, client(mechanism, sasl_scram_tokenauth=True))
    assert (answers.logins, answers.extensions) == (2, {"tokenauth": "true"})
    with pytest.raises(AuthenticationError, match=f"refused the login of delegation token 'alice' by {mechanism}"):
        await log_in(answers, client(mechanism, sasl_scram_tokenauth=True, sasl_password="wrong"))


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAMS])
@in_loop
async def test_new_credentials_are_used_by_the_next_login_and_by_a_renewal(mechanism: str) -> None:
    """As `set_sasl_credentials` of confluent-kafka: connections that are logged in stay so."""

    def then(key: int, version: int, request: Any) -> Any:
        return HeartbeatResponse() if key == HeartbeatRequest.API_KEY else None

    answers = SaslAnswers({"alice": "secret"}, lifetime_ms=1_000, then=then)
    config = client(mechanism)
    async with WireServer(answers) as server, asyncio.timeout(20):
        pool = ConnectionPool(config)
        first = await pool.connect(1, "127.0.0.1", server.port)
        answers.users, answers.lifetime_ms = {"bob": Secret("new")}, 0
        config.security.set_login("bob", "new")
        assert config.security.user == "bob"
        while answers.logins < 2:
            await first.send(HeartbeatRequest())
        await first.send(HeartbeatRequest())
        await pool.connect(2, "127.0.0.1", server.port)
        assert (answers.logins, server.connections, first.is_open) == (3, 2, True)
        pool.close()


def test_only_a_login_by_password_can_be_changed() -> None:
    for config, how in (
        (ClientConfig(), "PLAINTEXT"),
        (client("OAUTHBEARER", sasl_oauth_token_provider=lambda: "t"), "OAUTHBEARER"),
    ):
        with pytest.raises(ConfigError, match=f"logs in by PLAIN or SCRAM, not by {how}"):
            config.security.set_login("bob", "new")
    with pytest.raises(ConfigError, match="neither may be empty"):
        client("PLAIN").security.set_login("bob", "")


@pytest.mark.case("SE-N01")
@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAMS])
@in_loop
async def test_a_wrong_password_is_told_with_user_and_mechanism(mechanism: str) -> None:
    with pytest.raises(AuthenticationError, match=f"refused the login of user 'alice' by {mechanism}: ") as caught:
        await log_in(SaslAnswers({"alice": "other"}), client(mechanism))
    assert not caught.value.retriable
    assert "secret" not in str(caught.value)


@pytest.mark.case("SE-N01")
@pytest.mark.case("SE-O05")
@in_loop
async def test_a_mechanism_that_is_not_offered_is_not_replaced_by_another() -> None:
    answers = SaslAnswers({"alice": "secret"}, mechanisms=("PLAIN",))
    with pytest.raises(AuthenticationError, match="does not offer SASL mechanism SCRAM-SHA-256; it offers PLAIN"):
        await log_in(answers, client("SCRAM-SHA-256"))
    assert answers.logins == 0


@pytest.mark.case("SE-N01")
@in_loop
async def test_a_listener_without_sasl_is_named() -> None:
    def answer(key: int, version: int, request: Any) -> Any:
        return SaslHandshakeResponse(error_code=34) if key == 17 else None

    async with WireServer(answer) as server:
        with pytest.raises(AuthenticationError, match="does not ask for SASL: set security_protocol"):
            await Connection.open("127.0.0.1", server.port, client("PLAIN"))


@pytest.mark.case("SE-N01")
@in_loop
async def test_a_listener_that_wants_sasl_is_named_after_three_cuts() -> None:
    """Row 9 of section 19: one cut may be a broker that stops; three in a row are not."""

    async with WireServer(lambda key, version, request: None if key == 18 else CLOSE) as server:
        pool = ConnectionPool(ClientConfig(reconnect_backoff_ms=1, reconnect_backoff_max_ms=1))
        for _ in range(3):
            connection = await pool.connect(("bootstrap", 1), "127.0.0.1", server.port)
            connection.post(HeartbeatRequest(group_id="g", member_id="m", generation_id=1))
            await connection.closed
            await asyncio.sleep(0)
        with pytest.raises(AuthenticationError, match="closed the connection after our first request: it may require"):
            await pool.connect(("bootstrap", 1), "127.0.0.1", server.port)


@in_loop
async def test_who_was_answered_once_suspects_nothing_afterwards() -> None:
    """A broker that dies at each request, or a proxy before a dead one, must not fail what can be sent later."""
    is_ill = False

    def answer(key: int, version: int, request: Any) -> Any:
        return None if key == 18 else CLOSE if is_ill else HeartbeatResponse()

    async with WireServer(answer) as server:
        pool = ConnectionPool(ClientConfig(reconnect_backoff_ms=1, reconnect_backoff_max_ms=1))
        connection = await pool.connect("healthy", "127.0.0.1", server.port)
        await connection.post(HeartbeatRequest(group_id="g", member_id="m", generation_id=1))
        is_ill = True
        for _ in range(5):
            connection = await pool.connect("ill", "127.0.0.1", server.port)
            connection.post(HeartbeatRequest(group_id="g", member_id="m", generation_id=1))
            await connection.closed
            await asyncio.sleep(0)
        pool.close()


def replaced(part: str, by: str) -> Callable[[str], str]:
    return lambda text: text.replace(part, by) if part in text else text


@pytest.mark.case("SE-O01")
@pytest.mark.parametrize("mechanism", SCRAMS)
@in_loop
async def test_a_broker_that_cannot_prove_itself_is_refused(mechanism: str) -> None:
    def tell(text: str) -> str:
        return "v=YWJj" if text.startswith("v=") else text

    with pytest.raises(AuthenticationError, match="could not prove that it knows the password"):
        await log_in(SaslAnswers({"alice": "secret"}, tell=tell), client(mechanism))


@pytest.mark.case("SE-O02")
@pytest.mark.case("SE-O03")
@pytest.mark.case("SE-O04")
@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (replaced("i=4096", "i=1"), "iteration count 1 is below 4096"),
        (replaced("i=4096", "i=2147483647"), "iteration count 2147483647 is above 1000000"),
        (replaced("the-server", ""), "nonce does not extend ours"),
        (replaced("the-server", "x" * 2_000), "nonce does not extend ours"),
        (replaced("r=", "r=other"), "nonce does not extend ours"),
        (lambda text: "e=other-error", "first SCRAM message is malformed"),
    ],
)
@in_loop
async def test_a_hostile_first_message_is_refused_before_any_work(tell: Callable[[str], str], message: str) -> None:
    with pytest.raises(AuthenticationError, match=message):
        await log_in(SaslAnswers({"alice": "secret"}, tell=tell), client("SCRAM-SHA-256"))


@in_loop
async def test_the_salted_password_is_computed_once_for_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []

    def counted(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
        computed.append(iterations)
        return scram.salted_password(mechanism, password, salt, iterations)

    monkeypatch.setattr("partita.net.secured.login.salted_password", counted)
    answers = SaslAnswers({"alice": "secret"})
    async with WireServer(answers) as server:
        pool = ConnectionPool(client("SCRAM-SHA-256"))
        for key in range(3):
            await pool.connect(key, "127.0.0.1", server.port)
        pool.close()
    assert answers.logins == 3
    assert len(computed) == 1


class OldProvider:
    """The form that aiokafka and kafka-python ask for."""

    async def token(self) -> str:
        return "good"

    def extensions(self) -> dict[str, str]:
        return {"logicalCluster": "lkc-1"}


async def from_coroutine() -> tuple[str, float]:
    return "good", 4_000_000_000.0


@pytest.mark.case("SE-F17")
@pytest.mark.parametrize(
    "provider",
    [lambda: "good", from_coroutine, lambda config: ("good", 4e9), lambda: Secret("good"), OldProvider()],
    ids=["plain", "async", "confluent", "secret", "aiokafka"],
)
@in_loop
async def test_token_providers_of_every_client_work(provider: Any) -> None:
    answers = SaslAnswers({}, tokens=("good",))
    await log_in(answers, client("OAUTHBEARER", sasl_oauth_token_provider=provider))
    assert answers.logins == 1
    assert answers.extensions == ({"logicalCluster": "lkc-1"} if isinstance(provider, OldProvider) else {})


@pytest.mark.case("SE-N01")
@pytest.mark.case("SE-O10")
@pytest.mark.parametrize("told", ['{"status":"invalid_token"}', "not json \x1b[2J", "x" * 1_000_000])
@in_loop
async def test_a_refused_token_is_told_in_short(told: str) -> None:
    answers = SaslAnswers({}, tell=lambda text: told)
    with pytest.raises(AuthenticationError, match="refused the OAUTHBEARER token") as caught:
        await log_in(answers, client("OAUTHBEARER", sasl_oauth_token_provider=lambda: "bad"))
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.case("SE-N01")
@in_loop
async def test_a_provider_that_raises_is_told_with_its_cause() -> None:
    def provider() -> str:
        raise RuntimeError("the vault is sealed")

    with pytest.raises(AuthenticationError, match="raised RuntimeError: the vault is sealed"):
        await log_in(SaslAnswers({}), client("OAUTHBEARER", sasl_oauth_token_provider=provider))


@pytest.mark.case("SE-G12")
@in_loop
async def test_a_login_is_renewed_on_the_same_connection_and_requests_wait_meanwhile() -> None:
    beaten: list[bool] = []

    def then(key: int, version: int, request: Any) -> Any:
        if key != HeartbeatRequest.API_KEY:
            return None
        beaten.append(True)
        return HeartbeatResponse()

    answers = SaslAnswers({"alice": "secret"}, lifetime_ms=1_000, then=then)
    async with WireServer(answers) as server:
        connection = await Connection.open("127.0.0.1", server.port, client("PLAIN"))
        answers.lifetime_ms = 0
        beat = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        async with asyncio.timeout(10):
            while answers.logins < 2:
                await connection.send(beat)
            await connection.send(beat)
        assert server.connections == 1
        connection.close()
    assert beaten


@pytest.mark.case("SE-O09")
@pytest.mark.parametrize("lifetime_ms", [-1, 1, 2**63 - 1])
@in_loop
async def test_odd_lifetimes_neither_loop_nor_overflow(lifetime_ms: int) -> None:
    answers = SaslAnswers({"alice": "secret"}, lifetime_ms=lifetime_ms)
    await log_in(answers, client("PLAIN"))
    assert answers.logins == 1


@pytest.mark.case("SE-D18")
@in_loop
async def test_heartbeats_go_on_while_a_password_is_stretched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work for 16,384 iterations waits for a heartbeat of the same loop: on that loop it would wait in vain."""
    has_begun, was_answered = threading.Event(), threading.Event()
    waited: list[bool] = []

    def slow(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
        has_begun.set()
        waited.append(was_answered.wait(60))
        return scram.salted_password(mechanism, password, salt, iterations)

    monkeypatch.setattr("partita.net.secured.login.salted_password", slow)
    answers = SaslAnswers({"alice": "secret"}, iterations=16_384)
    async with WireServer(answers) as server, WireServer(lambda key, version, request: _beat(key)) as other:
        beating = await Connection.open("127.0.0.1", other.port, ClientConfig())
        logging_in = asyncio.create_task(Connection.open("127.0.0.1", server.port, client("SCRAM-SHA-512")))
        assert await asyncio.to_thread(has_begun.wait, 60)
        await beating.send(HeartbeatRequest(group_id="g", member_id="m", generation_id=1))
        was_answered.set()
        (await logging_in).close()
        beating.close()
    assert waited == [True]
    assert answers.logins == 1


def _beat(key: int) -> HeartbeatResponse | None:
    return HeartbeatResponse() if key == HeartbeatRequest.API_KEY else None


@pytest.mark.case("SE-O06")
@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAMS])
@in_loop
async def test_a_broker_that_wants_the_login_in_plain_text_learns_nothing(mechanism: str, tmp_path: Path) -> None:
    """It offers SASL without TLS, whatever comes; all that it is sent is the beginning of a TLS handshake."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(65536))
        offer = SaslHandshakeResponse(mechanisms=["PLAIN", *SCRAMS])
        writer.writelines(encode_response(17, 1, 1, offer))
        received.append(await reader.read(65536))
        writer.close()

    trusted = {"ssl_ca_location": str(Certificates(tmp_path).ca)}
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TlsError, match="does not speak TLS, and security_protocol is SASL_SSL"):
            await Connection.open("127.0.0.1", port, client(mechanism, "SASL_SSL", **trusted))
    assert received[0].startswith(b"\x16\x03")
    assert len(received[0]) == first_record_bytes(received[0])
    for said in received:
        assert b"alice" not in said
        assert b"secret" not in said
    assert not received[1:] or received[1][:1] in (b"", b"\x15"), "an alert at most"


@pytest.mark.case("SE-O08")
@pytest.mark.parametrize(
    ("served", "said"),
    [
        ({17: (0, 1)}, "does not serve SaslAuthenticate: it has no SASL listener, or is older than Kafka 1.0"),
        ({17: (0, 0), 36: (0, 2)}, "speaks only the SASL handshake of Kafka before 1.0"),
        ({36: (0, 2)}, "speaks only the SASL handshake of Kafka before 1.0"),
        ({}, "does not serve SaslAuthenticate"),
    ],
)
@in_loop
async def test_the_login_of_old_brokers_is_refused_and_nothing_is_told(
    served: dict[int, tuple[int, int]], said: str
) -> None:
    """Tokens without headers tell no errors; Kafka's own clients have left them behind, too (KIP-896)."""
    asked: list[int] = []

    def answer(key: int, version: int, request: Any) -> Any:
        asked.append(key)
        ranges = {18: (0, 4), **served}
        return ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=k, min_version=low, max_version=high) for k, (low, high) in ranges.items()]
        )

    async with WireServer(answer) as server:
        with pytest.raises(AuthenticationError, match=said):
            await Connection.open("127.0.0.1", server.port, client("PLAIN"))
    assert 36 not in asked


@pytest.mark.case("SE-N20")
@in_loop
async def test_a_broker_that_is_down_is_tried_again_and_logged_in_to() -> None:
    """A refused connection is no wrong password: the next attempt is made, without an error in between."""
    answers = SaslAnswers({"alice": "secret"})
    server = WireServer(answers)
    async with server:
        port = server.port
    pool = ConnectionPool(client("PLAIN"))
    for _ in range(2 * SUSPICIONS_MAX):
        with pytest.raises(Disconnected) as caught:
            await pool.connect(("bootstrap", 1), "127.0.0.1", port)
        assert caught.value.retriable
    listener = await asyncio.start_server(server._serve, "127.0.0.1", port)
    async with listener:
        connection = await pool.connect(("bootstrap", 1), "127.0.0.1", port)
        assert connection.is_open
        pool.close()
    assert answers.logins == 1
