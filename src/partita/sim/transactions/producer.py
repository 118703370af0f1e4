"""A producer of the simulation: the real pure core, driven as the asyncio shell drives it."""

from __future__ import annotations

from collections.abc import Callable, Generator

from partita.errors import KafkaError
from partita.producer.batch import NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.core import ProducerCore, Sending
from partita.producer.delivery import Delivery
from partita.producer.errors import TransactionTimeoutError
from partita.producer.transactions.calls import Ask, Call, CallKind
from partita.producer.transactions.core import Transactions
from partita.protocol.messages.end_txn import EndTxnRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import ProduceRequest
from partita.sim.transactions.client import RETRY_MS, Client, Slot, Wait

PRODUCE_VERSION_MAX = 12
"""The highest one that names topics."""
Answered = Callable[["SimProducer", "InitProducerIdRequest | EndTxnRequest", object], None]


class SimProducer:
    """The producer of a client. `level` is the brokers' transaction.version as the client sees it."""

    def __init__(self, client: Client, level: Callable[[], int], on_answer: Answered, **options: object) -> None:
        self.client = client
        self.level = level
        config = ProducerConfig.of(None, bootstrap_servers="sim:9092", client_id=client.name, **options)
        self.core = ProducerCore(config, client.view, lambda count: client.world.dice.between(0, count - 1))
        self._on_answer = on_answer
        self._due_ms = -1
        self._is_refreshing = self._is_asking_id = False
        client.parts.append(self._turn)

    @property
    def transactions(self) -> Transactions:
        """The state of the transaction."""
        assert self.core.transactions is not None, "only producers with a transactional id are asked"
        return self.core.transactions

    # What scripts call

    def send(
        self, topic: str, partition: int, value: str, key: str | None = None, timestamp: int | None = None
    ) -> Delivery:
        """Take a record in. Raises KafkaError."""
        now = self.client.world.now
        encoded = None if key is None else key.encode()
        when_ms = now.wall_ms if timestamp is None else timestamp
        delivery = Delivery(NewRecord(topic, encoded, value.encode(), (), when_ms, partition))
        self.core.add(delivery, now.mono_ms)
        return delivery

    def call(self, start: Callable[[Transactions], Call]) -> Generator[Wait, None, None]:
        """Make a call of a transaction and wait for its end. Raises its error.

        A call that takes longer than max.block.ms is repeated until its end is known; offsets are given up.
        """
        call = start(self.transactions)
        is_over = self.client.pause_for(self.core.config.max_block_ms)
        yield lambda: call.is_done or (call.kind is CallKind.SEND_OFFSETS and is_over())
        if not call.is_done:
            raise TransactionTimeoutError("send_offsets did not end in time")
        self.transactions.heard(call)
        if call.error is not None:
            raise call.error

    # Driving the core

    def _turn(self) -> None:
        now_ms = self.client.world.now.mono_ms
        poll = self.core.poll(now_ms)
        self._call_back()
        for sending in poll.sendings:
            self._post(sending)
        if poll.topics_wanted and not self._is_refreshing:
            self._is_refreshing = True
            self.client.refresh(sorted(poll.topics_wanted), self._refreshed)
        if poll.wants_producer_id and not self._is_asking_id:
            self._ask_producer_id()
        if poll.ask is not None:
            self._find_and_ask(poll.ask)
        due_ms = now_ms + max(1, poll.wait_ms)
        if not now_ms < self._due_ms <= due_ms:
            self._due_ms = due_ms
            self.client.world.at(due_ms, self.client.turn)

    def _call_back(self) -> None:
        self.core.take_failures()
        for callback in self.core.take_callbacks():
            callback()

    def _refreshed(self) -> None:
        self._is_refreshing = False

    def _post(self, sending: Sending) -> None:
        request = self.core.request_for(sending)
        version = min(ProduceRequest.MAX_VERSION, PRODUCE_VERSION_MAX, sending.max_version or PRODUCE_VERSION_MAX)

        def end(slot: Slot) -> None:
            now_ms = self.client.world.now.mono_ms
            if slot.error is not None:
                self.core.on_failure(sending, slot.error, now_ms)
            else:
                self.core.on_response(sending, slot.response, now_ms)

        self.client.post(sending.node_id, request, version, end)

    def _ask_producer_id(self) -> None:
        self._is_asking_id = True

        def end(slot: Slot) -> None:
            self._is_asking_id = False
            if slot.response is not None and not slot.response.error_code:
                self._on_answer(self, message, slot.response)
                self.core.on_producer_id(slot.response.producer_id, slot.response.producer_epoch)

        message = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.client.post(1, message, 4, end)

    def _find_and_ask(self, ask: Ask) -> None:
        def found(node: int | KafkaError) -> None:
            if isinstance(node, KafkaError):
                self.client.world.after(RETRY_MS, self._failed, ask, node)
                return
            self.transactions.learn(1, self.level())
            version = ask.message.MAX_VERSION if ask.version_max is None else ask.version_max
            version = min(version, _HIGHEST.get(ask.api, ask.message.MAX_VERSION))
            self.client.post(node, ask.message, version, end)

        def end(slot: Slot) -> None:
            if slot.error is not None:
                if isinstance(ask.message, EndTxnRequest):
                    self._on_answer(self, ask.message, None)
                self._report_failure(ask, slot.error)
                return
            if isinstance(ask.message, InitProducerIdRequest | EndTxnRequest) and not slot.response.error_code:
                self._on_answer(self, ask.message, slot.response)
            self.transactions.on_answer(ask, slot.response, self.client.world.now.mono_ms)
            self._forget_lost()

        self.client.with_coordinator(ask.key, ask.key_type, found)

    def _failed(self, ask: Ask, error: KafkaError) -> None:
        if not self.client.is_over:
            self._report_failure(ask, error)
            self.client.turn()

    def _report_failure(self, ask: Ask, error: KafkaError) -> None:
        self.transactions.on_trouble(ask, error, self.client.world.now.mono_ms)
        self._forget_lost()

    def _forget_lost(self) -> None:
        for key, key_type in self.transactions.take_lost():
            self.client.forget_coordinator(key, key_type)


_HIGHEST = {"InitProducerId": 5}
"""Version 6 is not served."""
