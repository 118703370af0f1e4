"""Append to lists in transactions while the broker is killed, read them all the while, and judge the history.

    python tools/append_workload.py --seconds 60 --kills 6

Every list is a partition. Clients append values to one to four lists in one transaction, often two to the same list;
some abort, some die. Readers with read_committed remember every prefix they saw. The broker is killed (SIGKILL) and
started again on its data. In the end every list is read from its start, and the history must show: nothing lost (an
append of a transaction whose commit was acknowledged), nothing twice, nothing of an aborted transaction (G1a), no
transaction half (G1b: some of its appends to a list without the others; or in one list and not in another), and every
prefix that a reader saw is one of the final list. Two transactions may stand in different orders in two lists, as in
Kafka: such pairs are counted, not refused. Prints one JSON line; exits with 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from random import Random

from kill_loop import BrokerProcess

from partita import Admin, Consumer, Producer
from partita.errors import KafkaError

TOPIC, LISTS = "lists", 6
CALM_S = 30.0


@dataclass(slots=True)
class Appends:
    """One transaction: its values by list, and how it ended; None: nobody knows."""

    values: dict[int, list[str]] = field(default_factory=dict)
    committed: bool | None = None


class History:
    """What clients did and saw. Threads share it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.appends: dict[int, Appends] = {}
        self.reads: list[tuple[int, list[str]]] = []
        self.is_over = threading.Event()
        self._numbers = count()

    def begin(self) -> tuple[int, Appends]:
        """One more transaction."""
        with self.lock:
            number = next(self._numbers)
            self.appends[number] = Appends()
            return number, self.appends[number]


def append(history: History, bootstrap: str, name: str, seed: int) -> None:
    """One client: transactions until the end; after an error that no abort mends, another producer."""
    dice = Random(seed)
    while not history.is_over.is_set():
        try:
            producer = Producer(
                bootstrap_servers=bootstrap, transactional_id=name, transaction_timeout_ms=4_000, max_block_ms=20_000,
                linger_ms=dice.choice((0, 5)),
            )  # fmt: skip
            producer.init_transactions()
            while not history.is_over.is_set():
                _transaction(history, producer, dice)
                if dice.random() < 0.03:
                    break  # a process that goes without a word; the next one takes its id
        except KafkaError:
            time.sleep(0.05)


def _transaction(history: History, producer: Producer, dice: Random) -> None:
    number, appends = history.begin()
    producer.begin_transaction()
    lists = dice.sample(range(LISTS), dice.randint(1, 4))
    try:
        for place, where in enumerate(lists * dice.choice((1, 2))):
            value = f"{number}.{place}"
            appends.values.setdefault(where, []).append(value)
            producer.send(TOPIC, value, partition=where)
        if dice.random() < 0.25:
            producer.abort_transaction()
            appends.committed = False
        else:
            producer.commit_transaction()
            appends.committed = True
    except KafkaError:
        producer.abort_transaction()
        appends.committed = False


def read(history: History, bootstrap: str) -> None:
    """Read every list from its start, again and again, and remember each prefix."""
    while not history.is_over.is_set():
        for where, values in enumerate(lists_of(bootstrap)):
            with history.lock:
                history.reads.append((where, values))


def lists_of(bootstrap: str) -> list[list[str]]:
    """Every list as a read_committed consumer sees it now, up to the first transaction that is open."""
    found: list[list[str]] = [[] for _ in range(LISTS)]
    with Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as reader:
        reader.assign([(TOPIC, where) for where in range(LISTS)])
        for record in reader.until_end():
            found[record.partition].append(bytes(record.value or b"").decode())
    return found


def await_ends(admin: Admin) -> None:
    """Wait until no transaction is open and no marker is on its way; what nobody ended, its timeout ends."""
    while any(not one.state.startswith(("Complete", "Empty")) for one in admin.list_transactions()):
        time.sleep(0.1)


