"""The process of a member on a real broker: orders come in as JSON lines, facts go out as JSON lines.

Run as `python -m partita.play.member`. It ends with its standard input. Polls, commits and callbacks happen in one
thread, as in a user's program; orders are read in another.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from queue import Empty, SimpleQueue
from typing import Any

from partita import Consumer, TopicPartition
from partita.consumer.listener import RebalanceListener
from partita.errors import FencedInstanceIdError, KafkaError, UnreleasedInstanceIdError

POLL_S, BY_HAND_S, JOIN_WITHIN_S = 0.1, 10.0, 60.0


def say(event: str, **facts: Any) -> None:
    """Report a fact with the time of the machine's monotonic clock."""
    print(json.dumps({"at": time.monotonic(), "member": sys.argv[1], "event": event, **facts}), flush=True)


class Heard(RebalanceListener):
    """Reports callbacks and the partitions owned after them."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def on_partitions_assigned(self, partitions: Any) -> None:
        """Report an assignment, and its generation."""
        self._say("assigned", partitions, self._consumer.group_metadata().generation_id, set())

    def on_partitions_revoked(self, partitions: Any) -> None:
        """Report what is about to be given up."""
        self._say("revoked", partitions, -1, set(partitions))

    def on_partitions_lost(self, partitions: Any) -> None:
        """Report what is gone."""
        self._say("lost", partitions, -1, set(partitions))

    def _say(self, what: str, partitions: Any, generation: int, gone: set[TopicPartition]) -> None:
        owned = sorted(set(self._consumer.assignment()) - gone)
        say(what, partitions=sorted(partitions), owned=owned, generation=generation)


class Program:
    """The program of the member."""

    def __init__(self, options: dict[str, Any], topics: list[str]) -> None:
        self._by_hand = options.pop("polls", "") == "by-hand"
        self._consumer = Consumer(options)
        self._heard = Heard(self._consumer)
        self._consumer.subscribe(topics, listener=self._heard)
        self._work_ms = 0

    def run(self, orders: SimpleQueue[dict[str, Any]]) -> None:
        """Poll and follow orders until one says close, or until it is fenced."""
        while True:
            try:
                order = orders.get(timeout=POLL_S) if self._by_hand else orders.get_nowait()
            except Empty:
                if self._by_hand or self._poll(POLL_S):
                    continue
                return
            if order["do"] == "close":
                self._consumer.close()
                return
            self._do(order)

    def _do(self, order: dict[str, Any]) -> None:
        match order["do"]:
            case "poll":
                self._join()
                for _ in range(order["number"]):
                    self._poll(BY_HAND_S)
            case "commit":
                self._guarded(self._consumer.commit)
            case "subscribe":
                self._consumer.subscribe(order["words"], listener=self._heard)
            case "work":
                self._work_ms = order["number"]

    def _join(self) -> None:
        """Take part in the group until there is an assignment; no records are taken meanwhile."""
        end = time.monotonic() + JOIN_WITHIN_S
        while not self._consumer.assignment() and time.monotonic() < end:
            if not self._guarded(lambda: self._consumer.poll(POLL_S, max_records=0)):
                return

    def _poll(self, seconds: float) -> bool:
        """Poll once; False when the member is fenced and has ended."""
        found: dict[Any, Any] = {}
        if not self._guarded(lambda: found.update(self._consumer.poll(seconds).items())):
            return False
        if self._by_hand:
            read = [f"{len(records)} of {place[0]}-{place[1]}" for place, records in found.items()]
            say("reads", text=", ".join(read) or "nothing", count=sum(map(len, found.values())))
        if self._work_ms:
            busy_ms, self._work_ms = self._work_ms, 0
            time.sleep(busy_ms / 1000)
        return True

    def _guarded(self, call: Any) -> bool:
        try:
            call()
        except KafkaError as error:
            say("raises", text=type(error).__name__)
            return not isinstance(error, FencedInstanceIdError | UnreleasedInstanceIdError)
        return True


def main() -> None:
    """Start the member by the first line, then take orders until there are no more."""
    orders: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            orders.put(json.loads(line))
        os._exit(3)

    settings = json.loads(sys.stdin.readline())
    threading.Thread(target=listen, daemon=True).start()
    Program(settings["options"], settings["topics"]).run(orders)
    say("ended")
    os._exit(0)


if __name__ == "__main__":
    main()
