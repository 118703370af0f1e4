"""Consumers on virtual time against a broker in memory: no socket, no thread, no sleep.

The consumers are real ones but for their I/O: requests go to `World`, which answers them from simple logs and the real
group coordinator, unless a test scripts the answer. Waiting moves the clock to the next event.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.request import Poll, Request
from partita.consumer.shell.blocking import Consumer
from partita.consumer.shell.driver import ConsumerDriver
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest
from partita.group.coordinator import GroupCoordinator
from partita.group.requests import FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import fetch, find_coordinator, list_offsets, metadata, offset_fetch
from partita.protocol.messages import offset_for_leader_epoch as epochs
from partita.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from partita.protocol.metadata_view import Node
from partita.records.batch import build_batch
from support.clock import ManualClock
from support.consumer.refusals import commit_refused

NEVER = 1 << 60
HOLD = object()
"""No answer until `World.answer_held`."""
DROP = object()
"""The connection fails instead of an answer."""


@dataclass
class Delay:
    """This reply (None: the usual one), `ms` later."""

    ms: int
    reply: Any = None


@dataclass
class Log:
    """One partition: whole batches with their offsets."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    start: int = 0
    end: int = 0
    stable: int | None = None
    epoch: int = 0
    leader: int = 1
    aborted: list[tuple[int, int]] = field(default_factory=list)
    replicas: tuple[int, ...] = (1,)
    changed: bool = False

    @property
    def last_stable(self) -> int:
        return self.end if self.stable is None else self.stable

    def read(self, offset: int, max_bytes: int) -> bytes:
        found = b""
        for _, last, data in self.batches:
            if last >= offset:
                if found and len(found) + len(data) > max_bytes:
                    break
                found += data
        return found


@dataclass
class Sent:
    at_ms: int
    who: int
    name: str
    message: Any
    node: int | None
    to_coordinator: bool
    version: int


