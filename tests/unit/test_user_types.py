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
MYPY = """
[mypy]
strict = True
ignore_missing_imports = True
follow_imports = silent

[mypy-pages.*]
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_calls = False
allow_untyped_globals = True
disallow_any_generics = False
"""
"""Pages are scripts: for them, mypy does not ask what strictness asks of libraries."""

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


WRONG = ['auto_ofset_reset="earliest"', 'max_poll_records="many"', 'cleint_id="x", linger=5, acs="all"']
CLIENTS = ("Consumer", "AsyncConsumer", "Producer", "AsyncProducer", "Admin", "AsyncAdmin")


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what users write: the program, each client with each wrong option, and below it every page."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "program.py").write_text(PROGRAM)
    for number, wrong in enumerate(WRONG):
        calls = "\n".join(f'{client}(client_id="c", {wrong})' for client in CLIENTS)
        (folder / f"wrong_{number}.py").write_text(f"from partita import {', '.join(CLIENTS)}\n{calls}\n")
    (folder / "pages").mkdir()
    (folder / "pages" / "__init__.py").touch()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        blocks = [block[2] for block in BLOCK.finditer(path.read_text()) if not block[1]]
        if blocks:
            page = folder / "pages" / f"{path.stem.replace('-', '_')}.py"
            page.write_text('bootstrap: str = ""\n' + GIVEN.get(path.stem, "") + "\n".join(blocks))
    return folder


@pytest.fixture(scope="module")
def said_by_mypy(users: Path) -> list[str]:
    """The lines that mypy writes about all of it in one run, since each reads the package anew."""
    (users / "mypy.ini").write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    rest = ["--config-file", str(users / "mypy.ini"), "--cache-dir", str(users / "cache")]
    files = sorted(map(str, users.rglob("*.py")))
    environment = {"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    run = subprocess.run([*command, *rest, *files], capture_output=True, text=True, env=environment, cwd=users)
    assert not run.stderr
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def found_by_pyright(users: Path) -> dict[str, list[dict[str, Any]]]:
    """The errors that pyright finds in its strict mode, by file."""
    config = users / "pyrightconfig.json"
    config.write_text(
        json.dumps({"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "src")], "include": ["*.py"]})
    )
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(config), "--pythonpath", sys.executable]
    told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    errors: dict[str, list[dict[str, Any]]] = {}
    for one in told["generalDiagnostics"]:
        if one["severity"] == "error":
            errors.setdefault(Path(one["file"]).name, []).append(one)
    return errors


def marked_lines() -> set[int]:
    return {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}


def test_mypy_strict_passes_what_is_right_and_finds_what_is_wrong(said_by_mypy: list[str]) -> None:
    found = {int(line.split(":")[1]) for line in said_by_mypy if re.match(r"program\.py:\d+: error", line)}
    assert found == marked_lines(), said_by_mypy


@pytest.mark.parametrize("wrong", WRONG)
def test_the_answer_to_a_wrong_option_is_short(
    wrong: str, said_by_mypy: list[str], found_by_pyright: dict[str, list[dict[str, Any]]]
) -> None:
    """Finding 8 of the newcomer: mypy wrote 49,558 characters, for eight overloads that list every option."""
    file = f"wrong_{WRONG.index(wrong)}.py"
    for number in range(2, 2 + len(CLIENTS)):
        answer = "".join(line for line in said_by_mypy if line.startswith(f"{file}:{number}:"))
        assert "error" in answer
        assert len(answer) <= 1_500
    errors = found_by_pyright[file]
    assert {one["range"]["start"]["line"] for one in errors} == set(range(1, 1 + len(CLIENTS)))
    assert all(len(one["message"].splitlines()) <= 3 for one in errors), errors


def test_pyright_strict_passes_what_is_right_and_finds_what_is_wrong(
    found_by_pyright: dict[str, list[dict[str, Any]]],
) -> None:
    errors = found_by_pyright["program.py"]
    found = {one["range"]["start"]["line"] + 1 for one in errors}
    assert found == marked_lines(), [one["message"][:300] for one in errors]


def test_the_programs_of_every_page_pass_mypy_strict(users: Path, said_by_mypy: list[str]) -> None:
    assert len(list((users / "pages").iterdir())) > 12, "the pages with Python"
    assert not [line for line in said_by_mypy if line.startswith("pages/")]
