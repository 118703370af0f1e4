"""The life of a group whose members are made with several clients: joins, a leave, a kill, and every record counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from partita import Admin, Producer
from support.clients.member_processes import MemberProcesses

PARTITIONS = 6
BATCH = 300
REBALANCED_WITHIN_S = 120.0


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


class Story:
    """A group on a topic of its own, and the records it is given; nobody may miss one."""

    def __init__(self, admin: Admin, records: Records, group: MemberProcesses, name: str) -> None:
        admin.create_topic(name, PARTITIONS)
        self._admin, self.records, self.group, self._name = admin, records, group, name

    def settle(self, what: str) -> None:
        """Records come before and after the members share the partitions, and all are read."""
        group, records = self.group, self.records
        records.send()
        group.wait(f"after {what}, all share the partitions", lambda: group.shares(PARTITIONS), REBALANCED_WITHIN_S)
        records.send()
        group.wait(f"after {what}, every record came", lambda: group.values() == records.sent)

    def end(self) -> None:
        """All is committed, and what came twice is what a member had read and not committed."""
        ends = dict.fromkeys(range(PARTITIONS), len(self.records.sent) // PARTITIONS)
        self.group.wait("everything is committed", lambda: self.group.committed == ends)
        assert self.group.unexplained() == set()
        self.group.stop()
        assert {offset.partition: offset.offset for offset in self._admin.group_offsets(self._name)} == ends


@contextmanager
def story(bootstrap: str, name: str, assignor: str = "", session_ms: int = 0) -> Iterator[Story]:
    with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap_servers=bootstrap) as producer,
        MemberProcesses("partita", bootstrap, name, name, assignor, session_ms) as group,
    ):
        yield Story(admin, Records(producer, name), group, name)


def play(
    bootstrap: str, name: str, clients: Sequence[str], assignor: str, session_ms: int, expire: Callable[[str], None]
) -> None:
    """Members join one by one in the order of `clients`; the first leaves; the second is killed, and comes back.

    Records come before, during and after each change. `expire` ends the session of a killed member, or lets it end.
    """
    with story(bootstrap, name, assignor, session_ms) as told:
        group = told.group
        names = [f"{number}-{client.replace('/', '-')}" for number, client in enumerate(clients)]
        for member, client in zip(names, clients, strict=True):
            group.start(member, client=client)
            told.settle(f"{member} joined")
        group.stop(names[0])
        told.settle(f"{names[0]} left")
        told.records.send()
        group.kill(names[1])
        expire(names[1])
        told.settle(f"{names[1]} was killed")
        group.start(names[1], client=clients[1])
        told.settle(f"{names[1]} came back")
        told.end()


def roll(bootstrap: str, name: str, client: str) -> None:
    """Two members of the classic protocol, each of which is restarted with the consumer protocol, and then back."""
    with story(bootstrap, name) as told:
        for generation, protocol in enumerate(("classic", "consumer", "classic")):
            for number in range(2):
                if generation:
                    told.group.stop(f"{generation - 1}-{number}")
                told.group.start(f"{generation}-{number}", client=f"{client}/{protocol}")
                told.settle(f"member {number} speaks the {protocol} protocol")
        told.end()
