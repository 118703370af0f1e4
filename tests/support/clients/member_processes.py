"""A consumer group, ours or of third-party clients, each member in its own process, watched from the test.

Members tell what happens to them on their standard output (support/clients/member.py). A test waits for facts with a
deadline and never for time. Whatever still runs when the block ends is killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from support.clients import java_member

WITHIN_S = 60.0
MEMBER = Path(__file__).with_name("member.py")


class Member:
    """One process. Its facts are read under the group's condition."""

    def __init__(self, name: str, process: subprocess.Popen[str], facts: java_member.Facts | None = None) -> None:
        self.name = name
        self.process = process
        self.facts = facts
        self.partitions: list[int] = []
        self.closed = False
        self.log: list[dict[str, Any]] = []

    def uncommitted(self) -> Iterable[tuple[int, int]]:
        """Records that this member printed and did not commit, once for each time it read them.

        A commit that was refused counts for good: another member may have read them before this one went on.
        """
        waiting: list[tuple[int, int]] = []
        refused: list[tuple[int, int]] = []
        for fact in self.log:
            if fact["event"] == "records":
                waiting += [(partition, offset) for partition, offset, _ in fact["records"]]
            elif fact["event"] == "refused":
                refused += waiting
                waiting = []
            elif fact["event"] == "committed":
                ends = {int(partition): offset for partition, offset in fact["offsets"].items()}
                waiting = [(partition, offset) for partition, offset in waiting if offset >= ends.get(partition, 0)]
        return waiting + refused


class MemberProcesses:
    """`with MemberProcesses(client, bootstrap, group, topic) as processes: processes.start("a", "b", "c")`.

    `client` is one of member.py, or "java"; "java/consumer" and the like speak the consumer protocol, "partita/static"
    and the like are static members, whose name is their instance id. Without assignor
    and session, members take what suits their client here.
    """

    def __init__(
        self, client: str, bootstrap: str, group: str, topic: str, assignor: str = "", session_ms: int = 0
    ) -> None:
        self.group = group
        self._client = client
        self._task = (bootstrap, group, topic)
        self._more = (assignor, str(session_ms))
        self._changed = threading.Condition()
        self._folder = tempfile.TemporaryDirectory()
        self.members: dict[str, Member] = {}
        self.gone: list[Member] = []
        self.seen: list[tuple[int, int, str]] = []
        self.committed: dict[int, int] = {}

    def __enter__(self) -> MemberProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            member.process.kill()
            member.process.wait()
        self._folder.cleanup()

    def start(self, *names: str, client: str | None = None) -> None:
        """Start members; with `client`, by that one."""
        for name in names:
            client = client or self._client
            task = (*self._task, name, *self._more)
            made_with, _, protocol = client.partition("/")
            if made_with == "java":
                command = java_member.command(task, Path(self._folder.name), protocol)
            else:
                command = [sys.executable, str(MEMBER), client, *task]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            member = self.members[name] = Member(name, process, java_member.Facts() if made_with == "java" else None)
            threading.Thread(target=self._listen, args=(member,), daemon=True).start()

    def kill(self, name: str) -> Member:
        """End a member without a goodbye."""
        member = self.members.pop(name)
        member.process.kill()
        member.process.wait()
        self.gone.append(member)
        return member

    def stop(self, *names: str) -> None:
        """Ask these members, or all, to leave, and wait until they have."""
        leaving = [self.members[name] for name in names or tuple(self.members)]
        for member in leaving:
            member.process.terminate()
        for member in leaving:
            expected = 0 if member.facts is None else java_member.ENDED_BY_SIGTERM
            assert member.process.wait(WITHIN_S) == expected, f"{member.name} failed: {member.log[-5:]}"
            if names:
                self.gone.append(self.members.pop(member.name))

    def unexplained(self) -> set[tuple[int, int]]:
        """Records that came more often than uncommitted work can explain, as (partition, offset).

        A record may come once more for each member that had read it and did not get its commit through.
        """
        came = Counter((partition, offset) for partition, offset, _ in self.seen)
        for member in (*self.members.values(), *self.gone):
            came.subtract(member.uncommitted())
        return {record for record, times in came.items() if times > 1}

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
                    for fact in [json.loads(line)] if member.facts is None else member.facts.of(line):
                        self._take(member, fact)
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
