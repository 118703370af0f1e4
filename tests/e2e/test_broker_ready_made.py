"""`Broker(tls=True, users=..., acls=...)`: what a test of a service's security settings needs, in one line."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import aiokafka
import confluent_kafka
import kafka
import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.broker.launch import StartError
from partita.errors import AuthenticationError, KafkaError, TlsError
from partita.security.scram import HASHES

PASSWORD = 'se;cr=et "quoted"'
PASSWORD_MECHANISMS = ("PLAIN", *HASHES)
OAUTHBEARER = "OAUTHBEARER"
WITHIN_SECONDS = 60.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    acls = ["allow User:alice all topic orders*", "allow User:alice all group *", "allow User:bob read topic nothing"]
    with Broker(tls=True, users={"alice": PASSWORD, "bob": "b"}, acls=acls) as running:
        yield running


@pytest.mark.case("SE-Q09", "SE-N22")
@pytest.mark.parametrize("mechanism", [*PASSWORD_MECHANISMS, OAUTHBEARER])
def test_our_clients_log_in_read_and_write_in_a_group(broker: Broker, mechanism: str) -> None:
    topic, options = f"orders-{mechanism}", broker.client_options("alice", mechanism=mechanism)
    broker.create_topics({topic: 1})
    with Producer(**options) as producer:
        assert producer.send(topic, b"x").result().offset == 0
    with Consumer(**options, group_id=mechanism, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        while not (records := list(consumer.poll(1.0))):
            pass
    assert [record.value for record in records] == [b"x"]
    assert broker.committed(mechanism) == {(topic, 0): 1}


@pytest.mark.client
@pytest.mark.case("SE-Q09", "SE-N22")
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_confluent_kafka_in_a_group(broker: Broker, mechanism: str) -> None:
    topic = f"orders-c-{mechanism}"
    broker.create_topics({topic: 2})
    options = broker.client_options("alice", style="confluent", mechanism=mechanism)
    producer = confluent_kafka.Producer(options)
    producer.produce(topic, b"x")
    assert producer.flush(WITHIN_SECONDS) == 0
    consumer = confluent_kafka.Consumer({**options, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.poll(WITHIN_SECONDS)
    assert found is not None
    assert found.value() == b"x"
    consumer.close()
    assert sum(broker.committed(topic).values()) == 1


@pytest.mark.client
@pytest.mark.case("SE-Q09", "SE-N22")
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_aiokafka_in_a_group(broker: Broker, mechanism: str) -> None:
    topic = f"orders-a-{mechanism}"
    broker.create_topics({topic: 2})
    options = broker.client_options("alice", style="aiokafka", mechanism=mechanism)

    async def run() -> bytes:
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"x")
        group = {"group_id": topic, "auto_offset_reset": "earliest"}
        async with aiokafka.AIOKafkaConsumer(topic, **options, **group) as consumer:
            record = await asyncio.wait_for(consumer.getone(), WITHIN_SECONDS)
            value: bytes = record.value
            return value

    assert asyncio.run(run()) == b"x"


@pytest.mark.client
@pytest.mark.case("SE-Q09", "SE-N22")
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_kafka_python_in_a_group(broker: Broker, mechanism: str) -> None:
    topic = f"orders-k-{mechanism}"
    broker.create_topics({topic: 2})
    options = broker.client_options("alice", style="kafka-python", mechanism=mechanism)
    producer = kafka.KafkaProducer(**options)
    producer.send(topic, b"x").get(WITHIN_SECONDS)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **options, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=int(WITHIN_SECONDS * 1000)
    )
    assert next(iter(consumer)).value == b"x"
    consumer.close()


@pytest.mark.client
@pytest.mark.case("SE-N22", "SE-F01")
def test_confluent_kafka_in_a_group_by_a_token(broker: Broker) -> None:
    broker.create_topics({"orders-c-token": 1})
    options = broker.client_options("alice", style="confluent", mechanism=OAUTHBEARER)
    producer = confluent_kafka.Producer(options)
    producer.produce("orders-c-token", b"x")
    assert producer.flush(WITHIN_SECONDS) == 0
    consumer = confluent_kafka.Consumer({**options, "group.id": "c-token", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders-c-token"])
    found = consumer.poll(WITHIN_SECONDS)
    assert found is not None
    assert found.value() == b"x"
    consumer.close()
    assert broker.committed("c-token") == {("orders-c-token", 0): 1}


@pytest.mark.client
@pytest.mark.case("SE-N22", "SE-F01")
def test_aiokafka_in_a_group_by_a_token(broker: Broker) -> None:
    broker.create_topics({"orders-a-token": 1})
    options = broker.client_options("alice", style="aiokafka", mechanism=OAUTHBEARER)

    async def run() -> bytes:
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait("orders-a-token", b"x")
        group = {"group_id": "a-token", "auto_offset_reset": "earliest"}
        async with aiokafka.AIOKafkaConsumer("orders-a-token", **options, **group) as consumer:
            record = await asyncio.wait_for(consumer.getone(), WITHIN_SECONDS)
            value: bytes = record.value
            return value

    assert asyncio.run(run()) == b"x"


@pytest.mark.client
@pytest.mark.case("SE-N22", "SE-F01")
def test_kafka_python_in_a_group_by_a_token(broker: Broker) -> None:
    broker.create_topics({"orders-k-token": 1})
    options = broker.client_options("alice", style="kafka-python", mechanism=OAUTHBEARER)
    producer = kafka.KafkaProducer(**options)
    assert producer.send("orders-k-token", b"x").get(WITHIN_SECONDS).offset == 0
    producer.close()
    consumer = kafka.KafkaConsumer(
        "orders-k-token", **options, group_id="k-token", auto_offset_reset="earliest",
        consumer_timeout_ms=int(WITHIN_SECONDS * 1000),
    )  # fmt: skip
    assert next(iter(consumer)).value == b"x"
    consumer.close()
    assert broker.committed("k-token") == {("orders-k-token", 0): 1}


def test_bob_may_do_what_he_is_allowed_and_nothing_else(broker: Broker) -> None:
    broker.create_topics({"orders-secret": 1})
    with Admin(**broker.client_options("bob")) as admin:
        assert [topic.name for topic in admin.list_topics()] == []
    with Producer(**broker.client_options("bob")) as producer, pytest.raises(KafkaError):
        producer.send("orders-secret", b"x").result()


def test_an_unknown_user_or_style_is_named(broker: Broker) -> None:
    with pytest.raises(KeyError, match="no user 'eve'; there are alice, bob"):
        broker.client_options("eve")
    with pytest.raises(ValueError, match="style must be one of partita, confluent"):
        broker.client_options("alice", style="librdkafka")
    assert 'password="se;cr=et \\"quoted\\""' in broker.client_options("alice", style="java")["sasl.jaas.config"]


def test_java_is_told_to_make_a_token_itself(broker: Broker) -> None:
    login = broker.client_options("alice", style="java", mechanism=OAUTHBEARER)["sasl.jaas.config"]
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    assert login == f'{module} required unsecuredLoginStringClaim_sub="alice";'


def test_a_broker_of_tokens_alone_is_reached_by_its_own_calls() -> None:
    users = {"alice": "x"}
    options = {"sasl.enabled.mechanisms": OAUTHBEARER, "sasl.oauthbearer.sub.claim.name": "email"}
    with Broker(options, users=users) as broker:
        broker.create_topics({"t": 1})
        given = broker.client_options("alice")
        assert not {"sasl_username", "sasl_password"} & given.keys()
        with Admin(**given) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["t"]
        logins = {note["principal"] for note in broker.notes() if note["note"] == "Login"}
        assert "User:alice" in logins
        assert (
            'Claim_sub="alice" unsecuredLoginStringClaim_email="alice"'
            in (broker.client_options("alice", style="java")["sasl.jaas.config"])
        )


def test_tokens_that_the_broker_would_refuse_are_not_handed_out() -> None:
    with (
        Broker(users={"alice": "x"}, sasl_enabled_mechanisms="PLAIN") as broker,
        pytest.raises(ValueError, match="does not offer OAUTHBEARER, only PLAIN"),
    ):
        broker.client_options("alice", mechanism=OAUTHBEARER)


@pytest.mark.case("SE-N21", "SE-E12")
def test_a_test_changes_passwords_and_certificates() -> None:
    with Broker(tls=True, users={"alice": "old"}) as broker:
        old = broker.client_options("alice")
        with Admin(**old) as stays:
            assert stays.list_topics() == []
            broker.control.set_password("alice", "new")
            for mechanism in PASSWORD_MECHANISMS:
                with pytest.raises(AuthenticationError), Admin(**{**old, "sasl_mechanism": mechanism}) as refused:
                    refused.list_topics()
                with Admin(**broker.client_options("alice", mechanism=mechanism)) as admin:
                    assert admin.list_topics() == []
            broker.control.expire_certificate()
            with pytest.raises(TlsError, match="ended on"), Admin(**broker.client_options("alice")) as refused:
                refused.list_topics()
            broker.control.renew_certificate()
            broker.control.remove_user("alice")
            with pytest.raises(AuthenticationError), Admin(**old, request_timeout_ms=5000) as refused:
                refused.list_topics()
            assert stays.list_topics() == []


@pytest.mark.case("SE-H05")
def test_certificates_instead_of_passwords() -> None:
    acls = ["allow User:svc-orders describe topic orders"]
    with Broker(mtls=True, acls=acls) as broker:
        broker.create_topics({"orders": 1, "other": 1})
        with Admin(**broker.client_options("svc-orders")) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["orders"]
        with Admin(**broker.client_options("stranger")) as admin:
            assert admin.list_topics() == []
        assert Path(broker.tls.ca_file).exists()
        without = broker.client_options("x")
        del without["ssl_certificate_location"], without["ssl_key_location"]
        with pytest.raises(AuthenticationError), Admin(**without) as refused:
            refused.list_topics()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tls": True, "listeners": "PLAINTEXT://127.0.0.1:0"}, "give them or listeners, not both"),
        ({"acls": ["allow User:a read topic t"]}, "acls need users, or mtls=True"),
        ({"users": {"partita-control": "x"}}, "is the broker's own"),
        ({"users": {"a": "x"}, "acls": ["allow everything"]}, "is not of the form"),
        ({"users": {"a": "x"}, "host": "0.0.0.0"}, "would let passwords travel unencrypted"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(StartError, match=said):
        Broker(**options).start()


def test_several_nodes_share_certificates_and_users() -> None:
    with Broker(tls=True, users={"alice": "x"}, nodes=3) as broker:
        broker.create_topics({"t": 6})
        with Producer(**broker.client_options("alice")) as producer:
            for partition in range(6):
                producer.send("t", b"x", partition=partition).result()
        assert len(broker.records("t")) == 6


@pytest.mark.case("SE-E15", "SE-P12")
def test_credentials_outlive_a_restart_and_no_password_is_on_the_disk(tmp_path: Path) -> None:
    secret = "a password that is nowhere else"
    with Broker(data_dir=str(tmp_path), users={"alice": secret}) as broker:
        broker.create_topics({"t": 1})
    with Broker(data_dir=str(tmp_path), users={"bob": "b"}) as broker:
        assert ("alice", "SCRAM-SHA-512", 4096) in set(broker.run(broker.running.services.users().credentials))
        options = {**broker.client_options("bob"), "sasl_username": "alice", "sasl_password": secret}
        with Admin(**{**options, "sasl_mechanism": "SCRAM-SHA-256"}) as admin:
            assert len(admin.list_topics()) == 1
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        assert secret.encode() not in path.read_bytes()


@pytest.mark.case("SE-Q11")
def test_a_broker_without_security_imports_none_of_it() -> None:
    code = (
        "import sys; from partita import Broker\n"
        "with Broker() as broker: broker.create_topics({'t': 1})\n"
        "print([m for m in ('cryptography', 'trustme', 'jwt', 'partita.broker.checks.gate') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def poll_for_ever(consumer: Consumer) -> NoReturn:
    while True:
        consumer.poll(0.1)


@pytest.mark.case("SE-G14", "SE-N21")
def test_a_login_that_cannot_be_renewed_is_told_once() -> None:
    """The password changes while the client is connected: the end of its login is told with its cause."""
    with Broker({"connections.max.reauth.ms": 1_100}, users={"alice": "old"}) as broker:
        broker.create_topics({"t": 1})
        consumer = Consumer(**broker.client_options("alice"), group_id="g")
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)
        broker.control.set_password("alice", "new")
        with pytest.raises(AuthenticationError, match="refused the login of user 'alice'") as caught:
            poll_for_ever(consumer)
        assert "old" not in str(caught.value)
        consumer.close()
