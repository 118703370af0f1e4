"""OTLP payloads of metrics, as clients of Kafka write them, and damaged ones."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from partita.broker.client_metrics import otlp
from partita.broker.client_metrics.otlp import BadPayload, Point, points
from support.broker.otlp import field, gauge, label, payload, total

WHOLE = payload(
    gauge("a.rate", 1.5, topic="t"),
    total("a.total", 7, is_delta=True, node_id="1"),
    total("b.total", -7, is_delta=False, is_monotonic=False),
    resource=field(1, label("client_rack", field(1, "r"))),
)


def test_numbers_are_read_with_their_labels_and_those_of_the_client() -> None:
    assert list(points(WHOLE)) == [
        Point("a.rate", (("client_rack", "r"), ("topic", "t")), 1.5, is_counter=False, is_delta=False),
        Point("a.total", (("client_rack", "r"), ("node_id", "1")), 7.0, is_counter=True, is_delta=True),
        Point("b.total", (("client_rack", "r"),), -7.0, is_counter=False, is_delta=False),
    ]


def test_labels_may_be_numbers_and_truths_and_unknown_fields_are_passed_over() -> None:
    kinds = [label("n", field(3, -5)), label("yes", field(2, 1)), label("list", field(5, b"")), label("none", b"")]
    unknown = field(99, 1) + field(98, "x") + b"\x95\x06abcd" + b"\x91\x06abcdefgh"
    read = list(points(payload(gauge("g", 2), resource=b"".join(field(1, each) for each in kinds)) + unknown))
    assert [each.labels for each in read] == [(("n", "-5"), ("yes", "true"), ("list", ""), ("none", ""))]
    assert list(points(payload(field(1, "no number") + field(9, field(1, b""))))) == [], "a histogram"
    assert [each.value for each in points(payload(field(1, "g") + field(5, field(1, b""))))] == [0.0]


@pytest.mark.parametrize("damaged", [b"\x0a\x05abc", b"\x0b", b"\xff" * 11, b"\x0a", b"\x09abc"])
def test_a_payload_that_is_none_is_refused(damaged: bytes) -> None:
    with pytest.raises(BadPayload, match="expected"):
        list(points(damaged))


def test_numbers_do_not_multiply_the_labels_of_their_resource() -> None:
    """200 kB of 20,000 labels and 8,000 numbers took minutes and gigabytes, and other clients waited for seconds."""
    many = b"".join(field(1, field(1, f"l{number}")) for number in range(9_000))
    numbers = field(1, "g") + field(5, field(1, b"") * 9_000)
    read = list(points(payload(numbers, resource=many)))
    first = tuple((f"l{number}", "") for number in range(otlp.LABELS_MAX))
    assert (len(read), {each.labels for each in read}) == (9_000, {first})
    of_its_own = [label(f"n{number}", b"") for number in range(20)]
    (read_one,) = points(payload(field(1, "g") + field(5, field(1, b"".join(field(7, each) for each in of_its_own)))))
    assert [name for name, _ in read_one.labels] == [f"n{number}" for number in range(otlp.LABELS_MAX)]


def test_a_payload_of_very_many_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadPayload, match="20000 in a message"):
        list(points(field(1, b"") * 20_001))
    monkeypatch.setattr(otlp, "_FIELDS_MAX", 10)
    with pytest.raises(BadPayload, match="at most 10 fields"):
        list(points(WHOLE))


def test_a_damaged_payload_is_read_or_refused_and_nothing_else() -> None:
    dice = random.Random(7)
    for _ in range(2_000):
        damaged = bytearray(WHOLE[: dice.randrange(len(WHOLE) + 1)])
        for _ in range(dice.randrange(3)):
            if damaged:
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        with suppress(BadPayload):
            assert all(isinstance(each.value, float) for each in points(bytes(damaged)))
