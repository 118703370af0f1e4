"""The two small files beside the segments: the partition's state, and snapshots of its producers.

Both carry a checksum; a file that does not match it counts as missing, since everything in it but the log start offset
can be rebuilt from the batches. (Kafka: leader-epoch-checkpoint, log-start-offset-checkpoint, .snapshot, .txnindex.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct
from zlib import crc32

from partita.log.producer_state import Aborted, BatchFacts, Producer, ProducerStates
from partita.protocol.primitives import Buffer

STATE_NAME = "partition.state"
PRODUCERS_SUFFIX = ".producers"
_STATE_TITLE = "partita partition state 1"
_MAGIC = b"PARTPRD2"
_HEADER = Struct("<8sIqII")
_PRODUCER = Struct("<qhqqiB")
_BATCH = Struct("<iiqqq")
_ABORTED = Struct("<qqqq")


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Log start offset, first offset not yet compacted, and (leader epoch, start offset) in ascending order."""

    log_start_offset: int = 0
    cleaned_to: int = 0
    epochs: tuple[tuple[int, int], ...] = ()

    def with_epoch(self, leader_epoch: int, start_offset: int) -> PartitionState:
        """Return the history with a new leader epoch; epochs without records are overwritten."""
        if self.epochs and leader_epoch <= self.epochs[-1][0]:
            return self
        kept = tuple(entry for entry in self.epochs if entry[1] < start_offset)
        return replace(self, epochs=(*kept, (leader_epoch, start_offset)))

    def truncated(self, end_offset: int) -> PartitionState:
        """Return the history without epochs that start at or after `end_offset`."""
        return replace(self, epochs=tuple(entry for entry in self.epochs if entry[1] < end_offset))

    def started_at(self, log_start_offset: int) -> PartitionState:
        """Return the history without epochs that ended before the log start."""
        ended = [entry for entry in self.epochs if entry[1] <= log_start_offset]
        kept = tuple(entry for entry in self.epochs if entry[1] > log_start_offset)
        if ended:
            kept = ((ended[-1][0], log_start_offset), *kept)
        return replace(self, log_start_offset=log_start_offset, epochs=kept)

    def end_offset_of(self, leader_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (largest known epoch at or below, start of the next one); (-1, -1) when unknown."""
        if leader_epoch == -1 or not self.epochs or leader_epoch > self.epochs[-1][0]:
            return -1, -1
        if leader_epoch == self.epochs[-1][0]:
            return leader_epoch, log_end_offset
        found, end_offset = leader_epoch, log_end_offset
        for epoch, start_offset in reversed(self.epochs):
            if epoch <= leader_epoch:
                found = epoch
                break
            end_offset = start_offset
        return found, end_offset

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch under which `offset` was written; -1 when unknown."""
        for epoch, start_offset in reversed(self.epochs):
            if start_offset <= offset:
                return epoch
        return -1


def encode_state(state: PartitionState) -> bytes:
    """Encode the state as text lines, the last one its checksum."""
    lines = [_STATE_TITLE, f"log_start_offset {state.log_start_offset}", f"cleaned_to {state.cleaned_to}"]
    lines += [f"epoch {epoch} {start_offset}" for epoch, start_offset in state.epochs]
    text = "\n".join(lines) + "\n"
    return f"{text}crc {crc32(text.encode()):08x}\n".encode()


def decode_state(content: Buffer) -> PartitionState | None:
    """Decode a state; None if it is not complete and valid."""
    text, mark, crc = bytes(content).decode("latin-1").rpartition("crc ")
    if not mark or f"{crc32(text.encode('latin-1')):08x}\n" != crc or not text.startswith(_STATE_TITLE):
        return None
    words = [line.split() for line in text.splitlines()[1:]]
    numbers = {line[0]: int(line[1]) for line in words if line[0] != "epoch"}
    epochs = tuple((int(line[1]), int(line[2])) for line in words if line[0] == "epoch")
    return PartitionState(numbers["log_start_offset"], numbers["cleaned_to"], epochs)


def encode_producers(states: ProducerStates, offset: int) -> bytes:
    """Encode a snapshot of all producers as of `offset`."""
    body = bytearray()
    for producer_id, producer in states.producers.items():
        start = -1 if producer.transaction_start is None else producer.transaction_start
        body += _PRODUCER.pack(
            producer_id,
            producer.epoch,
            start,
            producer.last_timestamp,
            producer.coordinator_epoch,
            len(producer.batches),
        )
        for batch in producer.batches:
            body += _BATCH.pack(
                batch.first_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.timestamp
            )
    for entry in states.aborted:
        body += _ABORTED.pack(entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
    head = _HEADER.pack(_MAGIC, 0, offset, len(states.producers), len(states.aborted))[12:]
    return b"".join((_MAGIC, crc32(head + body).to_bytes(4, "little"), head, body))


def decode_producers(content: Buffer, offset: int) -> ProducerStates | None:
    """Decode a snapshot; None if it is not complete and valid or not taken at `offset`."""
    if len(content) < _HEADER.size or bytes(content[:8]) != _MAGIC:
        return None
    _, crc, taken_at, producer_count, aborted_count = _HEADER.unpack_from(content)
    if crc32(content[12:]) != crc or taken_at != offset:
        return None
    at, producers = _HEADER.size, []
    for _ in range(producer_count):
        producer_id, epoch, start, last_timestamp, coordinator_epoch, count = _PRODUCER.unpack_from(content, at)
        at += _PRODUCER.size
        batches = [BatchFacts(*_BATCH.unpack_from(content, at + i * _BATCH.size)) for i in range(count)]
        at += count * _BATCH.size
        transaction_start = None if start == -1 else start
        producers.append((producer_id, Producer(epoch, batches, transaction_start, last_timestamp, coordinator_epoch)))
    aborted = [Aborted(*_ABORTED.unpack_from(content, at + i * _ABORTED.size)) for i in range(aborted_count)]
    states = ProducerStates()
    states.restore(producers, aborted)
    return states
