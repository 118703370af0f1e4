"""A consumer group, ours or of third-party clients, each member in its own process, watched from the test.

Members tell what happens to them on their standard output (support/clients/member.py). A test waits for facts with a
deadline and never for time. Whatever still runs when the block ends is killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

WITHIN_S = 30.0
MEMBER = Path(__file__).with_name("member.py")


class Member:
    """One process. Its facts are read under the group's condition."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self.process = process
        self.partitions: list[int] = []
        self.closed = False
        self.log: list[dict[str, Any]] = []


class MemberProcesses:
    """`with MemberProcesses(client, bootstrap, group, topic) as processes: processes.start("a", "b", "c")`."""

    def __init__(self, client: str, bootstrap: str, group: str, topic: str) -> None:
        self.group = group
        self._arguments = (client, bootstrap, group, topic)
        self._changed = threading.Condition()
        self.members: dict[str, Member] = {}
        self.seen: list[tuple[int, int, str]] = []
        self.committed: dict[int, int] = {}

    def __enter__(self) -> MemberProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            member.process.kill()
            member.process.wait()

    def start(self, *names: str) -> None:
        for name in names:
            client, *rest = self._arguments
            command = [sys.executable, str(MEMBER), client, *rest, name]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            member = self.members[name] = Member(name, process)
            threading.Thread(target=self._listen, args=(member,), daemon=True).start()

    def kill(self, name: str) -> Member:
        """End a member without a goodbye."""
        member = self.members.pop(name)
        member.process.kill()
        member.process.wait()
        return member

    def stop(self) -> None:
        """Ask every member to leave, and wait until all have."""
        for member in self.members.values():
            member.process.terminate()
        for member in self.members.values():
            assert member.process.wait(WITHIN_S) == 0, f"{member.name} failed: {member.log[-5:]}"

    def values(self) -> set[str]:
        return {value for _, _, value in self.seen}

    def owners(self) -> dict[str, list[int]]:
        return {name: member.partitions for name, member in self.members.items()}

    def shares(self, count: int) -> bool:
        """Whether every partition has exactly one owner and every member has some."""
        owners = self.owners()
        return all(owners.values()) and sorted(p for owned in owners.values() for p in owned) == list(range(count))

    def wait(self, what: str, fact: Callable[[], bool], within: float = WITHIN_S) -> None:
        """Wait until `fact()` holds; looked at whenever a member tells something."""
        with self._changed:
            if not self._changed.wait_for(fact, within):
                logs = {name: member.log[-6:] for name, member in self.members.items()}
                raise AssertionError(f"waited {within} s in vain until {what}; owners {self.owners()}; {logs}")

    def _listen(self, member: Member) -> None:
        assert member.process.stdout is not None
        with member.process.stdout as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return  # killed in the middle of a word
                with self._changed:
                    self._take(member, json.loads(line))
                    self._changed.notify_all()

    def _take(self, member: Member, fact: dict[str, Any]) -> None:
        member.log.append(fact)
        match fact["event"]:
            case "assigned":
                member.partitions = fact["partitions"]
            case "records":
                self.seen.extend(tuple(record) for record in fact["records"])
            case "committed":
                self.committed.update({int(p): offset for p, offset in fact["offsets"].items()})
            case "closed":
                member.closed = True
