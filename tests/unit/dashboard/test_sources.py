"""Where the page of causes gets its facts: the log of groups on any Kafka, and the notes of our own broker."""

from __future__ import annotations

import asyncio

import pytest

from partita import Broker, Consumer
from partita.dashboard.models.accounts import Accounts
from partita.dashboard.sources import Followers
from partita.explain import Account
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller


def history(broker: Broker) -> None:
    """One member joins the group g, then another; the second one is evicted."""
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", client_id="one") as first:
        first.subscribe(["orders"])
        while not first.assignment():
            first.poll(0.05)
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", client_id="two") as second:
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
        return Accounts(observed, followers.sources.facts_of).of("g")[1], followers.sources.described()

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
        while len(found := Accounts(observed, followers.sources.facts_of).of("g")[1]) < 3:
            await observed.wait_for_change(observed.version, 0.05)
            assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await poller.close()
        return len(found)

    assert asyncio.run(asyncio.wait_for(story(), 60)) >= 3
