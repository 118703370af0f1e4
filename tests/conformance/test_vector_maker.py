"""The golden vectors are what Apache Kafka answers: the maker asks the quick files again and finds them unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.kafka.node import KafkaUnavailable, jars

MAKER = Path(__file__).parents[2] / "tools" / "vectors" / "make.py"

pytestmark = pytest.mark.conformance


def test_kafkas_classes_answer_what_the_files_hold() -> None:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to ask: {reason}")
    command = [sys.executable, str(MAKER), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
