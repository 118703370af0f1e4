"""The words of group scenarios: clients called A, B, C talk to one coordinator shard.

A client's ids are "<name>-<n>" (static: "<instance>-<n>"). It remembers its id, generation and settings and uses them
unless a command says otherwise (`id=`, `g=`, `i=`, `v=`, `S=`, `R=`). Answers are printed as the wire of that version
carries them: encoded, decoded, then shown. See tests/scenarios/group/README.md for the words.
"""

from __future__ import annotations

import shlex
from dataclasses import fields
from dataclasses import replace as changed
from typing import Any

from partita.group.config import GroupConfig
from partita.group.contract import NO_HANDOVER
from partita.play.text import Runner
from partita.protocol.messages.join_group import JoinGroupResponse
from support.group.answers import show_answer, show_group, show_note, show_record
from support.group.requests import GROUP, Client, Requests
from support.group.shell import GroupShell


class World:
    def __init__(self) -> None:
        self.shell = GroupShell()
        self.clients: dict[str, Client] = {}
        self.requests = Requests(self.clients)
        self.senders: dict[int, tuple[str, int]] = {}
        self.out: list[str] = []
        self.shown = 0
        self.quiet = False

    # -- running ----------------------------------------------------------------------------------

    def run(self, commands: list[str]) -> list[str]:
        self.out = []
        for command in commands:
            self.command(command)
        return self.out

    def command(self, line: str) -> None:
        words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if line.startswith("+"):
            self.shell.advance(int(plain[0]), lambda: self.flush(timed=True))
            return
        verb = getattr(self, f"do_{plain[0].replace('-', '_')}", None)
        if verb is not None:
            verb(plain[1:], options)
            self.flush()
        else:
            self.request(plain, options, words)

    def request(self, plain: list[str], options: dict[str, str], words: list[str]) -> None:
        client = self.clients.setdefault(plain[0], Client(plain[0]))
        parts = [word for word in words[2:] if "=" in word and word.split("=")[0] not in _OPTIONS]
        version = int(options.get("v", client.version))
        message = getattr(self.requests, plain[1])(client, options, [*plain[2:], *parts], version)
        token = self.shell.send(message, version, client.name, transaction_open="closed" not in plain)
        self.senders[token] = (client.name, version)
        self.flush()
        if token in self.shell.open and not self.quiet:
            self.out.append(f"{client.name} waits")

    def flush(self, *, timed: bool = False) -> None:
        """Show the answers that came, and let each client learn from its own."""
        for reply in self.shell.take_fresh():
            name, version = self.senders[reply.token]  # type: ignore[index]  # tokens are those handed out here
            if isinstance(reply.message, JoinGroupResponse):
                client = self.clients[name]
                if reply.message.error_code in (0, 79):
                    client.member_id = reply.message.member_id
                if not reply.message.error_code:
                    client.generation = reply.message.generation_id
            if not self.quiet:
                at = f"@{self.shell.clock.now().mono_ms} " if timed else ""
                self.out.append(f"{at}{name} <- {show_answer(reply.message, version)}")

    # -- what a test may cause, and look at -------------------------------------------------------

    def do_config(self, plain: list[str], options: dict[str, str]) -> None:
        names = {f.name for f in fields(GroupConfig)}
        given: dict[str, Any] = {name.replace(".", "_"): int(value) for name, value in options.items()}
        assert given.keys() <= names, f"unknown settings in {given}"
        self.shell.config = changed(self.shell.config, **given)
        self.shell.shard.config = self.shell.config

    def do_stable(self, plain: list[str], options: dict[str, str]) -> None:
        """Bring these clients into one stable group; the first leads. `A/i` is static with instance id i."""
        self.quiet = True
        own = " ".join(f"{name}={value}" for name, value in options.items())
        for word in plain:
            name, slash, instance = word.partition("/")
            self.command(f"{name} join {own}" + (f" i={instance}" if slash else ""))
            if not slash and self.clients[name].version >= 4:
                self.command(f"{name} join {own}")
        names = [word.partition("/")[0] for word in plain]
        while any(self.clients[name].generation < 0 for name in names):
            before = self.shell.clock.now().mono_ms
            self.shell.advance(1000, self.flush)
            assert self.shell.clock.now().mono_ms - before < 60_000
        for name in reversed(names):
            self.command(f"{name} sync " + " ".join(f"{n}={n.lower()}" for n in names if name == names[0]))
        self.flush()
        self.quiet = False
        self.do_group([], {})

    def do_group(self, plain: list[str], options: dict[str, str]) -> None:
        for group_id in plain or [GROUP]:
            group = self.shell.shard.groups.get(group_id)
            self.out.append(f"{group_id} absent" if group is None else show_group(group))

    def do_records(self, plain: list[str], options: dict[str, str]) -> None:
        """Records written since the last look."""
        entries, self.shown = self.shell.log[self.shown :], len(self.shell.log)
        lines = [line for entry in entries for line in show_record(entry)]
        self.out += lines or ["no records"]

    def do_notes(self, plain: list[str], options: dict[str, str]) -> None:
        wanted = [note for note in self.shell.notes if not plain or type(note).__name__ in plain]
        self.out += [show_note(note) for note in wanted] or ["no notes"]
        self.shell.notes.clear()

    def do_jump(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.jump(int(plain[0]))

    def do_reload(self, plain: list[str], options: dict[str, str]) -> None:
        """Resign and be elected again; `crash` tells nobody, `unclean`: records may be lost, `handover`: handed on."""
        handover = self.shell.shard.handover(self.shell.clock.now()) if "handover" in plain else NO_HANDOVER
        self.shell.reload(tell="crash" not in plain, clean="unclean" not in plain, handover=handover)

    def do_lose(self, plain: list[str], options: dict[str, str]) -> None:
        """The last batches of the log are lost, then reload by `crash`."""
        del self.shell.log[-int(plain[0]) :]

    def do_unload(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.unload())

    def do_fail_append(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.failing_appends += int(plain[0]) if plain else 1

    def do_evict(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.evict_member(GROUP, self._id(plain[0]), self.shell.clock.now()))

    def do_expire(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.expire_session(GROUP, self._id(plain[0]), self.shell.clock.now()))

    def do_fence(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.fence_instance(GROUP, plain[0], self.shell.clock.now()))

    def do_topics_deleted(self, plain: list[str], options: dict[str, str]) -> None:
        self.shell.take(self.shell.shard.on_topics_deleted(plain, self.shell.clock.now()))
        self.shell.advance(0)

    def do_compact(self, plain: list[str], options: dict[str, str]) -> None:
        """Keep only the last record per key, as a cleaner would."""
        from support.group.compaction import compacted

        self.shell.log = compacted(self.shell.log)

    def do_heartbeats(self, plain: list[str], options: dict[str, str]) -> None:
        """`heartbeats A B every=3000 for=60000`: these stay alive; answers are shown when they change."""
        last = {name: f"{name} <- Heartbeat NONE" for name in plain}
        for _ in range(int(options["for"]) // int(options["every"])):
            self.command(f"+{options['every']}")
            for name in plain:
                self.command(f"{name} heartbeat")
                if self.out[-1] == last[name]:
                    del self.out[-1]
                else:
                    last[name] = self.out[-1]

    def _id(self, name: str) -> str:
        return self.clients[name].member_id if name in self.clients else name


_OPTIONS = {
    *("id", "g", "i", "v", "S", "R", "p", "type", "group", "reason", "retention", "epoch"),
    "gen",
    *("meta", "pid", "pe", "states", "types"),
}


def new_runner() -> Runner:
    return World().run
