"""The seams between the coordinator and the partitions: markers and verdicts that come late, twice, or not at first."""

from __future__ import annotations

from asyncio import Future
from typing import TYPE_CHECKING

from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.sim.shell.process import Process
from partita.sim.world.world import World
from partita.transactions.contract import AddPartitions, Outcome, Request, VerifyPartitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.broker.topics.catalogue import Partition
    from partita.broker.transactions.marker_writing import EndMarker

_REFUSALS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


_VERSION_2 = 2
"""First version in which a late copy of a marker differs from the marker of the next transaction."""


class Markers:
    """`loss` is the share of markers that are refused, written twice, or whose answers are lost."""

    def __init__(self, world: World, process: Process, *, delay_ms: int, loss: float) -> None:
        self._world = world
        self._process = process
        self.delay_ms = delay_ms
        self.loss = loss
        self._write: Callable[[Partition, EndMarker], ErrorCode | Future[ErrorCode]]
        self._ask: Callable[[Request, int | None], Outcome | Future[Outcome]]

    def take_seam(self) -> None:
        """Stand between the coordinator and the partitions in a new life of the process."""
        transactions = self._process.services.transactions()
        sender = transactions.markers
        self._write, sender.write = sender.write, self.write
        self._ask, transactions.ask = transactions.ask, self.ask  # type: ignore[method-assign]  # the seam of verdicts

    def heal(self) -> None:
        """End the faults."""
        self.delay_ms, self.loss = 0, 0.0

    def ask(self, request: Request, node_id: int | None = None) -> Outcome | Future[Outcome]:
        """Ask a coordinator; the verdict on data partitions may come late, when it is no longer true."""
        answer = self._ask(request, node_id)
        asks_for_data = isinstance(request, VerifyPartitions | AddPartitions) and OFFSETS_TOPIC not in {
            topic for topic, _ in request.partitions
        }
        if node_id is not None or not asks_for_data or not self.loss or not self._world.dice.chance(0.1):
            return answer
        late: Future[Outcome] = self._process.loop.create_future()
        loop, delay_ms = self._process.loop, self._world.dice.between(0, 3_000)

        def tell(outcome: Outcome) -> None:
            self._world.after(delay_ms, loop.enter, late.set_result, outcome)

        if isinstance(answer, Outcome):
            tell(answer)
        else:
            answer.add_done_callback(lambda done: tell(done.result()))
        return late

    def write(self, partition: Partition, marker: EndMarker) -> ErrorCode | Future[ErrorCode]:
        """Write one marker, now or later; or say that it could not be written."""
        dice = self._world.dice
        if dice.chance(self.loss / 2):
            return dice.choice(_REFUSALS)
        if not self.delay_ms or dice.chance(0.3):
            return self._write(partition, marker)
        done: Future[ErrorCode] = self._process.loop.create_future()
        loop, write = self._process.loop, self._write
        is_lost = dice.chance(self.loss / 2)
        is_doubled = marker.version >= _VERSION_2 and dice.chance(self.loss / 2)

        def come() -> None:
            answer = write(partition, marker)
            if is_lost:
                done.set_result(ErrorCode.REQUEST_TIMED_OUT)
            elif isinstance(answer, ErrorCode):
                done.set_result(answer)
            else:
                answer.add_done_callback(lambda told: done.set_result(told.result()))

        self._world.after(dice.between(0, self.delay_ms), loop.enter, come)
        if is_doubled:
            self._world.after(dice.between(0, 2 * self.delay_ms), loop.enter, write, partition, marker)
        return done
