"""`partita groups` and the dashboard's observer on a share group."""

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from partita import Broker
from partita.cli.commands import cli
from partita.observe.observed import Observed, Standing
from partita.observe.poll_cluster import ClusterPoller
from partita.observe.seen import GroupSeen
from support.share.jobs import Jobs, eventually, jobs, take

Run = Callable[..., str]


@pytest.fixture
def work() -> Iterator[Jobs]:
    with Broker(group_share_assignment_interval_ms=0) as broker, jobs(broker) as made:
        yield made


@pytest.fixture
def run(work: Jobs) -> Run:
    def call(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, ["groups", *words, "-b", work.bootstrap])
        assert result.exit_code == code, result.output
        return result.output

    return call


def cells(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def observed(work: Jobs) -> tuple[GroupSeen, Standing]:
    """The group as the dashboard sees it."""
    seen = Observed(work.bootstrap)

    async def look() -> None:
        poller = ClusterPoller({"bootstrap.servers": work.bootstrap}, seen)
        await poller.look()
        await poller.close()

    asyncio.run(look())
    return seen.groups[work.group], seen.standings[work.group]


def test_a_share_group_is_listed_described_and_moved(work: Jobs, run: Run) -> None:
    work.put(*range(5))
    consumer = work.consumer(client_id="packer")
    records = take(consumer, 5)
    for record in records[:2]:
        consumer.acknowledge(record)
    consumer.commit_sync()
    eventually(lambda: work.lag() == 3)
    group, standing = observed(work)
    assert ((group.type, group.error), standing.lag, group.commits[0].offset) == (("share", None), 3, 0)
    assert [(member.client_id, member.partitions) for member in group.members] == [("packer", ((work.topic, 0),))]
    assert cells(run("list", "--type", "share"))[1][:3] == [work.group, "Stable", "share"]
    head, _, row = run("describe", work.group).splitlines()
    assert head.startswith(f"{work.group}  Stable, 1 member, share protocol at epoch ")
    assert row.split()[:5] == [work.topic, "0", "0", "5", "3"]  # the stored start follows with the next write
    (member,) = cells(run("describe", work.group, "--members"))[2:]
    assert (member[0], member[3:5]) == ("packer", ["1", f"{work.topic}(0)"])
    assert cells(run("lag"))[1] == [work.group, "Stable", "1", "1", "3", "0"]
    assert "stop its members first" in run("reset-offsets", work.group, "--to-earliest", code=1)
    assert json.loads(run("watch", "--looks", "1", "--json"))["groups"][0]["lag"] == 3
    consumer.close()
    assert "execute would move 1 offset" in run("reset-offsets", work.group, "--to-earliest")
    assert run("reset-offsets", work.group, "--to-earliest", "--execute").endswith(f"moved 1 offset of {work.group}\n")
    assert cells(run("describe", work.group))[2][2:5] == ["0", "5", "5"]
    assert run("delete", work.group, "--yes") == f"deleted {work.group}\n"


def test_why_shows_what_was_given_back_given_up_and_overtaken(work: Jobs, run: Run) -> None:
    consumer = work.consumer()
    consumer.poll(0.1)
    eventually(lambda: work.group in run("list"))
    assert run("why", work.group) == f"no record of share group {work.group} was given back, given up or overtaken\n"
    work.put(*range(4))
    records = take(consumer, 4)
    consumer.acknowledge(records[0], "release")
    consumer.acknowledge(records[1], "reject")
    consumer.acknowledge(records[2], "accept")
    consumer.commit_sync()
    assert run("why", work.group).splitlines() == [
        f"record 0 of {work.topic}-0 was delivered once, not done",
        f"record 1 of {work.topic}-0 was delivered once, given up",
        f"{work.topic}-0 waits at record 0; 2 later records are done",
    ]
    (part,) = json.loads(run("why", work.group, "--json"))
    assert (part["waits_at"], [one["state"] for one in part["records"]]) == (
        0,
        ["available", "archived", "acknowledged"],
    )
