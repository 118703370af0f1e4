"""The observer on our own broker: what it says is what the admin client says; what fails, fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import process_time

import pytest

from partita import Admin, Broker, Producer
from partita.observe import batched
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller
from support.broker.streams_application import StreamsApplication


def looked(broker: Broker, *steps: Callable[[], object], options: dict[str, object] | None = None) -> Observed:
    """Look once, and again after each step."""

    async def story() -> Observed:
        observed = Observed(broker.bootstrap)
        poller = ClusterPoller({"bootstrap.servers": broker.bootstrap, **(options or {})}, observed)
        await poller.look()
        for step in steps:
            await asyncio.to_thread(step)
            await poller.look()
        await poller.close()
        return observed

    return asyncio.run(story())


@pytest.mark.partita(nodes=2, topics={"orders": 4, "payments": 2})
def test_what_is_seen_is_what_the_admin_client_says(partita_broker: Broker) -> None:
    with Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
        for number in range(40):
            producer.send("orders", b"x", partition=number % 4)
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        for number in range(20):
            admin.alter_group_offsets(f"g{number}", {("orders", 0): number % 5, ("payments", 1): 0})
        seen = looked(partita_broker)
        assert set(seen.groups) == {group.group_id for group in admin.list_groups()}
        for name, group in seen.groups.items():
            lag = admin.group_lag(name)
            assert seen.standings[name].lag == sum(row.lag or 0 for row in lag)
            assert [(c.topic, c.partition, c.offset) for c in group.commits] == [
                (row.topic, row.partition, row.committed_offset) for row in lag
            ]
            assert group.coordinator == admin.describe_group(name).coordinator.id
    assert {node.id for node in seen.nodes.values() if node.error is None and node.apis > 20} == {1, 2}
    log = seen.logs["orders", 0]
    assert (log.start, log.end, log.error) == (0, 10, None)
    assert log.oldest_ms is not None
    topic = seen.topics["orders"]
    assert (topic.retention_ms, topic.cleanup_policy) == (7 * 86_400_000, "delete")


@pytest.mark.partita(topics={"orders": 2})
def test_members_come_and_go(partita_broker: Broker) -> None:
    from partita import Consumer

    with Consumer(bootstrap_servers=partita_broker.bootstrap, group_id="g", client_id="one") as consumer:

        def joins() -> None:
            consumer.subscribe(["orders"])
            while not consumer.assignment():
                consumer.poll(0.05)

        with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
            admin.alter_group_offsets("g", {("orders", 0): 0})
        seen = looked(partita_broker, joins, consumer.close)
    assert [one.what for one in seen.history.rebalances("g")] == ["one joined", "one is gone"]
    assert seen.groups["g"].state == "Empty"


@pytest.mark.partita(topics={"orders": 2})
def test_a_group_of_the_new_protocol_is_described_with_its_epoch(partita_broker: Broker) -> None:
    from partita import Consumer

    with Consumer(
        bootstrap_servers=partita_broker.bootstrap, group_id="g", client_id="one", group_protocol="consumer"
    ) as consumer:
        consumer.subscribe(["orders"])
        while len(consumer.assignment()) < 2:
            consumer.poll(0.05)
        group = looked(partita_broker).groups["g"]
    assert (group.type, group.protocol, group.error) == ("consumer", "uniform", None)
    assert group.epoch is not None
    assert group.members[0].partitions == (("orders", 0), ("orders", 1))


@pytest.mark.partita(topics={"words": 2}, group_streams_initial_rebalance_delay_ms=0)
def test_a_streams_group_is_seen_with_what_its_tasks_read(partita_broker: Broker) -> None:
    StreamsApplication(partita_broker.bootstrap, "app", "words").join()
    seen = looked(partita_broker)
    group, (member,) = seen.groups["app"], seen.groups["app"].members
    assert (group.type, group.state, group.error) == ("streams", "Stable", None)
    assert [sub.text for sub in group.topology] == ["subtopology 0 reads words; keeps app-changelog"]
    assert member.partitions == (("words", 0), ("words", 1))
    assert member.tasks is not None
    assert (member.tasks.text, member.tasks.process_id) == ("active 0(0,1)", "process-1")
    assert {commit.partition: commit.offset for commit in group.commits} == {0: 1, 1: 1}


@pytest.mark.partita(nodes=2, topics={"orders": 6})
def test_a_partition_that_fails_takes_nothing_else_with_it(partita_broker: Broker) -> None:
    """Design of the dashboard, section 3: one bad partition never blanks a page."""
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("orders", part): 0 for part in range(6)})
    fail = partita_broker.control.fail
    seen = looked(
        partita_broker, lambda: fail("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=None, topic="orders", partition=3)
    )
    assert [key for key, log in seen.logs.items() if log.error is not None] == [("orders", 3)]
    assert seen.logs["orders", 3].error == "NOT_LEADER_OR_FOLLOWER"
    assert (seen.groups["g"].error, seen.standings["g"].lag) == (None, 0)


@pytest.mark.partita(nodes=2, topics={"orders": 6})
def test_a_node_that_does_not_answer_greys_its_own_rows(partita_broker: Broker) -> None:
    """The node is still in the metadata, and every connection to it breaks."""
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        for number in range(12):
            admin.alter_group_offsets(f"g{number}", {("orders", part): 0 for part in range(6)})

    def silence() -> None:
        for api in ("ListOffsets", "ListGroups", "DescribeGroups", "OffsetFetch", "ListTransactions"):
            partita_broker.control.drop(api, times=None, node=2)

    seen = looked(partita_broker, silence)
    coordinators = {name: group.coordinator for name, group in seen.groups.items()}
    assert len(coordinators) == 12
    assert {name for name, group in seen.groups.items() if group.error} == {
        n for n, c in coordinators.items() if c == 2
    }
    failing = {key for key, log in seen.logs.items() if log.error}
    assert failing == {key for key, log in seen.logs.items() if log.leader == 2} != set()
    assert all(log.end is not None for log in seen.logs.values()), "what was seen before is still there"
    assert (seen.nodes[1].error, seen.trouble) == (None, None)
    assert seen.nodes[2].error


@pytest.mark.partita(nodes=2, topics={"orders": 6})
def test_a_node_that_hangs_is_waited_for_once_in_a_look(
    partita_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched, "ANSWER_WITHIN_S", 0.3)
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        for number in range(12):
            admin.alter_group_offsets(f"g{number}", {("orders", part): 0 for part in range(6)})
    control = partita_broker.control
    faults = [control.hold(api, node=2) for api in ("ListOffsets", "ListGroups", "DescribeGroups", "ListTransactions")]
    seen = looked(partita_broker, lambda: partita_broker.produce("orders", b"x", partition=0))
    assert [fault.hits for fault in faults] == [2, 0, 0, 0], "one for each of two looks"
    assert "did not answer within" in (seen.nodes[2].error or "")
    assert seen.nodes[1].error is None
    served = [group for group in seen.groups.values() if group.error is None]
    assert {group.coordinator for group in served} == {1}
    for fault in faults:
        fault.clear()


@pytest.mark.partita(topics={"orders": 1})
def test_groups_that_are_not_wanted_are_not_asked_about(partita_broker: Broker) -> None:
    async def story() -> Observed:
        observed = Observed(partita_broker.bootstrap)
        options = {"bootstrap.servers": partita_broker.bootstrap}
        poller = ClusterPoller(options, observed, wants=lambda group_id: group_id.startswith("billing"))
        await poller.look()
        await poller.close()
        return observed

    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        for name in ("billing-eu", "shipping"):
            admin.alter_group_offsets(name, {("orders", 0): 0})
    assert list(asyncio.run(story()).groups) == ["billing-eu"]


@pytest.mark.partita(topics={"orders": 1})
def test_a_refused_description_keeps_what_was_seen(partita_broker: Broker) -> None:
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("orders", 0): 0})
    control = partita_broker.control
    seen = looked(partita_broker, lambda: control.fail("DescribeGroups", "COORDINATOR_LOAD_IN_PROGRESS", times=1))
    group = seen.groups["g"]
    assert group.error == "COORDINATOR_LOAD_IN_PROGRESS"
    assert [commit.offset for commit in group.commits] == [0]


@pytest.mark.partita(topics={"orders": 1})
def test_a_deleted_group_and_topic_are_forgotten(partita_broker: Broker) -> None:
    def delete() -> None:
        with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
            admin.delete_groups("g")
            admin.delete_topics("orders")

    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("orders", 0): 0})
    seen = looked(partita_broker, delete)
    assert (seen.groups, "orders" in seen.topics, seen.history.lag_points("g")) == ({}, False, [])


@pytest.mark.partita(nodes=2, topics={"orders": 4})
def test_a_thousand_groups_take_one_request_for_each_coordinator(partita_broker: Broker) -> None:
    """Issue 17 item 3: batched describes."""
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        for number in range(1_000):
            admin.alter_group_offsets(f"g{number}", {("orders", number % 4): 0})
    apis = ("ListGroups", "DescribeGroups", "OffsetFetch", "FindCoordinator")
    counted = {api: partita_broker.control.observe(api) for api in apis}
    began = process_time()
    seen = looked(partita_broker)
    assert process_time() - began < 5
    assert len(seen.standings) == 1_000
    assert {api: fault.hits for api, fault in counted.items()} == {
        "ListGroups": 2, "DescribeGroups": 2, "OffsetFetch": 2, "FindCoordinator": 0,
    }  # fmt: skip


def test_a_cluster_that_is_not_there_is_trouble_and_no_end() -> None:
    async def story() -> Observed:
        observed = Observed("127.0.0.1:1")
        options = {"bootstrap.servers": "127.0.0.1:1", "socket.connection.setup.timeout.ms": 200}
        poller = ClusterPoller(options, observed)
        running = asyncio.ensure_future(poller.run())
        await asyncio.wait_for(observed.wait_for_change(0, 30), 30)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return observed

    assert "127.0.0.1:1" in (asyncio.run(story()).trouble or "")


@pytest.mark.partita(topics={"orders": 1})
def test_groups_on_view_are_looked_at_every_second(partita_broker: Broker) -> None:
    async def story() -> tuple[int | None, int | None]:
        observed = Observed(partita_broker.bootstrap)
        poller = ClusterPoller({"bootstrap.servers": partita_broker.bootstrap}, observed)
        await poller.look()
        before = observed.standings["g"].lag
        await asyncio.to_thread(partita_broker.produce, "orders", b"x")
        await poller.look_at_viewed()
        assert observed.standings["g"].lag == before, "nobody looks at it"
        observed.view("g", observed.seen_ms)
        await poller.look_at_viewed()
        await poller.close()
        return before, observed.standings["g"].lag

    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("orders", 0): 0})
    assert asyncio.run(story()) == (0, 1)
