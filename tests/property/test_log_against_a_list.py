"""Any sequence of appends, rolls, cuts, deletions and restarts serves what a plain list would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.log.partition_log import PartitionLog
from partita.log.storage import MemoryStorage
from support.log.logs import SMALL, at, batch, open_log, served

STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("roll"), st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 40)),
    st.tuples(st.just("delete"), st.integers(0, 40)),
    st.tuples(st.just("retain"), st.just(0)),
    st.tuples(st.just("stop"), st.just(0)),
    st.tuples(st.just("kill"), st.just(0)),
)


class Model:
    """The batches as (base offset, values), and where the log starts."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[str]]] = []
        self.start = 0
        self.durable_start = 0
        """Where the log starts at least after a crash."""

    @property
    def end(self) -> int:
        return self.batches[-1][0] + len(self.batches[-1][1]) if self.batches else self.start

    def records(self, offset: int) -> list[tuple[int, str]]:
        return [(base + i, v) for base, values in self.batches for i, v in enumerate(values) if base + i >= offset]


@given(st.lists(STEP, max_size=40))
def test_a_log_serves_what_a_list_would(steps: list[tuple[str, int]]) -> None:
    storage, model, names = MemoryStorage(), Model(), 0
    log = open_log(storage, SMALL)
    for what, number in steps:
        if what == "append":
            values = [f"v{names + i}" for i in range(number)]
            names += number
            assert log.append(batch(*values), 0, at(0)).base_offset == model.end
            model.batches.append((model.end, values))
        else:
            log = apply(what, number, log, model, storage)
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
        assert served(log, model.start) == model.records(model.start)
        middle = (model.start + model.end) // 2
        assert served(log, middle, max_bytes=1) == model.records(middle)


def apply(what: str, number: int, log: PartitionLog, model: Model, storage: MemoryStorage) -> PartitionLog:
    match what:
        case "roll":
            log.roll(at(0))
        case "truncate":
            # Below the log start a log cannot be cut without starting anew.
            cut = max(number, model.start)
            log.truncate_to(cut)
            model.batches = [entry for entry in model.batches if entry[0] + len(entry[1]) <= cut]
            model.start = min(model.start, log.log_end_offset)
            model.batches = model.batches or [(log.log_end_offset, [])]
        case "delete":
            model.start = log.delete_records_before(min(number, model.end))
        case "retain":
            log.delete_old_segments(at(0))
            model.start = max(model.start, log.segments[0].base_offset)
        case "stop":
            log.close()
            model.durable_start = model.start
            return open_log(storage, SMALL)
        case "kill":
            log = open_log(storage, SMALL, was_clean=False)
            assert model.durable_start <= log.log_start_offset <= model.start, "a start is durable with the next sync"
            model.start = log.log_start_offset
    return log
