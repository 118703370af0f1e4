"""The GroupCoordinator of one shard: one partition of `__consumer_offsets` and every group that hashes to it.

The contract, whole: `replay` and `resume` load it, `handle` and `on_deadline` drive it, `unload` ends it. Each returns
a `Step`: append its records as ONE batch, then release its replies once that batch, and every batch decided before
it, is durable. If an append fails: drop the shard, answer all its tokens with `refusals.refusal(request,
NOT_COORDINATOR)`, make a new one and replay the log; there is no undo. (Kafka: GroupCoordinatorShard,
GroupMetadataManager, OffsetMetadataManager, release 4.3.1.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from partita.group import deadlines, refusals
from partita.group.classic import describe, heartbeat, join, leave, rebalance, removal, sync
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Record, Step, Token
from partita.group.offsets import commit as offsets
from partita.group.offsets import delete, expiration
from partita.group.offsets import transactional as transactions
from partita.group.records.hard_state import HardState
from partita.group.requests import DeleteGroup, DescribeGroup, EndTransaction, FetchOffsets, ListShardGroups
from partita.group.state.model import Group
from partita.group.state.shard import Shard
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.offset_delete import OffsetDeleteRequest
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from partita.protocol.primitives import Buffer

_ACTIONS: Mapping[type, Callable[[Shard, Token, GroupRequest], None]] = {
    JoinGroupRequest: join.join_group,
    SyncGroupRequest: sync.sync_group,
    LeaveGroupRequest: leave.leave_group,
    OffsetCommitRequest: offsets.commit_offsets,
    FetchOffsets: offsets.fetch_offsets,
    OffsetDeleteRequest: delete.delete_offsets,
    TxnOffsetCommitRequest: transactions.commit_offsets,
    EndTransaction: transactions.end_transaction,
    DescribeGroup: describe.describe_group,
    ListShardGroups: describe.list_groups,
    DeleteGroup: delete.delete_group,
}


class GroupCoordinator:
    """One shard. `new_member_id(prefix)` gives "<prefix>-<uuid>", never the same twice."""

    def __init__(self, config: GroupConfig, new_member_id: Callable[[str], str]) -> None:
        self._shard = Shard(config, new_member_id)

    @property
    def config(self) -> GroupConfig:
        return self._shard.config

    @config.setter
    def config(self, config: GroupConfig) -> None:
        """Settings may change while running; the next decision uses the new ones."""
        self._shard.config = config

    @property
    def groups(self) -> Mapping[str, Group]:
        """The groups as they are now, soft state included; for control calls, snapshots and tests. Read only."""
        return self._shard.groups

    @property
    def hard_state(self) -> HardState:
        """What the log can rebuild; a projection for tests, the simulator and dumps."""
        return self._shard.hard

    def replay(self, record: Record, producer_id: int = -1, producer_epoch: int = -1) -> None:
        """Take one record of the log; with a producer id, one of that producer's open transaction."""
        self._shard.hard.replay(record, producer_id, producer_epoch)

    def replay_batch(self, batch: Buffer) -> None:
        """Take one whole record batch as it is in the log, control batches too. The quick way to load."""
        self._shard.hard.replay_batch(batch)

    def resume(self, now: Now, silences: Mapping[tuple[str, str], int] | None = None, *, clean: bool = True) -> Step:
        """After the last replay: rebuild groups and start their deadlines. Raises MalformedRequest: the load failed.

        `silences` says of (group id, member id) how long that member had been silent when its shard was last unloaded;
        `clean=False` (records may be lost) keeps each group from reusing a generation that a client was told.
        """
        return rebalance.resume(self._shard, now, silences or {}, clean=clean)

    def handle(self, token: Token, request: GroupRequest, now: Now) -> Step:
        """Answer a request, now or later. Its token comes back in exactly one reply of this or a later step."""
        shard = self._shard
        shard.now = now
        if type(request.message) is HeartbeatRequest and request.message.group_id:
            return heartbeat.answer(shard.groups, token, request.message, now.mono_ms)
        shard.tokens_open += 1
        refused = refusals.first_check(request, shard.config)
        if refused is not None:
            shard.answer(token, refused)
        else:
            _ACTIONS[type(request.message)](shard, token, request)
        return shard.take()

    def heartbeat(self, request: HeartbeatRequest, mono_ms: int) -> int:
        """Answer a heartbeat at once with its error code; it never writes and never waits.

        The caller sends it through the shard's reply gate all the same when something is not durable yet.
        """
        return heartbeat.decide(self._shard.groups, request, mono_ms)

    def on_deadline(self, now: Now) -> Step:
        """Do what is due. Call again at once while `next_deadline_ms() <= now.mono_ms`."""
        return deadlines.run(self._shard, now)

    def next_deadline_ms(self) -> int | None:
        """When to call `on_deadline`, on the monotonic clock. May be early, is never late."""
        return deadlines.next_ms(self._shard)

    def on_topics_deleted(self, names: Collection[str], now: Now) -> Step:
        """Forget every offset of these topics. What one batch cannot hold follows by `on_deadline`, due at once."""
        return expiration.forget_topics(self._shard, names, now)

    def unload(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> Step:
        """Answer every parked request with `error` and mark each group Dead. Writes nothing; the shard is over."""
        return removal.unload(self._shard, error)

    def silences(self, now: Now) -> dict[tuple[str, str], int]:
        """How long each member has been silent; hand it to the next `resume` so that restarts keep nobody alive."""
        return removal.silences(self._shard, now)

    def evict_member(self, group_id: str, member_id: str, now: Now) -> Step:
        """Control: remove a member (by id, or by group instance id) as an administrator would."""
        return removal.evict_member(self._shard, group_id, member_id, now)

    def expire_session(self, group_id: str, member_id: str, now: Now) -> Step:
        """Control: treat a member (or pending member) as silent for its whole session, right now."""
        return removal.expire_session(self._shard, group_id, member_id, now)

    def fence_instance(self, group_id: str, group_instance_id: str, now: Now) -> Step:
        """Control: give the static member a new id, as if another process had taken its instance id over."""
        return removal.fence_instance(self._shard, group_id, group_instance_id, now)
