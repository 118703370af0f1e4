"""The maker of the golden vectors knows every file that it claims, and its README says what each one asks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from support.vectors.schemas import described
from vectors import make

README = (make.HERE / "README.md").read_text()
SOURCE = (make.HERE / "java" / "Ask.java").read_text()


def test_the_readme_the_program_and_the_driver_name_the_same_files() -> None:
    subjects = set(re.findall(r'Map.entry\("([^"]+)"', SOURCE))
    assert subjects == {name.removesuffix(".gz") for name in make.MADE}
    for name in {path.name for path in make.VECTORS.iterdir()} & set(make.MADE):
        stem = name.partition(".")[0]
        family, _, member = stem.partition("-")
        assert f"| {name} |" in README or (f"| {family}-" in README and f"-{member}" in README), name


def test_answers_are_compared_byte_for_byte_then_as_json(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl.gz"
    make.write(file, '{"a":1}\n{"b":2}\n')
    assert make.verdict(file, '{"a":1}\n{"b":2}\n') == "byte for byte"
    assert make.verdict(file, '{"a": 1}\n{"b": 2}\n') == "equal as JSON"
    assert make.verdict(file, '{"a":1}\n{"b":3}\n') == "DIFFERS: 1 of 2 lines, first in line 2; 2 lines answered"
    assert make.verdict(file, '{"a":1}\n') == "DIFFERS: 0 of 2 lines; 1 lines answered"


def test_an_order_of_hash_maps_is_no_difference(tmp_path: Path) -> None:
    file = tmp_path / "assignors-server-uniform.jsonl"
    one = {
        "rounds": [{"assignment": {"a": {"t": [0]}, "b": {}}, "counts": {"a": 1, "b": 0}, "measures": {"spread": 1}}]
    }
    other = {
        "rounds": [{"assignment": {"a": {}, "b": {"t": [0]}}, "counts": {"a": 0, "b": 1}, "measures": {"spread": 1}}]
    }
    make.write(file, json.dumps(one))
    assert make.verdict(file, json.dumps(other)) == "equal in every measure"
    other["rounds"][0]["measures"] = {"spread": 2}
    assert make.verdict(file, json.dumps(other)).startswith("DIFFERS")


def test_the_same_text_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        make.write(tmp_path / name, "same\n")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_every_version_of_every_record_has_a_vector() -> None:
    found = set()
    for file in ("group-log.jsonl", "share-log.jsonl", "transaction-log.jsonl"):
        for case in map(json.loads, (make.VECTORS / file).read_text().splitlines()):
            if "case" not in case and case["value_hex"] is not None:
                found.add((case.get("key_class", "TransactionLogKey"), case["key_id"]))
                found.add((case.get("value_class", "TransactionLogValue"), case["value_version"]))
    wanted = {
        (message.schema.name, version)
        for message in described()
        if message.schema.kind in ("record_key", "record_value")
        for version in message.versions
    }
    assert wanted
    assert wanted <= found
