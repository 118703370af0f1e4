"""Rules of what applications see: S3 one live owner, S32 at least once, S33 and S34 no gaps, S35 and S36 callbacks.

A client is one life of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.sim.rules.rule import must

TopicPartition = tuple[str, int]


class Progress:
    """Offsets of one partition processed by any client: all below `upto`, and those in `beyond`."""

    __slots__ = ("beyond", "upto")

    def __init__(self) -> None:
        self.upto = 0
        self.beyond: dict[int, None] = {}

    def add(self, offset: int) -> None:
        """Note a processed offset."""
        if offset >= self.upto:
            self.beyond[offset] = None
        while self.upto in self.beyond:
            del self.beyond[self.upto]
            self.upto += 1


class Seen:
    """Answers that one client received."""

    __slots__ = ("entry", "member_id", "owned", "owned_in", "position", "read")

    def __init__(self) -> None:
        self.owned: dict[TopicPartition, None] = {}
        self.owned_in: dict[tuple[str, int], dict[TopicPartition, None]] = {}
        self.position: dict[TopicPartition, int] = {}
        self.read: dict[TopicPartition, int] = {}
        """Committed offsets as read since the partition was assigned; -1: none."""
        self.member_id = ""
        self.entry = 0
        """The how-manieth membership under its member id this is."""


class ClientRules:
    """`is_member(member_id)` says what the coordinator believes; `entries(member_id)`, how often it was let in.

    A member that was removed and readmitted under its id keeps its partitions until it learns so, and is a zombie.
    """

    def __init__(self, is_member: Callable[[str], bool], entries: Callable[[str], int] = lambda member_id: 0) -> None:
        self._is_member = is_member
        self._entries = entries
        self._clients: dict[str, Seen] = {}
        self.progress: dict[TopicPartition, Progress] = {}
        self.zombie_overlaps = 0

    def _of(self, client: str) -> Seen:
        return self._clients.setdefault(client, Seen())

    def owned_by(self, client: str) -> list[TopicPartition]:
        """The partitions the client has, by its callbacks."""
        return list(self._of(client).owned)

    # Callbacks

    def assigned(self, client: str, added: Iterable[TopicPartition], member_id: str, generation: int) -> None:
        """on_assigned was called."""
        seen = self._of(client)
        seen.member_id, seen.entry = member_id, self._entries(member_id)
        for tp in added:
            must(tp not in seen.owned, "S36", f"{client} is assigned {tp}, which it has")
            for name, other in self._clients.items():
                if tp in other.owned and name != client:
                    both = self._is_member(other.member_id) and self._is_member(member_id)
                    stayed = self._entries(other.member_id) == other.entry
                    are_live = both and stayed and other.member_id != member_id
                    must(not are_live, "S3", f"{client} is assigned {tp}, which {name} has as a live member")
                    self.zombie_overlaps += 1
            seen.owned[tp] = None
            seen.position.pop(tp, None)
            seen.read.pop(tp, None)
        seen.owned_in.setdefault((member_id, generation), {}).update(seen.owned)

    def given_up(
        self, client: str, partitions: Iterable[TopicPartition], revoked_in: tuple[str, int] | None = None
    ) -> None:
        """A revoked-callback returned, as this member in this generation, or a lost-callback, without one.

        Partitions that a cooperative member revokes when a generation begins get no other owner before the next one,
        so a commit for them in that generation is valid.
        """
        seen = self._of(client)
        for tp in partitions:
            must(tp in seen.owned, "S36", f"{client} gives up {tp}, which it does not have")
            del seen.owned[tp]
            if revoked_in is not None:
                seen.owned_in.setdefault(revoked_in, {})[tp] = None

    def killed(self, client: str) -> None:
        """The process is gone, and owns nothing."""
        self._clients.pop(client, None)

    # Records

    def fetched_offset(self, client: str, tp: TopicPartition, offset: int) -> None:
        """An OffsetFetch answer arrived."""
        self._of(client).read[tp] = offset

    def delivered(self, client: str, tp: TopicPartition, offsets: Iterable[int]) -> None:
        """The application was handed records of these offsets."""
        seen = self._of(client)
        must(tp in seen.owned, "S35", f"{client} is handed records of {tp}, which it does not have")
        for offset in offsets:
            expected = seen.position.get(tp)
            if expected is None:
                must(tp in seen.read, "S34", f"{client} is handed {tp} at {offset} and asked for no committed offset")
                expected = max(0, seen.read[tp])
                must(offset == expected, "S34", f"{client} starts {tp} at {offset}, committed is {seen.read[tp]}")
            must(offset == expected, "S33", f"{client} is handed {offset} of {tp} after {expected - 1}")
            seen.position[tp] = offset + 1

    def processed(self, tp: TopicPartition, offsets: Iterable[int]) -> None:
        """The application has worked on these offsets."""
        progress = self.progress.setdefault(tp, Progress())
        for offset in offsets:
            progress.add(offset)

    def commit_sent(self, client: str, wire: OffsetCommitRequest) -> None:
        """The client sends a commit."""
        seen = self._of(client)
        owned = seen.owned_in.get((wire.member_id, wire.generation_id_or_member_epoch), {})
        for topic in wire.topics:
            for p in topic.partitions:
                tp = (topic.name, p.partition_index)
                done = self.progress[tp].upto if tp in self.progress else 0
                offset = p.committed_offset
                must(offset <= done, "S32", f"{client} commits {offset} of {tp}, processed is all below {done}")
                who = f"generation {wire.generation_id_or_member_epoch}"
                must(
                    tp in owned or tp in seen.owned,
                    "S35",
                    f"{client} commits {tp} in {who}, in which it did not have it",
                )
