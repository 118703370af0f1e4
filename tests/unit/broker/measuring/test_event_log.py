"""The broker's log: one line per event, bounded, and readable by machines (newcomer.md, section 7)."""

from __future__ import annotations

import json
import logging
from typing import get_args

import pytest

from partita import Broker
from partita.broker.measuring.event_log import LINES_MAX, SENTENCES, EventLog
from partita.broker.notes import as_json
from partita.cli.service.logs import JsonFormatter
from partita.group import notes as group_notes
from partita.group.notes import Cause
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.transactions import notes as transaction_notes
from partita.wording import What
from support.broker.raw import Raw

SILENT = {"MemberIdIssued", "MemberIdUnused", "GroupsLoaded", "TransactionEnded", "TransactionsLoaded"}
"""What happens with every join, transaction or load: the notes have it."""
EVIL = "ends\n2026-11-23 ERROR forged\x1b[2J\r\u2028"
CAUSE = Cause(What.LEFT, "m-1", "worker-1", "billing", "closed")


def test_every_kind_of_note_has_a_line_or_is_known_to_have_none() -> None:
    kinds = {kind.__name__ for kind in (*get_args(group_notes.Note), *get_args(transaction_notes.Note))}
    assert kinds - SENTENCES.keys() == SILENT


@pytest.mark.parametrize(
    "kind", [kind for kind in get_args(group_notes.Note) if kind.__name__ not in SILENT], ids=lambda kind: kind.__name__
)
def test_each_line_names_the_group_and_the_cause(kind: type) -> None:
    values: dict[str, object] = {"group_id": "g1", "cause": CAUSE, "causes": (CAUSE,) * 7}
    numbers = {name: 7 for name in getattr(kind, "_fields")}  # noqa: B009  # a NamedTuple of any kind
    note = kind(**{name: values.get(name, number) for name, number in numbers.items()})
    level, sentence = SENTENCES[kind.__name__]
    line = sentence(as_json(note))
    assert "group g1" in line
    assert level in (logging.INFO, logging.WARNING)
    fields = set(numbers)
    assert ("member left (worker-1, m-1): closed" in line) == bool(fields & {"cause", "causes"})
    assert ("and 2 more" in line) == ("causes" in fields)


@pytest.mark.parametrize(
    "kind", [kind for kind in get_args(group_notes.Note) if kind.__name__ not in SILENT], ids=lambda kind: kind.__name__
)
def test_no_text_of_a_client_or_an_assignor_begins_a_line(kind: type, caplog: pytest.LogCaptureFixture) -> None:
    """Every field as hostile as it can be: group and client ids, reasons, messages of assignors. (An audit)"""
    cause = Cause(What.LEFT, *(EVIL,) * 4)
    values: dict[str, object] = {"cause": cause, "causes": (cause,) * 7}
    note = kind(**{name: values.get(name, EVIL) for name in getattr(kind, "_fields")})  # noqa: B009  # any NamedTuple
    with Broker() as broker, caplog.at_level(logging.INFO, "partita.events"):
        broker.run(lambda: EventLog(broker.cluster, float)._hear(as_json(note)))
    lines = [record.message for record in caplog.records if record.__dict__["event"] == kind.__name__]
    assert lines
    assert all(line.isprintable() for line in lines), lines


def test_what_a_member_says_when_it_leaves_stays_on_its_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "partita"), Broker() as broker, Raw(broker.port, client_id=EVIL) as raw:
        joined = raw.stable(EVIL)
        member = MemberIdentity(member_id=joined.member_id, reason=EVIL)
        raw.ask(LeaveGroupRequest(group_id=EVIL, members=[member]), 5)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("partita")]
    assert any("forged" in line for line in lines)
    assert [line for line in lines if not line.isprintable()] == []


def test_what_a_broker_does_is_told_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "partita.events"), Broker(nodes=2) as broker:
        broker.create_topics({"orders": 2})
        broker.run(lambda: broker.cluster.catalogue.add_partitions(broker.cluster.catalogue.by_name["orders"], [[1]]))
        broker.control.move_leader("orders", 0, 2)
        with Raw(broker.port) as raw:
            raw.find("g")
            broker.control.move_coordinator("g", 1)
            joined = raw.stable("g")
            broker.control.evict_member("g", joined.member_id)
        broker.run(lambda: broker.cluster.config.change("num.partitions", 3))
        broker.run(lambda: broker.cluster.catalogue.delete([broker.cluster.catalogue.by_name["orders"]]))
    lines = [record.message for record in caplog.records]
    for part in (
        "topic orders is created with 2 partitions",
        "topic orders has 3 partitions now",
        "orders-0 is led by 2 at leader epoch 1",
        "control: leader moved; topic=orders, partition=0",
        "group g rebalances after generation 0: member joined",
        "group g is at generation 1 with 1 members (range) after ",
        "group g has lost a member: member evicted",
        "option num.partitions is changed",
        "topic orders is deleted",
        "the broker is stopping",
        "the broker has stopped",
    ):
        assert any(line.startswith(part) for line in lines), (part, lines)


def test_nothing_is_made_of_what_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "partita.events"), Broker() as broker:
        broker.create_topics({"orders": 2})
        broker.run(lambda: broker.cluster.notes.disk("log cut", bytes=4))
    assert [record.message for record in caplog.records] == ["disk: log cut; bytes=4"]


def test_a_flood_of_one_kind_is_counted_and_others_are_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "partita.events"), Broker() as broker:
        broker.run(
            lambda: [broker.cluster.create_topic(f"t{number}", 1, 1) for number in range(LINES_MAX + 30)] and None
        )
        broker.run(lambda: broker.cluster.notes.control("something", group_id="x" * 5_000))
    lines = [record.message for record in caplog.records]
    assert len([line for line in lines if "is created" in line]) == LINES_MAX
    assert "30 more lines of TopicCreated were not written: 50 are in 10 s" in lines
    assert max(map(len, lines)) == 1000


def test_json_lines_hold_the_kind_and_the_values(caplog: pytest.LogCaptureFixture) -> None:
    form = JsonFormatter()
    with caplog.at_level(logging.INFO, "partita.events"), Broker() as broker:
        broker.create_topics({"orders": 2})
        try:
            raise ValueError("a \x1b[31mred\n text")
        except ValueError:
            logging.getLogger("partita.events").exception("failed")
    made, failed = (form.format(r) for r in caplog.records if "orders" in r.message or r.message == "failed")
    line = json.loads(made)
    assert (line["level"], line["logger"], line["event"]) == ("INFO", "partita.events", "TopicCreated")
    assert line["fields"] == {"topic": "orders", "partitions": 2}
    assert line["time"].endswith("+00:00")
    assert "\n" not in failed
    assert "\x1b" not in failed
    assert "ValueError" in json.loads(failed)["traceback"]
