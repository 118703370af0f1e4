"""Our transactional producer and read_committed consumer on our own broker, at both levels of transaction.version."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from partita import Broker, Producer
from partita.broker.api.apis import SERVED
from partita.designs.zookeeper.ports import free_ports
from partita.errors import FatalTransactionError
from partita.offsets.topic_partition import GroupMetadata, OffsetAndMetadata, TopicPartition
from partita.producer.errors import TransactionTimeoutError
from support.producer import transaction_stories as stories

LOOK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}


@pytest.fixture(scope="module", params=[2, 0], ids=["version 2", "version 0"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker({"partita.transaction.version": request.param, **LOOK}) as made:
        yield made


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_transactions_do_what_they_promise(broker: Broker, story: stories.Story) -> None:
    story(broker.bootstrap)


def test_a_slow_producer_learns_that_its_transaction_timed_out(broker: Broker) -> None:
    stories.a_slow_producer_learns_that_its_transaction_timed_out(broker.bootstrap)


def test_offsets_that_take_too_long_go_with_the_commit_or_are_dropped_by_the_abort(broker: Broker) -> None:
    options: dict[str, Any] = {"max_block_ms": 400, "retry_backoff_ms": 20, "retry_backoff_max_ms": 20}
    topic, group = stories.fresh("late"), stories.fresh("g")
    late = (
        "send_offsets_to_transaction did not end within max_block_ms 400.*; "
        "commit_transaction waits for the offsets, abort_transaction drops them"
    )
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=stories.fresh("id"), **options) as producer:
        again_and_again(producer.init_transactions)
        for end, offset in ((producer.abort_transaction, 4), (producer.commit_transaction, 5)):
            producer.begin_transaction()
            with pytest.raises(TransactionTimeoutError, match=late):
                producer.send_offsets_to_transaction({(topic, 0): offset}, GroupMetadata(group))
            if end == producer.commit_transaction:
                broker.run(lambda: broker.cluster.create_topic(topic, 1, 1))
            again_and_again(end)
    with stories.consumer_of(broker.bootstrap, group_id=group) as consumer:
        assert consumer.committed([(topic, 0)])[TopicPartition(topic, 0)] == OffsetAndMetadata(5)


def test_a_call_that_takes_too_long_says_what_it_was_refused_with(broker: Broker) -> None:
    """Of a topic that does not exist it said nothing."""
    told = r"max_block_ms 200 \(UNKNOWN_TOPIC_OR_PARTITION: TxnOffsetCommit of .* 'id-.*, none-\d+-0: .*\); commit"

    def offsets_of_no_topic() -> None:
        producer.begin_transaction()
        try:
            with pytest.raises(TransactionTimeoutError) as caught:
                producer.send_offsets_to_transaction({(stories.fresh("none"), 0): 1}, GroupMetadata("g"))
        finally:
            again_and_again(producer.abort_transaction)
        if caught.value.__cause__ is None:  # no answer came in so short a time
            raise caught.value
        assert re.search(told, str(caught.value))

    options: dict[str, Any] = {"max_block_ms": 200, "retry_backoff_ms": 20, "retry_backoff_max_ms": 20}
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=stories.fresh("id"), **options) as producer:
        again_and_again(producer.init_transactions)
        again_and_again(offsets_of_no_topic)


def again_and_again(call: Callable[[], object]) -> None:
    """A busy machine may need longer than `max_block_ms`; the next call tells how the first one ends."""
    for _ in range(150):
        try:
            call()
        except TransactionTimeoutError:
            continue
        return
    raise AssertionError("it does not end")


OLD_RELEASES = {
    "1.1": {0: 5, 9: 3, 10: 1, 22: 0, 24: 0, 25: 0, 26: 0, 28: 0},
    "2.4": {0: 8, 9: 6, 10: 2, 22: 1, 24: 1, 25: 1, 26: 1, 28: 2},
}
"""The highest versions of Produce, OffsetFetch, FindCoordinator and the APIs of transactions that they serve."""
WITHOUT_GROUPS = (
    stories.commits_and_aborts,
    stories.a_second_producer_fences_the_first,
    stories.close_aborts_what_is_open,
)


@pytest.mark.parametrize("release", OLD_RELEASES)
def test_brokers_of_old_releases_take_transactions_and_no_offsets_of_members(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 2.5 nothing keeps a member out that was replaced, so its offsets are refused with the reason."""
    for api_key, version in OLD_RELEASES[release].items():
        monkeypatch.setattr(SERVED[api_key], "max_version", version)
    with Broker(partita_transaction_version=0) as old:
        for story in WITHOUT_GROUPS:
            story(old.bootstrap)
        with stories.producer_of(old.bootstrap) as producer:
            producer.begin_transaction()
            with pytest.raises(FatalTransactionError, match=r"version.* 3 is needed: brokers of release 2\.5 or later"):
                producer.send_offsets_to_transaction({("t", 0): 1}, GroupMetadata("g", 1, "m"))


@pytest.mark.case("TX-N01", "TX-N14", "TX-N15", "TX-R06")
@pytest.mark.parametrize("policy", ["os", "sync"])
def test_kills_in_the_middle_of_transactions_lose_nothing_and_show_nothing_twice(tmp_path: Path, policy: str) -> None:
    """TX-N15: what was committed is seen once, what was open goes on or is fenced, offsets go with the records."""
    port = free_ports(1)[0]
    committed: list[str] = []
    process = start(tmp_path, port, policy)
    try:
        bootstrap = f"127.0.0.1:{port}"
        topic, group = stories.topic_of(bootstrap, 2), stories.fresh("group")
        for life in range(4):
            producer = stories.producer_of(bootstrap, "killed")
            for turn in range(3):
                with producer.transaction():
                    for partition in (0, 1):
                        producer.send(topic, f"{life}-{turn}-{partition}", partition=partition)
                    producer.send_offsets_to_transaction({(topic, 0): 10 * life + turn}, GroupMetadata(group))
                committed += [f"{life}-{turn}-{partition}" for partition in (0, 1)]
            producer.begin_transaction()
            producer.send(topic, f"open-{life}", partition=0).result(20)
            producer.send_offsets_to_transaction({(topic, 0): 999}, GroupMetadata(group))
            process.kill()
            process.wait()
            process = start(tmp_path, port, policy)
            if life % 2:
                producer.send(topic, f"more-{life}", partition=1).result(30)
                producer.commit_transaction()
                committed += [f"open-{life}", f"more-{life}"]
            else:
                producer.abort_transaction()
            producer.close()
        assert stories.seen(bootstrap, topic, partitions=2) == sorted(committed)
        with stories.consumer_of(bootstrap, group_id=group) as consumer:
            assert consumer.committed([(topic, 0)]) == {(topic, 0): OffsetAndMetadata(999, leader_epoch=ANY)}
    finally:
        process.kill()
        process.wait()


def start(data: Path, port: int, policy: str) -> subprocess.Popen[str]:
    """A broker in a process of its own, ready to be asked."""
    command = [sys.executable, "-m", "partita.cli.main", "broker", "--data-dir", str(data), "--port", str(port)]
    process = subprocess.Popen([*command, "--durability", policy], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any(line.startswith("bootstrap") for line in process.stdout)
    return process
