"""What the dashboard may change: only with --allow-actions, only from its own forms, only what was shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from partita import Admin, Broker, Producer
from partita.dashboard.access import Access
from partita.dashboard.actions import Actions
from partita.dashboard.app import create_app
from partita.dashboard.serve import in_background
from partita.dashboard.site import Site
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller
from support.dashboard.pages import checked
from support.dashboard.world import FakeCluster

ACCESS = Access(form_token="from-a-page")
FORM = {"form_token": "from-a-page"}


@contextmanager
def running(broker: Broker, control: str | None = None, token: str = "") -> Iterator[TestClient]:
    """The dashboard on a broker, with actions allowed."""
    observed = Observed(broker.bootstrap)
    poller = ClusterPoller({"bootstrap.servers": broker.bootstrap}, observed)
    site = Site(observed, ACCESS, allow_actions=True, has_control=control is not None)
    actions = Actions(site, lambda: poller.admin, control=control, control_token=token).routes()
    app = create_app(site, lifespan=in_background(poller.run), more=actions)
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        assert client.portal is not None
        client.portal.call(observed.wait_for_change, 0, 20)
        yield client


def offsets(broker: Broker) -> dict[tuple[str, int], int]:
    return broker.committed("g")


@pytest.fixture
def idle(partita_broker: Broker) -> Broker:
    """The group g has read 3 of 10 records of each of two partitions, and nobody is in it."""
    with Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
        for number in range(20):
            producer.send("orders", b"x", partition=number % 2)
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("orders", 0): 3, ("orders", 1): 3})
    return partita_broker


@pytest.mark.partita(topics={"orders": 2})
def test_a_reset_is_shown_first_and_applied_as_shown(idle: Broker) -> None:
    with running(idle) as client:
        assert "Reset its offsets" in client.get("/groups/g").text
        checked(client.get("/groups/g/reset").text)
        shown = client.post("/groups/g/reset", data={**FORM, "target": "offset", "value": "7"})
        checked(shown.text)
        assert shown.text.count("+4") == 2
        assert "Nothing has changed yet" in shown.text
        assert offsets(idle) == {("orders", 0): 3, ("orders", 1): 3}
        plan = re.findall(r'name="plan" value="([^"]+)"', shown.text)[0]
        done = client.post("/groups/g/reset/apply", data={**FORM, "plan": plan})
        assert "Moved 2 offsets." in done.text
        assert offsets(idle) == {("orders", 0): 7, ("orders", 1): 7}
        again = client.post("/groups/g/reset/apply", data={**FORM, "plan": plan})
        assert again.status_code == 409, "a plan is applied once"


TARGETS = [
    ("earliest", "", "-3"),
    ("latest", "", "+7"),
    ("shift", "-2", "-2"),
    ("offset", "999", "999 is outside the log, which ends at 10"),
    ("offset", "many", "invalid literal"),
    ("datetime", "tomorrow", "is no date and time"),
    ("nowhere", "", "choose where the group shall go on"),
]


@pytest.mark.partita(topics={"orders": 2})
def test_targets_are_those_of_the_command_line(idle: Broker) -> None:
    with running(idle) as client:
        for target, value, said in TARGETS:
            assert said in client.post("/groups/g/reset", data={**FORM, "target": target, "value": value}).text
    assert offsets(idle) == {("orders", 0): 3, ("orders", 1): 3}


@pytest.mark.partita(topics={"orders": 2})
def test_forms_of_others_are_refused(idle: Broker) -> None:
    """Issue 17 item 3: POST needs the token of a page, and no other origin."""
    with running(idle) as client:
        form = {"target": "earliest", "value": ""}
        post = client.post
        assert post("/groups/g/reset", data=form).status_code == 403
        assert post("/groups/g/reset", data={**form, "form_token": "guessed"}).status_code == 403
        assert (
            post("/groups/g/reset", data={**form, **FORM}, headers={"origin": "http://evil.example"}).status_code == 403
        )
        assert (
            post("/groups/g/reset", data={**form, **FORM}, headers={"sec-fetch-site": "cross-site"}).status_code == 403
        )
        assert post("/groups/g/reset", json={**form, **FORM}).status_code == 415
        assert post("/groups/g/reset", data={**FORM, "value": "x" * 20_000}).status_code == 413
        assert post("/groups/other/reset/apply", data={**FORM, "plan": "unknown"}).status_code == 409
    assert offsets(idle) == {("orders", 0): 3, ("orders", 1): 3}


def test_without_the_flag_there_is_nothing_to_post_to() -> None:
    world = FakeCluster()
    world.group("g", {})
    world.look()
    client = world.client()
    assert client.post("/groups/g/reset", data=FORM).status_code in (404, 405)
    assert "Reset" not in client.get("/groups/g").text
    assert client.post("/groups/g").status_code == 405


@pytest.mark.partita(topics={"orders": 2}, admin_port=0, admin_token="verbs")
def test_members_of_our_own_broker_can_be_evicted(partita_broker: Broker) -> None:
    from partita import Consumer

    with Consumer(bootstrap_servers=partita_broker.bootstrap, group_id="g", client_id="one") as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.05)
        with running(partita_broker, f"http://127.0.0.1:{partita_broker.running.admin_port}", "verbs") as client:
            text = client.get("/groups/g").text
            checked(text)
            member = re.findall(r'name="member" value="([^"]+)"', text)[0]
            path = "/groups/g/members/evict_member"
            assert client.post(path, data={"member": member}).status_code == 403
            assert client.post("/groups/g/members/fail", data={**FORM, "member": member}).status_code == 404
            assert client.post(path, data={**FORM, "member": "nobody"}).status_code == 502
            assert client.post(path, data={**FORM, "member": member}).status_code == 303
    gone = [note["cause"]["what"] for note in partita_broker.notes() if note["note"] == "MemberGone"]
    assert gone[0] == "member evicted"


def test_a_dashboard_that_is_not_connected_says_so() -> None:
    observed = Observed("127.0.0.1:1")
    poller = ClusterPoller({"bootstrap.servers": "127.0.0.1:1"}, observed)
    site = Site(observed, ACCESS, allow_actions=True)
    client = TestClient(
        create_app(site, more=Actions(site, lambda: poller.admin).routes()), base_url="http://127.0.0.1"
    )
    answer = client.post("/groups/g/reset", data={**FORM, "target": "earliest"})
    assert (answer.status_code, "not connected yet" in answer.text) == (400, True)
    asyncio.run(poller.close())