class SimIo:
    """Stands where the I/O thread stands: same calls, virtual time."""

    def __init__(self, world: World, number: int, core: Any) -> None:
        self.core, self.world, self.number = core, world, number
        self.lock = threading.RLock()
        self.activity = self.news = 0
        self.failure: BaseException | None = None
        self.has_ended = False
        self.waiters: list[Callable[[], None]] = []
        self.in_flight: set[Request] = set()
        self.on_answer: Any = None
        self.answered_ms = 0
        self.due_ms = NEVER
        self.is_stopped = False

    def step(self) -> None:
        now, poll = self.world.clock.now(), Poll()
        try:
            self.core.poll(now, poll)
        except KeyboardInterrupt:
            self.core.on_broken_off(poll.requests, self.in_flight, now)
            self.due_ms = now.mono_ms
            raise
        self.due_ms = now.mono_ms + poll.wait_ms
        for node in self.core.take_drops():
            self.world.cut(self, node)
        self.submit(poll.requests)

    def submit(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self.in_flight.add(request)
            self.world.deliver(self, request)

    def turn(self) -> None:
        self.step()
        self.notify(is_news=self.core.has_news)

    def notify(self, *, is_news: bool = True) -> None:
        self.activity += 1
        self.news += is_news

    def measure(self, metrics: object) -> None:
        """There are no connections to count."""

    def stop(self) -> None:
        self.is_stopped = True
        self.due_ms = NEVER

    def abandon(self, why: str) -> None:
        self.submit(self.core.membership.leave(why))

    @property
    def is_running(self) -> bool:
        """Tests drop their consumers without a word."""
        return False


class SimWaiter:
    """Waits by moving the clock."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def wait(self, io: Any, seen: int, seconds: float, *, for_news: bool = False) -> None:
        end, news = self.world.now + round(seconds * 1000), io.news
        if io.activity == seen:
            while (io.news == news if for_news else io.activity == seen) and self.world.run_one(end):
                pass

    async def call(self, function: Any, *arguments: Any) -> Any:
        return function(*arguments)

    async def shielded(self, callback: Any) -> None:
        await callback

    async def callbacks_ended(self, seconds: float) -> None:
        pass

    async def joined(self, thread: Any) -> None:
        pass

    async def offload(self, work: Any) -> None:
        work()

    def identity(self) -> object:
        return threading.get_ident()


class World:
    """The cluster. `script(name, ...)` sets the next answers of an API, `sent(name)` lists what came in."""

    def __init__(self, topics: dict[str, int] | None = None, *, nodes: int = 1, latency_ms: int = 1) -> None:
        self.clock = ManualClock(mono_ms=1_000)
        self.latency_ms = latency_ms
        self.nodes = {i: Node(i, f"node{i}", 9092) for i in range(1, nodes + 1)}
        self.coordinator_node = nodes
        self.ids: dict[str, bytes] = {}
        self.internal: set[str] = set()
        self.logs: dict[tuple[str, int], Log] = {}
        self.log: list[Sent] = []
        self.scripts: dict[str, deque[Any]] = defaultdict(deque)
        self.always: dict[str, Any] = {}
        self.topic_errors: dict[str, int] = {}
        self.max_versions: dict[str, int] = {}
        self.held: list[tuple[SimIo, Request]] = []
        self.consumers: list[SimIo] = []
        self.uses_sessions = True
        self.has_refused_a_commit = False
        self.unreachable = ""
        """Why no broker can be reached, as long as none can."""
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._sessions: dict[int, dict[tuple[str, int], Any]] = {}
        self._session_epochs: dict[int, int] = {}
        self._waiting_fetches: list[tuple[SimIo, Request]] = []
        self._asked_ids: dict[str, bytes] = {}
        self._plans: dict[Request, Any] = {}
        ids = itertools.count(1)
        config = GroupConfig(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=100)
        self.group = GroupCoordinator(config, lambda client: f"{client}-{next(ids)}")
        self.group.resume(self.clock.now())
        self._tokens: dict[Any, tuple[SimIo, Request, list[OffsetCommitResponseTopic]]] = {}
        for topic, count in (topics or {}).items():
            self.create(topic, count)

    # What tests do

    @property
    def now(self) -> int:
        return self.clock.now().mono_ms

    def create(self, topic: str, partitions: int = 1) -> None:
        """A topic, or more partitions of one; leaders go round the nodes."""
        self.ids.setdefault(topic, len(self.ids).to_bytes(15, "big") + b"\1")
        names = list(self.nodes)
        for p in range(partitions):
            leader = names[(p + sum(map(ord, topic)) * 0) % len(names)]
            self.logs.setdefault((topic, p), Log(leader=leader, replicas=(leader,)))

    def recreate(self, topic: str) -> None:
        """The topic is deleted and created again, empty; its committed offsets go with it."""
        self.ids[topic] = self.ids[topic][:-1] + bytes([self.ids[topic][-1] + 1])
        for tp, log in self.logs.items():
            if tp[0] == topic:
                self.logs[tp] = Log(leader=log.leader, replicas=log.replicas)
        self._release(self.group.on_topics_deleted([topic], self.clock.now()))

    def append(self, topic: str, partition: int, count: int, *, value: bytes = b"v", at: int = 0, **batch: Any) -> None:
        """One batch of `count` records."""
        log = self.logs[topic, partition]
        base = log.end
        records = [(at + i, b"k%d" % (base + i), value + b"%d" % (base + i), ()) for i in range(count)]
        batch.setdefault("leader_epoch", log.epoch)
        self.append_batch(topic, partition, build_batch(records, base_offset=base, **batch), base, base + count - 1)
        log.times += [(base + i, at + i) for i in range(count)]

    def append_batch(self, topic: str, partition: int, data: bytes, first: int, last: int) -> None:
        log = self.logs[topic, partition]
        log.batches.append((first, last, data))
        log.end = last + 1
        log.changed = True
        for io, request in list(self._waiting_fetches):
            self._try_fetch(io, request, at_deadline=False)

    def consumer(self, kind: type[Consumer] = Consumer, /, **options: Any) -> Consumer:
        options = {"bootstrap_servers": "node1:9092", "auto_offset_reset": "earliest", **options}
        number = len(self.consumers) + 1
        options.setdefault("client_id", f"c{number}")

        def make_io(core: Any, config: Any, clock: Any) -> Any:
            io = SimIo(self, number, core)
            self.consumers.append(io)
            return io

        shell = ConsumerDriver(
            ConsumerConfig.of(None, **options),
            SimWaiter(self),
            strict=True,
            clock=self.clock,
            make_io=make_io,
            uniform=lambda low, high: 1.0,
        )
        return kind._over(shell)

    def script(self, name: str, *replies: Any) -> None:
        self.scripts[name] += replies

    def sent(self, name: str | None = None, who: int | None = None) -> list[Sent]:
        """Requests in order; of one API, of one consumer."""
        return [s for s in self.log if (name is None or s.name == name) and (who is None or s.who == who)]

    def names(self, who: int | None = None) -> list[str]:
        return [s.name for s in self.sent(who=who)]

    def forget(self) -> None:
        self.log.clear()

    def run(self, ms: int) -> None:
        """Time passes while the application does something else."""
        end = self.now + ms
        while self.run_one(end):
            pass

    def answer_held(self, reply: Any = None) -> None:
        """Answer what was held; None gives the usual answers."""
        held, self.held = self.held, []
        for io, request in held:
            self._reply(io, request, reply if reply is not None else self._usual(io, request))

    # Time

    def run_one(self, end: int) -> bool:
        """Do the next thing if it is due by `end`; else move the clock there."""
        next_event = self._events[0][0] if self._events else NEVER
        due = min((io.due_ms for io in self.consumers), default=NEVER)
        deadline = self.group.next_deadline_ms()
        when = min(next_event, due, NEVER if deadline is None else deadline)
        if when > end:
            self.clock.advance(max(0, end - self.now))
            return False
        self.clock.advance(max(0, when - self.now))
        if next_event == when:
            heapq.heappop(self._events)[2]()
        elif due == when:
            next(io for io in self.consumers if io.due_ms == when).turn()
        else:
            self._release(self.group.on_deadline(self.clock.now()))
        return True

    def after(self, ms: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + ms, next(self._order), do))

    # Requests

    def deliver(self, io: SimIo, request: Request) -> None:
        name = type(request.message).__name__.removesuffix("Request")
        highest = min(request.message.MAX_VERSION, self.max_versions.get(name, 99))
        if highest < request.message.MIN_VERSION:
            self.after(self.latency_ms, lambda: self._unsupported(io, request))
            return
        request.version = highest if request.max_version is None else min(highest, request.max_version)
        request.message.encode(request.version)
        request.sent_at_ms = self.now
        if self.unreachable:
            self.after(self.latency_ms, lambda: self.drop(io, request))
            return
        node = None if request.node is None else request.node.id
        self.log.append(Sent(self.now, io.number, name, request.message, node, request.to_coordinator, request.version))
        timeout = request.timeout_ms or io.core.config.request_timeout_ms
        self.after(timeout, lambda: self.drop(io, request))
        script = self.scripts[name].popleft() if self.scripts[name] else self.always.get(name)
        self._act(io, request, script)

    def _act(self, io: SimIo, request: Request, script: Any) -> None:
        if isinstance(script, Delay):
            self.after(script.ms, lambda: self._act(io, request, script.reply))
        elif script is HOLD:
            self.held.append((io, request))
        elif script is DROP:
            self.after(self.latency_ms, lambda: self.drop(io, request))
        else:
            reply = script(request.message) if callable(script) else script
            self._reply(io, request, reply if reply is not None else self._usual(io, request))

    def _reply(self, io: SimIo, request: Request, reply: Any) -> None:
        if reply is not None:
            self.after(self.latency_ms, lambda: self._arrive(io, request, reply))

    def _arrive(self, io: SimIo, request: Request, reply: Any) -> None:
        if request not in io.in_flight or io.is_stopped:
            return
        io.in_flight.discard(request)
        io.answered_ms = self.now
        if isinstance(reply, OffsetCommitResponse):
            self.has_refused_a_commit |= any(p.error_code for topic in reply.topics for p in topic.partitions)
            ids = {topic.name: topic.topic_id for topic in request.message.topics}
            for topic in reply.topics:
                topic.topic_id = ids.get(topic.name, bytes(16))
        response = type(reply).decode(reply.encode(request.version), request.version)
        if io.on_answer is not None:
            io.on_answer(request, response, self.now - request.sent_at_ms)
        io.core.on_response(request, response, self.clock.now())
        io.turn()

    def drop(self, io: SimIo, request: Request) -> None:
        if request in io.in_flight and not io.is_stopped:
            io.in_flight.discard(request)
            if self.unreachable and request.node is None:
                io.core.on_unreachable(request, self.unreachable, self.clock.now())
            else:
                io.core.on_disconnect(request, self.clock.now())
            io.turn()

    def _unsupported(self, io: SimIo, request: Request) -> None:
        io.in_flight.discard(request)
        io.core.on_unsupported(request, RuntimeError("unsupported"), self.clock.now())
        io.turn()

    def cut(self, io: SimIo, node: Node) -> None:
        """The consumer closes its connection to the coordinator."""
        for request in [r for r in io.in_flight if r.to_coordinator and r.node == node]:
            self.after(0, partial(self.drop, io, request))

    # Usual answers

    def _usual(self, io: SimIo, request: Request) -> Any:
        message = request.message
        match type(message).__name__:
            case "MetadataRequest":
                return self.metadata(message)
            case "FindCoordinatorRequest":
                node = self.nodes[self.coordinator_node]
                one = find_coordinator.Coordinator(key=message.key, node_id=node.id, host=node.host, port=node.port)
                return find_coordinator.FindCoordinatorResponse(
                    coordinators=[one], node_id=node.id, host=node.host, port=node.port
                )
            case "FetchRequest":
                return self._fetch(io, request)
            case "ListOffsetsRequest":
                return self._list_offsets(message)
            case "OffsetForLeaderEpochRequest":
                return self._epochs(message)
            case _:
                return self._to_group(io, request)

    def metadata(self, message: Any = None) -> MetadataResponse:
        wanted = sorted(self.ids) if message is None or message.topics is None else [t.name for t in message.topics]
        brokers = [metadata.MetadataResponseBroker(node_id=n.id, host=n.host, port=n.port, rack=n.rack)
                   for n in self.nodes.values()]  # fmt: skip
        return metadata.MetadataResponse(brokers=brokers, cluster_id="sim", controller_id=1,
                                         topics=[self._topic(name) for name in wanted])  # fmt: skip

    def _topic(self, name: str) -> MetadataResponseTopic:
        error = self.topic_errors.get(name, 0 if name in self.ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=p, leader_id=log.leader, leader_epoch=log.epoch,
                replica_nodes=list(log.replicas), isr_nodes=list(log.replicas),
            )
            for (topic, p), log in self.logs.items() if topic == name and not error
        ]  # fmt: skip
        return MetadataResponseTopic(
            name=name, topic_id=self.ids.get(name, bytes(16)), error_code=int(error), partitions=partitions,
            is_internal=name in self.internal,
        )  # fmt: skip

    def _to_group(self, io: SimIo, request: Request) -> Any:
        message = request.message
        if isinstance(message, offset_fetch.OffsetFetchRequest):
            message = FetchOffsets(message.groups[0], require_stable=message.require_stable)
            for topic in message.group.topics or ():
                topic.topic_id = self.ids.get(topic.name, bytes(16))
        gone: list[OffsetCommitResponseTopic] = []
        if isinstance(message, OffsetCommitRequest) and request.version >= 10:
            there = [topic for topic in message.topics if topic.topic_id == self.ids.get(topic.name)]
            absent = [topic for topic in message.topics if topic not in there]
            gone = commit_refused(absent, ErrorCode.UNKNOWN_TOPIC_ID).topics
            message = copy.copy(message)
            message.topics = there
            if gone and not there:
                return OffsetCommitResponse(topics=gone)
        for topic in getattr(message, "topics", None) or ():
            topic.topic_id = self.ids.get(topic.name, bytes(16))
        token = object()
        self._tokens[token] = (io, request, gone)
        client = io.core.config.client_id
        self._release(
            self.group.handle(token, GroupRequest(message, request.version, client, "/sim"), self.clock.now())
        )
        return None

    def _release(self, step: Any) -> None:
        for reply in step.replies:
            io, request, gone = self._tokens.pop(reply.token)
            response = reply.message
            if gone:
                response.topics += gone
            if isinstance(response, offset_fetch.OffsetFetchResponseGroup):
                response = offset_fetch.OffsetFetchResponse(groups=[response])
            self._reply(io, request, response)

    def _list_offsets(self, message: Any) -> Any:
        topics = []
        for topic in message.topics:
            parts = []
            for p in topic.partitions:
                log = self.logs.get((topic.name, p.partition_index))
                if log is None:
                    code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    parts.append(
                        list_offsets.ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=code)
                    )
                    continue
                offset, ts = self._offset_at(log, p.timestamp, committed=message.isolation_level == 1)
                answer = list_offsets.ListOffsetsPartitionResponse(
                    partition_index=p.partition_index, offset=offset, timestamp=ts, leader_epoch=log.epoch
                )
                parts.append(answer)
            topics.append(list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=parts))
        return list_offsets.ListOffsetsResponse(topics=topics)

    def _offset_at(self, log: Log, timestamp: int, *, committed: bool) -> tuple[int, int]:
        if timestamp == -1:
            return (log.last_stable if committed else log.end), -1
        if timestamp == -2:
            return log.start, -1
        return next(((o, t) for o, t in log.times if t >= timestamp), (-1, -1))

    def _epochs(self, message: Any) -> Any:
        topics = [
            epochs.OffsetForLeaderTopicResult(topic=t.topic, partitions=[
                epochs.EpochEndOffset(partition=p.partition, leader_epoch=p.leader_epoch,
                                      end_offset=self.logs[t.topic, p.partition].end) for p in t.partitions])
            for t in message.topics
        ]  # fmt: skip
        return epochs.OffsetForLeaderEpochResponse(topics=topics)

    # Fetch

    def _fetch(self, io: SimIo, request: Request) -> Any:
        message = request.message
        if message.session_epoch == -1:
            self._sessions.pop(message.session_id, None)
            return fetch.FetchResponse()
        reply = self._session(request)
        if isinstance(reply, fetch.FetchResponse):
            return reply
        self._plans[request] = reply
        return None if self._hold_fetch(io, request) else self._fetched(request)

    def _session(self, request: Request) -> Any:
        """(session id, wanted partitions, is full), or the error that answers."""
        message = request.message
        asked = {(t.topic, p.partition): p for t in message.topics for p in t.partitions}
        self._asked_ids |= {t.topic: t.topic_id for t in message.topics}
        if message.session_epoch == 0:
            self._sessions.pop(message.session_id, None)
            sid = len(self._session_epochs) + 1 if self.uses_sessions else 0
            self._session_epochs[sid] = 1
            if sid:
                self._sessions[sid] = asked
            return sid, asked, True
        held = self._sessions.get(message.session_id)
        if held is None:
            return fetch.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if message.session_epoch != self._session_epochs[message.session_id]:
            return fetch.FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self._session_epochs[message.session_id] += 1
        for gone in message.forgotten_topics_data:
            for p in gone.partitions:
                held.pop((gone.topic, p), None)
        held |= asked
        return message.session_id, held, False

    def _hold_fetch(self, io: SimIo, request: Request) -> bool:
        if self._has_news(request):
            return False
        self._waiting_fetches.append((io, request))
        self.after(request.message.max_wait_ms, lambda: self._try_fetch(io, request, at_deadline=True))
        return True

    def _has_news(self, request: Request) -> bool:
        _, wanted, _ = self._plans[request]
        for tp, p in wanted.items():
            log = self.logs.get(tp)
            if log is None or log.leader != request.node.id:  # type: ignore[union-attr]  # requests for partitions have a node
                return True
            limit = log.last_stable if request.message.isolation_level else log.end
            if not log.start <= p.fetch_offset <= log.end or p.fetch_offset < limit:
                return True
        return False

    def _try_fetch(self, io: SimIo, request: Request, *, at_deadline: bool) -> None:
        if (io, request) in self._waiting_fetches and (at_deadline or self._has_news(request)):
            self._waiting_fetches.remove((io, request))
            self._reply(io, request, self._fetched(request))

    def _fetched(self, request: Request) -> fetch.FetchResponse:
        sid, wanted, is_full = self._plans.pop(request)
        topics: dict[str, Any] = {}
        for (name, number), asked in wanted.items():
            data = self._partition(request, name, number, asked)
            if is_full or data.records or data.error_code:
                topic = topics.setdefault(
                    name, fetch.FetchableTopicResponse(topic=name, topic_id=self._asked_ids[name], partitions=[])
                )
                topic.partitions.append(data)
        return fetch.FetchResponse(session_id=sid, responses=list(topics.values()))

    def _partition(self, request: Request, name: str, number: int, asked: Any) -> Any:
        log = self.logs.get((name, number))
        if request.version > 12 and self._asked_ids[name] != self.ids.get(name):
            return fetch.PartitionData(partition_index=number, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        if log is None or log.leader != request.node.id:  # type: ignore[union-attr]  # requests for partitions have a node
            return fetch.PartitionData(partition_index=number, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not log.start <= asked.fetch_offset <= log.end:
            return fetch.PartitionData(partition_index=number, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        committed = request.message.isolation_level == 1
        aborted = (
            [fetch.AbortedTransaction(producer_id=p, first_offset=o) for p, o in log.aborted] if committed else None
        )
        return fetch.PartitionData(
            partition_index=number, high_watermark=log.end, last_stable_offset=log.last_stable,
            log_start_offset=log.start, aborted_transactions=aborted,
            records=log.read(asked.fetch_offset, asked.partition_max_bytes),
        )  # fmt: skip
