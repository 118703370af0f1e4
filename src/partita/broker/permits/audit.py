"""The audit log: one line for each decision, worded like Kafka's. (security.md 17)

Refusals are INFO and at most a hundred in a second, permissions are DEBUG. Names are escaped and cut. Refusals are
among the broker's notes, too, while these have room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from partita.security.rights.acls import Operation, PatternType, ResourceType
from partita.security.rights.authorizer import Decision

log = logging.getLogger("partita.authorizer")

LINES_PER_SECOND = 100
NAME_CHARACTERS_MAX = 200


def printable(text: str) -> str:
    """The text without control characters or anything else beyond ASCII, at most 200 characters long."""
    return ascii(text[:NAME_CHARACTERS_MAX])[1:-1]


class Audit:
    """Writes the lines, and notes refusals. `seconds` is a clock that never goes back."""

    def __init__(self, seconds: Callable[[], float], note: Callable[..., None]) -> None:
        self._seconds = seconds
        self._note = note
        self._second = 0
        self._written = 0
        self._left_out = 0

    def record(
        self, decision: Decision, principal: str, host: str, operation: int, kind: int, name: str, api: str, count: int
    ) -> None:
        """Write one decision about `count` things of the same name, unless there are too many lines."""
        level = logging.DEBUG if decision.allowed else logging.INFO
        is_logged = log.isEnabledFor(level)
        if (decision.allowed and not is_logged) or not self._has_room():
            return
        if not decision.allowed:
            self._note(
                principal=printable(principal),
                operation=Operation(operation).name,
                host=printable(host),
                resource=_type_name(kind),
                name=printable(name),
                api=api,
            )
        if not is_logged:
            return
        log.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:%s:%s for request = %s with "
            "resourceRefCount = %d based on rule %s",
            printable(principal),
            "Allowed" if decision.allowed else "Denied",
            Operation(operation).name,
            printable(host),
            _type_name(kind),
            PatternType.LITERAL.name,
            printable(name),
            api,
            count,
            printable(str(decision)),
        )

    def _has_room(self) -> bool:
        second = int(self._seconds())
        if second != self._second:
            if self._left_out:
                log.info("%d more decisions were not written: there are at most 100 in a second", self._left_out)
            self._second, self._written, self._left_out = second, 0, 0
        if self._written >= LINES_PER_SECOND:
            self._left_out += 1
            return False
        self._written += 1
        return True


def _type_name(kind: int) -> str:
    return ResourceType(kind).name.title().replace("_", "")
