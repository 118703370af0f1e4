"""Every page of metrics is what Prometheus reads, and clients can serve theirs."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from partita import Admin, AsyncConsumer, AsyncProducer, Broker, Consumer, Producer, serve_metrics
from partita.http.exporter import joined
from partita.observe.metrics import metrics_text
from support.dashboard.world import FakeCluster, member

MONITORING = Path(__file__).parents[3] / "docs" / "monitoring"
PROCESS = {
    "process_start_time_seconds", "process_cpu_seconds", "process_resident_memory_bytes", "process_open_fds",
    "process_max_fds",
}  # fmt: skip


class Text(NamedTuple):
    """A client with these metrics."""

    text: str

    def metrics_text(self) -> str:
        if not self.text:
            raise RuntimeError("it is closed")
        return self.text


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(admin_port=0) as running:
        running.produce("odd.name-1", "x")
        yield running


def checked(text: str) -> dict[str, Metric]:
    """The families of a page, after everything that Prometheus asks for has been looked at."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families), "a family stands in one piece"
    for family in families:
        assert family.documentation, family.name
        assert family.type in ("counter", "gauge"), family.name
        series = [(sample.name, *sorted(sample.labels.items())) for sample in family.samples]
        assert series, family.name
        assert len(set(series)) == len(series), family.name
        assert {sample.name for sample in family.samples} <= {family.name, f"{family.name}_total"}
    assert text.endswith("\n")
    return {family.name: family for family in families}


def read(url: str) -> str:
    with urlopen(url) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


