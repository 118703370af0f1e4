"""Our clients over TLS and SASL against Apache Kafka itself: what works, and what is said of each mistake."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita import Admin, Consumer, Producer
from partita.errors import AuthenticationError, TlsError
from support.certificates import Certificates, as_pkcs8
from support.kafka.node import KafkaNode, run_tool, settle

pytestmark = pytest.mark.conformance
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
BEARER = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="alice";'
)
LISTENERS = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "BEARER": "SASL_PLAINTEXT",
    "OLD": "SSL",
    "ELSEWHERE": "SSL",
}


class SecuredKafka:
    """A node with a listener for each way in, and the certificates for them."""

    def __init__(self, node: KafkaNode, certificates: Certificates) -> None:
        self.node = node
        self.certificates = certificates

    def options(self, listener: str, **options: Any) -> dict[str, Any]:
        protocol = LISTENERS[listener]
        base: dict[str, Any] = {"bootstrap_servers": f"localhost:{self.node.ports[listener]}"}
        base |= {"security_protocol": protocol}
        if protocol.endswith("SSL"):
            base |= {"ssl_ca_location": str(self.certificates.ca)}
        return base | options


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    shown = {
        "tls": certificates.issue("server"),
        "mutual": certificates.issue("server2"),
        "both": certificates.issue("server3"),
        "old": certificates.issue("old", ended=True),
        "elsewhere": certificates.issue("elsewhere", "broker.internal"),
    }
    settings = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}
    for name, path in shown.items():
        prefix = f"listener.name.{name}.ssl"
        settings |= {f"{prefix}.keystore.type": "PEM", f"{prefix}.keystore.location": str(as_pkcs8(path))}
        settings |= {f"{prefix}.truststore.type": "PEM", f"{prefix}.truststore.location": str(certificates.ca)}
    settings["listener.name.mutual.ssl.client.auth"] = "required"
    for name in ("login", "both"):
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = PLAIN
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{name}.{mechanism}.sasl.jaas.config"] = SCRAM
    settings["listener.name.both.connections.max.reauth.ms"] = "2000"
    settings["listener.name.bearer.sasl.enabled.mechanisms"] = "OAUTHBEARER"
    settings["listener.name.bearer.oauthbearer.sasl.jaas.config"] = BEARER
    with KafkaNode(LISTENERS, **settings) as node:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            done = run_tool(
                "kafka.admin.ConfigCommand", "--bootstrap-server", node.bootstrap, "--alter", "--entity-type", "users",
                "--entity-name", "bob", "--add-config", f"{mechanism}=[password=pw]",
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        with Admin(bootstrap_servers=node.bootstrap) as admin:
            admin.create_topic("orders")
            settle(admin)
        yield SecuredKafka(node, certificates)


ALICE = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "secret"}
BOB = {"sasl_username": "bob", "sasl_password": "pw"}


@pytest.mark.case("SE-N22")
@pytest.mark.parametrize(
    ("listener", "options"),
    [
        ("TLS", {}),
        ("LOGIN", ALICE),
        ("BOTH", ALICE),
        ("LOGIN", BOB | {"sasl_mechanism": "SCRAM-SHA-512"}),
        ("BOTH", BOB | {"sasl_mechanism": "SCRAM-SHA-256"}),
        ("BEARER", {"sasl_mechanism": "OAUTHBEARER", "sasl_jaas_config": BEARER}),
        ("MUTUAL", {"ssl_keystore_location": "CLIENT"}),
    ],
    ids=["tls", "plain", "plain-tls", "scram-512", "scram-256-tls", "bearer", "mutual-tls"],
)
def test_every_way_in_works(kafka: SecuredKafka, listener: str, options: dict[str, Any], tmp_path: Path) -> None:
    given = dict(options)
    if given.get("ssl_keystore_location") == "CLIENT":
        given["ssl_keystore_location"] = str(kafka.certificates.issue("alice"))
    client = kafka.options(listener, **given)
    with Producer(**client) as producer:
        offset = producer.send("orders", listener.encode()).result(60).offset
    with Consumer(group_id=f"g-{listener}-{offset}", auto_offset_reset="earliest", **client) as consumer:
        consumer.subscribe(["orders"])
        found: set[int] = set()
        while offset not in found:
            found |= {record.offset for record in consumer.poll(10)}
    with Admin(**client) as admin:
        assert "orders" in [topic.name for topic in admin.list_topics()]


@pytest.mark.case("SE-G12")
def test_a_consumer_outlives_its_logins(kafka: SecuredKafka) -> None:
    """The listener ends each login after two seconds; the clients renew it and nothing is lost or rejoined."""
    client = kafka.options("BOTH", sasl_mechanism="SCRAM-SHA-256", **BOB)
    with Producer(**client) as producer, Consumer(group_id="renewing", **client) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        first = producer.send("orders", b"first").result(60).offset
        found: set[int] = set()
        last, third_login = first, time.monotonic() + 4.5
        while time.monotonic() < third_login:
            found |= {record.offset for record in consumer.poll(0.1)}
            last = producer.send("orders", b"more").result(60).offset
        while last not in found:
            found |= {record.offset for record in consumer.poll(10)}
        assert consumer.group_metadata().generation_id == 1
        assert {*range(first, last + 1)} <= found


@pytest.mark.case("SE-N01")
@pytest.mark.parametrize(
    ("listener", "options", "kind", "message"),
    [
        (
            "LOGIN",
            ALICE | {"sasl_password": "x"},
            AuthenticationError,
            "refused the login of user 'alice' by PLAIN: Auth",
        ),
        ("BEARER", ALICE, AuthenticationError, "does not offer SASL mechanism PLAIN; it offers OAUTHBEARER"),
        ("TLS", {"security_protocol": "PLAINTEXT"}, TlsError, "speaks TLS, and security_protocol is PLAINTEXT"),
        ("TLS", {"ssl_ca_location": None}, TlsError, "is signed by .* none of the trusted authorities"),
        ("OLD", {}, TlsError, "ended on 2021-01-01"),
        ("ELSEWHERE", {}, TlsError, "shows a certificate for broker.internal"),
        ("LOGIN", {"security_protocol": "PLAINTEXT"}, AuthenticationError, "after our first request: it may require"),
        ("MUTUAL", {}, TlsError, "refused our certificate"),
    ],
    ids=["password", "mechanism", "plain-to-tls", "authority", "expired", "host", "no-sasl", "no-certificate"],
)
@pytest.mark.parametrize("client", ["consumer", "producer", "admin"])
def test_each_mistake_is_named(
    kafka: SecuredKafka, listener: str, options: dict[str, Any], kind: type[Exception], message: str, client: str
) -> None:
    given = kafka.options(listener, **options)
    with pytest.raises(kind, match=message):
        _first_call(client, given)


def test_a_plain_listener_does_not_answer_tls_or_sasl(kafka: SecuredKafka) -> None:
    given = {"bootstrap_servers": kafka.node.bootstrap, "default_api_timeout_ms": 60_000}
    with pytest.raises(TlsError, match="does not speak TLS"):
        _first_call("admin", given | {"security_protocol": "SSL"})
    with pytest.raises(AuthenticationError, match="does not ask for SASL"):
        _first_call("admin", given | {"security_protocol": "SASL_PLAINTEXT"} | ALICE)


def _first_call(client: str, given: dict[str, Any]) -> None:
    if client == "admin":
        with Admin(**given) as admin:
            admin.list_topics()
    elif client == "producer":
        producer = Producer(**given)
        try:
            producer.send("orders", b"x").result(60)
        finally:
            producer.close(timeout=0)
    else:
        with Consumer(group_id="mistaken", **given) as consumer:
            consumer.subscribe(["orders"])
            for _ in range(600):
                consumer.poll(0.1)
