"""The rules of a transactional producer: the calls allowed now, the requests to coordinators, the effect of answers.

The application's calls return a `Call`; `poll` gives the one request to send; answers come back by `on_answer` and
`on_trouble`. The producer's core reports on batches. Mirrors TransactionManager of Kafka 4.3 (transactions.md 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from partita.errors import AbortableTransactionError, FatalTransactionError, KafkaError, ProducerFencedError, error_for
from partita.producer.config import ProducerConfig
from partita.producer.errors import TransactionAbortedError, TransactionMisuseError
from partita.producer.transactions.calls import GROUP, MOVES, OPEN, Ask, Call, CallKind, Member, Offsets, State
from partita.producer.transactions.reactions import Reaction, reaction
from partita.producer.transactions.requests import Requests
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from partita.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from partita.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from partita.protocol.messages.init_producer_id import InitProducerIdResponse
from partita.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from partita.protocol.primitives import ZERO_UUID

NEVER_MS = 1 << 40
FIRST_ADD_BACKOFF_MS = 20
"""Pause before the first partitions of a transaction are added again: the one before is about to end."""
_BY_NAME_UNTIL = 5
"""The last version of TxnOffsetCommit that names topics; later ones give their ids."""
VERSION_2 = 2
"""The level of transaction.version from which brokers add partitions by themselves and raise the epoch (KIP-890)."""


class Transactions:
    """The transactional state of one producer. Times are milliseconds of the monotonic clock."""

    def __init__(self, config: ProducerConfig, topic_id: Callable[[str], bytes] = lambda _: ZERO_UUID) -> None:
        assert config.transactional_id is not None, "only a producer with transactional_id has transactions"
        self.transactional_id = config.transactional_id
        self._config = config
        self.state = State.UNINITIALIZED
        self.producer: tuple[int, int] | None = None
        """Producer id and epoch; None before the first `init`."""
        self.is_version_2 = False
        """Whether brokers add partitions by themselves; looked at between transactions only."""
        self._requests = Requests(config.transactional_id, config.transaction_timeout_ms)
        self._backoff_ms, self._backoff_max_ms = config.retry_backoff_ms, config.retry_backoff_max_ms
        self._features_epoch, self._level = -1, 0
        self._error: KafkaError | None = None
        self._pending: Call | None = None
        self._offsets: list[Call] = []
        self._new: dict[tuple[str, int], None] = {}
        self._added: set[tuple[str, int]] = set()
        self._groups: set[str] = set()
        self._topic_id = topic_id
        self._recreated: set[str] = set()
        """Topics whose known id is that of a topic that was deleted: they go by name."""
        self._has_work = False
        self._may_be_open = False
        """An answer about adding was lost: the coordinator may know of the transaction all the same."""
        self._must_bump = False
        # One request at a time: the order of adding, committing offsets and ending is what the coordinator's answers
        # mean.
        self._asked: Ask | None = None
        self._not_before_ms = 0
        self._attempts = 0
        self._trouble: KafkaError | None = None
        self._lost: list[tuple[str, int]] = []
        self._callbacks: list[Callable[[], object]] = []

    # The application's calls

    def init(self) -> Call:
        """Take the transactional id: an earlier producer is fenced, and its open transaction aborted."""
        if (again := self._again(CallKind.INIT)) is not None:
            return again
        self._need({State.UNINITIALIZED}, "init_transactions")
        self._move(State.INITIALIZING)
        return self._begin_call(CallKind.INIT)

    def begin(self) -> None:
        """Open a transaction; nothing is sent for it yet."""
        self._need_no_call("begin_transaction")
        self._need({State.READY}, "begin_transaction")
        self._new.clear()
        self._added.clear()
        self._groups.clear()
        # Nothing is sent to begin a transaction: the coordinator learns of it with its first partition, or with the
        # first batch.
        self._has_work = self._may_be_open = False
        self._move(State.IN_TRANSACTION)

    def send_offsets(self, offsets: Offsets, member: Member) -> Call:
        """Commit a group's offsets with the transaction; done when the group's coordinator holds them."""
        self._need({State.IN_TRANSACTION}, "send_offsets_to_transaction")
        call = Call(CallKind.SEND_OFFSETS, offsets=dict(offsets), member=member)
        if not offsets:
            self._end_call(call, None)
            return call
        self._has_work = True
        self._offsets.append(call)
        return call

    def commit(self) -> Call:
        """Commit once every record and offset is in."""
        if (again := self._again(CallKind.COMMIT)) is not None:
            return again
        self._need({State.IN_TRANSACTION}, "commit_transaction")
        self._move(State.COMMITTING)
        return self._begin_call(CallKind.COMMIT)

    def abort(self) -> Call:
        """Abort: unsent batches are dropped, those in flight awaited."""
        if (again := self._again(CallKind.ABORT)) is not None:
            return again
        if self.state not in OPEN:
            self._need({State.IN_TRANSACTION}, "abort_transaction")
        self._move(State.ABORTING)
        self._error = None
        self._new.clear()
        # Offsets that were not sent yet need no coordinator to be forgotten.
        self._fail_offsets(self.drops_with())
        self._not_before_ms = self._attempts = 0
        return self._begin_call(CallKind.ABORT)

    def heard(self, call: Call) -> None:
        """The application knows how this call ended; until then only the same call is allowed."""
        if self._pending is call:
            self._pending = None

    def leave(self) -> Call | None:
        """For close: abort the open transaction, or take the call under way. None: there is nothing to wait for."""
        # The application has not asked for the outcome; by closing it says that it does not want to know.
        if self._pending is not None and self._pending.is_done:
            self._pending = None
        if self.state in OPEN:
            return self.abort()
        return self._pending if self.is_ending else None

    def give_up(self, error: KafkaError) -> None:
        """The producer is closed: whatever waits fails."""
        self._fatal(error)

    # Records

    def check_send(self) -> None:
        """Raise the error that forbids sending."""
        self._need_no_call("send")
        self._need({State.IN_TRANSACTION}, "send")

    def record_taken(self) -> None:
        """A record was accepted: the transaction is not empty."""
        self._has_work = True

    def may_send(self, topic: str, partition: int) -> bool:
        """Whether batches of this partition may leave; if not, the partition is being added."""
        if self.is_version_2 or (topic, partition) in self._added:
            return True
        self._new[topic, partition] = None
        return False

    def drops_with(self) -> KafkaError | None:
        """The error that records not sent yet are to be failed with; None while they may leave."""
        if self.state is State.ABORTING:
            return TransactionAbortedError("the transaction was aborted before the record was sent")
        return self._error

    @property
    def is_completing(self) -> bool:
        """Whether everything must leave now, as a commit waits for it."""
        return self.state is State.COMMITTING

    @property
    def is_ending(self) -> bool:
        """Whether the end of the transaction waits for batches."""
        return self.state in (State.COMMITTING, State.ABORTING)

    def on_record_failed(self, error: Exception, *, had_sequence: bool = False) -> None:
        """A record or a batch has failed for good; with a sequence number it leaves a hole."""
        # A hole in the numbers: brokers would refuse what follows, so the next transaction begins with a new epoch.
        self._must_bump |= had_sequence
        if self.state in _WITH_RECORDS:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
            self._react(reaction("Produce", code), error)

    # The cluster

    def learn(self, features_epoch: int, level: int) -> None:
        """Take the finalized level of transaction.version from a broker; older epochs are ignored."""
        # Brokers learn of a new level one after another, so an answer may be older than one before it.
        if features_epoch >= self._features_epoch:
            self._features_epoch, self._level = features_epoch, level

    def poll(self, now_ms: int, *, has_unfinished: bool) -> tuple[Ask | None, int]:
        """The request to send now, if any, and in how many ms to come back at the latest."""
        if self._asked is not None:
            return None, NEVER_MS
        if now_ms < self._not_before_ms:
            return None, self._not_before_ms - now_ms
        self._asked = self._next(has_unfinished)
        return self._asked, NEVER_MS

    def on_answer(self, ask: Ask, answer: Any, now_ms: int) -> None:
        """The coordinator answered."""
        self._asked = None
        match answer:
            case InitProducerIdResponse():
                self._on_init(ask, answer, now_ms)
            case AddPartitionsToTxnResponse():
                self._on_partitions(ask, answer, now_ms)
            case AddOffsetsToTxnResponse():
                self._on_group_added(ask, answer, now_ms)
            case TxnOffsetCommitResponse():
                self._on_offsets(ask, answer, now_ms)
            case EndTxnResponse():
                self._on_end(ask, answer, now_ms)

    def on_trouble(self, ask: Ask, error: KafkaError, now_ms: int) -> None:
        """No answer: the coordinator was not found, not reached, or speaks no version that fits."""
        self._asked = None
        if error.retriable:
            # The answer is lost, not the request: the coordinator may have an open transaction that has to be ended.
            self._may_be_open |= ask.api in ("AddPartitionsToTxn", "AddOffsetsToTxn")
            self._refused(ask, Reaction.LOOK_UP, error, now_ms)
        else:
            self._refused(ask, reaction("FindCoordinator", error.code), error, now_ms)

    @property
    def trouble(self) -> KafkaError | None:
        """Why the last request has to be repeated; None while nothing is."""
        return self._trouble if self._attempts else None

    def take_lost(self) -> list[tuple[str, int]]:
        """Coordinators, by key and kind, that must be looked up again."""
        taken, self._lost = self._lost, []
        return taken

    def take_callbacks(self) -> list[Callable[[], object]]:
        """The callbacks of calls that ended since the last time."""
        taken, self._callbacks = self._callbacks, []
        return taken

    # What to ask

    def _next(self, has_unfinished: bool) -> Ask | None:
        if self.state is State.INITIALIZING:
            return Ask(self._requests.init(self.producer), self.transactional_id, version_min=3 if self.producer else 0)
        if self.state in (State.IN_TRANSACTION, State.COMMITTING):
            # Before the offsets and before the end: batches wait for it.
            if self._new:
                adding = self._requests.add_partitions(self._producer(), list(self._new))
                return Ask(adding, self.transactional_id, version_max=3)
            if self._offsets:
                return self._offsets_ask(self._offsets[0])
        return self._end_ask() if self.is_ending and not has_unfinished else None

    def _end_ask(self) -> Ask | None:
        """EndTxn; a transaction that no coordinator knows of ends here."""
        if self._has_to_end():
            ending = self._requests.end(self._producer(), committed=self.is_completing)
            return Ask(ending, self.transactional_id, version_max=None if self.is_version_2 else 4)
        self._finish_end()
        return self._next(False)

    def _offsets_ask(self, call: Call) -> Ask:
        member = call.member
        if not self.is_version_2 and member.group_id not in self._groups:
            message = self._requests.add_offsets(self._producer(), member.group_id)
            return Ask(message, self.transactional_id, call=call)
        commit = self._requests.commit_offsets(self._producer(), call, self._id_of)
        names_all = all(topic.topic_id != ZERO_UUID for topic in commit.topics)
        names_member = member.generation_id >= 0 or member.member_id or member.group_instance_id
        return Ask(
            commit,
            member.group_id,
            GROUP,
            version_max=4 if not self.is_version_2 else None if names_all else _BY_NAME_UNTIL,
            version_min=3 if names_member else 0,
            call=call,
        )

    def _id_of(self, topic: str) -> bytes:
        return ZERO_UUID if topic in self._recreated else self._topic_id(topic)

    def _has_to_end(self) -> bool:
        """Whether the coordinator may hold anything of this transaction."""
        if self.is_version_2:
            return self._has_work
        return bool(self._added or self._groups or self._may_be_open)

    def _producer(self) -> tuple[int, int]:
        assert self.producer is not None, "a transaction is open, so there is a producer id"
        return self.producer

    # What answers mean

    def _on_init(self, ask: Ask, answer: InitProducerIdResponse, now_ms: int) -> None:
        if answer.error_code:
            self._refused_code(ask, answer.error_code, now_ms)
            return
        self.producer = (answer.producer_id, answer.producer_epoch)
        self._must_bump = False
        self._ready()

    def _on_partitions(self, ask: Ask, answer: AddPartitionsToTxnResponse, now_ms: int) -> None:
        codes = {
            (topic.name, part.partition_index): ErrorCode(part.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        }
        failed = {tp: code for tp, code in codes.items() if code}
        if not failed:
            self._added |= codes.keys()
            for tp in codes:
                self._new.pop(tp, None)
            self._attempts = 0
            return
        # The markers of the transaction before are still being written; 20 ms later they mostly are. Kafka's client
        # does the same.
        if not self._added and set(failed.values()) == {ErrorCode.CONCURRENT_TRANSACTIONS}:
            self._not_before_ms = now_ms + FIRST_ADD_BACKOFF_MS
            return
        self._worst(ask, failed, now_ms)

    def _on_group_added(self, ask: Ask, answer: AddOffsetsToTxnResponse, now_ms: int) -> None:
        assert ask.call is not None, "offsets are sent for a call"
        if answer.error_code:
            self._refused_code(ask, answer.error_code, now_ms)
            return
        self._groups.add(ask.call.member.group_id)
        self._attempts = 0

    def _on_offsets(self, ask: Ask, answer: TxnOffsetCommitResponse, now_ms: int) -> None:
        call = ask.call
        assert call is not None, "offsets are sent for a call"
        assert isinstance(ask.message, TxnOffsetCommitRequest), "the answer is to a commit"
        failed = {}
        names = {topic.topic_id: topic.name for topic in ask.message.topics}
        for topic in answer.topics:
            topic.name = topic.name or names.get(topic.topic_id, "")
            for part in topic.partitions:
                if part.error_code:
                    if part.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                        self._recreated.add(topic.name)
                    failed[topic.name, part.partition_index] = ErrorCode(part.error_code)
                else:
                    call.offsets.pop((topic.name, part.partition_index), None)
        # What succeeded was taken out of the call, so a repeated request asks for the rest only.
        if failed:
            self._worst(ask, failed, now_ms)
        elif not call.is_done:
            self._attempts = 0
            self._offsets.remove(call)
            self._end_call(call, None)

    def _on_end(self, ask: Ask, answer: EndTxnResponse, now_ms: int) -> None:
        code = ErrorCode(answer.error_code)
        # Added in vain: a lost answer made us believe that the coordinator knew of it. Aborting nothing is no error.
        was_empty = code is ErrorCode.INVALID_TXN_STATE and not (self._added or self._groups or self.is_version_2)
        if code and not (was_empty and self.state is State.ABORTING):
            assert isinstance(ask.message, EndTxnRequest), "only EndTxn is answered so"
            if code is ErrorCode.TRANSACTION_ABORTABLE and not ask.message.committed:
                self._fatal(error_for(code, "the abort was refused"))
            else:
                self._refused_code(ask, code, now_ms)
            return
        if answer.producer_id >= 0:
            raised = (answer.producer_id, answer.producer_epoch)
            # The coordinator has raised the epoch at the end (KIP-890), which fills the hole without another request.
            self._must_bump &= raised == self.producer
            self.producer = raised
        self._finish_end()

    def _finish_end(self) -> None:
        """The transaction is over; raise the epoch if sequence numbers were lost, or brokers speak version 2 now."""
        if self._must_bump or (self._level >= VERSION_2 and not self.is_version_2):
            self._attempts = 0
            self._move(State.INITIALIZING)
        else:
            self._ready()

    def _ready(self) -> None:
        # Between two transactions and never inside one: its begin and its end must speak the same version.
        self.is_version_2 = self._level >= VERSION_2
        self._attempts = 0
        self._move(State.READY)
        if self._pending is not None:
            self._end_call(self._pending, None)

    def _worst(self, ask: Ask, failed: dict[tuple[str, int], ErrorCode], now_ms: int) -> None:
        """Of several partitions' errors the gravest decides."""
        (topic, partition), code = max(failed.items(), key=lambda one: _GRAVITY.index(reaction(ask.api, one[1])))
        self._refused_code(ask, code, now_ms, f"{topic}-{partition}")

    def _refused_code(self, ask: Ask, code: int, now_ms: int, where: str = "") -> None:
        known = ErrorCode(code)
        text = f"{ask.api} of transactional id {self.transactional_id!r}{f', {where}' if where else ''}"
        operation, names = self._right(known, ask, where)
        error = error_for(known, f"{text}: {known.meaning}", operation=operation, names=names, user=self._config.user)
        self._refused(ask, reaction(ask.api, known), error, now_ms)

    def _right(self, code: ErrorCode, ask: Ask, where: str) -> tuple[str, list[str]]:
        """The operation and the names that the broker refused, if the code says that a right is missing."""
        match code:
            case ErrorCode.GROUP_AUTHORIZATION_FAILED:
                return "READ", [getattr(ask.message, "group_id", "")]
            case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                return ("READ" if ask.api == "TxnOffsetCommit" else "WRITE"), [where.rpartition("-")[0]]
            case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                return "IDEMPOTENT_WRITE", []
            case _:
                return "WRITE", [self.transactional_id]

    def _refused(self, ask: Ask, what: Reaction, error: KafkaError, now_ms: int) -> None:
        if what in (Reaction.RETRY, Reaction.LOOK_UP):
            if what is Reaction.LOOK_UP:
                self._lost.append((ask.key, ask.key_type))
            pause = self._backoff_ms * 2 ** min(self._attempts, 20)
            self._not_before_ms = now_ms + min(self._backoff_max_ms, pause)
            self._attempts += 1
            self._trouble = error
        else:
            self._attempts = 0
            self._react(what, error)

    def _react(self, what: Reaction, error: Exception) -> None:
        if what is Reaction.FENCED:
            self._fatal(
                ProducerFencedError(
                    f"another producer has called init_transactions with transactional id {self.transactional_id!r}; "
                    "close this one, and give programs that run at the same time ids of their own"
                ),
                error,
            )
        elif what is Reaction.FATAL:
            self._fatal(error)
        else:
            self._must_bump |= what is Reaction.BUMP
            self._abortable(error)

    def _abortable(self, error: Exception) -> None:
        """The transaction can only be aborted; during an abort that changes nothing."""
        if self.state is State.INITIALIZING:
            self._init_failed(error)
        elif self.state in (State.IN_TRANSACTION, State.COMMITTING):
            self._error = _wrapped(AbortableTransactionError, error, "the transaction has to be aborted")
            self._move(State.ABORTABLE_ERROR)
            self._new.clear()
            self._fail_offsets(self._error)
            if self._pending is not None:
                self._end_call(self._pending, self._error)

    def _init_failed(self, error: Exception) -> None:
        """Not allowed: `init_transactions` may be called again. A raise of the epoch that fails is the end."""
        if self.producer is not None:
            self._fatal(error)
            return
        self._move(State.UNINITIALIZED)
        if self._pending is not None:
            self._end_call(self._pending, error)

    def _fatal(self, error: Exception, cause: Exception | None = None) -> None:
        if self.state is State.FATAL_ERROR:
            return
        # The commit itself is known to be done; it is the raise of the epoch behind it that failed.
        was_committed = self.state is State.INITIALIZING and self.producer is not None
        self._error = _wrapped(FatalTransactionError, error, "this producer cannot go on; close it")
        if cause is not None:
            self._error.__cause__ = cause
        self._move(State.FATAL_ERROR)
        self._new.clear()
        self._fail_offsets(self._error)
        if self._pending is not None:
            is_known = was_committed and self._pending.kind is CallKind.COMMIT
            self._end_call(self._pending, None if is_known else self._error)

    # Calls

    def _begin_call(self, kind: CallKind) -> Call:
        self._pending = Call(kind)
        return self._pending

    def _end_call(self, call: Call, error: Exception | None) -> None:
        if not call.is_done:
            call.is_done, call.error = True, error
            self._callbacks += call.callbacks
            call.callbacks.clear()

    def _fail_offsets(self, error: Exception | None) -> None:
        calls, self._offsets = self._offsets, []
        for call in calls:
            self._end_call(call, error)

    def _again(self, kind: CallKind) -> Call | None:
        """The same call if it is still under way, or its end has not been fetched yet."""
        if self._pending is not None and self._pending.kind is kind:
            return self._pending
        self._need_no_call(kind.value)
        return None

    def _need_no_call(self, name: str) -> None:
        if self._pending is not None:
            kind = self._pending.kind.value
            raise TransactionMisuseError(
                f"{name} cannot be called now: the outcome of {kind} is not known yet; call {kind} again"
            )

    def _need(self, states: Iterable[State], name: str) -> None:
        """Raise the error that stands, or a misuse, unless the state is one of these."""
        if self.state in states:
            return
        if self._error is not None and not (name == "begin_transaction" and self.state is State.ABORTABLE_ERROR):
            raise self._error
        raise TransactionMisuseError(f"{name} cannot be called now: {_ADVICE[self.state]}")

    def _move(self, to: State) -> None:
        assert to in MOVES[self.state], f"a producer that is {self.state.value} cannot become {to.value}"
        self.state = to


_WITH_RECORDS = frozenset({State.IN_TRANSACTION, State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR})
_GRAVITY = (
    Reaction.OTHERS,
    Reaction.RETRY,
    Reaction.LOOK_UP,
    Reaction.ABORTABLE,
    Reaction.BUMP,
    Reaction.FATAL,
    Reaction.FENCED,
)
_ADVICE = {
    State.UNINITIALIZED: "call init_transactions first",
    State.INITIALIZING: "init_transactions is under way",
    State.READY: "no transaction is open, or init_transactions was called already; call begin_transaction, or use "
    "`with producer.transaction():`",
    State.IN_TRANSACTION: "a transaction is open; end it with commit_transaction or abort_transaction",
    State.COMMITTING: "the transaction is being committed",
    State.ABORTING: "the transaction is being aborted",
    State.ABORTABLE_ERROR: "the open transaction has failed; call abort_transaction",
    State.FATAL_ERROR: "the producer cannot go on; close it",
}


def _wrapped(kind: type[KafkaError], error: Exception, what: str) -> KafkaError:
    """The error itself if its class says already what to do; else one that does, with the error as its cause."""
    if isinstance(error, kind):
        return error
    told = kind(f"{what}: {error}")
    told.__cause__ = error
    return told
