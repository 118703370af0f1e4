"""Answers, groups, records and notes of the coordinator as one line of scenario text each."""

from __future__ import annotations

from typing import TypeVar

from partita.assignors.payloads import decode_subscription
from partita.group.notes import Cause, Note
from partita.group.records import log_records
from partita.group.requests import TransactionEnded
from partita.group.state.model import NO_DEADLINE, Group
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from partita.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from partita.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupResponse
from partita.protocol.messages.list_groups import ListGroupsResponse
from partita.protocol.messages.offset_commit import OffsetCommitResponse
from partita.protocol.messages.offset_delete import OffsetDeleteResponse
from partita.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from partita.protocol.messages.sync_group import SyncGroupResponse
from partita.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from partita.protocol.primitives import Buffer, Message, Structure
from support.group.shell import Entry

M = TypeVar("M", bound=Message)
_START_MS = 1_000_000_000_000
_TYPES = (
    *(JoinGroupResponse, SyncGroupResponse, HeartbeatResponse, LeaveGroupResponse, OffsetCommitResponse),
    *(TxnOffsetCommitResponse, OffsetDeleteResponse, ListGroupsResponse),
)


def error(code: int) -> str:
    return ErrorCode(code).name


def show_answer(answer: Structure, version: int) -> str:
    """The answer as a client of `version` reads it."""
    match answer:
        case JoinGroupResponse():
            return _join(_over_the_wire(answer, version))
        case SyncGroupResponse():
            return _sync(_over_the_wire(answer, version))
        case HeartbeatResponse():
            return f"Heartbeat {error(_over_the_wire(answer, min(version, 4)).error_code)}"
        case LeaveGroupResponse():
            return _leave(_over_the_wire(answer, min(version, 5)))
        case OffsetCommitResponse() | TxnOffsetCommitResponse():
            name = type(answer).__name__.removesuffix("Response")
            return f"{name} " + " ".join(
                f"{topic.name}-{p.partition_index}:{error(p.error_code)}"
                for topic in answer.topics
                for p in topic.partitions
            )
        case OffsetFetchResponseGroup():
            return _fetch(answer)
        case OffsetDeleteResponse():
            return f"OffsetDelete {error(answer.error_code)}" + "".join(
                f" {topic.name}-{p.partition_index}:{error(p.error_code)}"
                for topic in answer.topics
                for p in topic.partitions
            )
        case DescribedGroup():
            _over_the_wire(DescribeGroupsResponse(groups=[answer]), min(version, 6))
            return _described(answer)
        case DeletableGroupResult():
            _over_the_wire(DeleteGroupsResponse(results=[answer]), min(version, 2))
            return f"DeleteGroups {error(answer.error_code)}"
        case ListGroupsResponse():
            return _listed(_over_the_wire(answer, min(version, 5)), min(version, 5))
        case TransactionEnded():
            return f"marker {error(answer.error_code)}"
    raise AssertionError(f"no words for {answer}")


def _over_the_wire(answer: M, version: int) -> M:
    version = min(version, answer.MAX_VERSION)
    return type(answer).decode(answer.encode(version), version)


def _join(answer: JoinGroupResponse) -> str:
    parts = [f"JoinGroup {error(answer.error_code)}"]
    if answer.generation_id != -1:
        parts.append(f"generation={answer.generation_id}")
    if answer.protocol_type is not None:
        parts.append(f"type={answer.protocol_type}")
    if answer.protocol_name is not None:
        parts.append(f"protocol={answer.protocol_name or chr(34) * 2}")
    if answer.leader:
        parts.append(f"leader={answer.leader}")
    parts.append(f"id={answer.member_id or chr(34) * 2}")
    if answer.members:
        parts.append("members=" + ",".join(f"{m.member_id}({_text(m.metadata)})" for m in answer.members))
    if answer.skip_assignment:
        parts.append("skip-assignment")
    return " ".join(parts)


def _sync(answer: SyncGroupResponse) -> str:
    parts = [f"SyncGroup {error(answer.error_code)}"]
    if answer.protocol_type is not None:
        parts.append(f"type={answer.protocol_type} protocol={answer.protocol_name}")
    if not answer.error_code:
        parts.append(f"assignment={_text(answer.assignment)}")
    return " ".join(parts)


def _leave(answer: LeaveGroupResponse) -> str:
    members = [
        f"{m.member_id or chr(34) * 2}{'' if m.group_instance_id is None else '/' + m.group_instance_id}:"
        f"{error(m.error_code)}"
        for m in answer.members
    ]
    return " ".join([f"LeaveGroup {error(answer.error_code)}", *members])