def judge(history: History, final: list[list[str]]) -> dict[str, int]:
    """How often each promise is broken, and how many pairs of transactions stand in different orders."""
    owner = {value: number for number, one in history.appends.items() for v in one.values.values() for value in v}
    seen = Counter(value for values in final for value in values)
    broken = Counter(dict.fromkeys(("lost", "twice", "aborted_seen", "half", "strange_reads"), 0))
    broken["twice"] = sum(times > 1 for times in seen.values())
    for one in history.appends.values():
        values = [value for appended in one.values.values() for value in appended]
        there = [value in seen for value in values]
        broken["lost"] += one.committed is True and not all(there)
        broken["aborted_seen"] += one.committed is False and any(there)
        broken["half"] += one.committed is None and any(there) and not all(there)
    for where, values in history.reads:
        is_prefix = final[where][: len(values)] == values
        ends_inside = bool(values) and len(values) < len(final[where]) and _is_cut(values, final[where], owner)
        broken["strange_reads"] += not is_prefix or ends_inside
    return dict(broken)


def _is_cut(values: list[str], final: list[str], owner: dict[str, int]) -> bool:
    """Whether a read ends in the middle of what one transaction has appended in a row (G1b)."""
    return owner[values[-1]] == owner[final[len(values)]]


def reordered_pairs(history: History, final: list[list[str]]) -> int:
    """Pairs of transactions that stand in one order in one list and in the other one in another (G0)."""
    owner = {value: number for number, one in history.appends.items() for v in one.values.values() for value in v}
    orders: set[tuple[int, int]] = set()
    for values in final:
        numbers = list(dict.fromkeys(owner[value] for value in values))
        orders |= set(pairwise(numbers))
    return sum((after, before) in orders for before, after in orders) // 2


def run(seconds: float, kills: int, clients: int, durability: str, seed: int) -> dict[str, object]:
    """One run; the numbers that are printed."""
    with tempfile.TemporaryDirectory(prefix="append-") as folder:
        broker = BrokerProcess(Path(folder) / "data", durability, ())
        broker.start()
        try:
            return _run(broker, seconds, kills, clients, seed) | {"durability": durability}
        finally:
            broker.end(signal.SIGKILL)


def _run(broker: BrokerProcess, seconds: float, kills: int, clients: int, seed: int) -> dict[str, object]:
    dice, history, bootstrap = Random(seed), History(), broker.bootstrap
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(TOPIC, LISTS)
    work = [
        threading.Thread(target=append, args=(history, bootstrap, f"c{n % max(1, clients - 1)}", seed + n), daemon=True)
        for n in range(clients)
    ]
    work.append(threading.Thread(target=read, args=(history, bootstrap), daemon=True))
    for thread in work:
        thread.start()
    for _ in range(kills):
        time.sleep(seconds / (kills + 1) * dice.uniform(0.7, 1.2))
        broker.end(signal.SIGKILL)
        time.sleep(dice.uniform(0.0, 0.5))
        broker.start()
    time.sleep(seconds / (kills + 1))
    history.is_over.set()
    for thread in work:
        thread.join(CALM_S)
    left = sum(thread.is_alive() for thread in work)
    with Admin(bootstrap_servers=bootstrap) as admin:
        await_ends(admin)
    final = lists_of(bootstrap)
    outcomes = Counter(one.committed for one in history.appends.values())
    return {
        "transactions": len(history.appends), "committed": outcomes[True], "aborted": outcomes[False],
        "unknown": outcomes[None], "appends": sum(map(len, final)), "reads": len(history.reads), "kills": kills,
        "clients_left": left, **judge(history, final), "reordered_pairs": reordered_pairs(history, final),
    }  # fmt: skip


def main() -> int:
    """Run it and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--durability", choices=["os", "sync"], default="os")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    told = run(given.seconds, given.kills, given.clients, given.durability, given.seed)
    print(json.dumps(told))
    return 1 if any(told[name] for name in ("lost", "twice", "aborted_seen", "half", "strange_reads")) else 0


if __name__ == "__main__":
    raise SystemExit(main())
