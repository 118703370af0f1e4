"""A blocking raw client: typed requests out, typed responses in, in whatever order and shape a test wants."""

from __future__ import annotations

import socket
import ssl
from types import TracebackType
from typing import Any, Self

from partita.protocol.api_table import APIS
from partita.protocol.framing import encode_request, read_response_header
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Message
from support.frames import FrameCutter

WITHIN_SECONDS = 60.0


class Raw:
    """One connection. `send` and `recv` apart, or `ask` for both."""

    def __init__(self, port: int, client_id: str | None = "raw", *, tls: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WITHIN_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.client_id = client_id
        self.correlation_id = 0
        self._frames: list[bytes] = []
        self._cutter = FrameCutter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.socket.close()

    def frame(self, message: Message, version: int) -> bytes:
        self.correlation_id += 1
        parts = encode_request(message.API_KEY, version, self.correlation_id, self.client_id, message)
        return b"".join(parts)

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self.socket.sendall(self.frame(message, version))
        return self.correlation_id

    def recv(self, api_key: int, version: int) -> tuple[int, Any]:
        """The next response with its correlation id. Raises EOFError when the broker closed the connection."""
        while not self._frames:
            received = self.socket.recv(1 << 16)
            if not received:
                raise EOFError("the broker closed the connection")
            self._frames += self._cutter.feed(received)
        correlation_id, reader = read_response_header(api_key, version, self._frames.pop(0))
        message = APIS[api_key].response.read(reader, version)
        assert not reader.remaining(), "nothing follows a response in its frame"
        return correlation_id, message

    def ask(self, message: Message, version: int) -> Any:
        self.send(message, version)
        return self.recv(message.API_KEY, version)[1]

    def is_closed(self) -> bool:
        """Whether the broker closes this connection without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    # -- groups ----------------------------------------------------------------------------------------------------

    def find(self, group_id: str) -> None:
        """Ask for the coordinator, so that `__consumer_offsets` exists."""
        self.ask(FindCoordinatorRequest(key=group_id), 1)

    def transactional(self, transactional_id: str) -> tuple[int, int]:
        """A producer id and epoch of this transactional id."""
        self.ask(FindCoordinatorRequest(key=transactional_id, key_type=1), 1)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        answer = self.ask(request, 4)
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    def join(self, group_id: str, member_id: str = "", **fields: Any) -> JoinGroupResponse:
        """Join as the only member (or one that fits in) and answer MEMBER_ID_REQUIRED by joining again."""
        request = join_request(group_id, member_id, **fields)
        answer = self.ask(request, 9)
        if answer.error_code == 79:
            request.member_id = answer.member_id
            answer = self.ask(request, 9)
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def stable(self, group_id: str, **fields: Any) -> JoinGroupResponse:
        """Become the leader of a stable group of one; every member is assigned its own id as bytes."""
        self.find(group_id)
        joined = self.join(group_id, **fields)
        assert joined.error_code == 0, joined
        synced = self.ask(sync_request(group_id, joined), 5)
        assert synced.error_code == 0, synced
        return joined

    def committed(self, group_id: str, topic: str = "t", partition: int = 0) -> int:
        """The committed offset, or minus the error code."""
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        group: OffsetFetchResponseGroup = self.ask(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)]), 8
        ).groups[0]
        if group.error_code:
            return -group.error_code
        found = group.topics[0].partitions[0]
        return -found.error_code if found.error_code else found.committed_offset

    def commit(self, group_id: str, offset: int, topic: str = "t", partition: int = 0, **member: Any) -> int:
        """Commit one offset; return its error code."""
        answer = self.ask(commit_request(group_id, offset, topic, partition, **member), 8)
        return int(answer.topics[0].partitions[0].error_code)


def join_request(group_id: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    fields.setdefault("session_timeout_ms", 45_000)
    fields.setdefault("rebalance_timeout_ms", 60_000)
    fields.setdefault("protocols", [JoinGroupRequestProtocol(name="range", metadata=b"meta")])
    return JoinGroupRequest(group_id=group_id, member_id=member_id, protocol_type="consumer", **fields)


def sync_request(group_id: str, joined: JoinGroupResponse, instance_id: str | None = None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=m.member_id, assignment=m.member_id.encode()) for m in joined.members
        ],
    )


def commit_request(
    group_id: str, offset: int, topic: str = "t", partition: int = 0, metadata: str = "", **member: Any
) -> OffsetCommitRequest:
    committed = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name=topic, partitions=[committed])], **member
    )
