"""Options of other clients: each is known, or is answered with what does the same here (finding 13 of the newcomer)."""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Iterable
from pathlib import Path

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from partita.admin.config import OPTIONS as ADMIN
from partita.consumer.config import OPTIONS as CONSUMER
from partita.options import ConfigError, Option, check_options, elsewhere
from partita.producer.config import OPTIONS as PRODUCER
from support.every_case import every_case

TABLES = {"consumer": CONSUMER, "producer": PRODUCER, "admin": ADMIN}
NO_OPTIONS = {"self", "topics"}


def of_librdkafka(folder: Path, roles: str) -> set[str]:
    """The options that the library prints itself, of a consumer ("*C") or a producer ("*P")."""
    (library,) = Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*")
    libc, librdkafka = ctypes.CDLL(None), ctypes.CDLL(str(library))
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = librdkafka.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    file = libc.fopen(bytes(folder / "options"), b"w")
    librdkafka.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    rows = [[cell.strip() for cell in line.split("|")] for line in (folder / "options").read_text().splitlines()]
    return {row[0] for row in rows if len(row) > 4 and row[1] in roles}


def of_aiokafka(client: type[object]) -> set[str]:
    """The parameters of a client's constructor."""
    return set(inspect.signature(client).parameters) - NO_OPTIONS


def names_of(table: Iterable[Option]) -> set[str]:
    """Every name that a client takes."""
    return {name for option in table for name in (option.name, *option.aliases)}


def without_an_answer(names: Iterable[str], table: Iterable[Option]) -> list[str]:
    """Those that the client neither takes nor answers; a guess by likeness is no answer."""
    taken = names_of(table) | elsewhere().keys()
    return sorted(name for name in names if name.replace(".", "_") not in taken)


@pytest.mark.parametrize(("role", "letters"), [("consumer", "*C"), ("producer", "*P"), ("admin", "*")])
def test_librdkafka(role: str, letters: str, tmp_path: Path) -> None:
    names = of_librdkafka(tmp_path, letters)
    assert len(names) > 90
    assert without_an_answer(names, TABLES[role]) == []


@pytest.mark.parametrize(
    ("role", "client"), [("consumer", AIOKafkaConsumer), ("producer", AIOKafkaProducer), ("admin", AIOKafkaAdminClient)]
)
def test_aiokafka(role: str, client: type[object]) -> None:
    assert without_an_answer(of_aiokafka(client), TABLES[role]) == []


@pytest.mark.parametrize(
    ("role", "client"), [("consumer", KafkaConsumer), ("producer", KafkaProducer), ("admin", KafkaAdminClient)]
)
def test_kafka_python(role: str, client: type[KafkaConsumer]) -> None:
    assert without_an_answer(client.DEFAULT_CONFIG, TABLES[role]) == []


@every_case("name", sorted(elsewhere()))
def test_an_answer_names_options_that_exist(name: str) -> None:
    named = set(re.findall(r"'([a-z0-9_]+_[a-z0-9_]+|acks|retries)'", elsewhere()[name]))
    assert named - {"consistent_random"} <= set().union(*map(names_of, TABLES.values()))


def test_all_unknown_options_of_a_call_are_named_at_once() -> None:
    given = {"socket.timeout.ms": 1, "group_idd": "g", "debug": "all"}
    with pytest.raises(ConfigError) as refused:
        check_options(CONSUMER, {}, given)
    assert str(refused.value) == (
        "unknown option 'socket.timeout.ms'; did you mean 'request_timeout_ms'?; "
        "unknown option 'group_idd'; did you mean 'group_id'?; "
        "unknown option 'debug'; set the level of the logger 'partita' instead"
    )
