"""The words of consumer scenarios: consumers called A, B, C on virtual time, one broker, the real group coordinator.

What a consumer asks its group, hears in its callbacks, reads and raises is written down as it happens. See
tests/scenarios/consumer/README.md for the words.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.consumer.listener import RebalanceListener
from partita.consumer.shell.blocking import Consumer
from partita.play.text import Runner
from partita.protocol.api_table import APIS
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from support.consumer import world as consumer_world
from support.consumer.refusals import commit_refused
from support.consumer.world import DROP, HOLD, SimIo

TURN_S = 0.02
QUIET = ("ApiVersions", "Metadata", "FindCoordinator", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "OffsetFetch")


class Listener(RebalanceListener):
    """Tells of one consumer's callbacks, as long as they have something to tell."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name

    def on_partitions_assigned(self, partitions: Any) -> None:
        self._world.say(f"{self._name} assigned {_partitions(partitions)}")

    def on_partitions_revoked(self, partitions: Any) -> None:
        self._world.say(f"{self._name} revoked {_partitions(partitions)}")

    def on_partitions_lost(self, partitions: Any) -> None:
        self._world.say(f"{self._name} lost {_partitions(partitions)}")


class World(consumer_world.World):
    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, Consumer] = {}
        self.letters: dict[int, str] = {}
        self.out: list[str] = []
        self.options: dict[str, Any] = {"enable_auto_commit": False}

    # Running

    def run_commands(self, commands: list[str]) -> list[str]:
        self.out = []
        for line in commands:
            words = shlex.split(line)
            if line.startswith("+"):
                self.run(int(words[0]))
            elif hasattr(self, f"do_{words[0]}"):
                getattr(self, f"do_{words[0]}")(*words[1:])
            else:
                names = [word for word in words if word.isupper() and len(word) == 1]
                getattr(self, f"app_{words[len(names)]}")(names, *words[len(names) + 1 :])
        return self.out

    def say(self, line: str) -> None:
        self.out.append(line)

    # The cluster

    def do_topic(self, name: str, partitions: str) -> None:
        self.create(name, int(partitions))

    def do_records(self, partition: str, count: str) -> None:
        topic, _, number = partition.rpartition("-")
        self.append(topic, int(number), int(count))

    def do_options(self, *settings: str) -> None:
        """For consumers that begin from now on."""
        self.options |= dict(_setting(word) for word in settings)

    def do_answer(self, api: str, code: str, times: str = "1") -> None:
        """The next requests of this API get this error (or: hold, drop)."""
        special = {"hold": HOLD, "drop": DROP}.get(code)
        for _ in range(int(times)):
            self.script(api, special if special is not None else lambda message: _refusal(message, ErrorCode[code]))

    def do_release(self) -> None:
        self.answer_held()

    def do_evict(self, name: str) -> None:
        """The group removes the member."""
        member_id = self.members[name].group_metadata().member_id
        self._release(self.group.evict_member("g", member_id, self.clock.now()))

    def do_stable(self, *words: str) -> None:
        """`stable A B t`: these read t in a stable group; nothing is told of how they got there."""
        names = [word for word in words if word.isupper()]
        self.app_subscribe(names, *(word for word in words if not word.isupper()))
        kept, self.out = self.out, []
        held: list[set[Any]] = []
        for _ in range(100):
            self.app_poll(names, "200")
            held = [set(self.members[name].assignment()) for name in names]
            if all(held) and len(set().union(*held)) == len(self.logs) == sum(map(len, held)):
                break
        self.out = kept
        self.app_holds(names)

    # Applications

    def app_subscribe(self, names: list[str], *words: str) -> None:
        own = dict(_setting(word) for word in words if "=" in word)
        for name in names:
            if name not in self.members:
                self.letters[len(self.consumers) + 1] = name
                self.members[name] = self.consumer(**{"group_id": "g", "client_id": name} | self.options | own)
            topics = [word for word in words if "=" not in word]
            self.members[name].subscribe(topics, listener=Listener(self, name))

    def app_poll(self, names: list[str], ms: str) -> None:
        """They poll in turn for so long."""
        end = self.now + int(ms)
        while self.now < end:
            for name in names:
                self._poll(name)

    def _poll(self, name: str) -> None:
        try:
            records = self.members[name].poll(TURN_S)
        except Exception as error:
            self.say(f"{name} raises {type(error).__name__}")
            return
        for tp, some in records.items():
            self.say(f"{name} reads {tp.topic}-{tp.partition} {some[0].offset}..{some[-1].offset}")

    def app_commit(self, names: list[str]) -> None:
        for name in names:
            try:
                self.members[name].commit()
            except Exception as error:
                self.say(f"{name} raises {type(error).__name__}")

    def app_rejoin(self, names: list[str]) -> None:
        for name in names:
            self.members[name].enforce_rebalance()

    def app_unsubscribe(self, names: list[str]) -> None:
        for name in names:
            self.members[name].unsubscribe()

    def app_close(self, names: list[str]) -> None:
        for name in names:
            self.members.pop(name).close()

    def app_dies(self, names: list[str]) -> None:
        for name in names:
            self.members.pop(name)._driver.io.stop()

    def app_holds(self, names: list[str]) -> None:
        for name in names:
            member = self.members[name]
            self.say(f"{name} holds {_partitions(member.assignment())} generation={_generation(member)}")

    # The wire

    def deliver(self, io: SimIo, request: Any) -> None:
        message = request.message
        api = type(message).__name__.removesuffix("Request")
        if api not in QUIET and api != "Heartbeat":
            self.say(f"{self.letters[io.number]} -> {api}{_SHOWN[api](message)}")
        super().deliver(io, request)

    def _arrive(self, io: SimIo, request: Any, reply: Any) -> None:
        code = getattr(reply, "error_code", 0)
        if code and request in io.in_flight and not io.is_stopped:
            api = type(request.message).__name__.removesuffix("Request")
            self.say(f"{self.letters[io.number]} <- {api} {ErrorCode(code).name}")
        super()._arrive(io, request, reply)


