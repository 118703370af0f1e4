"""Control records: the content of a transaction marker.

Upstream: ControlRecordType, EndTransactionMarker. Types this release does not know are left to the caller to ignore.
"""

from __future__ import annotations

from struct import Struct

from partita.protocol.primitives import Buffer
from partita.records.header import corrupt

ABORT, COMMIT, LEADER_CHANGE = 0, 1, 2

_KEY = Struct(">hh")
_VALUE = Struct(">hi")


def control_type(key: Buffer | None) -> int:
    """ABORT, COMMIT or another number; versions above 0 are read with the layout of version 0."""
    if key is None or len(key) < _KEY.size:
        raise corrupt(f"control record key of {0 if key is None else len(key)} bytes; {_KEY.size} expected")
    version, kind = _KEY.unpack_from(key, 0)
    if version < 0:
        raise corrupt(f"control record key of version {version}")
    return int(kind)


def coordinator_epoch(value: Buffer | None) -> int:
    """The transaction coordinator's epoch in the value of an ABORT or COMMIT marker."""
    if value is None or len(value) < _VALUE.size:
        raise corrupt(f"transaction marker of {0 if value is None else len(value)} bytes; {_VALUE.size} expected")
    version, epoch = _VALUE.unpack_from(value, 0)
    if version < 0:
        raise corrupt(f"transaction marker of version {version}")
    return int(epoch)


def marker_key(kind: int) -> bytes:
    """The key of a transaction marker: ABORT or COMMIT."""
    return _KEY.pack(0, kind)


def marker_value(epoch: int) -> bytes:
    """The value of a transaction marker, with the transaction coordinator's epoch."""
    return _VALUE.pack(0, epoch)
