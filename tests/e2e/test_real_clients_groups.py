"""Groups of three made with each third-party client: share, lose a member, commit, go on after a broker restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from partita import Broker
from support.real_clients import CHORES, PARTITIONS
from support.team import Team

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
    with start(0) as broker, Team(client, broker.bootstrap, "crew", "jobs") as team:
        port = broker.port
        chores.create_topic(broker.bootstrap, "jobs")
        first = numbered("first")
        chores.produce(broker.bootstrap, "jobs", first)

        team.start("ann", "bob", "cid")
        team.wait("all three share the partitions", lambda: team.shares(PARTITIONS))
        team.wait("every record came", lambda: team.values() == set(first))
        team.wait("everything is committed", lambda: team.committed == dict.fromkeys(range(PARTITIONS), 10))

        team.kill("cid")
        (silent,) = [m for m in broker.control.members("crew") if m.startswith("cid")]
        broker.control.expire_session("crew", silent)
        team.wait("two share the partitions", lambda: team.shares(PARTITIONS))

        second = numbered("second")
        chores.produce(broker.bootstrap, "jobs", second)
        team.wait("nothing was lost", lambda: team.values() == {*first, *second})
        team.wait("everything is committed", lambda: team.committed == dict.fromkeys(range(PARTITIONS), 20))
        assert chores.committed(broker.bootstrap, "crew", "jobs") == team.committed
        assert len(team.seen) == len(set(team.seen)) == 120, "committed work is not done twice"

        broker.stop()
        with start(port) as again:
            if storage == "memory":
                assert chores.committed(again.bootstrap, "crew", "jobs") == {}
                chores.create_topic(again.bootstrap, "jobs")
            third = numbered("third")
            chores.produce(again.bootstrap, "jobs", third)
            team.wait("the members go on", lambda: team.values() == {*first, *second, *third})
            assert len(team.seen) == len(set(team.seen)) == 180
            end = 10 if storage == "memory" else 30
            team.wait("commits go on", lambda: team.committed == dict.fromkeys(range(PARTITIONS), end))
            team.stop()
            assert chores.committed(again.bootstrap, "crew", "jobs") == team.committed
            assert again.control.members("crew") == {}


@pytest.mark.parametrize("client", CHORES)
def test_a_newcomer_takes_its_share_and_starts_from_the_commits(client: str, start: Start) -> None:
    chores = CHORES[client]
    with start(0) as broker, Team(client, broker.bootstrap, "crew", "jobs") as team:
        chores.create_topic(broker.bootstrap, "jobs")
        chores.produce(broker.bootstrap, "jobs", numbered("first"))
        team.start("ann")
        team.wait("one member owns all", lambda: team.shares(PARTITIONS))
        team.wait("everything is committed", lambda: team.committed == dict.fromkeys(range(PARTITIONS), 10))
        team.start("bob")
        team.wait("two share the partitions", lambda: team.shares(PARTITIONS))
        chores.produce(broker.bootstrap, "jobs", numbered("second"))
        team.wait("everything is committed", lambda: team.committed == dict.fromkeys(range(PARTITIONS), 20))
        assert len(team.seen) == len(set(team.seen)) == 120
        team.stop()
        assert broker.control.members("crew") == {}