def _fetch(answer: OffsetFetchResponseGroup) -> str:
    OffsetFetchResponse(groups=[answer]).encode(9)
    parts = [f"OffsetFetch {error(answer.error_code)}"]
    for topic in answer.topics:
        for p in topic.partitions:
            text = f"{topic.name}-{p.partition_index}={p.committed_offset}"
            text += "" if p.committed_leader_epoch == -1 else f"/epoch{p.committed_leader_epoch}"
            text += f":{p.metadata[:20]}" if p.metadata else ""
            parts.append(text + (f":{error(p.error_code)}" if p.error_code else ""))
    return " ".join(parts)


def _described(answer: DescribedGroup) -> str:
    parts = [f"DescribeGroups {error(answer.error_code)}", answer.group_state]
    parts += [f"message='{answer.error_message}'"] if answer.error_message is not None else []
    parts += [f"type={answer.protocol_type or chr(34) * 2} protocol={answer.protocol_data or chr(34) * 2}"]
    parts += [
        f"{m.member_id}{'' if m.group_instance_id is None else '/' + m.group_instance_id}"
        f"[{m.client_id} {m.client_host} {_text(m.member_metadata)} {_text(m.member_assignment)}]"
        for m in answer.members
    ]
    return " ".join(parts)


def _listed(answer: ListGroupsResponse, version: int) -> str:
    groups = [
        f"{g.group_id}({g.protocol_type or chr(34) * 2}"
        + (f" {g.group_state}" if version >= 4 else "")
        + (f" {g.group_type})" if version >= 5 else ")")
        for g in answer.groups
    ]
    return " ".join([f"ListGroups {error(answer.error_code)}", *groups])


def _text(data: Buffer) -> str:
    """Bytes as scenario text: topics of a subscription, with its generation if it says one, else the text it is."""
    raw = bytes(data)
    if raw[:2] == b"\x00\x00" and len(raw) > 2:
        return "+".join(ConsumerProtocolSubscription.decode(raw[2:], 0).topics)
    if raw[:2] == b"\x00\x03":
        told = decode_subscription(raw)
        return "+".join(told.topics) + f" gen={told.generation_id}"
    return raw.decode(errors="replace") or "-"


def show_group(group: Group) -> str:
    parts = [group.group_id, group.state.value, f"generation={group.generation}"]
    parts.append(f"type={group.protocol_type or '-'}")
    if group.protocol_name is not None:
        parts.append(f"protocol={group.protocol_name}")
    if group.members:
        names = [
            m.member_id
            + ("*" if m.member_id == group.leader_id else "")
            + (f"/{m.instance_id}" if m.instance_id else "")
            + ("(joining)" if m.join else "(syncing)" if m.sync else "")
            for m in group.members.values()
        ]
        parts.append(f"members={','.join(names)}")
    if group.pending:
        parts.append(f"pending={','.join(group.pending)}")
    if group.join_deadline_ms != NO_DEADLINE:
        parts.append(f"join-until={group.join_deadline_ms}")
    return " ".join(parts)


def show_record(entry: Entry) -> list[str]:
    lines = []
    for key, value in entry.records:
        if log_records.kind_of(key) == log_records.GROUP_KEY:
            name = f"group {log_records.read_group_key(key)}"
            if value is None:
                lines.append(f"{name} tombstone")
                continue
            group = log_records.read_group_value(value)
            lines.append(
                f"{name} v{value[1]} type={group.protocol_type or '-'} generation={group.generation} "
                f"protocol={group.protocol} leader={group.leader} since={group.current_state_timestamp - _START_MS}"
                + "".join(
                    f" {m.member_id}{'' if m.group_instance_id is None else '/' + m.group_instance_id}"
                    f"[R={m.rebalance_timeout} S={m.session_timeout} {_text(m.subscription)} {_text(m.assignment)}]"
                    for m in group.members
                )
            )
        else:
            group_id, topic, number = log_records.read_offset_key(key)
            name = f"offset {group_id} {topic}-{number}"
            if value is None:
                lines.append(f"{name} tombstone")
                continue
            offset = log_records.read_offset_value(value)
            lines.append(
                f"{name} v{value[1]} {offset.offset}"
                + (f" expires={offset.expire_ms - _START_MS}" if offset.expire_ms != -1 else "")
                + (f" topic-id={offset.topic_id.lstrip(bytes(1)).decode()}" if any(offset.topic_id) else "")
                + (f" in transaction of {entry.producer.producer_id}" if entry.producer else "")
            )
    if entry.marker is not None:
        lines.append(f"{'commit' if entry.marker.committed else 'abort'} of {entry.marker.producer.producer_id}")
    return lines


def show_note(note: Note) -> str:
    parts = [type(note).__name__]
    for name, value in note._asdict().items():
        if name in ("wall_ms", "held"):
            continue
        if isinstance(value, Cause):
            value = _cause(value)
        elif isinstance(value, tuple):
            value = "; ".join(_cause(cause) for cause in value)
        parts.append(f"{name}={value}")
    return " ".join(parts)


def _cause(cause: Cause) -> str:
    return " ".join(part for part in (cause.what, cause.member_id, cause.detail) if part)
