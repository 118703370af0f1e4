"""Groups of three made with each third-party client: share, lose a member, commit, go on after a broker restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from partita import Broker
from partita.designs.zookeeper.ports import free_ports
from support.clients.chores import CHORES, PARTITIONS
from support.clients.member_processes import MemberProcesses

pytestmark = pytest.mark.client

Start = Callable[[int], Broker]


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(storage: str, tmp_path: Path) -> Start:
    """Start a broker, again on the same port and directory when asked again."""
    options = {
        "group.initial.rebalance.delay.ms": 300,
        "offsets.topic.num.partitions": 4,
        "auto.create.topics.enable": False,  # else waiting members would create the topic after the restart
    }
    data_dir = str(tmp_path / "data") if storage == "disk" else None
    return lambda port: Broker(options, port=port, data_dir=data_dir)


def numbered(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(60)]


@pytest.mark.parametrize("client", CHORES)
def test_a_group_of_three_loses_a_member_and_outlives_the_broker(client: str, storage: str, start: Start) -> None:
    chores = CHORES[client]
    port = free_ports(1)[0]
    with start(port) as broker, MemberProcesses(client, broker.bootstrap, "crew", "jobs") as processes:
        chores.create_topic(broker.bootstrap, "jobs")
        first = numbered("first")
        chores.produce(broker.bootstrap, "jobs", first)

        processes.start("ann", "bob", "cid")
        processes.wait("all three share the partitions", lambda: processes.shares(PARTITIONS))
        processes.wait("every record came", lambda: processes.values() == set(first))
        processes.wait("everything is committed", lambda: processes.committed == dict.fromkeys(range(PARTITIONS), 10))

        processes.kill("cid")
        (silent,) = [m for m in broker.control.members("crew") if m.startswith("cid")]
        broker.control.expire_session("crew", silent)
        processes.wait("two share the partitions", lambda: processes.shares(PARTITIONS))

        second = numbered("second")
        chores.produce(broker.bootstrap, "jobs", second)
        processes.wait("nothing was lost", lambda: processes.values() == {*first, *second})
        processes.wait("everything is committed", lambda: processes.committed == dict.fromkeys(range(PARTITIONS), 20))
        assert chores.committed(broker.bootstrap, "crew", "jobs") == processes.committed
        assert len(processes.seen) == len(set(processes.seen)) == 120, "committed work is not done twice"

        broker.stop()
        with start(port) as again:
            if storage == "memory":
                assert chores.committed(again.bootstrap, "crew", "jobs") == {}
                chores.create_topic(again.bootstrap, "jobs")
            third = numbered("third")
            chores.produce(again.bootstrap, "jobs", third)
            processes.wait("the members go on", lambda: processes.values() == {*first, *second, *third})
            if storage == "disk":
                assert len(processes.seen) == len(set(processes.seen)) == 180
            # Without the disk a member may commit its place in the log that was lost, and then work is done twice.
            end = 10 if storage == "memory" else 30
            processes.wait("commits go on", lambda: processes.committed == dict.fromkeys(range(PARTITIONS), end))
            processes.stop()
            assert chores.committed(again.bootstrap, "crew", "jobs") == processes.committed
            assert again.control.members("crew") == {}


@pytest.mark.parametrize("client", CHORES)
def test_a_newcomer_takes_its_share_and_starts_from_the_commits(client: str, start: Start) -> None:
    chores = CHORES[client]
    with start(0) as broker, MemberProcesses(client, broker.bootstrap, "crew", "jobs") as processes:
        chores.create_topic(broker.bootstrap, "jobs")
        chores.produce(broker.bootstrap, "jobs", numbered("first"))
        processes.start("ann")
        processes.wait("one member owns all", lambda: processes.shares(PARTITIONS))
        processes.wait("everything is committed", lambda: processes.committed == dict.fromkeys(range(PARTITIONS), 10))
        processes.start("bob")
        processes.wait("two share the partitions", lambda: processes.shares(PARTITIONS))
        chores.produce(broker.bootstrap, "jobs", numbered("second"))
        processes.wait("everything is committed", lambda: processes.committed == dict.fromkeys(range(PARTITIONS), 20))
        assert len(processes.seen) == len(set(processes.seen)) == 120
        processes.stop()
        assert broker.control.members("crew") == {}
