"""The acknowledgements of one request: each partition is checked, done and answered for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from partita.broker.share.verdicts import Verdicts
from partita.protocol.error_codes import ErrorCode
from partita.security.rights.operations import Operation, ResourceType
from partita.share.sessions import Key

if TYPE_CHECKING:
    from collections.abc import Generator

    from partita.broker.permits.rights import Asking
    from partita.broker.share.node import ShareNode
    from partita.broker.topics.catalogue import Partition, TopicCatalogue

Outcome = ErrorCode | asyncio.Future[ErrorCode]


class Partitions:
    """Finds partitions for one request: those that exist, that the client may read, and that this node leads."""

    def __init__(self, catalogue: TopicCatalogue, node_id: int, asking: Asking | None) -> None:
        self._catalogue = catalogue
        self._node_id = node_id
        self._asking = asking
        self._may_read: dict[str, bool] = {}

    def find(self, key: Key) -> Partition | ErrorCode:
        """The partition, or why it is not served here."""
        topic = self._catalogue.by_id.get(key[0])
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not self._is_readable(topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partition = topic.partition(key[1])
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return partition if partition.leader == self._node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def known(self, key: Key) -> Partition | None:
        """Return the partition, whichever node leads it."""
        topic = self._catalogue.by_id.get(key[0])
        return None if topic is None else topic.partition(key[1])

    def _is_readable(self, name: str) -> bool:
        if self._asking is None:
            return True
        if name not in self._may_read:
            self._may_read[name] = self._asking.may(Operation.READ, ResourceType.TOPIC, name)
        return self._may_read[name]


class Acknowledging:
    """The acknowledgements of one member in one request."""

    def __init__(self, node: ShareNode, partitions: Partitions, group_id: str, member_id: str) -> None:
        self._node = node
        self._partitions = partitions
        self._group_id = group_id
        self._member_id = member_id
        self.outcomes: dict[Key, Outcome] = {}
        """The outcome of each partition that was acknowledged; some come later."""

    def run(self, verdicts: Mapping[Key, Verdicts]) -> Generator[None, None, None]:
        """Begin all acknowledgements; yields after each partition."""
        for key, of_partition in verdicts.items():
            yield None
            self.outcomes[key] = self._begin(key, of_partition)

    def settled(self) -> Generator[asyncio.Future[ErrorCode], ErrorCode, dict[Key, ErrorCode]]:
        """Wait for all outcomes; return them."""
        done: dict[Key, ErrorCode] = {}
        for key, outcome in self.outcomes.items():
            done[key] = (yield asyncio.shield(outcome)) if isinstance(outcome, asyncio.Future) else outcome
        return done

    def _begin(self, key: Key, verdicts: Verdicts) -> Outcome:
        if verdicts is None:
            return ErrorCode.INVALID_REQUEST
        found = self._partitions.find(key)
        if isinstance(found, ErrorCode):
            return found
        led = self._node.in_memory(self._group_id, key)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if led is None else led.acknowledge(self._member_id, verdicts)