def test_the_page_of_each_blocking_client_and_of_the_broker(broker: Broker) -> None:
    with (
        Consumer(bootstrap_servers=broker.bootstrap, group_id='g"\\\n', auto_offset_reset="earliest") as consumer,
        Producer(bootstrap_servers=broker.bootstrap, client_id="p") as producer,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        producer.send("odd.name-1", b"v").result(60)
        consumer.subscribe(["odd.name-1"])
        while not consumer.poll(1):
            pass
        admin.list_topics()
        pages = [checked(text) for text in [each.metrics_text() for each in (consumer, producer, admin, broker)]]
        with serve_metrics(0, consumer, producer, admin, broker) as server:
            together = checked(read(server.url))
            assert read(server.url.replace("/metrics", "/metrics?x=1"))
    assert together.keys() - PROCESS == {name for page in pages for name in page}
    assert together.keys() >= PROCESS
    assert "kafka_consumer_consumer_fetch_manager_metrics_records_consumed" in together
    (sent,) = (s for s in together["kafka_producer_producer_metrics_record_send"].samples if "topic" not in s.labels)
    assert (sent.value, sent.labels["client_id"]) == (1, "p")


def of_the_groups() -> str:
    """The page of an exporter or a dashboard that has seen one group rebalance."""
    world = FakeCluster()
    for names in (["a"], ["a", "b"]):
        world.log("orders", 0, 100)
        world.group("billing", {("orders", 0): 90}, [member(name, ("orders", 0)) for name in names])
        world.look()
        world.pass_s(10)
    world.observed.history.count_cause("billing", "session expired")
    return metrics_text(world.observed)


def test_every_metric_of_the_alerts_and_of_the_dashboard_exists(broker: Broker) -> None:
    """A rule about a name that nobody exports never fires."""
    rules = [
        rule for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"] for rule in group["rules"]
    ]
    panels = json.loads((MONITORING / "grafana.json").read_text())["panels"]
    asked = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    with (
        Consumer(bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        consumer.subscribe(["odd.name-1"])
        while not consumer.poll(1):
            pass
        with serve_metrics(0, consumer, producer) as server:
            text = read(server.url)
    text += read(f"http://127.0.0.1:{broker.running.admin_port}/metrics")
    text += of_the_groups()
    exported: dict[str, set[str]] = {}
    labels: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, tags = line.rpartition(" ")[0].partition("{")
            exported.setdefault(name, {""}).update(re.findall(r'\bname="([^"]*)"', tags))
            labels.setdefault(name, set()).update(re.findall(r'(\w+)="', tags))
    for expression in asked:
        names = re.findall(r'\b((?:kafka|process|partita)_\w+)(?:\{(?:[^}]*?\bname="([^"]*)")?)?', expression)
        assert names or expression.startswith("up{"), expression
        for metric, name in names:
            assert name in exported.get(metric, ()), f"{metric} {name}: {expression}"
    for rule in rules:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert rule["annotations"].keys() == {"summary", "action"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["expr"].count("(") == rule["expr"].count(")")
        asked_for = set(re.findall(r"\$labels\.(\w+)", "".join(rule["annotations"].values())))
        assert asked_for <= {"instance", "job"} | {
            label for name in labels for label in labels[name] if name in rule["expr"]
        }
    assert len({rule["alert"] for rule in rules}) == len(rules)


def test_every_rule_about_groups_is_raised_in_the_rules_own_tests() -> None:
    """`promtool test rules` runs them; here only that none is forgotten, and each is once silent and once raised."""
    (groups,) = (
        group for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
        if group["name"] == "partita-groups"
    )  # fmt: skip
    silent, *raised = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    expected = [
        sample["labels"] for test in raised for one in test["promql_expr_test"] for sample in one["exp_samples"]
    ]
    alerts = [rule["alert"] for rule in groups["rules"]]
    assert sorted(re.findall(r'alertname="(\w+)"', "".join(expected))) == sorted(alerts)
    assert [one["alertname"] for one in silent["alert_rule_test"] if one["exp_alerts"] == []] == alerts
    for test in (silent, *raised):
        for series in test["input_series"]:
            assert re.search(rf"\b{series['series'].partition('{')[0]}\b", str(groups)), series


def test_asyncio_clients_are_served_beside_their_loop(broker: Broker) -> None:
    async def story() -> str:
        async with (
            AsyncConsumer(bootstrap_servers=broker.bootstrap) as consumer,
            AsyncProducer(bootstrap_servers=broker.bootstrap) as producer,
        ):
            with serve_metrics(0, consumer, producer) as server:
                return await asyncio.to_thread(read, server.url)

    page = checked(asyncio.run(story()))
    assert {"kafka_consumer_kafka_metrics_count_count", "kafka_producer_kafka_metrics_count_count"} <= page.keys()


def test_pages_are_joined_by_families() -> None:
    one = '# HELP a A\n# TYPE a gauge\na{client_id="1"} 1\n# HELP b B\n# TYPE b gauge\nb 1\n'
    other = '# HELP b B\n# TYPE b gauge\nb 2\n# HELP a A\n# TYPE a gauge\na{client_id="2"} 3\n'
    assert joined([one, other]) == (
        '# HELP a A\n# TYPE a gauge\na{client_id="1"} 1\na{client_id="2"} 3\n# HELP b B\n# TYPE b gauge\nb 1\n'
    )
    assert joined([]) == ""


def test_a_client_that_tells_nothing_is_left_out_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    good = Text("# HELP a A\n# TYPE a gauge\na 1\n")
    with serve_metrics(0, Text(""), good) as server, caplog.at_level(logging.WARNING):
        assert [read(server.url).startswith(good.text), read(server.url).startswith(good.text)] == [True, True]
        server.clients.remove(good)
        assert checked(read(server.url)).keys() == PROCESS
    assert [r.message for r in caplog.records] == ["the metrics of Text are left out: it is closed"]


def test_the_port_serves_nothing_else_and_no_web_page() -> None:
    with serve_metrics(0) as server:
        with urlopen(server.url.replace("metrics", "health")) as answer:
            assert answer.read() == b'{"ok": true}\n'
        for path, headers, status in (("/", {}, 404), ("/metrics", {"Origin": "http://evil.example"}, 403)):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(f"http://127.0.0.1:{server.port}{path}", headers=headers))
            assert refused.value.code == status
    server.close()
    with pytest.raises(OSError):  # noqa: PT011  # nobody listens any more
        urlopen(server.url)


def test_a_taken_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve_metrics(taken.getsockname()[1])
