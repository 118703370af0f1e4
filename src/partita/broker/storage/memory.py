"""Fresh memory for logs kept in this process.

Large blocks come from the system as they are: a bytearray would fill them with zeros first, which takes longer than
writing the data.
"""

from __future__ import annotations

import mmap

_MAPPED_FROM_BYTES = 1 << 20


def fresh_block(size: int) -> bytearray | mmap.mmap:
    """Return `size` zeroed bytes."""
    if size < _MAPPED_FROM_BYTES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return bytearray(size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
