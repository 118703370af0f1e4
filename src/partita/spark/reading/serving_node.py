"""The broker that a task fetches its partition from: the leader, or the replica in the task's rack that the leader
names.

With a rack, the leader answers the first fetch with the replica that is nearest (replica.selector.class of the broker
decides). That replica serves until it fails or is found behind, or until metadata.max.age.ms has passed. (KIP-392)
"""

from __future__ import annotations

from partita.net.cluster import Cluster

NONE = -1


class ServingNode:
    """The broker that serves one partition now. Belongs to the cluster's event loop; times are seconds of its clock."""

    def __init__(self, cluster: Cluster, topic: str, partition: int, rack: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partition = partition
        self._rack = rack
        self._replica = NONE
        self._until = 0.0
        self._is_new = False
        self._is_shunned = False

    @property
    def is_replica(self) -> bool:
        """Whether a nearby replica serves, and not the leader."""
        return self._replica != NONE

    @property
    def rack(self) -> str:
        """The rack to send; empty when the next answer has to come from the leader itself."""
        return "" if self._is_shunned else self._rack

    async def find(self, now: float) -> int:
        """The id of the broker to ask. Raises KafkaError while no leader is known."""
        if self.is_replica and not self._cluster.view.has_online_replica(self._topic, self._partition, self._replica):
            self.shun()
        if self.is_replica and (self._is_new or now < self._until):
            self._is_new = False
            return self._replica
        self._replica = NONE
        return (await self._cluster.leader_for(self._topic, self._partition)).id

    def on_answer(self, preferred: int, now: float) -> bool:
        """Record an answer without error. Return whether it names another broker to ask, in place of records."""
        was_shunned, self._is_shunned = self._is_shunned, False
        if preferred in (NONE, self._replica) or was_shunned:
            return False
        self._is_new = True
        self._replica, self._until = preferred, now + self._cluster.config.metadata_max_age_ms / 1000
        return True

    def shun(self) -> None:
        """Go back to the leader for the next fetch: the replica failed or is behind."""
        self._is_shunned = self.is_replica
        self._replica = NONE
