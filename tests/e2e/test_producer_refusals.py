"""One refused record takes nothing with it, and batches that are too large arrive in parts. (D1, D2)

The same programs run on Apache Kafka in tests/conformance/test_producer_and_admin.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Broker
from support.producer import refused_records as programs
from support.producer.refused_records import KINDS, PRODUCERS, TABLE


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as running:
        yield running.bootstrap


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_one_refused_record_among_good_ones(bootstrap: str, name: str, kind: str) -> None:
    programs.one_refused_record_among_good_ones(bootstrap, PRODUCERS[name], kind)


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_big_records_between_small_ones(bootstrap: str, name: str, kind: str) -> None:
    programs.big_records_between_small_ones(bootstrap, PRODUCERS[name], kind)


@pytest.mark.parametrize("name", PRODUCERS)
def test_batches_larger_than_the_topic_takes(bootstrap: str, name: str) -> None:
    programs.batches_larger_than_the_topic_takes(bootstrap, PRODUCERS[name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["defaults", "large batches"])
def test_a_transaction_with_a_refused_record(bootstrap: str, name: str, kind: str) -> None:
    programs.a_transaction_with_a_refused_record(bootstrap, kind, PRODUCERS[name])


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_transaction_in_batches_larger_than_the_topic_takes(bootstrap: str, codec: str) -> None:
    programs.a_transaction_in_batches_larger_than_the_topic_takes(bootstrap, codec)