def _refusal(message: Any, code: ErrorCode) -> Any:
    response: Any = APIS[message.API_KEY].response
    if not isinstance(message, OffsetCommitRequest):
        return response(error_code=int(code))
    return commit_refused(message.topics, code)


def _generation(member: Consumer) -> int:
    return member.group_metadata().generation_id


def _setting(word: str) -> tuple[str, Any]:
    name, _, value = word.partition("=")
    if name == "assignors":
        return "partition_assignment_strategy", value.split(",")
    return name, int(value) if value.isdigit() else value


def _partitions(partitions: Iterable[Any]) -> str:
    return " ".join(f"{topic}-{p}" for topic, p in sorted(map(tuple, partitions))) or "nothing"


def _join(message: Any) -> str:
    first = message.protocols[0]
    claim = decode_subscription(first.metadata)
    owned = f" owns {_partitions(claim.owned_partitions)} since {claim.generation_id}" if claim.owned_partitions else ""
    static = f" instance={message.group_instance_id}" if message.group_instance_id else ""
    names = ",".join(p.name for p in message.protocols)
    why = f" ({_cut(message.reason)})" if message.reason else ""
    return f" id={message.member_id or '-'}{static} {names} topics={','.join(claim.topics)}{owned}{why}"


def _cut(reason: str) -> str:
    """What happened, without what to do about it."""
    return reason.partition(":")[0]


def _sync(message: Any) -> str:
    given = {a.member_id: decode_assignment(a.assignment)[0] for a in message.assignments}
    shares = "; ".join(f"{member}: {_partitions(share)}" for member, share in given.items())
    return f" generation={message.generation_id}" + (f" assigns {shares}" if given else "")


def _commit(message: Any) -> str:
    offsets = [f"{t.name}-{p.partition_index}={p.committed_offset}" for t in message.topics for p in t.partitions]
    return f" generation={message.generation_id_or_member_epoch} {' '.join(offsets)}"


def _leave(message: Any) -> str:
    (member,) = message.members
    return f" id={member.member_id} ({_cut(member.reason)})"


_SHOWN = {"JoinGroup": _join, "SyncGroup": _sync, "OffsetCommit": _commit, "LeaveGroup": _leave}


def new_runner() -> Runner:
    return World().run_commands
