"""The simulated storage of one `__consumer_offsets` partition: real batches, durable some time after they are appended.

A crash keeps what is durable and a prefix, drawn from the seed, of what is not. An append can be made to fail or to be
slow. `cleaned` is what a log cleaner may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita.group.contract import Record
from partita.records.batch import build_batch, iter_records
from partita.sim.world.world import World


class AppendFailed(Exception):
    """The storage refused a batch; nothing of it is in the log."""


class GroupLog:
    """`end` counts batches; `durable` of them survive everything."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.batches: list[bytes] = []
        self.durable = 0
        self.sync_ms = (0, 0)
        self.failures_left = 0
        self.leader_epoch = 0
        """How often the log's partition has had another leader."""
        self.on_durable: Callable[[], None] = lambda: None
        self._next_offset = 0
        self._life = 0

    @property
    def end(self) -> int:
        """How many batches there are."""
        return len(self.batches)

    def append(self, records: tuple[Record, ...], wall_ms: int) -> None:
        """Raises AppendFailed."""
        if self.failures_left:
            self.failures_left -= 1
            raise AppendFailed
        given = [(wall_ms, key, value, ()) for key, value in records]
        self.batches.append(build_batch(given, base_offset=self._next_offset, leader_epoch=self.leader_epoch))
        self._next_offset += len(records)
        low, high = self.sync_ms
        if high == 0 and self.durable == self.end - 1:
            self.durable = self.end
        else:
            self._world.after(self._world.dice.between(low, high), self._synced, self._life, self.end)

    def _synced(self, life: int, end: int) -> None:
        if life == self._life and self.durable < end:
            self.durable = end
            self.on_durable()

    def crash(self) -> int:
        """Lose some of what is not durable; returns how many batches are lost."""
        self._life += 1
        keep = self._world.dice.between(self.durable, self.end)
        lost = self.end - keep
        del self.batches[keep:]
        self.durable = keep
        return lost

    def cleaned(self, upto: int) -> list[bytes]:
        """The log with the batches before `upto` compacted: of each key only its last record there."""
        last: dict[bytes, int] = {}
        for at, batch in enumerate(self.batches[:upto]):
            for key, _ in _records(batch):
                last[key] = at
        kept: list[bytes] = []
        for at, batch in enumerate(self.batches[:upto]):
            newest = {key: value for key, value in _records(batch) if last[key] == at}
            if newest:
                kept.append(build_batch([(0, key, value, ()) for key, value in newest.items()]))
        return kept + self.batches[upto:]


def _records(batch: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    for record in iter_records(batch):
        key, value = record.key, record.value
        assert isinstance(key, bytes), "every record of the log has a key"
        assert value is None or isinstance(value, bytes), "values are bytes or tombstones"
        yield key, value
