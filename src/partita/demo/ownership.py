"""Owners of each partition over time, from the group's own log. Pure.

The log shows the coordinator's view; kills are added by the process that caused them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from partita.demo.story import Tenure
from partita.group.records.read_back import LogRecord, group_records, held_by


def owners_in(records: Iterable[LogRecord], group: str, topic: str) -> Iterator[tuple[int, dict[int, str]]]:
    """Yield each logged state of a group: its time in ms, and the client id that owns each partition of `topic`."""
    for record in group_records(records):
        if record.group == group and record.value is not None:
            owners = {
                partition: member.client_id
                for member in record.value.members
                for name, partition in held_by(member)
                if name == topic
            }
            yield record.place["logTimestamp"], owners


class Ownership:
    """Turns states into tenures; times are seconds since the start of the run and never go back."""

    def __init__(self) -> None:
        self.tenures: list[Tenure] = []
        self._open: dict[int, tuple[str, float]] = {}
        self._dead: set[str] = set()

    @property
    def owners(self) -> dict[int, str]:
        """The present owner of each partition; those of dead members have none."""
        return {partition: name for partition, (name, _) in self._open.items()}

    def of(self, prefix: str) -> set[int]:
        """The partitions owned by members whose name begins with `prefix`."""
        return {partition for partition, name in self.owners.items() if name.startswith(prefix)}

    def state(self, at_s: float, owners: Mapping[int, str]) -> None:
        """Take the group's assignment from this moment on."""
        alive = {partition: name for partition, name in owners.items() if not self._is_dead(name)}
        self._end(at_s, [partition for partition, name in self.owners.items() if alive.get(partition) != name])
        for partition, name in alive.items():
            self._open.setdefault(partition, (name, at_s))

    def killed(self, at_s: float, prefix: str) -> None:
        """Take members named `prefix`... as dead; the group's view of them does not count until `back`."""
        self._end(at_s, self.of(prefix))
        self._dead.add(prefix)

    def back(self, prefix: str) -> None:
        """Take members named `prefix`... as running again."""
        self._dead.discard(prefix)

    def close(self, at_s: float) -> None:
        """End the last tenures."""
        self._end(at_s, list(self._open))

    def _is_dead(self, name: str) -> bool:
        return any(name.startswith(prefix) for prefix in self._dead)

    def _end(self, at_s: float, partitions: Iterable[int]) -> None:
        for partition in sorted(partitions):
            name, since_s = self._open.pop(partition)
            self.tenures.append(Tenure(name, partition, since_s, max(at_s, since_s)))
