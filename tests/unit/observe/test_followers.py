"""Where the page of causes gets its facts: the log of groups on any Kafka, and the notes of our own broker."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from partita import Broker, Consumer
from partita.dashboard.models.accounts import Accounts
from partita.explain import Account
from partita.explain.facts import Assigned, Sure
from partita.observe.followers import Followers
from partita.observe.kept import Kept
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller
from partita.observe.seen import GroupSeen


def history(broker: Broker) -> None:
    """One member joins the group g, then another; the second one is evicted."""
    with Consumer(
        bootstrap_servers=broker.bootstrap, group_id="g", client_id="one", heartbeat_interval_ms=100
    ) as first:
        first.subscribe(["orders"])
        while not first.assignment():
            first.poll(0.05)
        with Consumer(
            bootstrap_servers=broker.bootstrap, group_id="g", client_id="two", heartbeat_interval_ms=100
        ) as second:
            second.subscribe(["orders"])
            while not second.assignment():
                first.poll(0.02)
                second.poll(0.02)
            broker.control.evict_member("g", "two")
        while len(first.assignment()) < 2:
            first.poll(0.02)


def accounts(broker: Broker, notes_from: str | None, token: str = "") -> tuple[tuple[Account, ...], str]:
    async def story() -> tuple[tuple[Account, ...], str]:
        observed = Observed(broker.bootstrap)
        options = {"bootstrap.servers": broker.bootstrap}
        poller = ClusterPoller(options, observed)
        followers = Followers(options, poller, notes_from, token)
        await poller.look()
        await followers.read_once()
        await poller.close()
        return Accounts(observed, followers.facts_of).of("g")[1], followers.described()

    return asyncio.run(story())


@pytest.mark.partita(topics={"orders": 2}, admin_port=0, admin_token="notes")
def test_causes_are_told_by_our_broker_and_inferred_from_the_log_of_any(partita_broker: Broker) -> None:
    history(partita_broker)
    seen, described = accounts(partita_broker, None)
    assert described == "Read from __consumer_offsets."
    assert [account.cause.sure.value for account in seen[1:2]] == ["seen"]
    assert any("two" in account.headline for account in seen)

    address = f"http://127.0.0.1:{partita_broker.running.admin_port}"
    told, described = accounts(partita_broker, address, "notes")
    assert described == "Read from the broker's notes and __consumer_offsets."
    assert [account.generation for account in told] == [account.generation for account in seen]
    assert "member evicted" in [account.cause.what.value for account in told if account.cause.sure.value == "told"]

    _, described = accounts(partita_broker, address, "wrong")
    assert "Not everything can be read: no notes" in described


@pytest.mark.partita(topics={"orders": 2})
def test_a_cluster_without_groups_has_no_history(partita_broker: Broker) -> None:
    assert accounts(partita_broker, None) == ((), "Read from __consumer_offsets.")


def test_notes_come_from_an_address_of_http() -> None:
    poller = ClusterPoller({"bootstrap.servers": "127.0.0.1:1"}, Observed("127.0.0.1:1"))
    with pytest.raises(ValueError, match=r"such as http://127\.0\.0\.1:9644"):
        Followers({}, poller, "file:///etc/passwd")


@pytest.mark.partita(topics={"orders": 2})
def test_the_log_is_followed_as_it_grows(partita_broker: Broker) -> None:
    async def story() -> int:
        observed = Observed(partita_broker.bootstrap)
        options = {"bootstrap.servers": partita_broker.bootstrap}
        poller = ClusterPoller(options, observed)
        followers = Followers(options, poller)
        running = asyncio.ensure_future(followers.run())
        await asyncio.to_thread(history, partita_broker)
        await poller.look()
        while len(found := Accounts(observed, followers.facts_of).of("g")[1]) < 3:
            await observed.wait_for_change(observed.version, 0.05)
            assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await poller.close()
        return len(found)

    assert asyncio.run(asyncio.wait_for(story(), 60)) >= 3


def test_what_was_counted_is_forgotten_with_the_facts_of_its_group() -> None:
    options = {"bootstrap.servers": "127.0.0.1:1"}
    observed = Observed("127.0.0.1:1")
    followers = Followers(options, ClusterPoller(options, observed))
    followers._seen = Kept(groups_max=1)
    for number, group in enumerate(("a", "b", "c"), 1):
        observed.publish(number)
        observed.take_group(GroupSeen(group, "Stable", "classic", "", "", 1, seen_ms=number))
        followers._seen.add(Assigned(group, 10 + number, Sure.SEEN, number))
        asyncio.run(followers.count_causes(observed))
        assert observed.history.causes(group).total() == 1
        assert list(followers._counted)[-1:] == [group]
    assert len(followers._counted) <= 2


@pytest.mark.partita(topics={"orders": 2})
def test_rebalances_are_counted_once_by_their_causes_from_the_first_look_on(partita_broker: Broker) -> None:
    async def story() -> Counter[str]:
        observed = Observed(partita_broker.bootstrap)
        options = {"bootstrap.servers": partita_broker.bootstrap}
        poller = ClusterPoller(options, observed)
        followers = Followers(options, poller)
        await asyncio.to_thread(history, partita_broker)
        await poller.look()
        await followers.read_once()
        await followers.count_causes(observed)
        assert observed.history.causes("g") == {}, "they were before"
        await asyncio.to_thread(history, partita_broker)
        for _ in range(2):
            await poller.look()
            await followers.read_once()  # reads everything again
            await followers.count_causes(observed)
        await poller.close()
        return observed.history.causes("g")

    counted = asyncio.run(asyncio.wait_for(story(), 60))
    assert counted["member joined"] == 2
    assert counted.total() >= 4
