"""Metrics that clients push, over a socket; codes and intervals are those of an Apache Kafka 4.4.0 with a plug-in."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from prometheus_client.parser import text_string_to_metric_families

from partita import Broker
from partita.broker.client_metrics import clients
from partita.broker.client_metrics.otlp import Point
from partita.broker.handlers import push_telemetry
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from partita.protocol.messages.push_telemetry import PushTelemetryRequest
from partita.records import compression
from support.broker.otlp import gauge, payload, total
from support.broker.raw import Raw

NEW = bytes(16)
DEFAULT_MS = 300_000


class Client:
    """One client: its id and its connection."""

    def __init__(self, broker: Broker, client_id: str = "app1") -> None:
        self.raw = Raw(broker.port, client_id)
        self.raw.ask(ApiVersionsRequest(client_software_name="soft", client_software_version="1.0"), 4)
        self.id = NEW
        self.subscription_id = 0

    def get(self, instance_id: bytes | None = None) -> GetTelemetrySubscriptionsResponse:
        wanted = self.id if instance_id is None else instance_id
        request = GetTelemetrySubscriptionsRequest(client_instance_id=wanted)
        answer: GetTelemetrySubscriptionsResponse = self.raw.ask(request, 0)
        if not answer.error_code:
            self.id, self.subscription_id = answer.client_instance_id, answer.subscription_id
        return answer

    def push(self, metrics: bytes = b"", *, codec: int = 0, last: bool = False) -> int:
        request = PushTelemetryRequest(
            client_instance_id=self.id,
            subscription_id=self.subscription_id,
            terminating=last,
            compression_type=codec,
            metrics=metrics,
        )
        code: int = self.raw.ask(request, 0).error_code
        return code


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"telemetry.max.bytes": 5_000}) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    made = Client(broker)
    with made.raw:
        yield made


def subscribe(client: Client, name: str, **settings: str) -> None:
    """Replace the settings of a subscription; without any it is gone."""
    configs = [AlterableConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    resource = AlterConfigsResource(resource_type=16, resource_name=name, configs=configs)
    assert client.raw.ask(AlterConfigsRequest(resources=[resource]), 2).responses[0].error_code == 0


def shown(broker: Broker) -> dict[str, float]:
    """The numbers of clients on the page, without the ids of the clients."""
    return {
        name.removeprefix("kafka_client_metrics_").split(',client_instance_id="')[0]: value
        for name, value in broker.metrics().items()
        if name.startswith("kafka_client_metrics_")
    }


def test_a_client_without_an_id_is_given_one_and_asked_for_nothing_without_subscriptions(client: Client) -> None:
    answer = client.get()
    assert (answer.push_interval_ms, answer.telemetry_max_bytes, answer.delta_temporality) == (DEFAULT_MS, 5_000, True)
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.requested_metrics == []
    assert UUID(bytes=answer.client_instance_id).version == 4
    assert client.get(NEW).client_instance_id != answer.client_instance_id


def test_a_client_is_asked_for_what_all_its_subscriptions_want(broker: Broker, client: Client) -> None:
    subscribe(client, "s1", metrics="p.,c.", interval_ms="200", match="client_id=app.*")
    subscribe(client, "s2", metrics="p.,x", match="client_software_name=so.t,client_software_version=1\\.0")
    subscribe(client, "s3", metrics="y", interval_ms="100", match="client_source_port=1,client_source_address=127")
    subscribe(client, "s4", metrics="z", match="client_instance_id=z")
    assert client.get().requested_metrics == ["p.", "c.", "x"]
    assert client.get(NEW).push_interval_ms == 200
    other = Client(broker, "other")
    with other.raw:
        assert (other.get().requested_metrics, other.get(NEW).push_interval_ms) == (["p.", "x"], DEFAULT_MS)
    subscribe(client, "s1", metrics="*", interval_ms="1000")
    assert client.get(NEW).requested_metrics == ["*"]
    for name in ("s1", "s2"):
        subscribe(client, name)
    assert client.get(NEW).requested_metrics == []


def test_requests_keep_the_interval(broker: Broker, client: Client) -> None:
    client.get()
    assert client.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.push() == ErrorCode.NONE, "a push may follow at once"
    assert client.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.control.advance_clock(DEFAULT_MS)
    assert client.push() == ErrorCode.NONE
    assert client.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.push(last=True) == ErrorCode.NONE, "the last push comes at any time"
    assert client.push() == ErrorCode.INVALID_REQUEST
    broker.control.advance_clock(DEFAULT_MS)
    assert client.get().error_code == ErrorCode.NONE


def test_wrong_pushes_are_refused_by_their_kind(broker: Broker, client: Client) -> None:
    for reserved in (NEW, bytes(15) + b"\1"):
        client.id = reserved
        assert client.push() == ErrorCode.INVALID_REQUEST
    client.id = b"unknown to it 16"
    assert client.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.get().error_code == ErrorCode.NONE, "it may ask what the subscription is"
    for metrics, codec, code in (
        (b"x", 9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (b"x" * 5_001, 0, ErrorCode.TELEMETRY_TOO_LARGE),
        (payload(gauge("half", 1)) + b"\xff", 0, ErrorCode.INVALID_RECORD),
        (b"\xff" * 5_000, 0, ErrorCode.INVALID_RECORD),
        (b"x", 1, ErrorCode.INVALID_RECORD),
        (bytes(compression.compress(4, bytes(5 << 20))), 4, ErrorCode.INVALID_RECORD),
    ):
        broker.control.advance_clock(DEFAULT_MS)
        assert client.push(metrics, codec=codec) == code
    broker.control.advance_clock(DEFAULT_MS)
    assert client.push(b"x", codec=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert client.get().error_code == ErrorCode.NONE
    assert shown(broker) == {"left_out": 0.0}, "nothing of a damaged payload is shown"


def test_a_changed_subscription_has_another_id(client: Client) -> None:
    client.get()
    subscribe(client, "s", metrics="a")
    assert client.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.get().requested_metrics == ["a"]


def test_the_numbers_are_on_the_metrics_page_until_the_client_is_quiet(broker: Broker, client: Client) -> None:
    metrics = payload(
        gauge("a.rate", 1.5, **{"topic": "t", "client-id": "mine"}),
        total("a.total", 7, is_delta=True),
        total("b.total", 7, is_delta=False),
    )
    client.get()
    for codec in range(5):
        assert client.push(bytes(compression.compress(codec, metrics)), codec=codec) == ErrorCode.NONE
        broker.control.advance_clock(DEFAULT_MS)
    wanted = {
        'a_rate{topic="t",client_id="app1"': 1.5, 'a_total{client_id="app1"': 35.0, 'b_total{client_id="app1"': 7.0,
        "left_out": 0.0,
    }  # fmt: skip
    assert shown(broker) == wanted
    assert "# TYPE kafka_client_metrics_a_total counter\n" in broker.metrics_text()
    assert client.push(last=True) == ErrorCode.NONE
    broker.control.advance_clock(2 * DEFAULT_MS)
    assert shown(broker) == wanted
    broker.control.advance_clock(DEFAULT_MS + 1)
    assert shown(broker) == {"left_out": 0.0}


def test_numbers_and_clients_are_bounded(broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "SERIES_OF_CLIENT_MAX", 2)
    monkeypatch.setattr(clients, "SERIES_MAX", 3)
    monkeypatch.setattr(clients, "CLIENTS_MAX", 2)
    numbers = payload(*(gauge("n" * 300, 1, number=str(number) * 300) for number in range(3)))
    client.get()
    assert client.push(numbers) == ErrorCode.NONE
    second = Client(broker, "second")
    with second.raw:
        second.get()
        assert second.push(numbers) == ErrorCode.NONE
        assert shown(broker)["left_out"] == 1 + 2
        assert len(shown(broker)) == 3 + 1
        assert all(len(name) < 200 + 128 + 100 for name in shown(broker))
        second.get(NEW)
    assert len(shown(broker)) == 1 + 1, "the client that was quiet longest made room"
    broker.control.advance_clock(3 * DEFAULT_MS + 1)
    client.get(NEW)
    assert client.push(numbers) == ErrorCode.NONE
    assert len(shown(broker)) == 2 + 1, "numbers of quiet clients made room"


def test_a_client_that_made_room_meanwhile_takes_none_of_the_room(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "SERIES_MAX", 1)
    monkeypatch.setattr(clients, "CLIENTS_MAX", 1)
    metrics = clients.ClientMetrics(broker.cluster.catalogue, lambda: 0)
    number = Point("n", (), 1.0, is_counter=False, is_delta=False)
    first, second = (metrics.instance(bytes([place]), {}) for place in (1, 2))
    for instance in (first, second):
        metrics.keep(instance, number)
    assert (first.series, len(second.series), metrics.left_out) == ({}, 1, 0)


def test_of_a_push_of_very_many_numbers_the_first_are_read(
    broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty clients with 180,000 numbers each took 700 MB, and others were served slowly."""
    monkeypatch.setattr(push_telemetry, "POINTS_MAX", 2)
    client.get()
    assert client.push(payload(*(gauge(name, 1) for name in "abc"))) == ErrorCode.NONE
    assert set(shown(broker)) == {'a{client_id="app1"', 'b{client_id="app1"', "left_out"}


