"""Every error of the clients can be pickled and copied with all it carries, so that process pools report the reason.

Clients, D6: eight classes could not be read back, and a pool that met one waited for ever or broke.
"""

from __future__ import annotations

import copy
import errno
import importlib
import inspect
import pickle
import pkgutil
import threading
from collections.abc import Callable
from typing import Any

import pytest

import partita
from partita.broker.running import CannotListen
from partita.broker.wire.listeners import Endpoint
from partita.consumer.errors import ProcessingError, RecordDeserializationError
from partita.errors import AuthenticationError, KafkaError, UnknownTopicOrPartitionError
from partita.offsets.topic_partition import TopicPartition
from partita.producer.errors import UndeliveredError
from support.every_case import every_case

TP = TopicPartition("t", 3)
SAMPLES: dict[str, Any] = {
    "self": None,
    "advice": "read it as bytes",
    "cause": ValueError("the cause"),
    "count": 7,
    "divergent": {TP: 4},
    "explanation": AuthenticationError("explained"),
    "failures": {"a": UnknownTopicOrPartitionError("a is gone"), "b": KafkaError("b")},
    "message": "the message",
    "offset": 42,
    "offsets": {TP: 5, TopicPartition("t", 4): 6},
    "operation": "READ",
    "origin": "VALUE",
    "partitions": [TP, TopicPartition("a", 0)],
    "raw": {"key": b"k", "value": b"\xff", "headers": [("h", None)]},
    "reason": "the reason",
    "timestamp": 1_700_000_000_000,
    "told": "the message",
    "topic": "dead",
    "tp": TP,
    "user": "alice",
}
"""Arguments of the constructors of errors, by name."""


def every_error() -> list[type[KafkaError]]:
    found = {KafkaError}
    for module in pkgutil.walk_packages(partita.__path__, "partita."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(value) and issubclass(value, KafkaError) and value.__module__.startswith("partita"):
                    found.add(value)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def made(kind: type[KafkaError]) -> KafkaError:
    """An error of the class, made as its callers do."""
    if kind.__init__ in (KafkaError.__init__, TimeoutError.__init__, RuntimeError.__init__):
        return kind("the message")
    positional, named = [], {}
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        assert parameter.name in SAMPLES, f"{kind.__name__}({parameter.name}=...): give SAMPLES an example of it"
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = SAMPLES[parameter.name]
        else:
            positional.append(SAMPLES[parameter.name])
    return kind(*positional, **named)


def told(error: BaseException) -> object:
    """Everything that a user may read of an error, in a form that can be compared."""

    def plain(value: object) -> object:
        if isinstance(value, BaseException):
            return told(value)
        return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value

    attributes = {name: plain(value) for name, value in vars(error).items()}
    cause = None if error.__cause__ is None else told(error.__cause__)
    public = [name for name in dir(error) if not name.startswith("_") and name != "with_traceback"]
    read = {name: plain(getattr(error, name, None)) for name in public if not callable(getattr(error, name, None))}
    return type(error), str(error), repr(error), attributes, cause, read


COPIES: dict[str, Callable[[KafkaError], KafkaError]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol))  # type: ignore[misc]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@every_case("kind", every_error(), lambda kind: kind.__name__)
def test_every_error_arrives_with_its_text_its_attributes_and_its_cause(kind: type[KafkaError]) -> None:
    error = made(kind)
    caused = made(kind)
    caused.__cause__ = OSError(5, "the cause")
    bare = kind.__new__(kind)
    for one in (error, caused):
        for name, way in COPIES.items():
            arrived = way(one)
            assert told(arrived) == told(one), name
            assert arrived is not one
    assert type(pickle.loads(pickle.dumps(bare))) is kind


def test_all_errors_of_the_packages_are_walked() -> None:
    names = {kind.__name__ for kind in every_error()}
    assert {"SomeFailed", "RegistryUnavailableError", "Disconnected", "UndeliveredError", "ProcessingError"} <= names
    assert len(names) > 160


class NotPortable(Exception):
    """A user's exception with a lock, which cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("row 3 is bad")
        self.lock = threading.Lock()


class NotReadBack(Exception):
    """A user's exception that pickles, and cannot be made again: its constructor takes other arguments."""

    def __init__(self, row: int, column: str) -> None:
        super().__init__(f"row {row} is bad")


@pytest.mark.parametrize("cause", [NotPortable(), NotReadBack(3, "a")], ids=lambda cause: type(cause).__name__)
def test_a_cause_that_cannot_be_pickled_arrives_as_its_text(cause: Exception) -> None:
    error = ProcessingError(TP, 42, cause)
    arrived = pickle.loads(pickle.dumps(error))
    assert (str(arrived), arrived.offset, arrived.topic_partition) == (str(error), 42, TP)
    assert repr(arrived.__cause__) == f"RuntimeError('{type(cause).__name__}: row 3 is bad')"
    assert copy.copy(error).__cause__ is cause

    lost = UndeliveredError("2 records lost", 2, cause)
    arrived = pickle.loads(pickle.dumps(lost))
    assert (str(arrived), arrived.count) == ("2 records lost", 2)
    assert str(arrived.cause) == f"{type(cause).__name__}: row 3 is bad"


def test_an_attribute_that_cannot_be_pickled_arrives_as_its_repr() -> None:
    error = RecordDeserializationError("VALUE", TP, 42, 0, SAMPLES["raw"], ValueError("bad"))
    error.add_note("in the nightly job")
    error.headers = lock = threading.Lock()  # type: ignore[assignment]
    arrived = pickle.loads(pickle.dumps(error))
    assert (arrived.raw_value, arrived.headers, arrived.__notes__) == (b"\xff", repr(lock), ["in the nightly job"])


def test_an_address_in_use_is_reported_by_a_worker_too() -> None:
    error = CannotListen(Endpoint("127.0.0.1", 9092), OSError(errno.EADDRINUSE, "Address already in use"))
    arrived = pickle.loads(pickle.dumps(error))
    assert (str(arrived), arrived.errno) == (str(error), errno.EADDRINUSE)
    assert "127.0.0.1:9092" in str(arrived)
