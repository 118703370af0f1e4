"""Recovery of a log at start: valid files, the end of the log, and losses.

A segment whose index matches its size was synced and is trusted; any other is checked batch by batch and cut at the
first invalid one, and nothing after the cut survives, so that the log is a prefix of the appended one (D2). Running it
again changes nothing. Its changes become durable with the log's first sync. Upstream: LogLoader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from partita.log.log_config import FOREVER, LogConfig
from partita.log.producer_state import ProducerStates, note_batch
from partita.log.segment import INDEX_SUFFIX, LOG_SUFFIX, Segment, file_name, scan
from partita.log.segment_swap import finish_swaps
from partita.log.snapshots import PRODUCERS_SUFFIX, STATE_NAME, PartitionState, decode_producers, decode_state
from partita.log.storage import Storage, StorageFull, read_file
from partita.records.builder import assemble
from partita.records.header import read_header

_OFFSET_DIGITS = 20
Chore: TypeAlias = Callable[[], None]
"""A storage operation that may wait for the next sync and run on any thread. Raises StorageError."""


@dataclass(slots=True)
class RecoveryReport:
    """Result of recovery; `bytes_cut` and `files_removed` count the losses."""

    directory: str
    was_clean: bool
    log_end_offset: int = 0
    """Log end offset when the log was opened."""
    segments_checked: int = 0
    batches_checked: int = 0
    bytes_cut: int = 0
    cut_at_offset: int | None = None
    problem: str | None = None
    files_removed: list[str] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """(From, to) of offsets whose segments are missing although later ones were synced."""


@dataclass(slots=True)
class Recovered:
    """A log ready for use; the last segment takes appends."""

    segments: list[Segment]
    state: PartitionState
    producers: ProducerStates
    report: RecoveryReport
    chores: list[Chore]
    """Operations that make the changes of recovery durable, run in order by the log's next sync."""


def recover(
    storage: Storage, directory: str, config: LogConfig, *, was_clean: bool, known_end: int = 0, wall_ms: int
) -> Recovered:
    """Open the log in `directory`. `was_clean`: the last process closed it.

    `known_end`: an offset that the log had reached durably; missing offsets before it are reported as a gap.
    """
    report = RecoveryReport(directory, was_clean)
    changed = list(storage.make_dir(directory))
    # Before anything is looked at: a half-done swap has both the old segments and the new one, which overlap.
    finish_swaps(storage, directory, config.index_interval_bytes, wall_ms)
    _remove_leftovers(storage, directory, report)
    segments = _open_segments(storage, directory, config, report, wall_ms)
    # Trust is a matter of the index: only a segment that was synced has one, and its size must fit.
    checked = [segment for segment in segments if not segment.is_trusted]
    for segment in checked:
        # An older segment is never appended to again, so the next start need not check it.
        segment.is_sealed = segment is not segments[-1]
    start = segments[-1].next_offset if segments else _start_offset(storage, directory)
    known_end = max(known_end, _known_end(storage, directory))
    if start < known_end:
        # A crash cannot cause this. Skip the lost offsets so they are never reused.
        report.gaps.append((start, known_end))
        # Three cases: a segment that has data is closed in front of the gap; an empty one is filled with a batch
        # without records; if that finds the disk full, it is sealed as it is.
        if segments and segments[-1].size:
            _seal_now(segments)
            segments.append(Segment.create(storage, directory, start, config.index_interval_bytes, wall_ms))
            changed.append(directory)
        if not segments or not _is_filled(storage, directory, segments[-1], known_end, wall_ms):
            _seal_now(segments)
        checked += segments[-1:]
        start = known_end
    # A sealed segment is never appended to, since its index vouches for its size.
    if not segments or segments[-1].is_sealed:
        segments.append(Segment.create(storage, directory, start, config.index_interval_bytes, wall_ms))
        changed.append(directory)
    if report.files_removed:
        changed.append(directory)
    state, producers = rebuild_states(storage, directory, segments, compact=config.compact)
    first = segments[0].base_offset
    if first > max(state.log_start_offset, state.cleaned_to):
        if config.compact:  # a pass was killed before it had stored how far it was; the policy may be another next time
            state = replace(state, cleaned_to=first)
        else:  # retention on a disk too full to record it, or segments removed by hand
            report.gaps.insert(0, (state.log_start_offset, first))
            state = state.started_at(first)
            producers.forget_before(first)
    report.log_end_offset = segments[-1].next_offset
    return Recovered(
        segments=segments,
        state=state,
        producers=producers,
        report=report,
        chores=_chores(storage, changed, checked),
    )


