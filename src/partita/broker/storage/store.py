"""What a broker keeps: the catalogue's lines, and one log per partition. On disk or in memory.

`data_dir.DiskStore` keeps both in a locked directory whose log folders are named by topic id, never by name (H22);
`data_dir.MemoryStore` keeps them in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from partita.broker.config import TopicConfig
    from partita.log.durability import Durability
    from partita.log.partition_log import PartitionLog


class Store(Protocol):
    """Where everything durable lives. `unclean`: the last user of the directory did not stop cleanly (D5, D6)."""

    unclean: bool
    durability: Durability
    on_opened: Callable[[PartitionLog], None] | None
    """Called with every log that is opened from now on."""
    description: str
    """One line for the start banner: where, and what survives what."""
    root: str
    """The directory everything is in, or `memory`."""

    @property
    def logs(self) -> Mapping[str, PartitionLog]:
        """Every open log, by its folder; for upkeep."""
        ...

    def refresh_configs(self) -> None:
        """Let every open log obey its topic's settings of now."""
        ...

    def read_catalogue(self) -> list[bytes]:
        """All whole lines of the catalogue, oldest first, without their line ends."""
        ...

    def append_catalogue(self, line: bytes) -> None:
        """Add one line (given without line end); it is durable when this returns."""
        ...

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace the whole catalogue, all or nothing (rename)."""
        ...

    def open_log(self, topic_id: bytes, partition: int, config: TopicConfig) -> PartitionLog:
        """Open the log of one partition, making it when it is new. Called once per partition."""
        ...

    def has_log(self, topic_id: bytes, partition: int) -> bool:
        """Whether anything was ever written for the partition."""
        ...

    def delete_log(self, topic_id: bytes, partition: int) -> None:
        """Forget one partition's data; its log is closed already."""
        ...

    def volume_bytes(self) -> tuple[int, int]:
        """How large the volume is and how much of it can still be used; -1 where there is none."""
        ...

    def close(self) -> None:
        """Leave a clean-stop mark and release the lock; the logs are closed already."""
        ...
