"""A consumer of the simulation: the real pure core, driven as the asyncio shell drives it, beside a producer."""

from __future__ import annotations

from collections.abc import Generator

from partita.broker.api.apis import SERVED
from partita.consumer.config import ConsumerConfig
from partita.consumer.core import ConsumerCore
from partita.consumer.request import Assigned, Lost, Request, Revoked
from partita.errors import KafkaError
from partita.offsets.topic_partition import TopicPartition
from partita.producer.transactions.calls import Member
from partita.records.batch import Record
from partita.sim.transactions.client import REQUEST_TIMEOUT_MS, Client, Slot, Wait

GROUP_LANE, FETCH_LANE = 1, 2
"""Connections: a parked join holds up nothing else, and neither does a fetch that waits."""


class SimConsumer:
    """A member of a group that reads whole topics."""

    def __init__(self, client: Client, topics: tuple[str, ...], **options: object) -> None:
        self._client = client
        self._due_ms = -1
        config = ConsumerConfig.of(None, bootstrap_servers="sim:9092", client_id=client.name, **options)
        member_id = f"{client.name}@{client.world.now.mono_ms}"
        self.core = ConsumerCore(config, client.world.dice.uniform, member_id)
        self.core.subscription.subscribe_topics(topics)
        client.parts.append(self._turn)

    # What scripts call

    def poll(self, wait_ms: int) -> Generator[Wait, None, dict[TopicPartition, list[Record]]]:
        """Return new records, or none after a while. Raises KafkaError."""
        core, world = self.core, self._client.world
        due_ms = world.now.mono_ms + wait_ms
        world.at(due_ms, self._client.turn)
        core.begin_poll(world.now)
        while True:
            self._turn()
            self._call_back()
            error = core.next_error()
            if isinstance(error, KafkaError) and not error.retriable:
                raise error
            assert error is None or isinstance(error, KafkaError), repr(error)
            found = core.collect(core.config.max_poll_records).records
            if found or world.now.mono_ms >= due_ms:
                break
            yield self._has_news(due_ms)
        if found:
            core.hand_out()
        core.end_poll(world.now)
        return found

    def go_back(self) -> None:
        """Read again from what the group has committed."""
        for topic in self.core.subscription.metadata_topics:
            self.core.subscription.start_over(topic)

    def positions(self) -> dict[TopicPartition, int]:
        """The known positions in its partitions."""
        assigned = self.core.subscription.assignment
        return {at: state.consumed[0] for at, state in assigned.items() if state.consumed is not None}

    def member(self) -> Member:
        """Its identity in the group."""
        given = self.core.group_metadata()
        return Member(given.group_id, given.generation_id, given.member_id)

    # Driving the core

    def _has_news(self, due_ms: int) -> Wait:
        world, events = self._client.world, self.core.member.events
        return lambda: bool(self.core.buffer) or bool(events) or world.now.mono_ms >= due_ms

    def _turn(self) -> None:
        core, world = self.core, self._client.world
        poll = core.poll(world.now)
        for node in core.take_drops():
            self._client.hang_up(node.id, GROUP_LANE)
        for request in poll.requests:
            self._send(request)
        due_ms = world.now.mono_ms + max(1, poll.wait_ms)
        if not world.now.mono_ms < self._due_ms <= due_ms:
            self._due_ms = due_ms
            world.at(due_ms, self._client.turn)

    def _call_back(self) -> None:
        """The application has nothing to do in its callbacks: what is under way it ends before it polls."""
        while (event := self.core.take_event()) is not None:
            if isinstance(event, Assigned | Revoked | Lost):
                self._client.world.saw("a", self._client.name, f"{type(event).__name__} {event.partitions}")
                self.core.callback_done(None, self._client.world.now)
                self._turn()

    def _send(self, request: Request) -> None:
        client, message = self._client, request.message
        highest = min(message.MAX_VERSION, SERVED[message.API_KEY].max_version)
        request.version = highest if request.max_version is None else min(highest, request.max_version)
        request.sent_at_ms = client.world.now.mono_ms
        node_id = client.any_node() if request.node is None else request.node.id

        def end(slot: Slot) -> None:
            if slot.error is not None:
                self.core.on_disconnect(request, client.world.now)
            else:
                self.core.on_response(request, slot.response, client.world.now)

        lane = GROUP_LANE if request.to_coordinator else FETCH_LANE
        timeout_ms = request.timeout_ms or REQUEST_TIMEOUT_MS
        client.post(node_id, message, request.version, end, lane=lane, timeout_ms=timeout_ms)
