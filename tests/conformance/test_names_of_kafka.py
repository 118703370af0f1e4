"""The methods of Kafka that the coordinator's docstrings and tables name exist in the release they speak of."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from runpy import run_path

import pytest

from support.kafka.node import KafkaUnavailable, asked_release, jars

pytestmark = pytest.mark.conformance

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "GroupCoordinatorService": "",
    "GroupCoordinatorShard": "",
    "GroupMetadataManager": "",
    "OffsetMetadataManager": "",
    "GroupCoordinatorRecordHelpers": "",
    "GroupCoordinatorRecordSerde": "",
    "GroupCoordinatorConfig": "",
    "ClassicGroup": "classic.",
    "ClassicGroupMember": "classic.",
    "ConsumerGroup": "modern.consumer.",
    "ConsumerGroupMember": "modern.consumer.",
    "CurrentAssignmentBuilder": "modern.consumer.",
}
"""Classes below org.apache.kafka.coordinator.group, and the package each is in."""
NAMED = re.compile(r"\(Kafka: ([^)]*)\)")
WORD = re.compile(r"(?:\b([A-Z]\w+)\.)?\b([a-z]+[A-Z]\w*)\b")


def names_in(text: str) -> set[tuple[str, str]]:
    """(Class or nothing, method) of what a text says of this release; "earlier" begins what it says of others."""
    return {(found[1] or "", found[2]) for found in WORD.finditer(text.partition("; earlier")[0])}


def named() -> dict[tuple[str, str], str]:
    """Every method named, and where."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted((ROOT / "src" / "partita" / "group").rglob("*.py")):
        for text in NAMED.findall(" ".join(path.read_text().split())):
            found |= dict.fromkeys(names_in(text), path.name)
    for request, text in run_path(str(ROOT / "tools" / "group_tables.py"))["KAFKA"].items():
        found |= dict.fromkeys(names_in(text), f"tools/group_tables.py, {request}")
    return found


@cache
def methods(class_name: str) -> set[str]:
    """The methods of a class of the coordinator, private ones too, as javap lists them."""
    try:
        (jar,) = jars().glob(f"kafka-group-coordinator-{asked_release()}.jar")
    except KafkaUnavailable as reason:
        pytest.skip(f"no jars of Apache Kafka: {reason}")
    name = f"org.apache.kafka.coordinator.group.{PACKAGES[class_name]}{class_name}"
    listed = subprocess.run(["javap", "-p", "-cp", str(jar), name], capture_output=True, text=True, timeout=60)
    assert listed.returncode == 0, listed.stderr
    return set(re.findall(r"([A-Za-z0-9]+)\(", listed.stdout))


def test_every_method_named_exists() -> None:
    assert len(named()) > 30
    missing = [
        f"{where}: {class_name or 'any class'}.{method}"
        for (class_name, method), where in named().items()
        if not any(method in methods(known) for known in PACKAGES if class_name in ("", known))
    ]
    assert missing == []


def test_a_name_of_another_release_is_noticed() -> None:
    assert "acceptJoiningMember" in methods("GroupMetadataManager")
    assert "doJoinGroup" not in methods("GroupMetadataManager")
    assert names_in("ClassicGroup.transitionTo, removeMember; earlier doLeave") == {
        ("ClassicGroup", "transitionTo"),
        ("", "removeMember"),
    }
