"""The task assignor "sticky": active tasks stay where they were, or go to a standby; all members get about as many.

Ties fall as in Kafka, whose maps and queues order members by the hashes of their names. (Kafka:
streams.assignor.StickyTaskAssignor and ProcessState, release 4.4.0; warm-ups and racks are not assigned there either.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from partita.group import hash_code
from partita.group.records.streams_group import Held, Task, Tasks
from partita.group.state.topology import Configured

NAME = "sticky"
_T = TypeVar("_T")


class Assignee(NamedTuple):
    """One member as the assignor sees it. `offsets` are its sums of changelog offsets by task."""

    process_id: str
    held: Held
    offsets: Mapping[Task, int]


def assign(
    members: Mapping[str, Assignee], subtopologies: Mapping[str, Configured], num_standby_replicas: int
) -> dict[str, Tasks]:
    """Return the tasks of each member. Subtopologies are given in order of their ids."""
    return _Assignment(members, subtopologies, num_standby_replicas).run()


def put_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order in which a HashMap of Java walks them after it took each."""
    known = list(names)
    size = 16
    while len(known) > size * 3 // 4:
        size *= 2
    return _by_bucket(known, size)


def computed_order(names: Iterable[str], capacity: int) -> list[str]:
    """Return the order after each name was computed if absent: it comes first in its bucket, the map grows later."""
    known = list(names)[::-1]
    size = 1
    while size < capacity:
        size *= 2
    while len(known) - 1 > size * 3 // 4:
        size *= 2
    return _by_bucket(known, size)


def _by_bucket(names: Iterable[str], size: int) -> list[str]:
    return sorted(names, key=lambda name: (hash_code(name) ^ hash_code(name) >> 16) & (size - 1))


