"""The broker's metrics: Kafka's names, and numbers that say what happened.

vectors/broker-metrics.json holds the names and attributes of the MBeans of an Apache Kafka 4.3.1 node.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from partita import Broker, Consumer
from partita.broker import counts as traffic_module
from partita.broker.measuring import metrics as metrics_module
from partita.broker.measuring.rebalances import Histogram
from partita.metrics.moving_rate import MovingRate
from partita.metrics.registry import Metrics, exported_name
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareOffsetsPartition,
    AlterShareOffsetsTopic,
)
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsSubtopology,
    StreamsTopology,
)
from support.broker.raw import Raw
from support.share.beats import share_beat
from support.share.plane import ACCEPT, RELEASE, acquired
from support.share.wire import WireMember

KAFKA = json.loads((Path(__file__).parents[2] / "vectors" / "broker-metrics.json").read_text())
OF_PARTITA = {"kafka_server_socket_server_metrics_connection_count"}
"""Kafka has it for every connection processor, once there was a connection."""
OUR_OWN = "kafka_partita_"
"""Kafka has nothing of the kind."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(admin_port=0) as running:
        yield running


def exported() -> dict[str, set[str]]:
    """How the JMX exporter calls Kafka's metrics, with the values of the label "name" ("" without)."""
    found: dict[str, set[str]] = {}
    for bean, attributes in KAFKA.items():
        domain, _, properties = bean.partition(":type=")
        kind, _, name = properties.partition(",name=")
        for attribute in attributes:
            found.setdefault(exported_name(f"{domain}_{kind}_{attribute}"), set()).add(name)
    return found


def test_every_metric_is_one_of_kafkas(broker: Broker) -> None:
    """Sources, 003 row 23 and item 7."""
    broker.produce("t", "x")
    with Raw(broker.port) as raw:
        raw.stable("g")
    known = exported()
    unknown = set()
    for metric in broker.metrics():
        base, _, labels = metric.partition("{")
        name = re.search(r'(?:^|,)name="([^"]*)"', labels)
        if (
            base not in OF_PARTITA
            and not base.startswith(OUR_OWN)
            and (name[1] if name else "") not in known.get(base, set())
        ):
            unknown.add(metric)
    assert unknown == set()


def test_traffic_is_counted_for_all_topics_and_for_each(broker: Broker) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        broker.produce("t", "abc")
        broker.produce("u", "abc")
        consumer.assign([("t", 0)])
        while not consumer.poll(1):
            pass
    numbers = broker.metrics()
    assert numbers['kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec"}'] == 2
    assert numbers['kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="t"}'] == 1
    arrived = numbers['kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"}']
    assert numbers['kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",topic="t"}'] == arrived > 60
    assert numbers['kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",topic="u"}'] == 0
    assert numbers['kafka_log_Log_Value{name="LogEndOffset",topic="t",partition="0"}'] == 1


def test_groups_and_their_rebalances_are_counted(broker: Broker) -> None:
    before = broker.metrics()
    assert before['kafka_coordinator_group_GroupMetadataManager_Value{name="NumGroups"}'] == 0
    with Raw(broker.port) as raw:
        raw.stable("g")
        raw.commit("h", 5)
    numbers = broker.metrics()
    of_groups = {
        name: numbers[f'kafka_coordinator_group_GroupMetadataManager_Value{{name="{name}"}}']
        for name in ("NumGroups", "NumGroupsStable", "NumGroupsEmpty", "NumOffsets")
    }
    assert of_groups == {"NumGroups": 1, "NumGroupsStable": 1, "NumGroupsEmpty": 0, "NumOffsets": 0}
    assert numbers["kafka_server_group_coordinator_metrics_group_completed_rebalance_count"] == 1
    assert numbers['kafka_server_group_coordinator_metrics_num_partitions{state="active"}'] == 50


