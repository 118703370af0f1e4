"""A member of design 2: its node in ZooKeeper marks its presence; everything else comes from its coordinator."""

from __future__ import annotations

import contextlib
import threading
import time
from itertools import cycle

from partita.assignors.interface import Subscription
from partita.assignors.payloads import decode_assignment, encode_subscription
from partita.designs.members.reader import Reader
from partita.designs.members.settings import MemberSettings, Say
from partita.designs.members.wire import Connection
from partita.designs.rules import nodes
from partita.designs.rules.assignment import Partition
from partita.designs.rules.nodes import Registration
from partita.designs.rules.requests import Create, Failure
from partita.designs.zookeeper.client import Client, Closed, end_session
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

RETRY_S = 0.1
REFUSED = (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.INVALID_SESSION_TIMEOUT)
LOOK_ELSEWHERE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class Refused(RuntimeError):
    """The coordinator does not take this member, now or later."""


class MemberTwo:
    """One thread talks to the coordinator. Losing it, or ZooKeeper, stops no reading."""

    def __init__(self, settings: MemberSettings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._client = Client(
            settings.zookeeper, session_timeout_ms=settings.timings.session_ms, on_new_session=self._register
        )
        self._reader = Reader(settings.bootstrap, say)
        self._known = cycle(settings.coordinators)
        self._coordinator: Connection | None = None
        self._member_id = ""
        self._generation = -1
        self._mine: frozenset[Partition] = frozenset()
        self._closing = threading.Event()
        self._joined = threading.Event()
        self._refusal = ""
        self._thread = threading.Thread(target=self._run, daemon=True, name="member")

    def start(self) -> None:
        """Register and join. Raises Refused when the coordinator does not take this member."""
        self._client.start()
        self._say("session", id=self._client.session)
        self._register()
        self._thread.start()
        self._joined.wait()
        if self._refusal:
            self.close()
            raise Refused(self._refusal)

    def slow(self, ms: int) -> None:
        """Make the processing of the next records take `ms`."""
        self._reader.slow(ms)

    def end_session(self) -> None:
        """Let the session expire at once."""
        credentials = self._client.credentials
        assert credentials is not None, "a member that runs has a session"
        end_session(self._settings.zookeeper, credentials)

    def close(self) -> None:
        """Stop, commit, end the session: the coordinator learns of it from ZooKeeper."""
        self._closing.set()
        self._thread.join(timeout=self._settings.timings.session_ms * 5 / 1000)
        with contextlib.suppress(OSError):
            self._commit(self._reader.stop())
        if self._coordinator is not None:
            self._coordinator.close()
        self._client.close()
        self._reader.close()

    def _register(self) -> None:
        path = nodes.member(self._settings.group, self._settings.member)
        content = nodes.registration_json(Registration({self._settings.topic: 1}), int(time.time() * 1000))
        while self._client.ask(Create(path, content, ephemeral=True)) is Failure.NODE_EXISTS:
            if self._closing.wait(self._settings.timings.session_ms / 1000):
                return

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                if self._generation < 0:
                    self._join()
                self._beat()
            except OSError:
                self._look_elsewhere("disconnected")
            except Refused as reason:
                self._refusal = str(reason)
                self._joined.set()
                return
            except Closed:
                return

    def _connection(self) -> Connection:
        """Return a connection to the coordinator; asks every known address in turn until there is one.

        It is reached at the address that this member was given for its number: a tap may stand between.
        """
        while self._coordinator is None:
            try:
                asked = Connection(next(self._known), self._settings.member)
                found = asked.ask(FindCoordinatorRequest(key=self._settings.group), 0, within_s=self._patience_s)
                asked.close()
                if not found.error_code:
                    address = self._settings.coordinators[found.node_id]
                    self._coordinator = Connection(address, self._settings.member)
                    break
            except OSError:
                pass
            if self._closing.wait(RETRY_S):
                raise ConnectionError("closing")
        return self._coordinator

    @property
    def _patience_s(self) -> float:
        return self._settings.timings.session_ms / 1000

    def _look_elsewhere(self, why: str) -> None:
        self._say("told", why=why)
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None
        self._closing.wait(RETRY_S)

    def _join(self) -> None:
        """Ask for a share; reading has stopped. Sets the generation, or forgets what was refused."""
        timings = self._settings.timings
        protocol = JoinGroupRequestProtocol(
            name=self._settings.strategy, metadata=encode_subscription(Subscription((self._settings.topic,)), 0)
        )
        request = JoinGroupRequest(
            group_id=self._settings.group, session_timeout_ms=timings.session_ms, member_id=self._member_id,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        connection = self._connection()
        self._say("attempt")
        answer = connection.ask(request, 0, within_s=timings.session_ms * 4 / 1000)
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self._take(answer)
            return
        self._say("failed", reason=error.name)
        if error in REFUSED:
            raise Refused(f"the coordinator answers {error.name}")
        self._member_id = ""
        if error in LOOK_ELSEWHERE:
            self._look_elsewhere(error.name)

    def _take(self, answer: JoinGroupResponse) -> None:
        mine, _ = decode_assignment(answer.members[0].metadata)
        self._member_id, self._generation, self._mine = answer.member_id, answer.generation_id, frozenset(mine)
        for _, number in sorted(mine):
            self._say("claimed", partition=number, generation=self._generation)
        self._reader.start(self._offsets(sorted(mine)))
        self._joined.set()

    def _offsets(self, mine: list[Partition]) -> dict[Partition, int | None]:
        topic = OffsetFetchRequestTopic(name=self._settings.topic, partition_indexes=[number for _, number in mine])
        request = OffsetFetchRequest(group_id=self._settings.group, topics=[topic] if mine else [])
        found = self._connection().ask(request, 1, within_s=self._patience_s)
        return {
            (t.name, p.partition_index): p.committed_offset if p.committed_offset >= 0 else None
            for t in found.topics
            for p in t.partitions
        }

    def _beat(self) -> None:
        """Commit and send heartbeats, until an answer says that the group changes."""
        timings = self._settings.timings
        commit_at_s = time.monotonic() + timings.commit_ms / 1000
        while self._generation >= 0 and not self._closing.wait(timings.heartbeat_ms / 1000):
            request = HeartbeatRequest(
                group_id=self._settings.group, generation_id=self._generation, member_id=self._member_id
            )
            error = ErrorCode(self._connection().ask(request, 0, within_s=self._patience_s).error_code)
            if error in LOOK_ELSEWHERE:
                self._look_elsewhere(error.name)
            elif error is not ErrorCode.NONE:
                self._say("told", why=error.name)
                self._reader.stop()
                self._generation = -1
                self._member_id = self._member_id if error is ErrorCode.ILLEGAL_GENERATION else ""
            elif self._settings.auto_commit and time.monotonic() >= commit_at_s:
                self._commit(self._reader.moved())
                commit_at_s = time.monotonic() + timings.commit_ms / 1000

    def _commit(self, positions: dict[Partition, int]) -> None:
        if not positions or self._generation < 0:
            return
        topic = OffsetCommitRequestTopic(
            name=self._settings.topic,
            partitions=[
                OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
                for (_, number), offset in positions.items()
            ],
        )
        request = OffsetCommitRequest(
            group_id=self._settings.group, generation_id_or_member_epoch=self._generation, member_id=self._member_id,
            topics=[topic],
        )  # fmt: skip
        answer = self._connection().ask(request, 2, within_s=self._patience_s)
        for partition in (p for t in answer.topics for p in t.partitions):
            number = partition.partition_index
            if partition.error_code:
                self._say("refused", partition=number, error=ErrorCode(partition.error_code).name)
            else:
                self._say("commit", partition=number, offset=positions[self._settings.topic, number])
