"""What `from partita import ...` gives, and that importing it costs next to nothing (clients.md 5)."""

from __future__ import annotations

import subprocess
import sys

import pytest

import partita
from partita.consumer import errors as consumer_errors
from partita.errors import KafkaError
from partita.producer import errors as producer_errors
from support.every_case import every_case


@every_case("name", sorted(partita.__all__))
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(partita, name) is not None
    assert name in dir(partita)


@pytest.mark.parametrize(
    "name", ["KafkaError", "CommitFailedError", "UndeliveredError", "TopicAlreadyExistsError", "AuthenticationError"]
)
def test_every_error_can_be_imported(name: str) -> None:
    assert issubclass(getattr(partita, name), KafkaError)


def test_what_a_client_raises_is_a_kafka_error() -> None:
    """Decision 320: all of a client's errors but wrong options and arguments; those of the broker object are not."""
    assert {
        kind.__name__
        for module in (consumer_errors, producer_errors)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, KafkaError)
    } == set()
    misuse = partita.TransactionMisuseError("no transaction is open")
    assert isinstance(misuse, RuntimeError)
    assert (str(misuse), misuse.retriable, misuse.txn_requires_abort) == ("no transaction is open", False, False)
    for of_the_broker in (partita.StartError, partita.ControlError):
        assert not issubclass(of_the_broker, KafkaError)


@pytest.mark.parametrize("name", ["Konsumer", "NoSuchError"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'partita' has no attribute '{name}'; it has Admin"):
        getattr(partita, name)


def test_importing_the_package_imports_nothing_else() -> None:
    assert [name for name in modules_of("import partita") if name.startswith("partita.")] == []


def test_importing_a_consumer_imports_neither_its_core_nor_an_event_loop() -> None:
    """A program pays for them when it makes a consumer; importing one is as quick as importing confluent-kafka's."""
    loaded = modules_of("from partita import Consumer, AsyncConsumer")
    assert "partita.consumer.shell.blocking" in loaded
    assert loaded & {"asyncio", "ssl", "logging", "partita.consumer.core", "partita.consumer.shell.driver"} == set()


def modules_of(code: str) -> set[str]:
    """The modules of a fresh process that ran this line."""
    command = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
