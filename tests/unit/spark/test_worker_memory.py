"""Spark collects garbage after each task of a worker; what a worker has imported is left out. Issue 13, item 6."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import pytest

from partita.spark import worker_memory


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(worker_memory, "_settled", False)
    return calls


def run_as(module: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = None if module is None else SimpleNamespace(name=module)
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=spec))


def test_a_worker_settles_once(frozen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_as("pyspark.daemon", monkeypatch)
    worker_memory.settle()
    worker_memory.settle()
    assert frozen == ["collect", "freeze"]


@pytest.mark.parametrize("module", [None, "pytest", "pyspark.sql.streaming.python_streaming_source_runner"])
def test_other_processes_are_left_alone(module: str | None, frozen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(module, monkeypatch)
    worker_memory.settle()
    assert frozen == []