def test_share_groups_their_records_and_locks_are_counted(broker: Broker) -> None:
    broker.create_topics({"t": 1})
    rebalances = "kafka_server_group_coordinator_metrics_share_group_rebalance_count"
    assert broker.metrics()[rebalances] == 0
    with Raw(broker.port) as raw:
        raw.find("g")
        topic = AlterShareOffsetsTopic(topic_name="t", partitions=[AlterShareOffsetsPartition(start_offset=0)])
        assert raw.ask(AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), 0).error_code == 0
        assert share_beat(raw, "m", 0, ["t"]).error_code == 0
        for _ in range(4):
            broker.produce("t", "x", partition=0)
        member = WireMember(raw, broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id))
        assert acquired(member.fetch(max_wait_ms=30_000)) == [(0, 3, 1)]
        assert member.ack((0, 1, ACCEPT), (2, 2, RELEASE)) == 0
        broker.control.advance_clock(ms=30_000)
        numbers = broker.metrics()
    own = 'group="g",topic="t",partition="0"}'
    expected = {
        'group_coordinator_metrics_share_group_count{state="stable"}': 1,
        'group_coordinator_metrics_group_count{protocol="share"}': 1,
        "group_coordinator_metrics_consumer_group_rebalance_count": 0,
        'ShareSessionCache_Value{name="ShareSessionsCount"}': 1,
        'ShareGroupMetrics_Count{name="RecordAcknowledgementsPerSec",ackType="Accept"}': 2,
        'ShareGroupMetrics_Count{name="RecordAcknowledgementsPerSec",ackType="Release"}': 1,
        f'SharePartitionMetrics_Value{{name="InFlightMessageCount",{own}': 2,
        f'SharePartitionMetrics_Count{{name="AcquisitionLockTimeoutPerSec",{own}': 1,
    }
    assert {name: numbers[f"kafka_server_{name}"] for name in expected} == expected
    assert numbers[f"kafka_partita_ShareGroups_lag{{{own}"] == 2
    assert numbers[rebalances] > 0


