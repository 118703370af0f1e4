"""A broker's storage: the catalogue's lines, and one log per partition. On disk or in memory.

`data_dir.DiskStore` keeps both in a locked directory whose log folders are named by topic id, never by name (H22);
`memory_store.MemoryStore` keeps them in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from partita.broker.config import TopicConfig
    from partita.log.log_config import Durability
    from partita.log.partition_log import PartitionLog
    from partita.log.storage import StorageError


class Store(Protocol):
    """Home of everything durable: one log directory. Changes become durable with the next sync (`Upkeep`)."""

    unclean: bool
    """The last user of the directory did not stop in order (D5, D6)."""
    durability: Durability
    failure: str | None
    """Why the log directory is offline; None while it is not. Its partitions answer KAFKA_STORAGE_ERROR. (D7)"""
    handover: bytes | None
    """One line that coordinators leave for the next start: there after an orderly stop, kept by `close`."""
    copied_ms: int
    """When the running broker, of which this is a copy, had its logs end here; -1 where it is none."""
    chores: list[Callable[[], None]]
    """Work that the next sync does first, in order, on the thread it runs on."""
    on_opened: Callable[[PartitionLog], None] | None
    """Called with every log that is opened from now on."""
    on_chore: Callable[[], None] | None
    """Called when a chore was added."""
    on_failed: Callable[[str], None] | None
    """Called once, when the log directory goes offline."""
    notices: list[tuple[str, dict[str, object]]]
    """Observations about the disk, with details: unclean starts, cut logs, damaged batches."""
    on_notice: Callable[..., None] | None
    """Called with each observation from now on: its name, and its details by name."""
    counters: dict[str, int]
    """How often: unclean_starts, logs_cut, bytes_cut, batches_damaged, offsets_clamped, offsets_missing."""
    description: str
    """One line for the start banner: place and durability."""
    root: str
    """The directory everything is in, or `memory`."""

    @property
    def logs(self) -> Mapping[str, PartitionLog]:
        """Every open log, by its folder; for upkeep."""
        ...

    def refresh_configs(self, logs: Iterable[PartitionLog]) -> None:
        """Let these open logs obey their topics' settings of now."""
        ...

    def read_catalogue(self) -> list[bytes]:
        """All lines of the catalogue, oldest first, without their line ends."""
        ...

    def append_catalogue(self, *lines: bytes, may_wait: bool = False, holds_appends: bool = False) -> None:
        """Add lines (given without line ends). Raises StorageError.

        With `may_wait` a full disk is no error: the lines are written as soon as there is room, and before later lines;
        if it `holds_appends`, before logs take any append.
        """
        ...

    def bury(self, topic_ids: Iterable[bytes], lines: Iterable[bytes]) -> None:
        """Say without room for lines that these topics are deleted; durable with the next sync. The lines come later.

        Raises StorageError; then none is said to be deleted.
        """
        ...

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace the whole catalogue, all or nothing (rename)."""
        ...

    def open_log(
        self,
        topic_id: bytes,
        partition: int,
        config: TopicConfig,
        *,
        is_group_log: bool = False,
        description: Callable[[], bytes] | None = None,
    ) -> PartitionLog:
        """Open the log of one partition, creating it when it is new. Called once per partition. Raises StorageError.

        `is_group_log`: it may use the reserve that other logs leave free. `description` gives the catalogue's line
        about the topic, to be kept in the topic's folder if it is not there yet.
        """
        ...

    def describe(self, topic_id: bytes, description: bytes) -> None:
        """Write the catalogue's present description of the topic into its folder, if it has one."""
        ...

    def has_log(self, topic_id: bytes, partition: int) -> bool:
        """Whether anything was ever written for the partition."""
        ...

    def delete_log(self, topic_id: bytes, partition: int) -> None:
        """Forget one partition's data; its log is discarded already."""
        ...

    def later(self, chore: Callable[[], None]) -> None:
        """Let the next sync do `chore`. In memory it is done at once."""
        ...

    def fail(self, reason: str) -> None:
        """Take the log directory offline."""
        ...

    def note_error(self, error: StorageError) -> None:
        """Take the log directory offline, unless the error is about room or descriptors only."""
        ...

    def check(self) -> None:
        """Take the directory offline when it has been removed."""
        ...

    def sync_catalogue(self) -> None:
        """Return once every line written so far is durable; for a start, when no request waits. Raises StorageError."""
        ...

    def settle(self) -> None:
        """Write the lines of the catalogue that found no room, if there is some now."""
        ...

    def has_room_for_groups(self, size: int) -> bool:
        """Whether the group log may grow by so many bytes. Raises StorageError."""
        ...

    def volume_bytes(self) -> tuple[int, int]:
        """Size and free space of the volume; -1 where there is none."""
        ...

    def close_logs(self) -> None:
        """Close every open log. Raises StorageError."""
        ...

    def close(self) -> None:
        """Leave a clean-stop mark and release the lock; the logs are closed already."""
        ...
