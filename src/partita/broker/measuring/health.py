"""The health of a broker process: answers for supervisors that start, watch and end it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Health(NamedTuple):
    """`status` is "ready", "loading", "failed" or "closing"; `reasons` say why it is not ready.

    `ok` is false once the log directory has failed: then only a restart helps. Loading and closing are no faults.
    """

    ok: bool
    status: str
    reasons: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether clients should be sent here now."""
        return self.status == "ready"


def health_of(disk_failure: str | None, shards: Mapping[str, int], *, is_closing: bool, loads_soon: bool) -> Health:
    """The health of a broker with so many coordinator shards in each state; the gravest fact gives the status."""
    reasons = []
    if disk_failure is not None:
        reasons.append(f"the log directory failed: {disk_failure}")
    if is_closing:
        reasons.append("the broker is stopping")
    loading = shards.get("loading", 0)
    if loading or loads_soon:
        reasons.append(f"{loading} coordinator shards are loading" if loading else "groups are not loaded yet")
    if shards.get("failed", 0):
        reasons.append(f"{shards['failed']} coordinator shards have failed")
    if disk_failure is not None:
        status = "failed"
    elif is_closing:
        status = "closing"
    elif loading or loads_soon:
        status = "loading"
    else:
        status = "failed" if reasons else "ready"
    return Health(disk_failure is None, status, tuple(reasons))
