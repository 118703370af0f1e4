"""Transactions on our own broker: the stories that run on Apache Kafka too, and what only the two of them can do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from partita import Broker
from support.producer import copier
from support.producer import transaction_admin_stories as admin_stories
from support.producer import transaction_stories as stories

pytestmark = [
    pytest.mark.partita(num_partitions=4, transaction_abort_timed_out_transaction_cleanup_interval_ms=300),
]


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_transactions_do_what_they_promise(partita_broker: Broker, story: stories.Story) -> None:
    story(partita_broker.bootstrap)


@pytest.mark.case("TX-K01", "TX-K03", "TX-P06")
def test_a_slow_producer_learns_that_its_transaction_timed_out(partita_broker: Broker) -> None:
    stories.a_slow_producer_learns_that_its_transaction_timed_out(partita_broker.bootstrap)


@pytest.mark.case("TX-L01", "TX-L02", "TX-L04", "TX-L05", "TX-L08", "TX-L09")
def test_what_is_open_is_listed_described_and_fenced(partita_broker: Broker) -> None:
    admin_stories.what_is_open_is_listed_described_and_fenced(partita_broker.bootstrap)


@pytest.mark.case("TX-P21")
def test_the_program_of_the_docs_is_killed_at_every_line(partita_broker: Broker) -> None:
    copier.killed_at_its_lines(partita_broker.bootstrap)


@pytest.mark.case("TX-P21")
@pytest.mark.parametrize(
    ("name", "run", "happens"),
    [
        ("copy_totals", lambda done: done, copier.raises),
        ("copy_totals_in_asyncio", asyncio.run, copier.raises),
        ("copy_totals_in_asyncio", asyncio.run, copier.is_cancelled),
    ],
    ids=["raises", "raises in asyncio", "is cancelled"],
)
def test_the_programs_of_the_docs_break_at_every_line(
    partita_broker: Broker, name: str, run: Callable[..., object], happens: copier.Break
) -> None:
    copier.broken_at_its_lines(partita_broker.bootstrap, name, run, happens)


@pytest.mark.case("TX-P21", "TX-P06")
def test_the_program_of_the_docs_goes_back_after_an_abort_at_any_line(partita_broker: Broker) -> None:
    copier.aborted_at_its_lines(partita_broker.bootstrap)
