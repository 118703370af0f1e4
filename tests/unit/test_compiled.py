import gc
import os
import re
import weakref
from importlib import import_module
from pathlib import Path

from partita.compiled import COMPILED, compiled_modules
from partita.records import decode
from partita.records.builder import build_batch
from partita.records.decode import Record, RecordReader
from partita.records.header import HEADER_SIZE, read_header


def test_a_module_is_told_to_be_compiled_exactly_when_it_runs_compiled() -> None:
    told = compiled_modules()
    assert tuple(told) == COMPILED
    for name, is_compiled in told.items():
        assert is_compiled == (not str(import_module(name).__file__).endswith(".py"))
        assert not (is_compiled and os.environ.get("PARTITA_PURE")), "the gate of the pure build ran what is compiled"


def test_the_gate_of_the_pure_build_runs_the_tests_of_every_compiled_module() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    chosen = re.findall(r"unit/[\w/]+", makefile.partition("PURE_TESTS :=")[2].partition("\n\n")[0])
    for name in COMPILED:
        folder = name.removeprefix("partita.").replace(".", "/")
        assert any(f"unit/{folder}/".startswith(f"{one}/") for one in chosen), f"{name}: PURE_TESTS lacks its tests"


class Value:
    """A decoded value that knows the record it came in."""

    def __init__(self) -> None:
        self.record: Record | None = None


def test_the_collector_passes_over_fetched_records_and_frees_cycles_through_records_that_were_made() -> None:
    batch = build_batch([(1, b"key", b"value", [("name", b"header")])] * 3000)
    fetched = records_of(batch)
    assert {gc.is_tracked(record) for record in fetched} == {not decode.COMPILED}
    del fetched
    value = Value()
    value.record = Record("t", 0, 1, 1, 0, None, value)
    assert gc.is_tracked(value.record)
    seen = weakref.ref(value)
    del value
    gc.collect()
    assert seen() is None


def test_the_records_of_a_large_poll_are_those_of_the_last_one_again() -> None:
    batch = build_batch([(1, b"key", b"value", ())] * 3000)
    fetched = records_of(batch)
    del fetched
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        before = gc.get_count()[0]
        fetched = records_of(batch)
        assert (gc.get_count()[0] - before < 100) == decode.COMPILED
    finally:
        gc.enable() if was_enabled else None
    assert len(fetched) == 3000


def records_of(batch: bytes) -> list[Record]:
    """All records of a batch, as a consumer gets them."""
    return RecordReader(read_header(batch), batch[HEADER_SIZE:]).take(3000)