def test_room_is_not_sought_anew_for_each_number(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for none, each number of a push looked at all 10,000 clients."""
    monkeypatch.setattr(clients, "SERIES_MAX", 0)
    now_ms, looks = [0], []
    metrics = clients.ClientMetrics(broker.cluster.catalogue, lambda: now_ms[0])
    monkeypatch.setattr(metrics, "_forget_quiet", lambda: looks.append(now_ms[0]))
    instance = metrics.instance(b"1", {})
    for ms in (0, 999, 1_000):
        now_ms[0] = ms
        for number in range(10):
            metrics.keep(instance, Point(f"n{number}", (), 1.0, is_counter=False, is_delta=False))
    assert (looks, metrics.left_out) == ([0, 1_000], 30)


def test_names_of_clients_leave_the_page_readable(broker: Broker, client: Client) -> None:
    """Prometheus refused the whole page, with all numbers of the broker, for one label without a name."""
    odd = {"": "0", "1st": "1", "__name__": "2", "é": "3", "client_id": "4", "a b": "5"}
    client.get()
    assert client.push(payload(gauge("n", 1, **odd), gauge("a.b", 2), gauge("a-b", 3))) == ErrorCode.NONE
    of_client = {name: number for name, number in shown(broker).items() if name != "left_out"}
    assert of_client == {
        'n{label_="3",label_1st="1",name__="2",client_id="app1",a_b="5"': 1.0,
        'a_b{client_id="app1"': 2.0,
    }
    families = list(text_string_to_metric_families(broker.metrics_text()))
    assert {"kafka_client_metrics_n", "kafka_client_metrics_a_b"} <= {family.name for family in families}
