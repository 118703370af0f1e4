"""S20 and S21: a committed offset is a register, judged by requests and answers alone.

Commits are numbered as they reach the coordinator. An acknowledged one is never forgotten; one that was refused for
good never shows; one whose fate is unknown may show. Whoever reads gets the value of a commit that is no older than any
acknowledged before the question came, or read before.
"""

from __future__ import annotations

from partita.group.requests import FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponseGroup
from partita.protocol.primitives import Structure
from partita.sim.broker.asked import Asked
from partita.sim.rules.rule import must

TopicPartition = tuple[str, int]
_UNDECIDED = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)


class OffsetRules:
    """The committed offsets of one group."""

    def __init__(self) -> None:
        self._commits: dict[TopicPartition, dict[int, int]] = {}
        """Of each partition, by number: offsets that may be, or become, the committed one."""
        self._floor: dict[TopicPartition, int] = {}
        """The newest commit known to have happened; older ones are over."""
        self._floors_seen: dict[int, dict[TopicPartition, int]] = {}

    def before(self, asked: Asked) -> None:
        """The broker is about to decide a request."""
        wire = asked.wire
        if isinstance(wire, OffsetCommitRequest):
            for topic in wire.topics:
                for p in topic.partitions:
                    of = self._commits.setdefault((topic.name, p.partition_index), {})
                    of[asked.number] = p.committed_offset
        elif isinstance(wire, OffsetFetchRequest):
            self._floors_seen[asked.number] = dict(self._floor)

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        if isinstance(response, OffsetCommitResponse):
            for topic in response.topics:
                for p in topic.partitions:
                    self._commit_answered((topic.name, p.partition_index), asked.number, ErrorCode(p.error_code))
        elif isinstance(response, OffsetFetchResponseGroup) and response.error_code == ErrorCode.NONE:
            assert isinstance(asked.request.message, FetchOffsets)
            floors = self._floors_seen.pop(asked.number, {})
            for found in response.topics:
                for part in found.partitions:
                    if part.error_code == ErrorCode.NONE:
                        self._read((found.name, part.partition_index), asked.number, part.committed_offset, floors)

    def crashed(self) -> None:
        """Whoever was reading gets no answer."""
        self._floors_seen.clear()

    def _commit_answered(self, tp: TopicPartition, number: int, code: ErrorCode) -> None:
        commits = self._commits.get(tp, {})
        if code is ErrorCode.NONE:
            self._raise_floor(tp, number)
        elif code not in _UNDECIDED:
            commits.pop(number, None)

    def _read(self, tp: TopicPartition, number: int, offset: int, floors: dict[TopicPartition, int]) -> None:
        floor = floors.get(tp, 0)
        if offset == -1:
            must(not floor, "S20", f"{tp} has a committed offset, and none was found")
            return
        commits = self._commits.get(tp, {})
        possible = [n for n, value in commits.items() if floor <= n < number and value == offset]
        must(possible, "S20", f"{tp}: {offset} was read; commits that may count: {commits}, from number {floor}")
        self._raise_floor(tp, possible[0])

    def _raise_floor(self, tp: TopicPartition, number: int) -> None:
        floor = self._floor[tp] = max(number, self._floor.get(tp, 0))
        commits = self._commits.get(tp, {})
        in_flight = min((f.get(tp, 0) for f in self._floors_seen.values()), default=floor)
        for old in [n for n in commits if n < min(floor, in_flight)]:
            del commits[old]
