"""What a user's type checker says: mypy --strict, and pyright in its strict mode (basedpyright, which
brings its own runtime from PyPI).

A program with expectations: `assert_type` and plain use must pass, a line marked `# error` must not. The programs of
the docs pass too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```python\n(.*?)```", re.S)
GIVEN = {"spark": "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"}
"""What the reader of a page has already; all have `bootstrap`, the address of a broker."""
AS_A_SCRIPT = (
    "--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls", "--allow-untyped-globals",
    "--allow-any-generics",
)  # fmt: skip
"""What strictness asks of libraries rather than of a page's script."""

PROGRAM = """
from collections.abc import Iterable
from typing import Any, assert_type

from partita import (
    Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Broker, CommitFailedError, Consumer, ConsumerRecord,
    ConsumerRecords, KafkaError, OffsetAndMetadata, Producer, RebalanceListener, TopicPartition, UndeliveredError,
)

plain = Consumer(bootstrap_servers="localhost:9092", group_id="g", auto_offset_reset="earliest")
assert_type(plain, Consumer[bytes, bytes])
for record in plain:
    print(record.value.decode(), record.value.upper(), record.key or b"", record.offset + 1)
    record.value.encode()  # error
    record.key.decode()  # error

servers = {"bootstrap.servers": "localhost:9092"}
text = Consumer(servers, key_deserializer=bytes.decode, value_deserializer=bytes.decode)
assert_type(text, Consumer[str, str])
assert_type(Consumer(value_deserializer="str"), Consumer[bytes, Any])
by_name = Consumer(key_deserializer="str", value_deserializer="str")
assert_type(by_name, Consumer[Any, Any])
annotated: Consumer[str, str] = Consumer(key_deserializer="str", value_deserializer="str")
assert_type(AsyncConsumer(value_deserializer=bytes.decode), AsyncConsumer[bytes, str])
print([record.value.split(",") for record in text.poll(1.0).of("flights")])

numbers = Consumer(value_deserializer=int)
assert_type(numbers, Consumer[bytes, int])
objects = Consumer(value_deserializer="json")
assert_type(objects, Consumer[bytes, Any])
assert_type(Consumer(key_deserializer=bytes.decode, value_deserializer=float), Consumer[str, float])


class Upper:
    def deserialize(self, topic: str, headers: object, data: bytes | None) -> tuple[str, int]:
        return topic, len(data or b"")


assert_type(Consumer(value_deserializer=Upper()), Consumer[bytes, tuple[str, int]])


def handle(record: ConsumerRecord[bytes, str]) -> str:
    return record.value.upper()


async def work() -> None:
    async with Consumer(value_deserializer="str") as turned:
        assert_type(turned, AsyncConsumer[bytes, Any])
    async with AsyncConsumer(value_deserializer=bytes.decode) as consumer:
        assert_type(consumer, AsyncConsumer[bytes, str])
        async for record in consumer:
            handle(record)


class Listener(RebalanceListener):
    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        print([partition.topic for partition in partitions])


class Traced(Consumer[bytes, str]):
    def seek(self, partition: tuple[str, int], offset: int | OffsetAndMetadata) -> None:
        super().seek(partition, offset)

    def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords[bytes, str]:
        return super().poll(timeout, max_records=max_records)


class Careful(Admin):
    def delete_groups(self, group_ids: str | Iterable[str]) -> None:
        super().delete_groups(group_ids)


with Traced(value_deserializer="str") as traced:
    assert_type(traced, Traced)
    for record_of_text in traced:
        handle(record_of_text)


try:
    text.commit({TopicPartition("flights", 0): OffsetAndMetadata(7)})
except CommitFailedError as failure:
    print(failure.code, failure.retriable)
except (UndeliveredError, KafkaError):
    raise
Producer(value_serializer="json", key_serializer=lambda key: str(key))


def takes_any(consumer: Consumer) -> None: ...


Consumer(auto_ofset_reset="earliest")  # error
AsyncConsumer(auto_ofset_reset="earliest")  # error
Consumer(max_poll_records="many")  # error
Producer(linger=5)  # error
Producer(linger_ms=5, acks="all", compression_type="zstd", client_id="c")
AsyncProducer(linger_ms=None)  # error
Admin(default_api_timeout=1)  # error
AsyncAdmin(default_api_timeout=1)  # error
Broker(num_partitons=3)  # error
Broker(num_partitions=3, auto_create_topics_enable=False, nodes=2)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def marked_lines() -> set[int]:
    return {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}


def mypy(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", *arguments]
    rest = ["--follow-imports", "silent", "--config-file", "", "--cache-dir", str(cache)]
    return subprocess.run([*command, *rest], capture_output=True, text=True, env=environment())


def environment() -> dict[str, str]:
    return {"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}


def test_mypy_strict_passes_what_is_right_and_finds_what_is_wrong(program: Path, tmp_path: Path) -> None:
    told = mypy(tmp_path / "cache", str(program)).stdout
    found = {int(number) for number in re.findall(rf"^{re.escape(str(program))}:(\d+): error", told, re.M)}
    assert found == marked_lines(), told


WRONG = ['auto_ofset_reset="earliest"', 'max_poll_records="many"', 'cleint_id="x", linger=5, acs="all"']


@pytest.mark.parametrize("wrong", WRONG)
def test_the_answer_to_a_wrong_option_is_short(wrong: str, tmp_path: Path) -> None:
    """Finding 8 of the newcomer: mypy wrote 49,558 characters, for eight overloads that list every option."""
    path = tmp_path / "wrong.py"
    clients = ("Consumer", "AsyncConsumer", "Producer", "AsyncProducer", "Admin", "AsyncAdmin")
    calls = "\n".join(f'{client}(client_id="c", {wrong})' for client in clients)
    path.write_text(f"from partita import {', '.join(clients)}\n{calls}\n")
    told = mypy(tmp_path / "cache", str(path)).stdout
    for number in range(2, 2 + len(clients)):
        answer = "".join(line for line in told.splitlines() if f"wrong.py:{number}:" in line)
        assert "error" in answer
        assert len(answer) <= 1_500
    errors = pyright(path)
    assert {one["range"]["start"]["line"] for one in errors} == set(range(1, 1 + len(clients)))
    assert all(len(one["message"].splitlines()) <= 3 for one in errors), errors


def test_pyright_strict_passes_what_is_right_and_finds_what_is_wrong(program: Path) -> None:
    errors = pyright(program)
    found = {one["range"]["start"]["line"] + 1 for one in errors}
    assert found == marked_lines(), [one["message"][:300] for one in errors]


def pyright(path: Path) -> list[dict[str, Any]]:
    """The errors that pyright, in its strict mode, finds in the folder of a program."""
    config = path.with_name("pyrightconfig.json")
    config.write_text(json.dumps({"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "src")]}))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(config), "--pythonpath", sys.executable]
    told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    return [one for one in told["generalDiagnostics"] if one["severity"] == "error"]


def test_the_programs_of_every_page_pass_mypy_strict(tmp_path: Path) -> None:
    pages = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        blocks = [block[2] for block in BLOCK.finditer(path.read_text()) if not block[1]]
        if blocks:
            pages.append(tmp_path / f"{path.stem.replace('-', '_')}.py")
            pages[-1].write_text('bootstrap: str = ""\n' + GIVEN.get(path.stem, "") + "\n".join(blocks))
    assert len(pages) >= 12, "the pages with Python"
    told = mypy(tmp_path / "cache", *AS_A_SCRIPT, "--ignore-missing-imports", *map(str, pages)).stdout
    assert told == "", told
