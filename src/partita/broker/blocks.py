"""Large pieces of memory, of which only what is written to is taken: for logs kept in memory and for large frames."""

from __future__ import annotations

import mmap

# Pages of 2 MB (MADV_HUGEPAGE) were tried: a virtual machine whose host has not given it that memory yet spends 2 ms
# of the kernel's time on a megabyte, where small pages take 0.5 to 0.8.
_MAPPED_FROM_BYTES = 1 << 20


def fresh_block(size: int) -> bytearray | mmap.mmap:
    """Return `size` zeroed bytes."""
    if size < _MAPPED_FROM_BYTES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return bytearray(size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
