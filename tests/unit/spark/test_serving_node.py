"""Fetching from the replica in the rack of the task (KIP-392): findings/spark.md section 5, client.rack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import build_batch
from partita.spark.cluster.broker_link import BrokerLink, link_to
from partita.spark.planning.planner import RangeTask
from partita.spark.reading.range_reader import FetchSettings, RangeReader
from partita.spark.reading.task_reader import fetch_settings
from partita.spark.settings.options import parse_source
from support.broker.wire_server import CLOSE, all_versions
from support.spark.scripted_broker import TOPIC_ID, ScriptedBroker, scripted_broker

Pair = tuple[ScriptedBroker, ScriptedBroker, BrokerLink]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A leader, its follower in rack "here", and a link to them; both have six records in three batches."""
    with scripted_broker({"default.api.timeout.ms": "5000", "retry.backoff.ms": "1"}, rack="here") as (leader, link):
        assert leader.follower is not None
        for broker in (leader, leader.follower):
            broker.high_watermark = 6
            broker.fetches = {begin: batch(begin) for begin in (0, 2, 4)}
        yield leader, leader.follower, link


def batch(base: int) -> bytes:
    return build_batch([(0, None, b"x", ())] * 2, base_offset=base)


def read(link: BrokerLink, rack: str) -> list[int]:
    batches = RangeReader(link, RangeTask("t", 0, 0, 6, 0, TOPIC_ID), FetchSettings(max_wait_ms=0, rack=rack)).batches()
    return [offset for found in batches for offset in found.column("offset").to_pylist()]


def test_the_replica_that_the_leader_names_serves_all_fetches(pair: Pair) -> None:
    leader, follower, link = pair
    assert read(link, "here") == list(range(6))
    assert leader.fetched == [(0, "here")]
    assert follower.fetched == [(0, "here"), (2, "here"), (4, "here")]


@pytest.mark.parametrize("rack", ["", "elsewhere"])
def test_without_a_replica_nearby_the_leader_serves(pair: Pair, rack: str) -> None:
    leader, follower, link = pair
    assert read(link, rack) == list(range(6))
    assert leader.fetched == [(0, rack), (2, rack), (4, rack)]
    assert follower.fetched == []


@pytest.mark.parametrize(
    "answer", [b"", ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
)
def test_a_replica_that_is_behind_is_left_for_one_fetch_and_nothing_counts_as_lost(
    pair: Pair, answer: bytes | ErrorCode
) -> None:
    leader, follower, link = pair
    follower.fetches[2] = answer if isinstance(answer, bytes) else int(answer)
    assert read(link, "here") == list(range(6))
    assert leader.fetched == [(0, "here"), (2, ""), (4, "here")]
    assert follower.fetched == [(0, "here"), (2, "here"), (4, "here")]


def test_a_replica_that_goes_away_costs_a_retry(pair: Pair) -> None:
    leader, follower, link = pair
    follower.server.answer = lambda key, version, request: all_versions() if key == 18 else CLOSE
    assert read(link, "here") == list(range(6))
    assert (0, "") in leader.fetched


def test_a_named_replica_that_the_metadata_does_not_know_is_not_asked_for_ever(pair: Pair) -> None:
    leader, _, link = pair
    leader.named = 7
    assert read(link, "here") == list(range(6))
    assert leader.fetched == [(0, "here"), (0, ""), (2, "here"), (2, ""), (4, "here"), (4, "")]


def test_the_leader_is_asked_again_when_metadata_max_age_is_over(pair: Pair) -> None:
    leader, follower, _ = pair
    link = BrokerLink({"bootstrap.servers": f"127.0.0.1:{leader.server.port}", "metadata.max.age.ms": "0"})
    assert read(link, "here") == list(range(6))
    assert leader.fetched == follower.fetched == [(0, "here"), (2, "here"), (4, "here")]


def test_each_executor_reads_its_own_rack_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "kafka.client.rack": "${env:RACK_OF_THE_TEST}"}
    monkeypatch.delenv("RACK_OF_THE_TEST", raising=False)
    options = parse_source(given)
    link_to(options.client)
    with pytest.raises(ConfigError, match="RACK_OF_THE_TEST is not set in this process"):
        fetch_settings(options)
    monkeypatch.setenv("RACK_OF_THE_TEST", "r1")
    assert fetch_settings(options).rack == "r1"
