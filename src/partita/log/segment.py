"""One data file of a log: batches exactly as on the wire, and a sparse index over them.

Positions are bytes in the file, always at a batch boundary. Upstream: LogSegment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from partita.log.sparse_index import NO_TIMESTAMP, SegmentFacts, SparseIndex, decode_facts, decode_index, encode_index
from partita.log.storage import File, Storage, read_file, replace_file
from partita.protocol.primitives import Buffer
from partita.records.header import (
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    BatchHeader,
    InvalidBatch,
    check_crc,
    corrupt,
    has_valid_crc,
    read_header,
)

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
_STEP = Struct(">qi11xi")
"""Base offset, length and last offset delta: enough to walk from batch to batch."""
_MIN_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD
_CUT = "the file ends before what was written"
_WINDOW_BYTES = 8192
_SCAN_BYTES = 1 << 20


def file_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """Return the name of a segment file: the offset in 20 digits, and the suffix."""
    return f"{base_offset:020d}{suffix}"


class Segment:
    """A data file that starts at `base_offset` and ends before `next_offset`."""

    __slots__ = (
        "_checked", "_index", "_interval_bytes", "_storage", "base_offset", "created_ms", "directory", "file",
        "is_sealed", "last_append_ms", "max_timestamp", "next_offset", "size",
    )  # fmt: skip

    def __init__(self, storage: Storage, directory: str, base_offset: int, file: File, interval_bytes: int) -> None:
        self._storage = storage
        self._interval_bytes = interval_bytes
        self._index: SparseIndex | None = None
        # None: every byte was written or checked by this process. Otherwise the one range that reads have checked
        # since.
        self._checked: tuple[int, int] | None = None
        self.directory = directory
        self.base_offset = base_offset
        self.file = file
        self.is_sealed = False
        self.next_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.last_append_ms = NO_TIMESTAMP
        self.created_ms = NO_TIMESTAMP
        self.size = 0

    @classmethod
    def create(cls, storage: Storage, directory: str, base_offset: int, interval_bytes: int, wall_ms: int) -> Segment:
        """Create an empty segment. Its name survives a power loss once the directory is synced."""
        file = storage.open(f"{directory}/{file_name(base_offset)}", create=True)
        segment = cls(storage, directory, base_offset, file, interval_bytes)
        segment._index = SparseIndex(interval_bytes)
        segment.created_ms = wall_ms
        return segment

    @classmethod
    def open_trusted(cls, storage: Storage, directory: str, base_offset: int, interval_bytes: int) -> Segment | None:
        """Open a segment whose index proves that it was synced; None if the index is missing or does not fit."""
        file = storage.open(f"{directory}/{file_name(base_offset)}")
        size = file.size()
        content = read_file(storage, directory, file_name(base_offset, INDEX_SUFFIX))
        facts = decode_facts(content, size) if content is not None else None
        if facts is None:
            return None
        segment = cls(storage, directory, base_offset, file, interval_bytes)
        segment._take_facts(facts)
        # The index proves that the data was synced, not that the disk still has it: it is checked when it is first
        # read, so that a start does not read the whole log.
        segment._checked = (0, 0)
        return segment

    @classmethod
    def open_as(
        cls,
        storage: Storage,
        directory: str,
        base_offset: int,
        interval_bytes: int,
        facts: SegmentFacts,
        name: str | None = None,
    ) -> Segment:
        """Open a segment that this process has just written, under another `name` than its final one if given."""
        file = storage.open(f"{directory}/{name or file_name(base_offset)}")
        segment = cls(storage, directory, base_offset, file, interval_bytes)
        segment._take_facts(facts)
        return segment

    @property
    def is_trusted(self) -> bool:
        """Whether its index proved that it was synced; then batches are checked when they are first read."""
        return self._checked is not None

    def _take_facts(self, facts: SegmentFacts) -> None:
        self.is_sealed = facts.is_sealed
        self.size = facts.log_size
        self.next_offset = facts.next_offset
        self.max_timestamp = facts.max_timestamp
        self.last_append_ms = facts.last_append_ms
        # The time of creation is not stored; counting from the last append rolls the segment late rather than at once.
        self.created_ms = facts.last_append_ms

    @property
    def index(self) -> SparseIndex:
        """The index, loaded on first use; rebuilt from the batches if the file is missing or damaged."""
        if self._index is None:
            content = read_file(self._storage, self.directory, file_name(self.base_offset, INDEX_SUFFIX))
            self._index = decode_index(content, self.size, self._interval_bytes) if content is not None else None
        return self._index if self._index is not None else self.build_index()

    def build_index(self) -> SparseIndex:
        """Build the index from the batches, ignoring its file."""
        self._index = index = SparseIndex(self._interval_bytes)
        max_timestamp = NO_TIMESTAMP
        for header, position in self.headers():
            index.add(header.base_offset, position, max_timestamp)
            max_timestamp = max(max_timestamp, header.max_timestamp)
        return index

    def write_index(self) -> None:
        """Sync the data, then write the index, which marks the data as synced."""
        self.file.sync()
        facts = SegmentFacts(self.is_sealed, self.size, self.next_offset, self.max_timestamp, self.last_append_ms)
        name = file_name(self.base_offset, INDEX_SUFFIX)
        replace_file(self._storage, self.directory, name, encode_index(self.index, facts))

    def append(self, header: BatchHeader, base_offset: int, chunks: Sequence[Buffer], wall_ms: int) -> None:
        """Write one batch whose bytes already contain `base_offset`. After a StorageError nothing has changed."""
        self.file.append(chunks)
        # The timestamp of the batches before this one: a search for a time starts here if all before are older.
        self.index.add(base_offset, self.size, self.max_timestamp)
        self.size += header.batch_length + LENGTH_OVERHEAD
        self.next_offset = base_offset + header.last_offset_delta + 1
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
        self.last_append_ms = max(self.last_append_ms, wall_ms)

    def position_of(self, offset: int) -> int:
        """Return the start of the first batch whose last offset is at least `offset`; the size if there is none."""
        if offset >= self.next_offset:
            return self.size
        position = self.index.position_for_offset(offset)
        for at, base, _, delta in self._steps(position):
            # By the last offset, because compaction leaves holes: `offset` itself may be gone, and the next batch is
            # the answer.
            if base + delta >= offset:
                return at
        return self.size

    def held(self, offsets: Sequence[int]) -> Iterator[int]:
        """Yield those of these ascending offsets that a batch covers; compaction leaves holes."""
        steps, at, base, last = self._steps(0), -1, 0, -1
        for offset in offsets:
            if last < offset and (start := self.index.position_for_offset(offset)) > at:
                steps = self._steps(start)
            while last < offset and (step := next(steps, None)) is not None:
                at, base, last = step[0], step[1], step[1] + step[3]
            if base <= offset <= last:
                yield offset

    def read(self, position: int, end: int, max_bytes: int, *, at_least_one: bool) -> memoryview:
        """Return whole batches from `position`, at most `max_bytes` and none from `end` on.

        They are never joined by copying: a response that is not consumed must not hold memory of its own. (H11)
        Bytes that this process has neither written nor checked before are checked: valid batches before a damaged one
        are returned, and the damaged one raises InvalidBatch if it is the first.
        """
        if position >= end:
            return memoryview(b"")
        found = self._read_whole_batches(position, end, max_bytes, at_least_one)
        return found if self._checked is None else self._check_cold(position, found, self._checked)

    def _read_whole_batches(self, position: int, end: int, max_bytes: int, at_least_one: bool) -> memoryview:
        stop = position + max_bytes
        if stop >= end:
            return self._read_in_one_piece(position, end)
        # The index gives a boundary near the end of the range, so that only one interval is walked batch by batch.
        boundary = max(position, self.index.position_before(stop))
        for at, _, length, _ in self._steps(boundary):
            boundary = at
            following = at + length + LENGTH_OVERHEAD
            if following > stop:
                break
            boundary = following
        if boundary == position and at_least_one:
            boundary += next(self._steps(position))[2] + LENGTH_OVERHEAD
        return self._read_in_one_piece(position, boundary)

    def _read_in_one_piece(self, position: int, end: int) -> memoryview:
        size = self.file.in_one_piece(position, end - position)
        found = self.file.read_at(position, size)
        # Shorter than promised: another process has cut the file. Whole batches in front of the cut are still good.
        return found if len(found) == size else self._before_the_cut(found, position)

    def _before_the_cut(self, found: memoryview, position: int) -> memoryview:
        """Return the whole batches that are left. Raises InvalidBatch if the first one is incomplete."""
        end, left = 0, len(found)
        while end + HEADER_SIZE <= left and (following := end + read_header(found, end).size_in_bytes) <= left:
            end = following
        if not end:
            raise self._damaged(position, _CUT)
        return found[:end]

    def _whole(self, found: memoryview, position: int, size: int) -> memoryview:
        """Check that a read is complete: another process may have cut the file."""
        if len(found) < size:
            raise self._damaged(position, _CUT)
        return found

    def _check_cold(self, position: int, found: memoryview, checked: tuple[int, int]) -> memoryview:
        low, high = checked
        if low <= position and position + len(found) <= high:
            return found
        at = 0
        offset = self._expected_at(position)
        while at < len(found):
            try:
                header = read_header(found, at)
                self._check_place(header, position + at, offset)
                check_crc(found[at : at + header.size_in_bytes])
            except InvalidBatch as error:
                if not at:
                    raise self._damaged(position, error.reason) from error
                found = found[:at]
                break
            at += header.size_in_bytes
            offset = header.next_offset
        end = position + len(found)
        # Only one checked range is kept: a read that touches it extends it, any other replaces it.
        touching = position <= high and end >= low
        self._checked = (min(low, position), max(high, end)) if touching else (position, end)
        return found

    def _expected_at(self, position: int) -> int:
        """Return the smallest offset possible at `position`, from the batches since the last indexed one."""
        start = self.index.position_before(position)
        expected = self.base_offset
        for at, base, _, delta in self._steps(start):
            if at >= position:
                break
            # The indexed offset, where there is one, because the one in the file is what is being doubted.
            expected = self.index.offset_at(at, base) + delta + 1
        return expected

    def _check_place(self, header: BatchHeader, position: int, expected: int) -> None:
        """Check a batch's offset, which no checksum covers: it must be the indexed one or fit its neighbours."""
        base = header.base_offset
        if (
            self.index.offset_at(position, base) != base
            or not expected <= base < header.next_offset <= self.next_offset
        ):
            raise corrupt(f"a batch says offset {base} in a place of other offsets")

    def _damaged(self, position: int, what: str) -> InvalidBatch:
        return corrupt(f"{file_name(self.base_offset)} at byte {position}: {what}")

    def headers(self, position: int = 0) -> Iterator[tuple[BatchHeader, int]]:
        """Yield every batch header from `position` on, with its position."""
        view, start = memoryview(b""), position
        while position < self.size:
            at = position - start
            if at + HEADER_SIZE > len(view):
                # A window at a time: a walk over large batches needs 61 bytes of each, and one over small ones many in
                # one read.
                view, start, at = self.file.read_at(position, _WINDOW_BYTES), position, 0
                self._whole(view, position, HEADER_SIZE)
            header = read_header(view, at)
            if header.batch_length < _MIN_LENGTH:
                raise self._damaged(position, f"batch length {header.batch_length}")
            yield header, position
            position += header.batch_length + LENGTH_OVERHEAD

    def batch_at(self, position: int) -> memoryview:
        """Return the whole batch that starts at `position`."""
        (_, _, length, _) = next(self._steps(position))
        size = length + LENGTH_OVERHEAD
        return self._whole(self.file.read_at(position, size), position, size)

    def first_batch_from_timestamp(self, timestamp: int) -> int | None:
        """Return the position of the first batch whose largest timestamp is at least `timestamp`."""
        if self.max_timestamp < timestamp:
            return None
        for header, position in self.headers(self.index.position_for_timestamp(timestamp)):
            if header.max_timestamp >= timestamp:
                return position
        return None

    def truncate(self, position: int, next_offset: int) -> None:
        """Cut the file at a batch boundary. The index file goes first, since it claims that the rest is synced."""
        name = file_name(self.base_offset, INDEX_SUFFIX)
        index = self.index
        if name in self._storage.list(self.directory):
            self._storage.unlink(f"{self.directory}/{name}")
            self._storage.sync_dir(self.directory)
        self.file.truncate(position)
        index.truncate(position)
        self.size = position
        self.next_offset = next_offset
        self.is_sealed = False
        self.max_timestamp = max((header.max_timestamp for header, _ in self.headers()), default=NO_TIMESTAMP)

    def delete(self) -> None:
        """Remove the files, the index first, since it claims that the data is complete."""
        names = self._storage.list(self.directory)
        self.file.close()
        for suffix in (INDEX_SUFFIX, LOG_SUFFIX):
            if file_name(self.base_offset, suffix) in names:
                self._storage.unlink(f"{self.directory}/{file_name(self.base_offset, suffix)}")

    def _steps(self, position: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (position, base offset, length, last offset delta) from batch to batch."""
        view, start = memoryview(b""), position
        while position < self.size:
            at = position - start
            if at + _STEP.size > len(view):
                view, start, at = self.file.read_at(position, _WINDOW_BYTES), position, 0
                self._whole(view, position, _STEP.size)
            base, length, delta = _STEP.unpack_from(view, at)
            if length < _MIN_LENGTH:
                raise self._damaged(position, f"batch length {length}")
            yield position, base, length, delta
            position += length + LENGTH_OVERHEAD


@dataclass(frozen=True, slots=True)
class Scan:
    """Result of checking every batch. `problem` is the reason why it stopped before the end of the file, or None."""

    valid_bytes: int
    file_bytes: int
    batches: int
    problem: str | None


def scan(segment: Segment, *, holes_allowed: bool) -> Scan:
    """Check every batch, set the segment's facts to the valid part, and return where it ends. Cuts nothing."""
    file_bytes = segment.file.size()
    index = SparseIndex(segment._interval_bytes)
    segment._index = index
    segment.size, segment.next_offset, segment.max_timestamp = 0, segment.base_offset, NO_TIMESTAMP
    batches, problem = 0, None
    for position, batch in _cut(segment.file, file_bytes):
        problem = _defect(batch, segment.next_offset, holes_allowed)
        if problem is not None:
            break
        header = read_header(batch)
        # The index is built on the way, so that a checked segment need not be read again to be indexed.
        index.add(header.base_offset, position, segment.max_timestamp)
        segment.max_timestamp = max(segment.max_timestamp, header.max_timestamp)
        segment.next_offset = header.next_offset
        segment.size = position + len(batch)
        batches += 1
    return Scan(segment.size, file_bytes, batches, problem)


def _cut(file: File, file_bytes: int) -> Iterator[tuple[int, memoryview]]:
    """Yield (position, batch by its stated length), and last any remaining incomplete batch."""
    position, start, view = 0, 0, memoryview(b"")
    while position < file_bytes:
        at = position - start
        if at + HEADER_SIZE > len(view):
            view, start, at = file.read_at(position, _SCAN_BYTES), position, 0
        size = int.from_bytes(view[at + 8 : at + 12], "big", signed=True) + LENGTH_OVERHEAD
        if size < HEADER_SIZE or position + size > file_bytes:
            # Shorter than a header by one byte, which `_defect` reports as a batch that is cut short.
            yield position, view[at : at + HEADER_SIZE - 1]
            return
        if at + size > len(view):
            # The checksum needs the batch in one piece, however large.
            view, start, at = file.read_at(position, max(size, _SCAN_BYTES)), position, 0
        yield position, view[at : at + size]
        position += size


def _defect(batch: memoryview, expected_offset: int, holes_allowed: bool) -> str | None:
    if len(batch) < HEADER_SIZE:
        return "the last batch is cut short"
    if batch[16] != 2:
        return f"magic {batch[16]} where 2 was expected"
    if not has_valid_crc(batch):
        return "a batch has a wrong checksum"
    header = read_header(batch)
    if header.base_offset < expected_offset or (header.base_offset > expected_offset and not holes_allowed):
        return f"a batch starts at offset {header.base_offset} where {expected_offset} was expected"
    if header.last_offset_delta < 0:
        return f"a batch ends {-header.last_offset_delta} offsets before it starts"
    return None
