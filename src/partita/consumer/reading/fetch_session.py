"""One fetch session with one broker: which partitions it holds, and its epoch (KIP-227; consumer.md 9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.offsets.topic_partition import TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import ZERO_UUID

EPOCH_MAX = 2**31 - 1
INITIAL_EPOCH, FINAL_EPOCH = 0, -1


@dataclass(frozen=True, slots=True)
class FetchSlot:
    """The fields of a fetch for one partition."""

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The content of a session's next request."""

    session_id: int
    epoch: int
    slots: dict[TopicPartition, FetchSlot]
    forgotten: list[tuple[TopicPartition, bytes]]
    is_full: bool
    uses_topic_ids: bool


class FetchSession:
    """`build` before a request; then exactly one of `accept` and `lost`."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = INITIAL_EPOCH
        self.slots: dict[TopicPartition, FetchSlot] = {}
        self._names: dict[bytes, str] = {}
        self._uses_topic_ids = True
        self._wanted: Mapping[TopicPartition, FetchSlot] | None = None
        """The mapping that `slots` are known to equal, without comparing them one by one."""

    def build(self, wanted: Mapping[TopicPartition, FetchSlot]) -> SessionRequest:
        """A full request on a new session, else the changes; changed partitions go to the end of the order.

        `wanted` must not change afterwards. While partitions are at rest, it is the same object each time.
        """
        is_same, self._wanted = wanted is self._wanted or wanted == self.slots, wanted
        if is_same and self.epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return SessionRequest(self.session_id, self.epoch, {}, [], False, self._uses_topic_ids)
        with_ids = self._uses_topic_ids = all(slot.topic_id != ZERO_UUID for slot in wanted.values())
        self._names = {slot.topic_id: tp.topic for tp, slot in wanted.items()}
        if self.epoch == INITIAL_EPOCH or self.epoch == FINAL_EPOCH:
            self.slots = dict(wanted)
            return SessionRequest(self.session_id, self.epoch, dict(wanted), [], True, with_ids)
        forgotten = [(tp, slot.topic_id) for tp, slot in self.slots.items() if tp not in wanted]
        changed: dict[TopicPartition, FetchSlot] = {}
        for tp, slot in wanted.items():
            before = self.slots.get(tp)
            if before == slot:
                continue
            if before is not None and before.topic_id != slot.topic_id and before.topic_id != ZERO_UUID:
                forgotten.append((tp, before.topic_id))
            changed[tp] = slot
        for tp, _ in forgotten:
            with_ids = with_ids and self.slots[tp].topic_id != ZERO_UUID
            del self.slots[tp]
        for tp, slot in changed.items():
            self.slots.pop(tp, None)
            self.slots[tp] = slot
        return SessionRequest(self.session_id, self.epoch, changed, forgotten, False, with_ids)

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic of an id that the last request named."""
        return self._names.get(topic_id)

    def accept(self, code: ErrorCode, session_id: int, answered: set[TopicPartition], *, throttled: bool) -> bool:
        """Take in an answer's head. False if its data must not be used."""
        if code is not ErrorCode.NONE:
            if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = 0
            self.epoch = INITIAL_EPOCH
            return False
        if self.epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._accept_full(session_id, answered, throttled=throttled)
        if not answered <= self.slots.keys():
            self.epoch = INITIAL_EPOCH
            return False
        if session_id == 0:
            self.session_id, self.epoch = 0, INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1
        return True

    def _accept_full(self, session_id: int, answered: set[TopicPartition], *, throttled: bool) -> bool:
        if answered != self.slots.keys():
            self.session_id, self.epoch = 0, INITIAL_EPOCH
            return throttled and not answered
        self.session_id = session_id
        self.epoch = 1 if session_id else INITIAL_EPOCH
        return True

    def lost(self) -> None:
        """The request failed: close and reopen the session with the next one."""
        self.epoch = INITIAL_EPOCH

    def closing(self) -> SessionRequest | None:
        """The request that ends the session at the broker, if there is one."""
        if self.session_id == 0:
            return None
        return SessionRequest(self.session_id, FINAL_EPOCH, {}, [], True, True)
