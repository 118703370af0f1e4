"""A worker process with up to ten members: orders come in as JSON lines, facts go out as JSON lines.

Run as `python -m partita.designs.members.worker`. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from partita.designs.members.settings import Member, MemberSettings, Say, settings_in
from partita.lazy import later

if TYPE_CHECKING:
    from partita.designs.members import one as member_one
    from partita.designs.members import three as member_three
    from partita.designs.members import two as member_two
else:
    member_one = later("partita.designs.members.one")
    member_three = later("partita.designs.members.three")
    member_two = later("partita.designs.members.two")

_printing = threading.Lock()


def sayer(member: str) -> Say:
    """Return how a member reports a fact: one line with its name and the time of the machine's monotonic clock."""

    def say(event: str, **facts: Any) -> None:
        line = json.dumps({"at": time.monotonic(), "member": member, "event": event, **facts})
        with _printing:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    return say


def make(settings: MemberSettings) -> Member:
    """Return the member of this design."""
    say = sayer(settings.member)
    if settings.design == "1":
        return member_one.MemberOne(settings, say)
    if settings.design == "2":
        return member_two.MemberTwo(settings, say)

    return member_three.MemberThree(settings, say)


class Worker:
    """The members of this process by name."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def order(self, order: dict[str, Any]) -> None:
        """Carry out one order, in a thread of its own."""
        threading.Thread(target=self._guarded, args=(order,), daemon=True).start()

    def _guarded(self, order: dict[str, Any]) -> None:
        say = sayer(order["member"])
        try:
            self._carry_out(order, say)
        except Exception as error:
            traceback.print_exc()
            say("failed_order", do=order["do"], error=f"{type(error).__name__}: {error}")

    def _carry_out(self, order: dict[str, Any], say: Say) -> None:
        name = order["member"]
        if order["do"] == "start":
            member = make(settings_in(order["settings"]))
            self._members[name] = member
            member.start()
            say("started")
            return
        member = self._members[name]
        if order["do"] == "close":
            member.close()
            del self._members[name]
            say("closed")
        elif order["do"] == "slow":
            member.slow(order["ms"])
        else:
            member.end_session()  # type: ignore[attr-defined]  # only asked of members that have a session


def main() -> None:
    """Take orders until there are no more."""
    worker = Worker()
    for line in sys.stdin:
        worker.order(json.loads(line))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
