"""What an embedded broker offers to tests and notebooks: records, waits, a fresh start, members by client id."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from partita import Broker, Consumer
from partita.broker.control.verbs import ControlError
from partita.broker.embedded import StartError
from partita.errors import UnknownTopicOrPartitionError


def joined(broker: Broker, client_id: str, group_id: str = "g") -> Consumer:
    """A member of the group that reads topic t and has its partitions; its end commits nothing by itself."""
    consumer = Consumer(
        bootstrap_servers=broker.bootstrap, group_id=group_id, client_id=client_id, auto_offset_reset="earliest",
        allow_auto_create_topics=False, enable_auto_commit=False, heartbeat_interval_ms=14_000,
    )  # fmt: skip
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.05)
    return consumer


@pytest.mark.partita(topics={"t": 2})
def test_records_are_written_and_read(partita_broker: Broker) -> None:
    where = partita_broker.produce("t", "a", b"b", None, key="k", partition=1, headers={"h": "x"}, timestamp=5)
    assert [(found.partition, found.offset) for found in where] == [(1, 0), (1, 1), (1, 2)]
    partita_broker.produce("t", "z", partition=0)
    records = partita_broker.records("t")
    assert [(r.partition, r.value) for r in records] == [(0, b"z"), (1, b"a"), (1, b"b"), (1, None)]
    assert (records[1].key, records[1].headers, records[1].timestamp) == (b"k", (("h", b"x"),), 5)
    assert [r.value for r in partita_broker.records("t", 0)] == [b"z"]
    with pytest.raises(UnknownTopicOrPartitionError):
        partita_broker.records("nothing")


def test_topics_without_numbers_of_partitions_are_refused_in_words(partita_broker: Broker) -> None:
    with pytest.raises(TypeError, match=r"such as \{'orders': 6\}, not \['orders'\]"):
        partita_broker.create_topics(["orders"])  # type: ignore[arg-type]  # what the marker may be given


@pytest.mark.partita(topics={"t": 2})
def test_waits_end_when_the_group_is_so(partita_broker: Broker) -> None:
    """T5."""
    assert partita_broker.wait_group("g", state="Dead", members=0) is None
    with pytest.raises(TimeoutError, match=r"group g does not exist after 0 s of waiting"):
        partita_broker.wait_group("g", state="Stable", timeout=0)
    partita_broker.produce("t", "a", "b", "c", partition=1)
    with joined(partita_broker, "one") as consumer:
        group = partita_broker.wait_group("g", state="Stable", members=1)
        assert group is not None
        assert group.members[0].client_id == "one"
        with pytest.raises(TimeoutError, match="group g is Stable with 1 member after 0 s"):
            partita_broker.wait_group("g", members=2, timeout=0)
        consumer.commit({("t", 0): 0, ("t", 1): 1})
        assert partita_broker.wait_for_lag("g", 2, topic="t") == 2
        with pytest.raises(TimeoutError, match="group g is 2 records behind"):
            partita_broker.wait_for_lag("g", timeout=0)
        consumer.commit({("t", 1): 3})
        assert partita_broker.wait_for_lag("g") == 0
    assert partita_broker.committed("g") == {("t", 0): 0, ("t", 1): 3}
    with pytest.raises(TimeoutError, match="group other does not exist"):
        partita_broker.wait_for_lag("other", timeout=0)


@pytest.mark.partita(topics={"t": 2}, nodes=2)
def test_a_cleared_broker_is_as_new(partita_broker: Broker) -> None:
    """T9."""
    control = partita_broker.control
    partita_broker.produce("t", "a")
    with joined(partita_broker, "one") as consumer:
        control.fail("OffsetCommit", "INVALID_GROUP_ID", 100)
        control.stop_node(2)
        partita_broker.clear()
        assert partita_broker.wait_group("g", state="Dead") is None
        consumer.unsubscribe()
    assert control.leader("__consumer_offsets", 0) in (-1, 1, 2)
    partita_broker.create_topics({"t": 1})
    assert partita_broker.records("t") == []
    with joined(partita_broker, "two") as consumer:
        consumer.commit({("t", 0): 0})
    assert partita_broker.committed("g") == {("t", 0): 0}
    control.restart_node(2)


@pytest.mark.partita(topics={"t": 4})
def test_members_are_named_by_client_id_or_not_at_all(partita_broker: Broker) -> None:
    """T7."""
    control = partita_broker.control
    with joined(partita_broker, "one"):
        control.expire_session("g")
        assert control.members("g") == {}
    with joined(partita_broker, "one", "h"), joined(partita_broker, "two", "i"):
        control.evict_member("h", "one")
        assert control.members("h") == {}
        with pytest.raises(ControlError, match=r"group i has no member one; it has two-\S+ \(client two\)"):
            control.evict_member("i", "one")


def test_a_broker_says_where_it_is_and_whether_it_runs() -> None:
    """T8."""
    broker = Broker(nodes=2)
    assert repr(broker) == "<Broker not running, 2 nodes>"
    with broker:
        assert repr(broker) == f"<Broker {broker.bootstrap}, 2 nodes>"
    for call in (broker.notes, lambda: broker.run(int), lambda: broker.bootstrap, lambda: broker.records("t")):
        with pytest.raises(RuntimeError, match="the broker is not running; use"):
            call()


def test_a_wrong_option_is_told_when_the_broker_is_made() -> None:
    with pytest.raises(StartError, match=r"Unknown configuration num\.partition; did you mean num\.partitions\?"):
        Broker({"num.partition": 4})
    with pytest.raises(StartError, match="must be at least 1"):
        Broker(num_partitions=0)


FORKS = """
import os, sys
from partita import Admin, Broker, Consumer, Producer

def forked():
    child = os.fork()
    if child == 0:
        sys.exit(0)
    return os.waitpid(child, 0)[1]

with Broker(host="localhost", admin_port=0) as broker:
    status = [forked()]
    broker.create_topics({"t": 1})
    where = {"bootstrap_servers": broker.bootstrap}
    with Producer(**where) as producer, Admin(**where) as admin, Consumer(**where) as consumer:
        producer.send("t", b"v").result(10)
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        status += [len(consumer.poll(10)), len(admin.list_topics()), forked()]
    print(broker.bootstrap.split(":")[0], status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_a_child_forked_beside_a_broker_and_clients_exits_in_order() -> None:
    """As workers of a web server do. It waited without end for a broker that is not its own, and died of a signal.

    The loops are uvloop's where that is installed: names that it looks up leave threads behind that no child outlives.
    """
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS]  # Python 3.12 warns of fork
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("localhost [0, 1, 1, 0]\n", "")