class _Queue(Generic[_T]):
    """Java's PriorityQueue: equal entries come out in the order of its heap, which differs from that of heapq."""

    def __init__(self, load: Callable[[_T], float], entries: Iterable[_T] = ()) -> None:
        self._load = load
        self._heap: list[_T] = []
        for entry in entries:
            self.add(entry)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, entry: _T) -> None:
        """Put an entry in."""
        heap, load = self._heap, self._load
        heap.append(entry)
        at, key = len(heap) - 1, load(entry)
        while at:
            parent = (at - 1) // 2
            if key >= load(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = entry

    def poll(self) -> _T:
        """Take the least entry out."""
        heap, load = self._heap, self._load
        least, last = heap[0], heap.pop()
        if heap:
            at, key, size = 0, load(last), len(heap)
            while (child := 2 * at + 1) < size:
                if child + 1 < size and load(heap[child]) > load(heap[child + 1]):
                    child += 1
                if key <= load(heap[child]):
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = last
        return least


class _Member:
    """A member with the number of its tasks."""

    __slots__ = ("count", "member_id", "process", "tasks")

    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.count = 0
        self.tasks: tuple[set[Task], set[Task]] = (set(), set())
        """Active ones and standbys."""


class _Process:
    """The members of one process. It has each task once, in whatever role."""

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.tasks: set[Task] = set()
        self._by_load: _Queue[_Member] | None = None

    @property
    def load(self) -> float:
        """Tasks per member."""
        return len(self.tasks) / len(self.members)

    def add(self, member: _Member, task: Task, *, is_active: bool) -> int:
        """Give the member the task; return how many it has then."""
        self._by_load = None
        return self._add(member, task, is_active)

    def add_to_least_loaded(self, task: Task, *, is_active: bool) -> int:
        """Give the task to the member with the fewest tasks; return how many it has then."""
        if self._by_load is None:
            ordered = [self.members[name] for name in put_order(self.members)]
            self._by_load = _Queue(lambda member: member.count, ordered)
        member = self._by_load.poll()
        count = self._add(member, task, is_active)
        self._by_load.add(member)
        return count

    def _add(self, member: _Member, task: Task, is_active: bool) -> int:
        self.tasks.add(task)
        member.tasks[0 if is_active else 1].add(task)
        member.count += 1
        return member.count


class _Quota:
    """How many tasks a member may keep: an even share of what is left, among those that have less."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self._divide()

    def count(self, tasks: int) -> None:
        """A member has this many tasks now."""
        if tasks == self.each:
            self._members -= 1
            self._tasks -= tasks
            self._divide()

    def _divide(self) -> None:
        self.each = -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    """One run of the assignor."""

    def __init__(
        self, members: Mapping[str, Assignee], subtopologies: Mapping[str, Configured], num_standby_replicas: int
    ) -> None:
        self._replicas = num_standby_replicas
        self._active = [(name, number) for name, sub in subtopologies.items() for number in range(sub.tasks)]
        self._stateful = [task for task in self._active if subtopologies[task[0]].is_stateful]
        standbys = len(self._stateful) * num_standby_replicas
        self._active_quota = _Quota(len(self._active), len(members))
        self._quota = _Quota(len(self._active) + standbys, len(members))
        self._processes: dict[str, _Process] = {}
        self._members: dict[str, _Member] = {}
        self._ran: dict[Task, _Member] = {}
        """Who ran a task before."""
        candidates: dict[Task, list[tuple[int, int, _Member]]] = {}
        for member_id in put_order(members):
            asked = members[member_id]
            process = self._processes.setdefault(asked.process_id, _Process())
            member = self._members[member_id] = process.members[member_id] = _Member(member_id, process)
            self._ran.update(dict.fromkeys(asked.held.active, member))
            for task in asked.held.standby | asked.offsets.keys():
                was_standby = task in asked.held.standby
                rank = (0 if was_standby else 1, -asked.offsets.get(task, 0), member)
                candidates.setdefault(task, []).append(rank)
        self._had_standby = {
            task: [member for *_, member in sorted(found, key=lambda rank: rank[:2])]
            for task, found in candidates.items()
        }
        """Who had a standby of a task, or its state, the best first."""

    def run(self) -> dict[str, Tasks]:
        """Return the tasks of each member."""
        if self._members:
            self._assign_active()
            self._assign_standbys()
        return {name: Tasks(*map(frozenset, member.tasks)) for name, member in self._members.items()}

    def _assign_active(self) -> None:
        left = sorted(self._active, key=lambda task: (task[1], task[0]))
        for previous in (self._ran.get, self._least_loaded_standby):
            rest: list[Task] = []
            for task in left:
                member = previous(task)
                if member is not None and member.count < self._active_quota.each:
                    self._count_active(member.process.add(member, task, is_active=True))
                else:
                    rest.append(task)
            left = rest
        queue = self._by_load()
        for task in sorted(left):
            process = queue.poll()
            self._count_active(process.add_to_least_loaded(task, is_active=True))
            queue.add(process)

    def _count_active(self, tasks: int) -> None:
        self._active_quota.count(tasks)
        self._quota.count(tasks)

    def _assign_standbys(self) -> None:
        left: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=lambda task: (task[1], task[0]), reverse=True):
            for number in range(self._replicas):
                member = self._previous_for_standby(task)
                if member is None:
                    left.append((task, self._replicas - number))
                    break
                self._quota.count(member.process.add(member, task, is_active=False))
        queue = self._by_load()
        for task, replicas in sorted(left, key=lambda each: each[0], reverse=True):
            for _ in range(replicas):
                if not self._put_standby(queue, task):
                    break  # every process has it by now

    def _previous_for_standby(self, task: Task) -> _Member | None:
        ran = self._ran.get(task)
        if ran is not None and task not in ran.process.tasks and ran.count < self._quota.each:
            return ran
        member = self._least_loaded(self._had_standby.get(task, ()), without=task)
        return member if member is not None and member.count < self._quota.each else None

    def _put_standby(self, queue: _Queue[_Process], task: Task) -> bool:
        passed: list[_Process] = []
        while queue and task in (process := queue.poll()).tasks:
            passed.append(process)
        is_found = not passed or process is not passed[-1]
        if is_found:
            self._quota.count(process.add_to_least_loaded(task, is_active=False))
            queue.add(process)
        for process in reversed(passed):
            queue.add(process)
        return is_found

    def _least_loaded_standby(self, task: Task) -> _Member | None:
        return self._least_loaded(self._had_standby.get(task, ()))

    def _least_loaded(self, members: Sequence[_Member], without: Task | None = None) -> _Member | None:
        """Return the first member, or a later one whose process and which itself have less to do."""
        best: _Member | None = None
        best_load, best_count = 0.0, 0
        for member in members:
            if without is not None and without in member.process.tasks:
                continue
            if best is None or (member.process.load < best_load and member.count < best_count):
                best, best_load, best_count = member, member.process.load, member.count
        return best

    def _by_load(self) -> _Queue[_Process]:
        ordered = [self._processes[name] for name in computed_order(self._processes, len(self._members))]
        return _Queue(lambda process: process.load, ordered)
