"""Servers and brokers that are not there: none holds up a client, and each is named. (findings D9 and D12)"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.designs.zookeeper.ports import free_ports
from partita.net.errors import Disconnected
from partita.producer.errors import NoMetadataError
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.wording import Note
from support.clients.broker import until
from support.clients.dead_servers import listening, refusing, silent, web

AT_ONCE_S = 8.0
"""A bound for a busy machine; a dead server once cost 10 s and more, and the admin client its life."""
Dead = Callable[[], AbstractContextManager[int]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topics({"t": 1})
        with Producer(bootstrap_servers=running.bootstrap) as producer:
            producer.send("t", b"there")
        yield running


@pytest.mark.parametrize("dead", [listening, silent, web])
def test_dead_bootstrap_servers_first(broker: Broker, dead: Dead) -> None:
    with dead() as port:
        servers = f"127.0.0.1:{port},{broker.bootstrap}"
        began = time.monotonic()
        with Admin(bootstrap_servers=servers) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["t"]
        admin_s = time.monotonic() - began
        with Producer(bootstrap_servers=servers) as producer:
            began = time.monotonic()
            producer.send("t", b"more").result(60)
            producer_s = time.monotonic() - began
        with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            began = time.monotonic()
            assert next(iter(consumer.poll(60))).value == b"there"
            consumer_s = time.monotonic() - began
    assert max(admin_s, producer_s, consumer_s) < AT_ONCE_S


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        (refusing, "cannot connect to {}: Connection refused"),
        (listening, "{} accepts connections, and answers nothing: it hangs, or is no Kafka broker"),
        (silent, "{} does not accept the connection"),
        (web, "{} is no Kafka broker: what it answers begins with 'HTTP/1.1'"),
    ],
)
def test_what_is_said_of_a_broker_that_is_not_there(dead: Dead, words: str) -> None:
    with dead() as port:
        server = f"127.0.0.1:{port}"
        said = words.format(server)
        brief = {"bootstrap.servers": server, "socket.connection.setup.timeout.ms": 3_000}
        with pytest.raises(Disconnected) as raised, Admin(brief):
            pass
        assert said in str(raised.value)

        heard: list[str] = []
        with Consumer(bootstrap_servers=server) as consumer:
            consumer.on_note(lambda note: heard.append(note.text))
            consumer.assign([("t", 0)])
            until = time.monotonic() + AT_ONCE_S
            while not heard and time.monotonic() < until:
                consumer.poll(0.1)
        assert said in heard[0]

        producer = Producer(bootstrap_servers=server, max_block_ms=3_000)
        with pytest.raises(NoMetadataError, match="no broker could be asked about topic 't'") as refused:
            producer.send("t", b"x").result(60)
        assert said in str(refused.value)
        producer.close(without_broker=0)

        command = [sys.executable, "-m", "partita.cli.main", "topics", "list", "-b", server]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert said in done.stderr


@pytest.fixture
def misled() -> Iterator[tuple[str, str]]:
    """(bootstrap, advertised address): a broker whose advertised address nobody reaches."""
    (port,) = free_ports(1)
    with refusing() as nowhere:
        advertised = f"127.0.0.1:{nowhere}"
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "advertised.listeners": f"PLAINTEXT://{advertised}"}
        with Broker({"auto.create.topics.enable": "true", **listeners}):
            yield f"127.0.0.1:{port}", advertised


def said_of(misled: tuple[str, str], role: str) -> str:
    bootstrap, advertised = misled
    return (
        f"{role}, node 1 at {advertised} as advertised by the broker at {bootstrap}, cannot be reached: "
        "Connection refused; check advertised.listeners"
    )


def told(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == logger]


def test_an_advertised_address_that_nobody_reaches(misled: tuple[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """Each client says it once, as a note and in its log; what it raises in the end names the address too."""
    bootstrap, advertised = misled
    with Producer(bootstrap_servers=bootstrap, delivery_timeout_ms=4_000, request_timeout_ms=2_000) as producer:
        notes: list[Note] = []
        producer.on_note(notes.append)
        failure = producer.send("orders", b"x").exception(60)
    assert [note.text for note in notes] == [said_of(misled, "orders-0's leader")]
    assert told(caplog, "partita.producer")[0] == said_of(misled, "orders-0's leader")
    assert f"cannot connect to {advertised}: Connection refused" in str(failure)

    with Consumer(bootstrap_servers=bootstrap, group_id="g") as consumer:
        consumer.on_note(notes.append)
        consumer.subscribe(["orders"])
        until(lambda: not consumer.poll(0.1) and len(notes) > 1, "the consumer has reported its coordinator")
        for _ in range(10):
            consumer.poll(0.1)
    assert [note.text for note in notes[1:]] == [said_of(misled, "the coordinator of group 'g'")]
    assert notes[1].fields["bootstrap"] == [bootstrap]
    assert told(caplog, "partita.consumer")[0].endswith(notes[1].text)

    with Admin(bootstrap_servers=bootstrap, default_api_timeout_ms=4_000) as admin:
        admin.on_note(notes.append)
        with pytest.raises(Disconnected, match=f"{advertised}.* \\(the cluster calls its broker 1 by this address"):
            admin.describe_group("g")
    assert notes[2].text == said_of(misled, "the coordinator of group 'g'")
    assert told(caplog, "partita.admin") == [notes[2].text]


def test_an_advertised_address_that_nobody_reaches_in_spark_and_on_the_command_line(
    misled: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, advertised = misled
    with Producer(bootstrap_servers=bootstrap) as producer:
        until(lambda: bool(producer.partitions_for("orders")), "the topic is there")
    link = BrokerLink({"bootstrap.servers": bootstrap, "default.api.timeout.ms": "4000"})
    with pytest.raises(Disconnected, match=f"{advertised}.* \\(the cluster calls its broker 1 by this address"):
        ClusterLookups(link).at_times({("orders", 0): 0})
    assert told(caplog, "partita.spark") == [said_of(misled, "orders-0's leader")]

    reading = [sys.executable, "-m", "partita.cli.main", "consume", "orders", "-b", bootstrap]
    process = subprocess.Popen(reading, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    process.terminate()
    process.communicate(timeout=60)
    assert said_of(misled, "orders-0's leader") in line


def test_a_broker_that_goes_and_comes_and_one_that_throttles_are_notes(tmp_path: Path) -> None:
    """As `error_cb` and `throttle_cb` of other clients."""
    (port,) = free_ports(1)
    notes: list[Note] = []
    bootstrap = f"127.0.0.1:{port}"
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        Consumer(bootstrap_servers=bootstrap, group_id="g") as consumer,
    ):
        producer.on_note(notes.append)
        consumer.on_note(notes.append)
        with Broker(data_dir=str(tmp_path), port=port, auto_create_topics_enable=True) as broker:
            producer.send("t", b"x").result(60)
            consumer.subscribe(["t"])
            until(lambda: consumer.poll(0.1) is not None and bool(consumer.assignment()), "the consumer is a member")
            with Admin(bootstrap_servers=bootstrap) as admin:
                admin.alter_client_quotas({"producer_byte_rate": 1}, client_id=None)
            producer.send("t", b"x" * 1000).result(60)
            until(lambda: any(note.kind == "throttled" for note in notes), "the producer was throttled")
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                admin.alter_client_quotas({"producer_byte_rate": None}, client_id=None)
        until(lambda: consumer.poll(0.1) is not None and gone(notes), "the consumer has lost its broker")
        with Broker(data_dir=str(tmp_path), port=port):
            until(lambda: consumer.poll(0.1) is not None and back(notes), "the consumer has its broker again")
    throttled = next(note for note in notes if note.kind == "throttled")
    assert throttled.fields["throttle_ms"] > 0
    assert throttled.text.startswith(f"node 1 at {bootstrap} asks to be sent nothing for ")


def gone(notes: list[Note]) -> bool:
    return any(note.kind == "broker_gone" and "was lost" in note.text for note in notes)


def back(notes: list[Note]) -> bool:
    return any(note.kind == "broker_back" for note in notes)
