"""CRC-32C of record batches, from the `crc32c` package's extension alone.

The package itself imports its command line and the e-mail parser, most of a broker's start-up budget; so only
its C extension is loaded, found without importing the package.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

from partita.protocol.primitives import Buffer


def _load() -> Callable[[Buffer], int]:
    package = find_spec("crc32c")
    folders = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("_crc32c", folders) if folders else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c as packaged

        return packaged
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Buffer], int] = module.crc32c
    return found


crc32c: Callable[[Buffer], int] = _load()
"""CRC-32C (Castagnoli) of a buffer; "123456789" gives 0xe3069283."""
