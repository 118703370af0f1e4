"""Ready-made frames of a member of a classic group: what it sends is decided before the clock runs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from partita.protocol.framing import encode_request
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Message

JOIN, HEARTBEAT, LEAVE, SYNC, FIND = 11, 12, 13, 14, 10
ANY_MEMBER = "the member id goes here"
JOIN_VERSION = 5
SUBSCRIPTION = struct.pack(">hih30si", 0, 1, 30, b"a topic of thirty characters..", -1)
"""Version 0: topics and no user data. Kafka's coordinator reads it, and does not answer a join that it cannot read."""


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def frame(api_key: int, version: int, message: Message) -> bytes:
    return b"".join(encode_request(api_key, version, 7, "bench", message))


def template(api_key: int, version: int, message: Message) -> Callable[[bytes], bytes]:
    """A function that gives the frame of `message` for any member id."""
    head, tail = frame(api_key, version, message)[4:].split(string(ANY_MEMBER.encode()))

    def filled(member_id: bytes) -> bytes:
        body = head + string(member_id) + tail
        return struct.pack(">i", len(body)) + body

    return filled


@cache
def join_frame(group: str) -> Callable[[bytes], bytes]:
    request = JoinGroupRequest(
        group_id=group, session_timeout_ms=300_000, rebalance_timeout_ms=300_000, member_id=ANY_MEMBER,
        protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )  # fmt: skip
    return template(JOIN, JOIN_VERSION, request)


@cache
def sync_frame(group: str, generation: int) -> Callable[[bytes], bytes]:
    return template(SYNC, 3, SyncGroupRequest(group_id=group, generation_id=generation, member_id=ANY_MEMBER))


@cache
def heartbeat_frame(group: str, generation: int) -> Callable[[bytes], bytes]:
    return template(HEARTBEAT, 3, HeartbeatRequest(group_id=group, generation_id=generation, member_id=ANY_MEMBER))


def leader_frame(group: str, answer: bytes) -> bytes:
    """The leader's SyncGroup: an assignment for each member it was told of."""
    joined = JoinGroupResponse.decode(answer[8:], JOIN_VERSION)
    shares = [SyncGroupRequestAssignment(member_id=m.member_id, assignment=b"a" * 40) for m in joined.members]
    return frame(
        SYNC,
        3,
        SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=shares
        ),
    )
