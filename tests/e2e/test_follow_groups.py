"""Groups are followed live by both sources; what cannot be read is named. Issue 17, item 1."""

from __future__ import annotations

import asyncio

import pytest

from partita import Broker, Consumer
from partita.explain import Fact, Sure, explain
from partita.explain.facts import Assigned
from partita.observe.follow_group_log import LOG_TOPIC, GroupLog
from partita.observe.follow_notes import BrokerNotes
from partita.observe.kept import Kept

PATIENCE_S = 60


class Heard(Kept):
    """Says when a group has become empty again."""

    def __init__(self) -> None:
        super().__init__()
        self.emptied = asyncio.Event()

    def add(self, fact: Fact) -> None:
        super().add(fact)
        if isinstance(fact, Assigned) and not fact.members and fact.generation > 1:
            self.emptied.set()


def come_and_go(broker: Broker, group: str) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=group, group_instance_id="w") as consumer:
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.close(membership="leave_group")


@pytest.mark.partita(topics={"t": 2})
def test_the_log_is_followed_while_groups_come_and_go(partita_broker: Broker) -> None:
    come_and_go(partita_broker, "before")

    async def follow() -> Heard:
        kept = Heard()
        following = asyncio.create_task(GroupLog({"bootstrap.servers": partita_broker.bootstrap}, kept).follow())
        await asyncio.wait_for(kept.emptied.wait(), PATIENCE_S)
        kept.emptied.clear()
        await asyncio.to_thread(come_and_go, partita_broker, "live")
        await asyncio.wait_for(kept.emptied.wait(), PATIENCE_S)
        following.cancel()
        return kept

    kept = asyncio.run(follow())
    assert set(kept.groups) == {"before", "live"}
    for group in kept.groups:
        assert [account.headline for account in explain(kept.of(group))][-1] == "w left, and the group is empty now."


@pytest.mark.partita(topics={"t": 2}, admin_port=0)
def test_notes_are_taken_once_each_and_a_broker_that_is_gone_is_named(partita_broker: Broker) -> None:
    kept = Kept()
    address = f"http://127.0.0.1:{partita_broker.running.admin_port}"
    notes = BrokerNotes(address, kept, token=partita_broker.admin_token)
    come_and_go(partita_broker, "g")
    notes.read()
    notes.read()
    accounts = explain(kept.of("g"))
    assert [account.generation for account in accounts] == [1, 2]
    assert accounts[-1].cause.sure is Sure.TOLD
    gone = BrokerNotes("http://127.0.0.1:1", kept)
    with pytest.raises(OSError, match="refused"):
        gone.read()


@pytest.mark.partita(topics={"t": 2})
def test_a_log_that_is_read_in_part_is_named(partita_broker: Broker) -> None:
    come_and_go(partita_broker, "g")
    kept = Kept()
    log = GroupLog({"bootstrap.servers": partita_broker.bootstrap}, kept, groups=["g"], records_max=1)
    asyncio.run(log.read())
    ((place, reason),) = log.problems.items()
    assert place.startswith(LOG_TOPIC)
    assert reason.startswith("only its last 1 records are read, of ")
    assert len(explain(kept.of("g"))) == 1