def test_streams_groups_are_counted_by_state(broker: Broker) -> None:
    broker.create_topics({"in": 1})
    with Raw(broker.port) as raw:
        raw.find("g")
        topology = StreamsTopology(subtopologies=[StreamsSubtopology(subtopology_id="0", source_topics=["in"])])
        join = StreamsGroupHeartbeatRequest(
            group_id="g", member_id="m", rebalance_timeout_ms=1_000, topology=topology, process_id="p", client_tags=[],
            active_tasks=[], standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        assert raw.ask(join, 0).error_code == 0
        numbers = broker.metrics()
    of_groups = "kafka_server_group_coordinator_metrics_"
    states = ("empty", "notready", "assigning", "reconciling", "stable", "dead")
    counts = {state: numbers[f'{of_groups}streams_group_count{{state="{state}"}}'] for state in states}
    assert sum(counts.values()) == numbers[f'{of_groups}group_count{{protocol="streams"}}'] == 1
    assert counts["empty"] == counts["dead"] == 0


def test_rebalances_are_counted_by_cause_and_their_phases_as_histograms(broker: Broker) -> None:
    own = "kafka_partita_Groups_"
    assert broker.metrics()[f"{own}join_phase_ms_count"] == 0
    with Raw(broker.port) as raw:
        joined = raw.stable("g")
        broker.control.expire_session("g", joined.member_id)
        begun = dict.fromkeys(("member joined", "session expired"), 1)
        begun["member left"] = 0
        numbers = broker.metrics()
        for cause, count in begun.items():
            assert numbers.get(f'{own}rebalances{{cause="{cause}",protocol="classic"}}', 0) == count
    notes = [note for note in broker.notes() if note["note"] == "Rebalanced"]
    for phase in ("join_phase_ms", "sync_phase_ms"):
        times = [note[phase] for note in notes]
        assert (numbers[f"{own}{phase}_count"], numbers[f"{own}{phase}_sum"]) == (2, sum(times))
        assert numbers[f'{own}{phase}_bucket{{le="10"}}'] == sum(ms <= 10 for ms in times)
        assert numbers[f'{own}{phase}_bucket{{le="120000"}}'] == numbers[f'{own}{phase}_bucket{{le="+Inf"}}'] == 2


def test_a_time_counts_in_each_bucket_that_it_fits() -> None:
    metrics = Metrics()
    times = Histogram(metrics, "phase", "how long")
    for ms in (10, 11, 4_000, 500_000):
        times.add(ms)
    found = {dict(name.tags).get("le", name.name): value for name, value in metrics.read(0).items()}
    assert found == {
        "10": 1, "100": 2, "1000": 2, "5000": 3, "30000": 3, "120000": 3, "+Inf": 4, "phase_sum": 504_021,
        "phase_count": 4,
    }  # fmt: skip


def test_requests_are_counted_by_api_and_version_also_those_answered_from_memory(broker: Broker) -> None:
    from partita.protocol.messages.heartbeat import HeartbeatRequest

    with Raw(broker.port) as raw:
        joined = raw.stable("g")
        beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
        for _ in range(5):
            assert raw.ask(beat, 4).error_code == 0
    name = 'kafka_network_RequestMetrics_Count{name="RequestsPerSec",request="Heartbeat",version="4"}'
    assert broker.metrics()[name] == 5


def test_times_and_errors_are_counted_by_api_also_of_what_is_answered_from_memory(broker: Broker) -> None:
    """Issue 10: TotalTimeMs and ErrorsPerSec."""
    from partita.protocol.messages.heartbeat import HeartbeatRequest

    with Raw(broker.port) as raw:
        joined = raw.stable("g")
        beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
        assert [raw.ask(beat, 4).error_code for _ in range(5)] == [0] * 5
        broker.control.evict_member("g", joined.member_id)
        assert [raw.ask(beat, 4).error_code for _ in range(2)] == [25, 25]
    numbers = broker.metrics()

    def read(attribute: str, name: str, **tags: str) -> float:
        labels = ",".join(f'{key}="{value}"' for key, value in {"name": name, **tags}.items())
        return numbers[f"kafka_network_RequestMetrics_{attribute}{{{labels}}}"]

    assert read("Count", "TotalTimeMs", request="Heartbeat") == 7
    assert read("Count", "ErrorsPerSec", request="Heartbeat", error="NONE") == 5
    assert read("Count", "ErrorsPerSec", request="Heartbeat", error="UNKNOWN_MEMBER_ID") == 2
    assert read("50thPercentile", "TotalTimeMs", request="Heartbeat") < 50
    assert read("Mean", "TotalTimeMs", request="Heartbeat") < 50
    assert (
        0
        < read("50thPercentile", "TotalTimeMs", request="JoinGroup")
        <= read("Max", "TotalTimeMs", request="JoinGroup")
    )


def test_the_time_of_a_request_that_waits_is_the_time_it_waited(broker: Broker) -> None:
    broker.produce("t", "x")
    fetch = FetchRequest(
        max_wait_ms=80,
        min_bytes=10**6,
        max_bytes=10**6,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=10**6)])
        ],
    )
    with Raw(broker.port) as raw:
        raw.ask(fetch, 6)
    most = broker.metrics()['kafka_network_RequestMetrics_Max{name="TotalTimeMs",request="Fetch"}']
    assert most >= 79


