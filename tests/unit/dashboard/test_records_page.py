"""The page of a partition's records: bounded, decoded, harmless, and without a trace on the cluster."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from partita import Admin, Broker, Producer
from partita.dashboard.access import Access
from partita.dashboard.app import create_app
from partita.dashboard.records import RECORDS_MAX, SHOWN_MAX, RecordPages, shown, wanted
from partita.dashboard.site import Site
from partita.observe.observed import Observed
from support.dashboard.pages import checked


def client_of(broker: Broker, **options: str) -> TestClient:
    site = Site(Observed(broker.bootstrap), Access(), shows_records=True)
    pages = RecordPages(site, {"bootstrap.servers": broker.bootstrap, **options})
    return TestClient(create_app(site, more=pages.routes()), base_url="http://127.0.0.1")


@pytest.mark.partita(topics={"orders": 2})
def test_the_last_fifty_come_first_and_the_rest_by_links(partita_broker: Broker) -> None:
    with Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
        for number in range(120):
            producer.send("orders", b"<b>%d</b>" % number, b"k", partition=1)
    with client_of(partita_broker) as client:
        answer = client.get("/topics/orders/1")
        assert answer.status_code == 200
        checked(answer.text)
        assert "&lt;b&gt;119&lt;/b&gt;" in answer.text
        page = client.get("/topics/orders/1.json").json()
        assert [row["offset"] for row in page["records"]] == list(range(70, 120))
        assert (page["start"], page["end"], page["earlier"], page["later"]) == (0, 120, 20, None)
        page = client.get("/topics/orders/1.json?offset=20").json()
        assert [row["offset"] for row in page["records"]] == list(range(20, 70))
        assert (page["earlier"], page["later"]) == (0, 70)
        assert client.get("/topics/orders/0.json").json()["records"] == []
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        assert list(admin.list_groups()) == []


@pytest.mark.partita(topics={"orders": 1})
def test_what_does_not_exist_is_said_and_nothing_is_created(partita_broker: Broker) -> None:
    told = {"orders/7": "the cluster has no partition orders-7", "nothing/0": "the cluster has no partition nothing-0",
            "orders/0?offset=-1": "an offset is a number"}  # fmt: skip
    with client_of(partita_broker) as client:
        for path, why in told.items():
            answer = client.get(f"/topics/{path}")
            assert (answer.status_code, "no records</strong>" in answer.text, why in answer.text) == (400, True, True)
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        assert [topic.name for topic in admin.list_topics()] == ["orders"]


def test_bytes_are_shown_as_text_or_as_hexadecimal_and_cut() -> None:
    assert shown(None).size is None
    assert (shown("grün".encode()).text, shown(b"").size) == ("grün", 0)
    binary = shown(b"\x00\xff" * 2_000)
    assert (binary.is_hex, binary.is_cut, binary.size) == (True, True, 4_000)
    long = shown("ü".encode() * 3_001)
    assert (len(long.text), long.is_cut, long.is_hex) == (SHOWN_MAX, True, False)
    assert not shown(b"a" + "\N{GRINNING FACE}".encode() * 5_000).is_hex, "the cut falls into a character"


@pytest.mark.parametrize("given", ["-1", "1e3", "\u0663", "9" * 20, "x" * 1_000])
def test_what_is_no_offset_is_refused_in_words(given: str) -> None:
    assert wanted("") is None
    with pytest.raises(ValueError, match="an offset is a number such as 42"):
        wanted(given)


@pytest.mark.partita(topics={"orders": 1})
def test_a_page_is_bounded_by_bytes_too(partita_broker: Broker) -> None:
    with Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
        for _ in range(RECORDS_MAX):
            producer.send("orders", b"x" * 200_000, partition=0)
    with client_of(partita_broker) as client:
        page = client.get("/topics/orders/0.json?offset=0").json()
        assert 0 < len(page["records"]) < RECORDS_MAX
        assert page["later"] == len(page["records"])
