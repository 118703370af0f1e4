"""Guards: proofs that the coordinator has been asked about a transaction before it begins in a partition.

The transaction may end between the coordinator's answer and the append. Therefore the question creates a guard, the
append must present the guard still in place, and a marker removes it. Guards do not survive a restart: the next
batch asks again. Upstream: VerificationGuard, VerificationStateEntry. (KIP-890)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Guard:
    """One question about one producer. `lowest_sequence` is the lowest sequence verified at `epoch`."""

    epoch: int
    lowest_sequence: int
    is_version_2: bool
    asked_ms: int


class Guards:
    """The guards of one partition: at most one for each producer id."""

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def begin(self, producer_id: int, epoch: int, sequence: int, *, is_version_2: bool, wall_ms: int) -> Guard:
        """Return the guard in place or a new one; a later attempt with a lower sequence lowers its sequence."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = Guard(epoch, sequence, is_version_2, wall_ms)
        elif epoch > guard.epoch or (epoch == guard.epoch and sequence < guard.lowest_sequence):
            guard.epoch, guard.lowest_sequence, guard.is_version_2 = epoch, sequence, is_version_2
        return guard

    def of(self, producer_id: int) -> Guard | None:
        """Return the guard in place, if any."""
        return self._guards.get(producer_id)

    def remove(self, producer_id: int) -> None:
        """Remove the guard: the transaction has begun or ended, which invalidates earlier answers."""
        self._guards.pop(producer_id, None)

    def expire(self, wall_ms: int, expiration_ms: int) -> None:
        """Remove guards older than `expiration_ms`."""
        old = [producer_id for producer_id, guard in self._guards.items() if wall_ms - guard.asked_ms >= expiration_ms]
        for producer_id in old:
            del self._guards[producer_id]
