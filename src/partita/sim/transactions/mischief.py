"""Causes the faults of a plan of transactions, one method for each kind."""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from partita.sim.transactions.client import Client, Slot
from partita.sim.transactions.simulation import Simulation
from partita.sim.transactions.stage import GROWING, PARTITIONS, STRICT
from partita.sim.transactions.watch import BRIEF, OFFSETS_TOPIC, STATE_TOPIC
from partita.sim.world.faults import Faults, Storms
from partita.sim.world.network import NODES

_REFUSALS = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_LEVEL = "partita.transaction.version"
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_STALL_MS = 12_000
_ADDED_MAX = 3


class Mischief(Faults[Client]):
    """Runs until `stop`."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, _STALL_MS)
        self._simulation = simulation
        self._process = simulation.process
        self._behind_ms = 0
        self._admin = Client(simulation.world, simulation.network, "admin", simulation.node_ids)
        self._storms = Storms(simulation.world, simulation.plan.faults, self._cause, self._next_deadline_ms)

    def stop(self) -> None:
        """Cause nothing more; the wall clock shows what it should again."""
        self._storms.is_over = True
        self._set_wall_back(-self._behind_ms)

    def _next_deadline_ms(self) -> int | None:
        runner = self._process.services.transactions().runners.get(0) if self._process.is_up else None
        return None if runner is None else runner.coordinator.next_deadline_ms()

    # Kinds: clients

    def kill_client(self) -> None:
        """A process dies, and another one takes its place later."""
        if client := self._client():
            self._saw(f"kill {client.name}")
            client.kill(quietly=self._world.dice.chance(0.5))
            self._simulation.ended(client)

    def pause_client(self) -> None:
        """A process stands still for a while; often another one takes its place meanwhile, and then there are two."""
        if paused := self._pause(3 * self._simulation.plan.transaction_ms):
            client, ms = paused
            if self._world.dice.chance(0.6):
                self._world.after(ms // 2, self._simulation.start, client.name.partition(".")[0])

    def twin_client(self) -> None:
        """A second process does the same work."""
        client = self._client()
        if client is not None and len(self._simulation.clients) < 20:
            self._saw(f"a second process like {client.name}")
            self._simulation.start(client.name.partition(".")[0])

    # Kinds: the broker

    def crash_broker(self) -> None:
        """The broker dies, and starts again on its disk later."""
        if self._process.is_up:
            ms = self._world.dice.between(0, 4_000)
            lost = self._process.crash(ms)
            self._simulation.watch.crashed()
            self._saw(f"crash the broker for {ms} ms, {lost} bytes are lost")

    def move_states(self) -> None:
        """Let another node coordinate the transactions."""
        self._move(STATE_TOPIC, 0)

    def move_offsets(self) -> None:
        """Let another node coordinate the groups."""
        self._move(OFFSETS_TOPIC, 0)

    def move_data(self) -> None:
        """Let another node lead a data partition."""
        stage = self._simulation.stage
        self._move(*self._world.dice.choice((*stage.data, *stage.inputs, ("out", 0), *STRICT)))

    def _move(self, topic: str, index: int) -> None:
        def move() -> None:
            cluster = self._process.cluster
            partition = cluster.catalogue.by_name[topic].partitions[index]
            to = self._world.dice.between(1, NODES)
            self._saw(f"{topic}-{index} moves from node {partition.leader} to {to}")
            cluster.elect(partition, to)

        self._process.enter(move)

    def refuse_append(self) -> None:
        """Have the next record of the state topic refused."""
        runner = self._process.services.transactions().runners.get(0) if self._process.is_up else None
        if runner is not None:
            runner.refuse_next_append = self._world.dice.choice(_REFUSALS)
            self._saw(f"the next state record is refused with {runner.refuse_next_append.name}")

    def jump_clock(self) -> None:
        """The broker's clocks jump past the timeouts."""
        self._jump(self._world.dice.between(100, 2 * self._simulation.plan.transaction_ms))

    def jump_days(self) -> None:
        """The broker's clocks jump so far that idle producers and transactional ids are forgotten."""
        if self._process.is_up:
            self._simulation.has_forgotten = True
            self._jump(self._world.dice.choice((2 * _DAY_MS, 8 * _DAY_MS)))

    def _jump(self, ms: int) -> None:
        def jump() -> None:
            self._saw(f"the clock jumps by {ms} ms")
            self._process.clock.advance(ms)
            self._process.services.clock_jumped()
            self._process.services.upkeep.retain_now()

        self._process.enter(jump)

    def turn_clock_back(self) -> None:
        """The wall clock is set back by an hour, for once."""
        if not self._behind_ms:
            self._saw("the wall clock is set back by an hour")
            self._set_wall_back(_HOUR_MS)

    def _set_wall_back(self, ms: int) -> None:
        self._behind_ms += ms
        self._process.clock.set_wall_back(ms)

    def compact(self) -> None:
        """The log cleaner runs."""

        def compact() -> None:
            self._saw("the cleaner runs")
            self._process.loop.create_task(self._process.services.upkeep.compact_now(force=True))

        self._process.enter(compact)

    # Kinds: administrators

    def delete_records(self) -> None:
        """Delete records, also those of open transactions."""

        def delete() -> None:
            topic, index = self._world.dice.choice(self._simulation.stage.growing)
            partition = self._process.cluster.catalogue.by_name[topic].partitions[index]
            upto = self._world.dice.between(partition.log.log_start_offset, partition.log.high_watermark)
            self._saw(f"records of {topic}-{index} before {upto} are deleted")
            wanted = DeleteRecordsPartition(partition_index=index, offset=upto)
            message = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])])
            self._admin.post(partition.leader, message, 2, _heard)

        self._process.enter(delete)

    def delete_topic(self) -> None:
        """Delete a topic, even with open transactions in it; often create it again."""
        topic = BRIEF[0]
        self._saw(f"{topic} is deleted")
        message = DeleteTopicsRequest(topic_names=[topic], timeout_ms=5_000)
        self._admin.post(self._admin.any_node(), message, 4, _heard)
        if self._world.dice.chance(0.5):
            again = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)])
            ms = self._world.dice.between(0, 2_000)
            self._world.after(ms, self._admin.post, self._admin.any_node(), again, 4, _heard)

    def add_partition(self) -> None:
        """A topic gets one more partition, three times at most; writers write to it once it is there."""
        stage = self._simulation.stage
        topic, count = GROWING, len(stage.growing) + 1
        if count > PARTITIONS + _ADDED_MAX:
            return

        def heard(slot: Slot) -> None:
            if slot.response is not None and slot.response.results[0].error_code in (
                ErrorCode.NONE,
                ErrorCode.INVALID_PARTITIONS,  # it is there: the answer to an earlier request was lost
            ):
                stage.grow(count)

        self._saw(f"{topic} is to have {count} partitions")
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        self._admin.post(self._admin.any_node(), CreatePartitionsRequest(topics=[wanted], timeout_ms=5_000), 3, heard)

    def change_level(self) -> None:
        """The feature transaction.version gets another level."""

        def change() -> None:
            level = self._simulation.stage.level = self._world.dice.choice((0, 2))
            self._saw(f"transaction.version has level {level}")
            self._process.cluster.catalogue.configure_broker({_LEVEL: level})

        self._process.enter(change)

    def forge_marker(self) -> None:
        """Write a marker for an open transaction, as the command-line tool does, or one that must be refused."""
        watch, dice = self._simulation.watch, self._world.dice
        found = [(name, one) for name in self._simulation.stage.data for one in watch.model(name).open_producers()]
        if not self._process.is_up or not found:
            return
        name, (producer_id, epoch, coordinator_epoch) = dice.choice(found)
        kinds = ("by hand", "old epoch", "next transaction", "old coordinator")
        kind = dice.choice(kinds[:-1] if self._simulation.has_forgotten else kinds)
        epoch -= kind == "old epoch"
        coordinator_epoch = max(0, coordinator_epoch) if kind != "old coordinator" else coordinator_epoch - 1
        if epoch < 0 or coordinator_epoch < 0:
            return
        self._saw(f"a marker for {name}, producer {producer_id} at epoch {epoch}, {kind}")
        watch.forged[name, producer_id, epoch] = kind == "by hand" or watch.forged.get(
            (name, producer_id, epoch), False
        )
        topics = [WritableTxnMarkerTopic(name=name[0], partition_indexes=[name[1]])]
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=topics,
            coordinator_epoch=coordinator_epoch,
            transaction_version=2 if kind == "next transaction" else 0,
        )
        leader = self._process.cluster.catalogue.by_name[name[0]].partitions[name[1]].leader
        self._admin.post(leader, WriteTxnMarkersRequest(markers=[marker]), 2, _heard)


def _heard(slot: Slot) -> None:
    """Ignore the answer: the logs show the outcome of the request."""
