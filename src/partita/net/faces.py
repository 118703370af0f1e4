"""The rules that both faces of a client keep, blocking and asyncio. Imports nothing, since clients are built on it."""

from __future__ import annotations

from typing import NoReturn

_ENDLESS_S = 1 << 30


def not_pickled(client: object) -> NoReturn:
    """Stands for `__reduce__` in clients. Raises TypeError: connections and threads stay in their process."""
    kind = type(client).__name__
    raise TypeError(
        f"a {kind} cannot be pickled or copied: its connections and threads belong to this process. "
        f"Hand its options on, and make a {kind} where they arrive"
    )


def one_face_only(client: str) -> str:
    """Say how to go on when a blocking call is made on a client that was entered with `async with`."""
    return (
        f"this {client} was entered with `async with`; its calls are awaited on the object that this gave. "
        f"Make an Async{client} instead: `async with Async{client}(...) as {client.lower()}:`"
    )


def check_seconds(timeout: float) -> float:
    """A timeout in seconds; one without end becomes some years. Raises TypeError and ValueError."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"a timeout is a number of seconds, not {timeout!r}")
    if not timeout >= 0:  # what is not a number is not less, either
        raise ValueError(f"a timeout is 0 s or more, not {timeout}")
    return min(timeout, _ENDLESS_S)


def check_closing(timeout: float | None, without_broker: float) -> None:
    """Refuse nonsense before anything is closed. Raises TypeError and ValueError."""
    for seconds in (0 if timeout is None else timeout, without_broker):
        check_seconds(seconds)


class OneFace:
    """Keeps a client to one of its two faces: blocking calls, or those of the object that `async with` gave."""

    def __init__(self, client: str) -> None:
        self._client = client  # the name of its class
        self._is_async = False

    def enter_async(self, *, is_used: bool) -> None:
        """Begin `async with`. Raises RuntimeError if blocking calls were made before (`is_used`)."""
        if is_used:
            raise RuntimeError(
                f"this {self._client} has made blocking calls, so its connections belong to another loop; make a "
                "new one for `async with`"
            )
        self._is_async = True

    def check_blocking(self) -> None:
        """Raise RuntimeError after `async with`: the call would run on another loop than the connections."""
        if self._is_async:
            raise RuntimeError(one_face_only(self._client))
