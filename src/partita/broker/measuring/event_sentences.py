"""Sentences of the broker's log for each event: one short line, made of a note's values. Pure.

Events that come with each client's every step (ids handed out, requests of a traced group) have none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Note: TypeAlias = Mapping[str, Any]
Sentence: TypeAlias = Callable[[Note], str]

CAUSES_MAX = 5
"""How many causes of a rebalance a line names."""


def _cause(cause: Note) -> str:
    who = cause.get("group_instance_id") or cause.get("client_id") or ""
    member = cause.get("member_id") or ""
    named = f" ({who}, {member})" if who and member else f" ({who or member})" if who or member else ""
    detail = f": {cause['detail']}" if cause.get("detail") else ""
    return f"{cause['what']}{named}{detail}"


def _causes(note: Note) -> str:
    causes = note["causes"]
    more = f", and {len(causes) - CAUSES_MAX} more" if len(causes) > CAUSES_MAX else ""
    return "; ".join(map(_cause, causes[:CAUSES_MAX])) + more


def _rebalanced(note: Note) -> str:
    waited = note["join_phase_ms"] + note["sync_phase_ms"]
    return (
        f"group {note['group_id']} is at generation {note['generation']} with {note['members']} members "
        f"({note['protocol_name']}) after {waited} ms: {_causes(note)}"
    )


def _details(note: Note) -> str:
    left_out = ("note", "what", "wall_ms", "seq")
    return ", ".join(f"{name}={value}" for name, value in note.items() if name not in left_out)


INFO, WARNING = logging.INFO, logging.WARNING
SENTENCES: Mapping[str, tuple[int, Sentence]] = {
    "RebalanceStarted": (
        INFO, lambda n: f"group {n['group_id']} rebalances after generation {n['generation']}: {_cause(n['cause'])}"),
    "Rebalanced": (INFO, _rebalanced),
    "MemberGone": (INFO, lambda n: f"group {n['group_id']} has lost a member: {_cause(n['cause'])}"),
    "MemberFenced": (
        INFO,
        lambda n: f"group {n['group_id']}: instance {n['group_instance_id']} is now {n['new_member_id']}, "
        f"{n['old_member_id']} is fenced"),
    "GroupEpochBumped": (INFO, lambda n: f"group {n['group_id']} is at epoch {n['epoch']}: {_cause(n['cause'])}"),
    "TargetComputed": (
        INFO,
        lambda n: f"group {n['group_id']} has a target for epoch {n['epoch']} by {n['assignor']}: "
        f"{n['members']} members, {n['moved']} partitions move"),
    "AssignorRaised": (
        WARNING, lambda n: f"group {n['group_id']} keeps its target, as assignor {n['assignor']} failed: {n['error']}"),
    "GroupConverted": (
        INFO, lambda n: f"group {n['group_id']} speaks the {n['protocol']} protocol now, with {n['members']} members"),
    "OffsetsExpired": (
        INFO, lambda n: f"group {n['group_id']}: committed offsets of {n['partitions']} partitions have expired"),
    "OffsetClamped": (
        WARNING,
        lambda n: f"group {n['group_id']}: {n['topic']}-{n['partition']} had lost records below the committed offset "
        f"{n['committed_offset']}; {n['log_end_offset']} is committed now"),
    "GroupDeleted": (INFO, lambda n: f"group {n['group_id']} is gone: {n['why']}"),
    "GroupRefused": (
        WARNING, lambda n: f"group {n['group_id']} found no room: there are {n['groups_max']} (partita.groups.max)"),
    "TransactionalIdsExpired": (INFO, lambda n: f"{n['ids']} transactional ids have expired"),
    "TransactionRefused": (
        WARNING, lambda n: f"transactional id {n['transactional_id']} found no room: there are {n['ids_max']}"),
    "Disk": (WARNING, lambda n: f"disk: {n['what']}; {_details(n)}"),
    "Control": (INFO, lambda n: f"control: {n['what']}; {_details(n)}"),
    "TopicCreated": (INFO, lambda n: f"topic {n['topic']} is created with {n['partitions']} partitions"),
    "TopicGrown": (INFO, lambda n: f"topic {n['topic']} has {n['partitions']} partitions now"),
    "TopicDeleted": (INFO, lambda n: f"topic {n['topic']} is deleted"),
    "LeaderElected": (
        INFO,
        lambda n: f"{n['topic']}-{n['partition']} is led by "
        f"{'nobody' if n['leader'] < 0 else n['leader']} at leader epoch {n['leader_epoch']}"),
    "OptionChanged": (INFO, lambda n: f"option {n['name']} is changed"),
    "Started": (INFO, lambda n: f"the broker has started; {_details(n)}"),
    "Stopping": (INFO, lambda n: "the broker is stopping"),
    "Stopped": (INFO, lambda n: "the broker has stopped"),
}  # fmt: skip
"""By kind of note: the level and the text of its line."""
