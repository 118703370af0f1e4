"""Converts a Partita broker's notes to facts reported by the coordinator itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from partita.explain import Account, explain
from partita.explain.facts import (
    Assigned,
    CoordinatorLoaded,
    Fact,
    Forgotten,
    Member,
    PartitionsCounted,
    Refused,
    Replaced,
    Sure,
    ToldCause,
)
from partita.wording import What

_WORDS = {what.value: what for what in What}
_AT_ONCE_MS = 1_000
"""A session that ends so soon after the clock was advanced ended by that."""


def accounts_of_notes(notes: Iterable[Mapping[str, Any]]) -> tuple[Account, ...]:
    """Every rebalance in these notes, in words and values, oldest first."""
    return explain(facts_of_notes(notes))


def facts_of_notes(notes: Iterable[Mapping[str, Any]]) -> list[Fact]:
    """The facts in these notes, which are plain values as `Broker.notes()` and `GET /notes` give them."""
    reader = NoteReader()
    return [fact for note in notes for fact in reader.read(note)]


class NoteReader:
    """Reads notes in their order; remembers when a rebalance began and what caused it until it is over.

    It holds an entry for each group that rebalances at the moment, and for the members of each KIP-848 group.
    """

    def __init__(self) -> None:
        self._began: dict[str, int] = {}
        self._causes: dict[str, list[ToldCause]] = {}
        self._members: dict[str, tuple[Member, ...]] = {}
        self._epochs: dict[str, int] = {}
        self._request: Mapping[str, Any] | None = None
        self._expired: dict[str, dict[str, str]] = {}

    def read(self, note: Mapping[str, Any]) -> Iterator[Fact]:
        """Add the facts of one note; most have none."""
        self._mark_expired(note)
        match note["note"]:
            case "RebalanceStarted":
                self._began.setdefault(note["group_id"], note["wall_ms"])
            case "Rebalanced":
                yield from self._rebalanced(note)
            case "MemberFenced":
                yield Replaced(
                    note["group_id"], note["wall_ms"], Sure.TOLD, note["group_instance_id"], note["old_member_id"],
                    note["new_member_id"], _place(note),
                )  # fmt: skip
            case "MemberRefused":
                yield Refused(
                    note["group_id"], note["wall_ms"], note["error"], note["member_id"], note["group_instance_id"],
                    note["client_id"], note["detail"],
                )  # fmt: skip
            case "GroupsLoaded":
                shard = (note.get("partition", -1), note.get("partitions", 0))
                yield CoordinatorLoaded("", note["wall_ms"], Sure.TOLD, _place(note), shard)
            case "TopicChanged":
                yield PartitionsCounted(note["wall_ms"], note["topic"], note["partitions"])
            case "GroupConverted" if note["protocol"] == "classic":
                self._forget(note["group_id"])
            case "GroupEpochBumped":
                self._bumped(note)
            case "TargetComputed":
                yield from self._target(note)
            case "MemberGone":
                yield from self._gone(note)
            case "GroupDeleted":
                self._forget(note["group_id"])
                yield Forgotten(note["group_id"], note["wall_ms"], Sure.TOLD)

    def _rebalanced(self, note: Mapping[str, Any]) -> Iterator[Fact]:
        group, at_ms = note["group_id"], note["wall_ms"]
        joined_ms = at_ms - note["sync_phase_ms"]
        began_ms = min(self._began.pop(group, at_ms), joined_ms - note["join_phase_ms"])
        members = _members(note, began_ms)
        if not members and note["members"]:
            return
        yield Assigned(
            group=group,
            at_ms=at_ms,
            sure=Sure.TOLD,
            generation=note["generation"],
            members=members,
            protocol=note["protocol_name"],
            leader_id=note["leader_id"],
            joined_ms=joined_ms,
            began_ms=began_ms,
            causes=self._causes_of(group, note["causes"]),
            place=_place(note),
        )

    def _mark_expired(self, note: Mapping[str, Any]) -> None:
        """Remember the call of the control interface that ended a session, for the causes that name the member."""
        if note["note"] == "Control":
            self._request = note
        cause, asked = note.get("cause"), self._request
        if asked is None or cause is None or cause["what"] != What.EXPIRED.value:
            return
        names = (None, cause["member_id"], cause["group_instance_id"], cause["client_id"])
        call = ""
        if asked["what"] == "session expired" and asked["group_id"] == note["group_id"] and asked["member"] in names:
            call = "expire_session"
        elif asked["what"] == "clock advanced" and note["wall_ms"] - asked["wall_ms"] - asked["ms"] <= _AT_ONCE_MS:
            call = f"advance_clock({asked['ms']})"
        if call:
            self._expired.setdefault(note["group_id"], {})[cause["member_id"]] = f"control.{call}"

    def _causes_of(self, group: str, causes: Iterable[Mapping[str, Any]]) -> tuple[ToldCause, ...]:
        told = (_cause(cause) for cause in causes)
        expired = self._expired.pop(group, {})
        return tuple(
            replace(each, detail=expired.get(each.member_id, "")) if each.what is What.EXPIRED else each
            for each in told
        )

    # KIP-848: the epoch is bumped with a cause, then a target is computed; nobody waits

    def _bumped(self, note: Mapping[str, Any]) -> None:
        group = note["group_id"]
        self._began.setdefault(group, note["wall_ms"])
        self._causes.setdefault(group, []).extend(self._causes_of(group, [note["cause"]]))
        self._epochs[group] = note["epoch"]

    def _target(self, note: Mapping[str, Any]) -> Iterator[Fact]:
        members = _members(note, 0)
        if members or not note["members"]:
            yield self._assigned(note, note["epoch"], members, note["assignor"])

    def _gone(self, note: Mapping[str, Any]) -> Iterator[Fact]:
        """The last member of a KIP-848 group left, so no target follows that would show it."""
        group = note["group_id"]
        if group in self._members:
            left = tuple(m for m in self._members[group] if m.member_id != note["cause"]["member_id"])
            if not left and self._members[group]:
                yield self._assigned(note, self._epochs.get(group, 0), (), None)
            self._members[group] = left

    def _assigned(
        self, note: Mapping[str, Any], epoch: int, members: tuple[Member, ...], assignor: str | None
    ) -> Assigned:
        group = note["group_id"]
        self._members[group] = members
        return Assigned(
            group=group,
            at_ms=note["wall_ms"],
            sure=Sure.TOLD,
            generation=epoch,
            members=members,
            protocol=assignor,
            began_ms=self._began.pop(group, note["wall_ms"]),
            causes=tuple(self._causes.pop(group, ())),
            is_incremental=True,
            place=_place(note),
        )

    def _forget(self, group: str) -> None:
        for known in (self._began, self._causes, self._members, self._epochs, self._expired):
            known.pop(group, None)


def _place(note: Mapping[str, Any]) -> str:
    return f"note {note['seq']}" if "seq" in note else ""


def _cause(cause: Mapping[str, Any]) -> ToldCause:
    """A cause of a newer broker that is not known here keeps its words as the detail."""
    what = _WORDS.get(cause["what"])
    detail = cause["detail"] if what is not None else cause["what"]
    return ToldCause(
        what or What.UNEXPLAINED, cause["member_id"], cause["group_instance_id"], cause["client_id"], detail
    )


def _members(note: Mapping[str, Any], began_ms: int) -> tuple[Member, ...]:
    """The members that the note describes; a join before the rebalance began is that of an earlier one."""
    return tuple(
        Member(
            member_id=held["member_id"],
            client_id=held["client_id"],
            instance_id=held["group_instance_id"],
            host=held["client_host"],
            session_timeout_ms=held["session_timeout_ms"],
            rebalance_timeout_ms=held["rebalance_timeout_ms"],
            topics=None if held["topics"] is None else tuple(held["topics"]),
            partitions=tuple((topic, n) for topic, numbers in held["partitions"].items() for n in numbers),
            joined_ms=held["joined_ms"] if (held["joined_ms"] or 0) >= began_ms else None,
            synced_ms=held["synced_ms"],
        )
        for held in note.get("held") or ()
    )
