"""TLS on the broker's own sockets: who is let in, what is reloaded, and what slow and hostile peers cannot do."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from partita import Admin, Broker
from partita.broker.launch import StartError
from partita.broker.requests.dispatch import Dispatcher
from partita.broker.wire.contract import Chunks, ConnectionHandle, Parked
from partita.broker.wire.server import LOGIN_TICKS_MAX
from partita.broker.wire.sockets import HANDSHAKES_AT_ONCE
from partita.broker.wire.tls_transport import TlsTransport
from partita.errors import TlsError
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.sasl_handshake import SaslHandshakeRequest
from partita.protocol.primitives import Buffer
from support.broker.raw import Raw
from support.broker.secured import Secured, SecuredRaw, secured
from support.broker.standstill import stopped
from support.certificates import Certificates, as_pkcs12, client_hello, encrypted, key_and_chain
from support.clients.broker import until

RULES = "RULE:^CN=(svc-[a-z]+),O=.*$/$1/U,RULE:^CN=([A-Za-z]+),.*$/$1@team/L,DEFAULT"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("tls"), mechanisms="PLAIN") as running:
        yield running


def seen(raw: SecuredRaw) -> str:
    """The serial number of the certificate that the broker shows."""
    assert isinstance(raw.socket, ssl.SSLSocket)
    certificate = raw.socket.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


def let_pass(place: Secured, ticks: int) -> None:
    """Do what the servers do in so many seconds."""

    def tick() -> None:
        for servers in place.broker.running.servers.values():
            for server in servers:
                assert server._timer is not None
                server._timer.cancel()
                server.tick += ticks - 1
                server._on_tick()

    place.broker.run(tick)


def connections(place: Secured) -> int:
    return place.broker.run(
        lambda: sum(len(s.connections) for servers in place.broker.running.servers.values() for s in servers)
    )


# Versions and names


@pytest.mark.case("SE-A01", "SE-A02")
@pytest.mark.parametrize(("highest", "spoken"), [(None, "TLSv1.3"), (ssl.TLSVersion.TLSv1_2, "TLSv1.2")])
def test_the_newest_version_that_both_speak(place: Secured, highest: ssl.TLSVersion | None, spoken: str) -> None:
    context = place.trusting()
    if highest is not None:
        context.maximum_version = highest
    with SecuredRaw(place.port("SSL"), tls=context) as raw:
        assert isinstance(raw.socket, ssl.SSLSocket)
        assert raw.socket.version() == spoken
        assert raw.serves()


@pytest.mark.case("SE-A03")
def test_tls_1_1_gets_the_alert_that_names_the_version(place: Secured) -> None:
    hello = bytes.fromhex("160301002d010000290302") + b"r" * 32 + bytes.fromhex("000002002f0100")
    with socket.create_connection(("127.0.0.1", place.port("SSL")), timeout=60) as peer:
        peer.sendall(hello)
        assert peer.recv(7)[5:] == bytes([2, 70]), "fatal, protocol_version"


@pytest.mark.case("SE-A07", "SE-A10")
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("first", [bytes.fromhex("16030100a5010000a1"), b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n"])
def test_a_plain_listener_closes_on_what_is_no_request(place: Secured, listener: str, first: bytes) -> None:
    with socket.create_connection(("127.0.0.1", place.port(listener)), timeout=60) as peer:
        peer.sendall(first)
        assert peer.recv(1) == b""


@pytest.mark.case("SE-A09")
@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
def test_a_plain_request_on_a_tls_listener_gets_an_alert_at_most(place: Secured, listener: str) -> None:
    with Raw(place.port(listener)) as raw:
        raw.send(MetadataRequest(topics=[]), 9)
        received = b""
        try:
            while more := raw.socket.recv(100):
                received += more
        except ConnectionResetError:
            pass
        assert len(received) <= 7
        assert received[:2] in (b"", b"\x15\x03")


@pytest.mark.case("SE-A08", "SE-A17")
def test_every_listener_names_its_own_address(place: Secured) -> None:
    for listener in ("PLAINTEXT", "SSL", "SASL_SSL"):
        with place.raw(listener) as raw:
            if listener == "SASL_SSL":
                raw.log_in()
            (node,) = raw.ask(MetadataRequest(topics=[]), 12).brokers
            assert (node.host, node.port) == ("localhost", place.port(listener))


# Stores


def with_store(certificates: Certificates, **options: object) -> Broker:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return Broker({"listeners": "SSL://127.0.0.1:0", **given})


def serves(broker: Broker, certificates: Certificates) -> bool:
    context = ssl.create_default_context(cafile=certificates.ca)
    with broker, SecuredRaw(broker.port, tls=context) as raw:
        return raw.serves()


@pytest.mark.case("SE-A06", "SE-A21")
@pytest.mark.parametrize("suffix", [".p12", ".jks"])
def test_a_pkcs12_store_is_read_whatever_it_is_called(tmp_path: Path, suffix: str) -> None:
    certificates = Certificates(tmp_path)
    store = as_pkcs12(certificates.issue("localhost"), "pw", suffix)
    broker = with_store(certificates, ssl__keystore__location=str(store), ssl__keystore__password="pw")
    assert serves(broker, certificates)


@pytest.mark.case("SE-A18")
def test_inline_pem_works(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    key, chain = key_and_chain(certificates.issue("localhost"))
    assert serves(
        with_store(certificates, ssl__keystore__key=key, ssl__keystore__certificate__chain=chain), certificates
    )


@pytest.mark.case("SE-A19")
def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    sealed = str(encrypted(certificates.issue("localhost"), "pw"))
    assert serves(with_store(certificates, ssl__keystore__location=sealed, ssl__key__password="pw"), certificates)
    with (
        pytest.raises(StartError, match=rf"ssl\.key\.password does not open .*{Path(sealed).name}"),
        with_store(certificates, ssl__keystore__location=sealed, ssl__key__password="no"),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"\xfe\xed\xfe\xed....", "JKS key store.*keytool -importkeystore", id="SE-A20"),
        pytest.param(b"hello", "neither PEM nor PKCS12", id="no store"),
        pytest.param(None, "no such file", id="no file"),
    ],
)
@pytest.mark.case("SE-A20")
def test_a_store_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "store.jks"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartError, match=said), with_store(Certificates(tmp_path), ssl__keystore__location=str(path)):
        pass


def test_a_tls_listener_without_a_certificate_is_refused() -> None:
    with pytest.raises(StartError, match=r"has no certificate: set listener\.name\.ssl\.ssl\.keystore\.location"):
        Broker(listeners="SSL://127.0.0.1:0").start()


@pytest.mark.case("SE-A05")
def test_an_expired_certificate_is_served_and_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificates = Certificates(tmp_path)
    old = certificates.issue("localhost", ended=True)
    with with_store(certificates, ssl__keystore__location=str(old)) as broker:
        context = ssl.create_default_context(cafile=certificates.ca)
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            SecuredRaw(broker.port, tls=context)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with SecuredRaw(broker.port, tls=context) as raw:
            assert raw.serves()
    assert any("has ended" in record.getMessage() for record in caplog.records)


# Reload


def altered(place: Secured, value: str, option: str = "ssl.keystore.location") -> tuple[int, str | None]:
    config = AlterableConfig(name=f"listener.name.ssl.{option}", config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    with place.raw("PLAINTEXT") as raw:
        (answer,) = raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    return answer.error_code, answer.error_message


@pytest.mark.case("SE-A12", "SE-A15")
def test_a_new_certificate_is_for_new_connections(tmp_path: Path) -> None:
    path = tmp_path / "localhost.pem"
    with secured(tmp_path, mechanisms="PLAIN", ssl__allow__dn__changes="true") as place, place.raw("SSL") as old:
        before = seen(old)
        place.certificates.issue("localhost")
        with place.raw("SSL") as still:
            assert seen(still) == before
        assert altered(place, str(path)) == (0, None)
        with place.raw("SSL") as new:
            assert seen(new) != before
        assert old.serves()


@pytest.mark.parametrize(
    "value", ["/no/such/file", "/etc/shadow", "/etc/hostname", "/tmp", "/dev/zero", "https://example.com/x", ""]
)
@pytest.mark.case("SE-A13", "SE-P19")
def test_a_file_that_cannot_be_loaded_changes_nothing(place: Secured, value: str) -> None:
    with place.raw("SSL") as old:
        before = seen(old)
    code, message = altered(place, value)
    assert code == 42
    assert message is not None
    assert "root:" not in message
    with place.raw("SSL") as new:
        assert seen(new) == before


@pytest.mark.case("SE-A14")
def test_a_certificate_of_another_name_is_refused(place: Secured) -> None:
    code, message = altered(place, str(place.certificates.issue("other", "localhost")))
    assert code == 42
    assert message is not None
    assert "DistinguishedName does not match" in message


# Client certificates


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    own = {"ssl.client.auth": "required", "listener.name.sasl_ssl.ssl.client.auth": "requested"}
    with secured(tmp_path_factory.mktemp("mtls"), mechanisms="PLAIN", **own) as running:
        yield running


def principal(place: Secured, certificate: Path | None, listener: str = "SSL") -> str:
    """Who the broker takes this client for."""
    with place.raw(listener, certificate) as raw:
        assert raw.serves()
        port = raw.socket.getsockname()[1]

        def look() -> str:
            for servers in place.broker.running.servers.values():
                for server in servers:
                    for connection in server.connections:
                        peer = connection._transport and connection._transport.get_extra_info("peername")
                        if peer and peer[1] == port:
                            return str(connection.principal)
            raise AssertionError("the connection is there")

        return place.broker.run(look)


@pytest.mark.case("SE-H01", "SE-H02", "SE-H03", "SE-H09")
@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
@pytest.mark.parametrize("kind", ["none", "stranger", "expired"])
def test_who_shows_no_good_certificate_is_not_served(mutual: Secured, tmp_path: Path, listener: str, kind: str) -> None:
    shown = {
        "none": None,
        "stranger": Certificates(tmp_path, "Stranger").issue("Carol"),
        "expired": mutual.certificates.issue("Old", ended=True),
    }[kind]
    if listener == "SASL_SSL" and shown is None:
        with mutual.raw(listener) as raw:
            assert raw.log_in().error_code == 0
        return
    with pytest.raises((ssl.SSLError, OSError, EOFError)), mutual.raw(listener, shown) as raw:
        raw.handshake("PLAIN")


@pytest.mark.case("SE-H07")
def test_the_name_in_the_certificate_is_the_principal(mutual: Secured) -> None:
    carol = mutual.certificates.issue("Carol")
    name = principal(mutual, carol)
    assert name.startswith("User:CN=Carol,OU=")
    assert ",O=trustme v" in name


@pytest.mark.case("SE-H08")
def test_a_certificate_that_nobody_asked_for_is_not_looked_at(place: Secured) -> None:
    assert principal(place, place.certificates.issue("Carol")) == "User:ANONYMOUS"
    assert principal(place, None) == "User:ANONYMOUS"


@pytest.mark.case("SE-H04", "SE-H05", "SE-H11")
def test_rules_map_names_and_who_fits_none_is_not_served(tmp_path: Path) -> None:
    rules = r"RULE:^CN=(svc-[a-z]+),.*$/$1/U,RULE:^CN=([A-Za-z]+),OU=.*$/$1@team/L"
    own = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": rules}
    with secured(tmp_path, mechanisms="PLAIN", **own) as place:
        assert principal(place, place.certificates.issue("Carol")) == "User:carol@team"
        assert principal(place, place.certificates.issue("svc-orders")) == "User:SVC-ORDERS"
        with (
            pytest.raises((OSError, EOFError)),
            place.raw("SSL", place.certificates.issue("x-1")) as raw,
        ):
            raw.serves()


# The trap of pending bytes, slow peers, storms


@pytest.mark.case("SE-A23")
@pytest.mark.parametrize("count", [30, 3000])
def test_requests_in_one_record_are_all_answered(place: Secured, count: int) -> None:
    with place.raw("SSL") as raw:
        frames = b"".join(raw.frame(MetadataRequest(topics=[]), 12) for _ in range(count))
        raw.socket.sendall(frames)
        for _ in range(count):
            raw.recv(3, 12)


@pytest.mark.case("SE-A22", "SE-A26")
@pytest.mark.parametrize("listener", ["SSL", "PLAINTEXT"])
def test_a_slow_reader_gets_every_byte_and_holds_up_nobody(place: Secured, listener: str) -> None:
    topic = f"large-{listener}"
    place.broker.create_topics({topic: 1})
    values = [bytes([i]) * 900_000 for i in range(20)]
    place.broker.produce(topic, *values)
    wanted = FetchPartition(partition=0, fetch_offset=7, partition_max_bytes=1 << 30)
    request = FetchRequest(max_wait_ms=0, max_bytes=1 << 30, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    with place.raw(listener) as slow, place.raw(listener) as other:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
        slow.send(request, 12)
        slow.send(MetadataRequest(topics=[]), 12)
        for _ in range(5):
            assert other.serves(), "before the slow one has read a byte"
        first = slow.recv(1, 12)[1].responses[0].partitions[0].records
        second = slow.recv(3, 12)[1]
    assert first is not None
    for value in values[7:15]:
        assert value in bytes(first), "a block of the log in memory: 7 MB"
    assert second.brokers


@pytest.mark.case("SE-P03", "SE-P08", "SE-B18")
@pytest.mark.parametrize("begun", ["nothing", "half a hello", "a handshake", "a mechanism"])
def test_who_does_not_get_to_the_login_is_closed(place: Secured, begun: str) -> None:
    until(lambda: connections(place) == 0, "the connections of the tests before are gone")
    peers: list[socket.socket] = []
    for _ in range(20):
        if begun in ("nothing", "half a hello"):
            peer = socket.create_connection(("127.0.0.1", place.port("SASL_SSL")), timeout=60)
            peer.sendall(bytes.fromhex("1603010200010001fc0303") if begun == "half a hello" else b"")
        else:
            raw = place.raw("SASL_SSL")
            peer = raw.socket
            if begun == "a mechanism":
                raw.handshake("PLAIN")
        peers.append(peer)
    until(lambda: connections(place) == len(peers), "the broker knows them all")
    let_pass(place, LOGIN_TICKS_MAX + 1)
    for peer in peers:
        with suppress(ConnectionError):
            assert peer.recv(1) == b""
        peer.close()
    until(lambda: connections(place) == 0, "they are all closed")


@pytest.mark.case("SE-B18")
def test_who_has_logged_in_stays(place: Secured) -> None:
    with place.raw("SASL_SSL") as logged_in, place.raw("SSL") as plain:
        logged_in.log_in()
        assert plain.serves()
        let_pass(place, LOGIN_TICKS_MAX + 5)
        assert logged_in.serves()
        assert plain.serves()


@pytest.mark.case("SE-A24")
def test_a_storm_of_handshakes_holds_up_no_other_listener(place: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    """All hellos arrive at once, and the canary's request behind them: it is begun after the first few handshakes."""
    begun: list[str] = []
    shake_hands, dispatch = TlsTransport._shake_hands, Dispatcher.dispatch

    def shaking(self: TlsTransport) -> None:
        begun.append("handshake")
        shake_hands(self)

    def dispatching(self: Dispatcher, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        begun.append("canary")
        return dispatch(self, connection, frame)

    hello = client_hello(place.trusting())
    with ExitStack() as stack:
        canary = stack.enter_context(place.raw("PLAINTEXT"))
        assert canary.serves()
        where = ("127.0.0.1", place.port("SSL"))
        peers = [stack.enter_context(socket.create_connection(where, timeout=60)) for _ in range(300)]
        until(lambda: connections(place) > len(peers), "all are accepted")
        monkeypatch.setattr(TlsTransport, "_shake_hands", shaking)
        monkeypatch.setattr(Dispatcher, "dispatch", dispatching)
        with stopped(place.broker):
            for peer in peers:
                peer.sendall(hello)
            canary.send(MetadataRequest(topics=[]), 12)
        assert canary.recv(3, 12)[1].brokers
        for peer in peers:
            assert peer.recv(1) == b"\x16"
    assert begun.index("canary") <= 10 * HANDSHAKES_AT_ONCE
    assert begun.count("handshake") >= len(peers)


@pytest.mark.case("SE-P08")
@pytest.mark.parametrize("cuts", [(1,), (5,), (3, 8, 100), tuple(range(1, 60))], ids=str)
def test_a_handshake_that_comes_in_pieces(place: Secured, cuts: tuple[int, ...]) -> None:
    """OpenSSL begins when the first record is whole; the broker is asked in between, so each piece arrives alone."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = place.trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    with (
        place.raw("PLAINTEXT") as canary,
        socket.create_connection(("127.0.0.1", place.port("SSL")), timeout=60) as peer,
    ):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start, stop in zip((0, *cuts), (*cuts, len(hello)), strict=True):
            peer.sendall(hello[start:stop])
            assert canary.serves()
        while True:
            incoming.write(peer.recv(65536))
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
                break
        peer.sendall(outgoing.read())
        assert client.version() == "TLSv1.3"


@pytest.mark.case("SE-P08", "SE-A09")
@pytest.mark.parametrize(
    "first",
    [b"", b"\x16", b"\x16\x03\x01\x00\x50half", b"\x16\x03\x01\xff\xff" + b"x" * 40_000, b"\x16" * 20_000, b"G"],
)
def test_who_leaves_in_the_middle_of_a_handshake_leaves_nothing_behind(place: Secured, first: bytes) -> None:
    before = connections(place)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", place.port("SSL")), timeout=60) as peer, suppress(ConnectionError):
            peer.sendall(first)
    with place.raw("SSL") as raw:
        assert raw.serves()
    while connections(place) > before:
        pass


def test_a_large_request_in_many_records(place: Secured) -> None:
    """A frame of more than one share of a wake-up, in records of 16 KiB and in single bytes at its head."""
    place.broker.create_topics({"in": 1})
    with place.raw("SSL") as raw:
        frame = raw.frame(MetadataRequest(topics=[]), 12)
        for byte in frame:
            raw.socket.sendall(bytes([byte]))
        raw.recv(3, 12)
        raw.socket.sendall(struct.pack(">i", 2_000_000) + struct.pack(">hhih", 17, 1, 5, -1))
        raw.socket.sendall(struct.pack(">h", 4) + b"text" + b"\0" * (2_000_000 - 16))
        assert raw.recv(SaslHandshakeRequest.API_KEY, 1)[1].error_code == 34
        assert raw.serves()


@pytest.mark.case("SE-O07")
def test_a_broker_that_the_metadata_names_must_show_its_own_name_before_it_is_told_anything(tmp_path: Path) -> None:
    """The certificate is good for localhost; the metadata says 127.0.0.1, which it does not name."""
    certificates = Certificates(tmp_path)
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(certificates.issue("localhost", "localhost")),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": "PlainLoginModule required user_alice='secret';",
    }
    with Broker(settings) as broker:
        with (
            Admin(
                bootstrap_servers=f"localhost:{broker.port}",
                security_protocol="SASL_SSL",
                ssl_ca_location=str(certificates.ca),
                sasl_mechanism="PLAIN",
                sasl_username="alice",
                sasl_password="secret",
            ) as admin,
            pytest.raises(TlsError) as caught,
        ):
            admin.create_topic("t")
        said = str(caught.value)
        assert f"127.0.0.1:{broker.port} shows a certificate for localhost" in said
        assert "the cluster calls its broker 1 by this address: advertised.listeners" in said
        assert [note["note"] for note in broker.notes()].count("Login") == 1, "by the address of the bootstrap list"


@pytest.mark.case("SE-A01", "SE-B19", "SE-H07")
def test_where_there_is_no_epoll_asyncio_s_own_tls_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows: handshake, login, principal of a certificate, large answers, a bad hello."""
    monkeypatch.setattr("partita.broker.wire.sockets.IS_AVAILABLE", False)
    own = {"listener.name.ssl.ssl.client.auth": "required"}
    with secured(tmp_path, mechanisms="PLAIN", **own) as place:
        place.broker.create_topics({"t": 1})
        place.broker.produce("t", b"x" * 900_000)
        with place.raw("SASL_SSL") as raw:
            assert raw.log_in().error_code == 0
            wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=[wanted])])
            records = raw.ask(request, 12).responses[0].partitions[0].records
            assert len(records or b"") > 900_000
        with place.raw("SASL_SSL") as raw:
            assert raw.log_in("alice", "wrong").error_code == 58
            assert raw.is_closed()
        assert principal(place, place.certificates.issue("Carol")).startswith("User:CN=Carol,")
        with pytest.raises((OSError, EOFError)), place.raw("SSL") as raw:
            raw.serves()
        with socket.create_connection(("127.0.0.1", place.port("SSL")), timeout=60) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionError):
                assert peer.recv(100)[:1] in (b"", b"\x15")