def _chores(storage: Storage, changed: list[str], checked: list[Segment]) -> list[Chore]:
    """Return operations that keep checked data and the names of new files and folders safe from a second crash."""
    chores: list[Chore] = [partial(_sync_checked, segment) for segment in checked]
    return chores + [partial(storage.sync_dir, directory) for directory in dict.fromkeys(changed)]


def _sync_checked(segment: Segment) -> None:
    segment.file.sync()
    if segment.is_sealed:
        with suppress(StorageFull):
            segment.write_index()


def rebuild_states(
    storage: Storage, directory: str, segments: list[Segment], *, compact: bool
) -> tuple[PartitionState, ProducerStates]:
    """Rebuild state and producers from the small files and all later batches. `compact`: the log is compacted."""
    producers, taken_at = _snapshot(storage, directory, segments[-1].next_offset)
    state = _saved_state(storage, directory)
    if state is None:
        state, taken_at, producers = PartitionState(segments[0].base_offset), 0, ProducerStates()
    state = _replay(segments, taken_at, producers, state)
    producers.forget_before(state.log_start_offset)
    # It may have been compacted before its policy was changed, or, if each pass was killed, without a trace in `state`.
    if compact or state.cleaned_to:
        keep_marked(producers, segments)
    return state, producers


def keep_marked(states: ProducerStates, segments: list[Segment]) -> None:
    """Drop aborted transactions whose markers compaction has removed.

    A reader given such a transaction would wait for its marker and drop the producer's later records.
    """
    markers, held = [entry.last_offset for entry in states.aborted], set[int]()
    for segment in segments if markers else ():
        first, end = (bisect_left(markers, offset) for offset in (segment.base_offset, segment.next_offset))
        held.update(segment.held(markers[first:end]))
    states.aborted = [entry for entry in states.aborted if entry.last_offset in held]


def base_offsets(names: list[str], suffix: str) -> list[int]:
    """Return the offsets in the names of all files with this suffix, ascending."""
    stems = (name[: -len(suffix)] for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if len(stem) == _OFFSET_DIGITS and stem.isdigit())


def _remove_leftovers(storage: Storage, directory: str, report: RecoveryReport) -> None:
    names = storage.list(directory)
    logs = set(base_offsets(names, LOG_SUFFIX))
    stray = [file_name(base, INDEX_SUFFIX) for base in base_offsets(names, INDEX_SUFFIX) if base not in logs]
    _remove(storage, directory, report, [n for n in names if n.endswith((".tmp", ".cleaned"))] + stray)


def _remove(storage: Storage, directory: str, report: RecoveryReport, names: list[str]) -> None:
    for name in names:
        storage.unlink(f"{directory}/{name}")
        report.files_removed.append(name)


def _open_segments(
    storage: Storage, directory: str, config: LogConfig, report: RecoveryReport, wall_ms: int
) -> list[Segment]:
    bases = base_offsets(storage.list(directory), LOG_SUFFIX)
    compacted_to = _compacted_to(storage, directory, config)
    segments: list[Segment] = []
    # Oldest first. The first segment with a problem ends the log, because what comes after a hole in the middle was
    # never promised to be there: keeping it would break "the log is a prefix of what was appended".
    for i, base in enumerate(bases):
        segment = Segment.open_trusted(storage, directory, base, config.index_interval_bytes)
        problem = None
        if segment is None:
            segment = _unchecked(storage, directory, base, config)
            problem = _check(storage, segment, report, wall_ms, holes_allowed=base != bases[-1])
        if segments and base < segments[-1].next_offset:
            # Wholly covered by the one before: the leftover of a swap whose files were being removed.
            if segment.next_offset <= segments[-1].next_offset and problem is None:
                _drop(storage, segment, report)
                continue
            problem = f"segment {base} starts before offset {segments[-1].next_offset}, where the one before ends"
            _drop(storage, segment, report)
        elif segments and base > max(segments[-1].next_offset, compacted_to) and not segments[-1].is_trusted:
            # The previous segment's end was not synced and is lost; later data must not outlive it (D2).
            problem = f"segment {base} starts after offset {segments[-1].next_offset}, where the one before ends"
            _drop(storage, segment, report)
        else:
            if segments and base > max(segments[-1].next_offset, compacted_to) and not config.compact:
                report.gaps.append((segments[-1].next_offset, base))
            segments.append(segment)
        if problem is not None:
            report.problem = problem
            report.cut_at_offset = segments[-1].next_offset
            for later in bases[i + 1 :]:
                _drop(storage, _unchecked(storage, directory, later, config), report)
            break
    return segments


def _compacted_to(storage: Storage, directory: str, config: LogConfig) -> int:
    """Return the offset below which segments may have gaps between them, left by compaction.

    The state is saved before a log is first compacted, so the offset is unknown only if that file is damaged.
    """
    state = _saved_state(storage, directory)
    if state is not None:
        return state.cleaned_to
    return FOREVER if config.compact and STATE_NAME in storage.list(directory) else 0


