"""TLS of the clients: stores in every form, and what is said when trust fails (security.md 3.3, 4, 19)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from partita.consumer.config import ConsumerConfig
from partita.errors import KafkaError, TlsError
from partita.net.access import Access
from partita.net.config import ClientConfig
from partita.net.connection import Connection
from partita.net.pool import ConnectionPool
from partita.options import ConfigError
from support.broker.wire_server import WireServer
from support.certificates import Certificates, as_pkcs12, encrypted, key_and_chain
from support.loops import in_loop


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def client(protocol: str = "SSL", **options: Any) -> ClientConfig:
    values = ConsumerConfig.of(bootstrap_servers="127.0.0.1:1", security_protocol=protocol, **options).values
    return ClientConfig(security=values["security"], reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)


async def reach(server: WireServer, config: ClientConfig, host: str = "127.0.0.1") -> None:
    """Connect as a pool does; suspicious ends are tried as often as it takes to be told."""
    pool = ConnectionPool(config)
    for _ in range(3):
        try:
            connection = await pool.connect(1, host, server.port)
        except KafkaError as error:
            failure = error
            if not error.retriable:
                raise
        else:
            connection.close()
            return
    raise failure


@pytest.mark.case("SE-A01")
@in_loop
async def test_a_trusted_broker_is_reached_by_tls_13(certificates: Certificates) -> None:
    async with WireServer(lambda *_: None, certificates.server()) as server:
        connection = await Connection.open("127.0.0.1", server.port, client(ssl_ca_location=str(certificates.ca)))
        assert connection.versions
        connection.close()


@pytest.mark.case("SE-A18")
@pytest.mark.case("SE-A21")
@pytest.mark.parametrize("form", ["files", "one file", "pem", "librdkafka", "pkcs12", "pkcs12 as jks", "sealed"])
@in_loop
async def test_client_certificates_in_every_form(certificates: Certificates, form: str) -> None:
    path = certificates.issue("alice")
    key, chain = key_and_chain(path)
    forms: dict[str, dict[str, Any]] = {
        "files": {"ssl_certfile": str(path), "ssl_keyfile": str(path)},
        "one file": {"ssl_keystore_location": str(path), "ssl_keystore_type": "PEM"},
        "pem": {"ssl_keystore_key": key, "ssl_keystore_certificate_chain": chain},
        "librdkafka": {"ssl_certificate_pem": chain, "ssl_key_pem": key},
        "pkcs12": {"ssl_keystore_location": str(as_pkcs12(path, "pw")), "ssl_keystore_password": "pw"},
        "pkcs12 as jks": {
            "ssl_keystore_location": str(as_pkcs12(path, "pw", ".jks")),
            "ssl_keystore_type": "JKS",
            "ssl_keystore_password": "pw",
        },
        "sealed": {"ssl_keystore_location": str(encrypted(path, "pw")), "ssl_key_password": "pw"},
    }
    trusted = {"ssl_truststore_certificates": certificates.ca.read_text()}
    async with WireServer(lambda *_: None, certificates.server(wants_client=True)) as server:
        await reach(server, client(**trusted, **forms[form]))


@pytest.mark.case("SE-A19")
@pytest.mark.case("SE-A20")
@pytest.mark.case("SE-N01")
def test_stores_of_no_use_are_refused_when_the_client_is_made(certificates: Certificates, tmp_path: Path) -> None:
    path = certificates.issue("alice")
    other_key, _ = key_and_chain(certificates.issue("bob"))
    jks, text = tmp_path / "store.jks", tmp_path / "notes.txt"
    jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\x02")
    text.write_text("not a certificate")
    sealed = str(encrypted(path, "pw"))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ssl_ca_location": str(tmp_path / "none.pem")}, "ssl_ca_location: no such file: .*none.pem"),
        ({"ssl_ca_location": str(text)}, "ssl_ca_location: .*notes.txt is neither PEM nor PKCS12"),
        ({"ssl_truststore_location": str(jks)}, "is a JKS key store.*keytool -importkeystore -srckeystore .*store.jks"),
        ({"ssl_keystore_location": str(certificates.ca)}, "holds no private key"),
        ({"ssl_keystore_location": sealed, "ssl_key_password": "no"}, f"ssl_key_password does not open .*{sealed}"),
        ({"ssl_keystore_location": sealed}, "ssl_key_password is not set"),
        ({"ssl_certificate_location": str(path), "ssl_key_pem": other_key}, "does not belong to the certificate"),
        ({"ssl_keystore_location": str(as_pkcs12(path, "pw")), "ssl_keystore_password": "no"}, "does not open"),
        ({"ssl_cipher_suites": "NO_SUCH_SUITE"}, "ssl_cipher_suites: none of NO_SUCH_SUITE"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl_enabled_protocols must be of TLSv1.2 and TLSv1.3"),
    ]
    for options, message in cases:
        with pytest.raises(ConfigError, match=message):
            Access(client(**options).security)


def test_suites_in_java_s_spelling_are_understood() -> None:
    java = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
    context = Access(client(ssl_cipher_suites=java).security).tls_context()
    assert context is not None
    names = {suite["name"] for suite in context.get_ciphers()}
    assert {"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"} <= names


@pytest.mark.case("SE-A04")
@pytest.mark.case("SE-A05")
@pytest.mark.case("SE-N01")
@in_loop
async def test_each_broken_trust_says_what_is_wrong(certificates: Certificates, tmp_path: Path) -> None:
    trusting = {"ssl_ca_location": str(certificates.ca)}
    other = Certificates(tmp_path, "Other")
    expired = certificates.issue("old", ended=True)
    elsewhere = certificates.issue("elsewhere", "broker.internal", "*.internal")
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (certificates.server(), {"ssl_ca_location": str(other.ca)}, "is signed by '.*Partita.*none of the trusted"),
        (certificates.server(expired), trusting, "ended on 2021-01-01"),
        (certificates.server(elsewhere), trusting, r"shows a certificate for broker.internal, \*.internal"),
    ]
    for tls, options, message in cases:
        async with WireServer(lambda *_: None, tls) as server:
            with pytest.raises(TlsError, match=message):
                await reach(server, client(**options))


@pytest.mark.case("SE-N01")
@in_loop
async def test_a_broker_that_wants_a_certificate_says_so(certificates: Certificates) -> None:
    async with WireServer(lambda *_: None, certificates.server(wants_client=True)) as server:
        with pytest.raises(TlsError, match=r"(refused our certificate|may require a client certificate).*ssl_keystore"):
            await reach(server, client(ssl_ca_location=str(certificates.ca)))


@pytest.mark.case("SE-N01")
@pytest.mark.case("SE-O11")
@in_loop
async def test_plain_text_and_tls_are_told_apart(certificates: Certificates) -> None:
    async with WireServer(lambda *_: None, certificates.server()) as server:
        with pytest.raises(TlsError, match=r"(speaks TLS|may expect TLS).*security_protocol is PLAINTEXT"):
            await reach(server, client("PLAINTEXT"))
    async with WireServer(lambda *_: b"\x15\x03\x03\x00\x02\x02\x50") as server:
        with pytest.raises(TlsError, match="speaks TLS, and security_protocol is PLAINTEXT: set it to SSL or SASL_SSL"):
            await reach(server, client("PLAINTEXT"))


@in_loop
async def test_no_check_of_the_host_name_and_no_check_at_all(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    tls = certificates.server(certificates.issue("elsewhere", "broker.internal"))
    async with WireServer(lambda *_: None, tls) as server:
        trusting = {"ssl_ca_location": str(certificates.ca)}
        await reach(server, client(ssl_endpoint_identification_algorithm="", **trusting))
        await reach(server, client(ssl_check_hostname=False, **trusting))
        assert not caplog.records
        await reach(server, client(enable_ssl_certificate_verification=False))
    assert "certificates are not checked" in caplog.text


@in_loop
async def test_a_new_certificate_file_is_used_by_the_next_connection(certificates: Certificates) -> None:
    """A client of a mesh gets new certificates while it runs."""
    path = certificates.issue("alice")
    access = Access(client(ssl_ca_location=str(certificates.ca), ssl_keystore_location=str(path)).security)
    first = access.tls_context()
    assert access.tls_context() is first
    fresh = certificates.issue("fresh").read_bytes()
    path.write_bytes(fresh)
    os.utime(path, ns=(1, 1))
    assert access.tls_context() is not first
