"""S29: what the log says is what the coordinator has, after every crash and now and then between two steps."""

from __future__ import annotations

from partita.group.coordinator import GroupCoordinator
from partita.group.records.hard_state import HardState
from partita.sim.rules.rule import must

_COMPARE_EVERY = 16


class LogRules:
    """Replays what is appended beside the coordinator, whichever protocols its groups speak."""

    def __init__(self) -> None:
        self._mirror = HardState()
        self._appends = 0

    def appended(self, batch: bytes) -> None:
        """The log has one more batch."""
        self._mirror.replay_batch(batch)
        self._appends += 1

    def rests(self, coordinator: GroupCoordinator) -> None:
        """All that was decided is in the log."""
        if self._appends >= _COMPARE_EVERY:
            self._appends = 0
            self._compare(coordinator, "a replay of the log gives another state")

    def crashing(self, coordinator: GroupCoordinator) -> None:
        """The process of the broker dies now."""
        self._compare(coordinator, "a replay of everything appended gives another state than the one that dies")

    def loaded(self, coordinator: GroupCoordinator, batches: list[bytes]) -> None:
        """A coordinator has replayed the log, perhaps after the cleaner; `batches` are all that were kept."""
        self._mirror = HardState()
        for batch in batches:
            self._mirror.replay_batch(batch)
        self._compare(coordinator, "a compacted log gives another state")

    def _compare(self, coordinator: GroupCoordinator, otherwise: str) -> None:
        must(self._mirror == coordinator.hard_state, "S29", otherwise)