def _unchecked(storage: Storage, directory: str, base: int, config: LogConfig) -> Segment:
    file = storage.open(f"{directory}/{file_name(base)}")
    return Segment(storage, directory, base, file, config.index_interval_bytes)


def _check(
    storage: Storage, segment: Segment, report: RecoveryReport, wall_ms: int, *, holes_allowed: bool
) -> str | None:
    """Check every batch and cut the file after the last valid one; return the problem of the next one."""
    index_name = file_name(segment.base_offset, INDEX_SUFFIX)
    if index_name in storage.list(segment.directory):
        _remove(storage, segment.directory, report, [index_name])
    # The last segment was never compacted, so an offset missing in it is damage; elsewhere it may be compaction's work.
    found = scan(segment, holes_allowed=holes_allowed)
    # The true time is lost with the index. The later of now and the newest record is the safe guess, since a clock may
    # be behind without a battery: retention keeps the segment for longer, not shorter.
    segment.created_ms = wall_ms
    segment.last_append_ms = max(wall_ms, segment.max_timestamp)
    report.segments_checked += 1
    report.batches_checked += found.batches
    report.bytes_cut += found.file_bytes - found.valid_bytes
    # No view of it is exported yet, so its map can be dropped: a file without one is cut in place.
    segment.file.close()
    segment.file.truncate(found.valid_bytes)
    return found.problem


def _drop(storage: Storage, segment: Segment, report: RecoveryReport) -> None:
    report.bytes_cut += segment.file.size()
    report.files_removed.append(file_name(segment.base_offset))
    segment.delete()


def _known_end(storage: Storage, directory: str) -> int:
    """Return an offset that the log reached durably: data before a producer snapshot is always synced first."""
    return max(base_offsets(storage.list(directory), PRODUCERS_SUFFIX), default=0)


def _seal_now(segments: list[Segment]) -> None:
    """Write the last segment's index, so that the next start trusts it although a gap follows."""
    if segments:
        segments[-1].is_sealed = True
        with suppress(StorageFull):
            segments[-1].write_index()


def _is_filled(storage: Storage, directory: str, segment: Segment, end: int, wall_ms: int) -> bool:
    """Write a batch without records from the end of an empty segment to `end`; false if the disk has no room for it.

    Readers pass over it, as over a batch that compaction has emptied. Without it, a reader inside the gap would be
    given nothing although the high watermark lies behind it, and would wait until a record is appended.
    """
    state, start = _saved_state(storage, directory), segment.next_offset
    epoch = state.epochs[-1][0] if state is not None and state.epochs else 0
    batch = assemble(
        b"", codec=0, base_offset=start, leader_epoch=epoch, attributes=0, last_offset_delta=end - start - 1,
        base_timestamp=wall_ms, max_timestamp=wall_ms, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        records_count=0,
    )  # fmt: skip
    try:
        segment.append(read_header(batch), start, [batch], wall_ms)
    except StorageFull:
        return False
    segment.is_sealed = False
    return True


def _start_offset(storage: Storage, directory: str) -> int:
    """Return where a log without any segment continues: offsets are never reused."""
    state = _saved_state(storage, directory)
    return state.log_start_offset if state is not None else 0


def _saved_state(storage: Storage, directory: str) -> PartitionState | None:
    content = read_file(storage, directory, STATE_NAME)
    return decode_state(content) if content is not None else None


def _snapshot(storage: Storage, directory: str, log_end_offset: int) -> tuple[ProducerStates, int]:
    """Return the newest usable producer snapshot and its offset."""
    # The newest that is valid and not beyond the end: a snapshot may be newer than a log that lost its tail.
    for offset in reversed(base_offsets(storage.list(directory), PRODUCERS_SUFFIX)):
        if offset <= log_end_offset:
            content = read_file(storage, directory, file_name(offset, PRODUCERS_SUFFIX))
            found = decode_producers(content, offset) if content is not None else None
            if found is not None:
                return found, offset
    return ProducerStates(), 0


def _replay(segments: list[Segment], offset: int, producers: ProducerStates, state: PartitionState) -> PartitionState:
    """Apply every batch from `offset` on, written after snapshot and state."""
    log_end_offset = segments[-1].next_offset
    state = state.truncated(log_end_offset + 1)
    for segment in segments:
        if segment.next_offset > offset:
            # Headers only; just the control batches are opened, for the coordinator epoch inside.
            for header, position in segment.headers(segment.position_of(offset)):
                note_batch(producers, header, segment.batch_at(position) if header.is_control else None)
                state = state.with_epoch(header.partition_leader_epoch, header.base_offset)
    if state.log_start_offset > log_end_offset:
        state = state.started_at(log_end_offset)
    return state
