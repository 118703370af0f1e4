"""A share consumer's requests over a socket."""

from __future__ import annotations

from typing import Any

from partita.protocol.messages import share_acknowledge as ack
from partita.protocol.messages import share_fetch as fetch
from support.broker.raw import Raw


class WireMember:
    """One member that fetches partition 0 of a topic, and counts its session's epoch."""

    def __init__(self, raw: Raw, topic_id: bytes, member_id: str = "m", group_id: str = "g") -> None:
        self.raw = raw
        self.topic_id = topic_id
        self.member_id = member_id
        self.group_id = group_id
        self.epoch = 0

    def fetch(self, **fields: Any) -> Any:
        """A ShareFetch and its answer."""
        defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_records": 500, "batch_size": 500}
        asked = [fetch.ShareFetchPartition(partition_index=0)]
        request = fetch.ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch,
            topics=[] if self.epoch else [fetch.ShareFetchTopic(topic_id=self.topic_id, partitions=asked)],
            **{**defaults, **fields},
        )
        self.epoch += 1
        return self.raw.ask(request, 2)

    def ack(self, *acks: tuple[int, ...]) -> int:
        """Acknowledge: first and last offset, then the types. Return the code of the partition."""
        answer = self.acknowledgement(*acks)
        assert answer.error_code == 0, answer
        return int(answer.responses[0].partitions[0].error_code)

    def acknowledgement(self, *acks: tuple[int, ...]) -> Any:
        """The whole answer to an acknowledgement."""
        batches = [
            ack.AcknowledgementBatch(first_offset=each[0], last_offset=each[1], acknowledge_types=[*each[2:]])
            for each in acks
        ]
        asked = ack.ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ack.ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch,
            topics=[ack.ShareAcknowledgeTopic(topic_id=self.topic_id, partitions=[asked])],
        )
        self.epoch += 1
        return self.raw.ask(request, 2)