def test_a_page_in_slices_is_the_same_page(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.produce("t", "x")
    monkeypatch.setattr(metrics_module, "SLICE_METRICS", 3)
    turns = 0

    async def read() -> str:
        nonlocal turns
        reading = asyncio.ensure_future(broker.running.metrics.text_in_slices())
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        return reading.result()

    whole = broker.metrics_text()
    sliced = asyncio.run_coroutine_threadsafe(read(), broker.cluster.loop).result(60)
    assert [line.split(" ")[0] for line in sliced.splitlines()] == [line.split(" ")[0] for line in whole.splitlines()]
    assert turns > 20


def test_what_is_exported_one_by_one_is_bounded(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may create topics; the page of a scrape does not grow with them without an end."""
    monkeypatch.setattr(metrics_module, "LOGS_MAX", 2)
    monkeypatch.setattr(traffic_module, "TOPICS_MAX", 2)
    for topic in "abcd":
        broker.produce(topic, "x")
    numbers = broker.metrics()
    assert numbers['kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec"}'] == 4
    counted = 'kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic='
    assert len([name for name in numbers if name.startswith(counted)]) == 2
    assert len([name for name in numbers if name.startswith('kafka_log_Log_Value{name="Size"')]) == 2
    assert numbers["kafka_partita_Metrics_logs_left_out"] == 2


def test_the_control_endpoint_serves_them_with_type_and_help(broker: Broker) -> None:
    with urlopen(f"http://127.0.0.1:{broker.running.admin_port}/metrics") as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        lines = answer.read().decode().splitlines()
    assert "# TYPE kafka_server_BrokerTopicMetrics_Count counter" in lines
    assert "# HELP kafka_server_BrokerTopicMetrics_Count how much there was, by name" in lines
    assert 'kafka_controller_KafkaController_Value{name="ActiveControllerCount"} 1' in lines
    assert len([line for line in lines if line.startswith("# TYPE kafka_server_BrokerTopicMetrics_Count")]) == 1


def test_a_deleted_topic_has_no_log_metrics_any_more(broker: Broker) -> None:
    broker.produce("t", "x")
    name = 'kafka_log_Log_Value{name="Size",topic="t",partition="0"}'
    assert broker.metrics()[name] > 0
    broker.run(lambda: broker.cluster.catalogue.delete([broker.cluster.catalogue.by_name["t"]]))
    assert [name for name in broker.metrics() if 'topic="t"' in name] == []
    broker.produce("t", "x")
    assert broker.metrics()['kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="t"}'] == 1


def test_a_moving_rate_follows_slowly() -> None:
    """Yammer's EWMA over one minute: two thirds of a change are there after a minute."""
    rate = MovingRate(1, 0)
    assert rate.read(0, 4_999) == 0
    assert rate.read(100, 5_000) == 20
    assert rate.read(100, 9_000) == 20
    assert rate.read(100, 65_000) == pytest.approx(20 / 2.71828, rel=1e-3)


def test_what_a_start_found_of_damage_is_counted(tmp_path: Path) -> None:
    """B6: unclean starts, and what recovery cut."""
    with Broker(data_dir=str(tmp_path)) as running:
        running.produce("t", "abc")
        assert running.metrics()["kafka_partita_Store_unclean_starts"] == 0
    (tmp_path / "clean").unlink()
    (path,) = (path for path in (tmp_path / "topics").glob("*/0/*.log") if path.stat().st_size)
    path.write_bytes(path.read_bytes() + b"torn")
    with Broker(data_dir=str(tmp_path)) as running:
        assert running.records("t") != []
        found = running.metrics()
        assert found["kafka_partita_Store_unclean_starts"] == 1
        assert found["kafka_partita_Store_logs_cut"] == 1
        assert found["kafka_partita_Store_bytes_cut"] == 4


def test_help_texts_are_texts(broker: Broker) -> None:
    """Issue 11: a name that is built in had got into one."""
    broker.produce("t", "x")
    with urlopen(f"http://127.0.0.1:{broker.running.admin_port}/metrics") as answer:
        helps = [line.split(" ", 3)[3] for line in answer.read().decode().splitlines() if line.startswith("# HELP")]
    assert len(helps) > 10
    assert [text for text in helps if "<" in text or " at 0x" in text or "Type " in text] == []


def test_a_page_looks_at_few_logs_between_two_turns_of_others(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 18: one look at 10,000 opened logs took 26 ms; each look at them is in slices, as is forgetting them."""
    for name in ("metrics.SLICE_LOGS", "metrics.SLICE_PARTITIONS", "transactions.SLICE_LOGS"):
        monkeypatch.setattr(f"partita.broker.measuring.{name}", 1)
    metrics = broker.running.metrics
    catalogue = broker.cluster.catalogue

    def looks() -> int:
        return broker.run(lambda: len(list(metrics._followed())))

    few = looks()
    broker.run(lambda: broker.cluster.create_topic("wide", 40, 1))
    assert broker.run(lambda: len([partition.log for partition in catalogue.by_name["wide"].partitions])) == 40
    assert looks() >= few + 3 * 40, "for transactions, for who leads, and for the metrics of each log"
    assert sum('topic="wide"' in name for name in broker.metrics()) == 4 * 40
    broker.run(lambda: catalogue.delete([catalogue.by_name["wide"]]))
    assert looks() >= few + 40, "logs that are gone lose their metrics in slices too"
    assert not [name for name in broker.metrics() if 'topic="wide"' in name]
