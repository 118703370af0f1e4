"""The stored state of one transactional id. (Kafka: TransactionMetadata, TransactionState)"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
NEVER_MS = 2**31 - 1
"""A transaction timeout that never passes (KIP-939)."""
EPOCH_MAX = 32767
USED_UP = EPOCH_MAX - 1
"""First epoch at which a client gets a new producer id, so that the coordinator always has one epoch left to fence."""
NOTHING_ADDED: frozenset[TopicPartition] = frozenset()


class State(IntEnum):
    """States of a transactional id; the values are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """The name in DescribeTransactions and ListTransactions, such as CompleteCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_decided(self) -> bool:
        """Whether the outcome is decided and markers are being written."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return self in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


STATES_BY_TEXT = {state.text: state for state in State}


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id, as in its newest record. Times are wall times in milliseconds, -1 for never."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    updated_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Producer id to use once the transaction is complete; set only while markers are written in the last epoch."""
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    """The previous epoch, which identifies a repeated InitProducerId."""
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = NOTHING_ADDED
    start_ms: int = NO_TIME
    client_version: int = 0
    """Transaction version of the last request that added partitions or ended the transaction."""

    @property
    def is_used_up(self) -> bool:
        """Whether the producer id has no epoch left for a client."""
        return self.epoch >= USED_UP

    def is_timed_out(self, wall_ms: int) -> bool:
        """Whether an open transaction has exceeded its timeout. (§11.1)"""
        return self.state is State.ONGOING and self.timeout_ms != NEVER_MS and self.start_ms + self.timeout_ms < wall_ms
