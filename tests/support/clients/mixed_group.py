"""The life of a group whose members are made with several clients: joins, a leave, a kill, and every record counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from partita import Admin, Producer
from support.clients.member_processes import MemberProcesses

PARTITIONS = 6
BATCH = 300
REBALANCED_WITHIN_S = 45.0


class Records:
    """Sends numbered records and knows all that the cluster has acknowledged."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer, self._topic = producer, topic
        self._numbers = count()
        self.sent: set[str] = set()

    def send(self) -> None:
        values = [f"{number}" for number, _ in zip(self._numbers, range(BATCH), strict=False)]
        futures = [self._producer.send(self._topic, v, partition=int(v) % PARTITIONS) for v in values]
        self._producer.flush()
        for future in futures:
            future.result(0)
        self.sent.update(values)


def play(
    bootstrap: str, name: str, clients: Sequence[str], assignor: str, session_ms: int, expire: Callable[[str], None]
) -> None:
    """Members join one by one in the order of `clients`; the first leaves; the second is killed, and comes back.

    Records come before, during and after each change. In the end nobody has missed one, all is committed, and what came
    twice is what a member had read and not committed. `expire` ends the session of a killed member, or lets it end.
    """
    with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap_servers=bootstrap) as producer,
        MemberProcesses("partita", bootstrap, name, name, assignor, session_ms) as group,
    ):
        admin.create_topic(name, PARTITIONS)
        records = Records(producer, name)

        def settle(what: str) -> None:
            records.send()
            group.wait(f"after {what}, all share the partitions", lambda: group.shares(PARTITIONS), REBALANCED_WITHIN_S)
            records.send()
            group.wait(f"after {what}, every record came", lambda: group.values() == records.sent)

        names = [f"{number}-{client}" for number, client in enumerate(clients)]
        for member, client in zip(names, clients, strict=True):
            group.start(member, client=client)
            settle(f"{member} joined")
        group.stop(names[0])
        settle(f"{names[0]} left")
        records.send()
        group.kill(names[1])
        expire(names[1])
        settle(f"{names[1]} was killed")
        group.start(names[1], client=clients[1])
        settle(f"{names[1]} came back")
        ends = dict.fromkeys(range(PARTITIONS), len(records.sent) // PARTITIONS)
        group.wait("everything is committed", lambda: group.committed == ends)
        assert group.unexplained() == set()
        group.stop()
        stored = {offset.partition: offset.offset for offset in admin.group_offsets(name)}
        assert stored == ends
