"""What leaving a transaction's block does: commit, abort, or nothing, and which error comes out. (TX-P14, TX-P15)"""

from __future__ import annotations

import asyncio

import pytest

from partita.errors import AbortableTransactionError, KafkaError, ProducerFencedError
from partita.producer.shell.transaction_blocks import AsyncTransactionBlock, TransactionBlock
from partita.producer.transactions.calls import State


class Calls:
    """Takes part in a transaction in name only: remembers its calls and fails where it is told to."""

    def __init__(self, **failures: Exception) -> None:
        self.failures = failures
        self.made: list[str] = []
        self.transaction_state = State.READY
        self.ended = asyncio.Event()

    def _made(self, name: str, after: State) -> None:
        self.made.append(name)
        failure = self.failures.get(name)
        if isinstance(failure, ProducerFencedError):
            self.transaction_state = State.FATAL_ERROR
        elif isinstance(failure, AbortableTransactionError):
            self.transaction_state = State.ABORTABLE_ERROR
        if failure is not None:
            raise failure
        self.transaction_state = after

    def begin_transaction(self) -> None:
        self._made("begin", State.IN_TRANSACTION)

    def commit_transaction(self) -> None:
        self._made("commit", State.READY)

    def abort_transaction(self) -> None:
        self._made("abort", State.READY)


class AsyncCalls(Calls):
    """The same, awaited; `commit_transaction` and `abort_transaction` end once `ended` is set."""

    async def commit_transaction(self) -> None:  # type: ignore[override]  # the asyncio face has the same names
        await self.ended.wait()
        super().commit_transaction()

    async def abort_transaction(self) -> None:  # type: ignore[override]  # the asyncio face has the same names
        await self.ended.wait()
        super().abort_transaction()


@pytest.mark.case("TX-P14")
def test_a_block_that_ends_commits() -> None:
    calls = Calls()
    with TransactionBlock(calls) as inside:
        assert inside is calls
    assert calls.made == ["begin", "commit"]


@pytest.mark.case("TX-P14", "TX-P15")
@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), AbortableTransactionError("x")])
def test_a_block_that_raises_aborts(error: BaseException) -> None:
    calls = Calls()
    with pytest.raises(type(error)) as caught, TransactionBlock(calls):
        raise error
    assert caught.value is error
    assert calls.made == ["begin", "abort"]


@pytest.mark.case("TX-P14")
def test_a_commit_that_fails_abortably_is_aborted_and_one_that_was_fenced_is_not() -> None:
    calls = Calls(commit=AbortableTransactionError("x"))
    with pytest.raises(AbortableTransactionError), TransactionBlock(calls):
        pass
    assert calls.made == ["begin", "commit", "abort"]
    calls = Calls(commit=ProducerFencedError())
    with pytest.raises(ProducerFencedError), TransactionBlock(calls):
        pass
    assert calls.made == ["begin", "commit"]


def test_a_fatal_error_inside_is_not_followed_by_an_abort() -> None:
    def fenced(calls: Calls) -> None:
        calls.transaction_state = State.FATAL_ERROR
        raise ProducerFencedError

    with pytest.raises(ProducerFencedError), TransactionBlock(Calls()) as calls:
        fenced(calls)
    assert calls.made == ["begin"]


def test_a_block_that_ended_its_transaction_is_left_as_it_is() -> None:
    calls = Calls()
    with TransactionBlock(calls):
        calls.abort_transaction()
    with pytest.raises(ZeroDivisionError), TransactionBlock(calls):
        calls.commit_transaction() or 1 / 0  # type: ignore[func-returns-value]  # commit, then fail
    assert calls.made == ["begin", "abort", "begin", "commit"]


def test_an_abort_that_fails_names_the_error_it_followed() -> None:
    with pytest.raises(KafkaError) as caught, TransactionBlock(Calls(abort=KafkaError("gone"))):
        raise ZeroDivisionError
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_an_abort_that_fails_hides_no_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), TransactionBlock(Calls(abort=KafkaError("gone"))):
        raise KeyboardInterrupt


async def leave(calls: AsyncCalls, error: Exception | None = None) -> None:
    async with AsyncTransactionBlock(calls):
        if error is not None:
            raise error


@pytest.mark.case("TX-P14")
@pytest.mark.parametrize(
    ("failures", "error", "made"),
    [
        ({}, None, ["begin", "commit"]),
        ({}, ZeroDivisionError(), ["begin", "abort"]),
        ({"commit": AbortableTransactionError("x")}, None, ["begin", "commit", "abort"]),
    ],
)
def test_the_asyncio_block_does_the_same(
    failures: dict[str, Exception], error: Exception | None, made: list[str]
) -> None:
    async def run() -> BaseException | None:
        calls.ended.set()
        return (await asyncio.gather(leave(calls, error), return_exceptions=True))[0]

    calls = AsyncCalls(**failures)
    assert asyncio.run(run()) is (error or failures.get("commit"))
    assert calls.made == made


@pytest.mark.case("TX-P15")
@pytest.mark.parametrize("last", ["commit", "abort"])
def test_a_task_that_is_cancelled_while_its_transaction_ends_still_ends_it(last: str) -> None:
    async def run() -> None:
        task = asyncio.create_task(leave(calls, None if last == "commit" else ZeroDivisionError()))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        calls.ended.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    calls = AsyncCalls()
    asyncio.run(run())
    assert calls.made == ["begin", last]


@pytest.mark.case("TX-P15")
def test_a_task_that_is_cancelled_inside_aborts() -> None:
    async def work() -> None:
        async with AsyncTransactionBlock(calls):
            inside.set()
            await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.create_task(work())
        await inside.wait()
        calls.ended.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    calls, inside = AsyncCalls(), asyncio.Event()
    asyncio.run(run())
    assert calls.made == ["begin", "abort"]
