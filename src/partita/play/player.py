"""Plays a story on a stage, sentence by sentence, and says where it went otherwise than the story expects. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partita.errors import KafkaError
from partita.observe.note_facts import accounts_of_notes
from partita.offsets.topic_partition import TopicPartition
from partita.options import nearest
from partita.play.stage import Event, Stage, shown
from partita.play.text import Block, Story
from partita.play.words import EXPECTATIONS, MEMBER_VERBS, REMARK, Command, StoryError, command

_ABOUT_MEMBERS = frozenset({"owns", "read", "ended", "raised", "got", "never", "sent"})
NEEDS_NOTES = ("got", "sent", "cause")
"""Forms of expect that need the notes of a Partita broker."""


@dataclass(frozen=True, slots=True)
class Played:
    """One sentence, what members saw meanwhile, and the notes of the broker."""

    command: Command
    at_ms: int
    events: Sequence[Event]
    notes: Sequence[Mapping[str, Any]]


class ExpectationFailed(StoryError):
    """Something is not as the story expects it."""


@dataclass(slots=True)
class Look:
    """One expectation: whether it holds now, and how it really is."""

    holds: Callable[[], bool]
    is_now: Callable[[], str]


@dataclass(slots=True)
class Column:
    """The owners of all partitions at one moment, after some deed."""

    at_ms: int
    deed: str
    owners: dict[TopicPartition, str]


class Player:
    """`play` plays a story; `columns` is who owned what after each of its parts."""

    def __init__(self, story: Story, stage: Stage) -> None:
        """Raises StoryError for a sentence that cannot be read, or not be played on this stage."""
        self.story = story
        self.stage = stage
        self.columns: list[Column] = []
        self.commands = [_sentences(block) for block in story.blocks]
        self._members: dict[str, Command] = {}
        self._topics: dict[str, int] = {}
        self._deed = ""
        self._events = self._notes = 0
        """How many events and notes there were at the last deed."""
        self._generation = 0
        for found in (each for block in self.commands for each in block):
            self._check(found)

    @staticmethod
    def sentences_of(story: Story) -> list[Command]:
        """All sentences of a story. Raises StoryError."""
        return [each for block in story.blocks for each in _sentences(block)]

    def play(self) -> Iterator[Played]:
        """Play it. Raises StoryError, ExpectationFailed among them, at the sentence that is wrong."""
        for block, commands in zip(self.story.blocks, self.commands, strict=True):
            came: list[str] = []
            for each in commands:
                seen, notes, at_ms = len(self.stage.seen.events), len(self.stage.notes()), self.stage.now_ms
                try:
                    self._do(each)
                except KafkaError as error:
                    raise StoryError(str(error), each.line) from error
                events = self.stage.seen.events[seen:]
                came += [f"{event.at_ms / 1000:.3f} {event.line}" for event in events]
                yield Played(each, at_ms, events, self.stage.notes()[notes:])
            if block.expected is not None and block.expected != came:
                was = "".join(f"\n  {line}" for line in came)
                raise ExpectationFailed(f"expected the lines below the commands, came{was or ' none'}", block.line)

    def _check(self, found: Command) -> None:
        forms = ("digest", *NEEDS_NOTES)
        form = next((word for word in found.words if word in forms), "") if found.verb == "expect" else ""
        for what in (found.verb, form):
            if why := self.stage.refuses.get(what):
                raise found.wrong(f"a verb for {self.stage.name}", repr(what), why)

    def _do(self, found: Command) -> None:
        if found.is_deed:
            self._deed = found.text
            self._events, self._notes = len(self.stage.seen.events), len(self.stage.notes())
            self._generation = self.stage.seen.generation
        if found.verb == "advance":
            self.stage.advance(found.milliseconds())
            self._note_owners()
        elif found.verb == "expect":
            self._expect(found)
        elif found.verb in MEMBER_VERBS:
            self._member(found)
        elif found.verb != REMARK:
            self._world(found)

    def _note_owners(self) -> None:
        owners = self.stage.seen.owners()
        if owners and (not self.columns or self.columns[-1].owners != owners):
            self.columns.append(Column(self.stage.now_ms, self._deed, owners))

    def _world(self, found: Command) -> None:
        name, number = "", 0
        if found.verb in ("topic", "records", "add-partitions"):
            name, number = found.pair("a name and a number")
        elif found.verb == "delete-topic":
            name = found.one("a topic")
        elif found.verb == "crash-broker":
            number = found.milliseconds()
        if found.verb in ("seed", "fault", "heal"):
            self.stage.deed(found.verb, " ".join(found.words), 0)
            return
        if found.verb == "topic":
            self._topics[name] = number
        elif found.verb == "records":
            place = found.partition(name)
            found.known(place.topic, self._topics, "a topic of this story")
            if place.partition >= self._topics[place.topic]:
                raise found.wrong(f"a partition below {self._topics[place.topic]}", repr(name), "take one that exists")
        elif name:
            found.known(name, self._topics, "a topic of this story")
            if found.verb == "add-partitions" and number <= self._topics[name]:
                raise found.wrong(f"more than {self._topics[name]} partitions", str(number), "a topic only grows")
            self._topics[name] = max(number, self._topics[name])
        self.stage.deed(found.verb, name, number)

    def _member(self, found: Command) -> None:
        words, number = found.words, 1
        if found.verb == "work":
            number = found.milliseconds()
        elif found.verb == "poll" and words:
            number = int(found.one("a number")) if words[0].isdigit() else 0
        elif found.verb in ("join", "subscribe"):
            words = words or tuple(self._topics)[:1]
            for topic in words:
                found.known(topic, self._topics, "a topic of this story")
        elif words:
            raise found.wrong(f"nothing after {found.verb}", repr(" ".join(words)), "leave it out")
        if number < 1 or not found.who or not (words or found.verb not in ("join", "subscribe")):
            raise found.wrong("a topic" if number else "a number", repr(" ".join(words)), "create a topic first")
        for who in found.who:
            self._one(found, who, words, number)

    def _one(self, found: Command, who: str, words: Sequence[str], number: int) -> None:
        if found.verb != "join":
            joined = self._members[found.known(who, self._members, "a member of this story")]
            if found.verb == "poll" and joined.settings.get("polls") != "by-hand":
                raise found.wrong("a member that polls by hand", repr(who), "add polls=by-hand to its join")
            if found.verb == "restart":
                words = joined.words or tuple(self._topics)[:1]
                self.stage.act(who, "crash", (), 0)
        if found.verb in ("join", "restart"):
            settings = self._members.get(who, found).settings if found.verb == "restart" else found.settings
            try:
                self.stage.join(who, words, settings)
            except ValueError as error:
                raise StoryError(str(error), found.line) from error
            if found.verb == "join":
                self._members[who] = found
        else:
            self.stage.act(who, found.verb, words, number)

    # What is expected

    def _expect(self, found: Command) -> None:
        look = self._look(found)
        if not self.stage.until(look.holds):
            raise ExpectationFailed(f"expected {' '.join(found.words)}; it is: {look.is_now()}", found.line)

    def _look(self, found: Command) -> Look:
        match found.words:
            case ["members", *names]:
                wanted = " ".join(sorted(names)) or "nobody"
                return self._look_at(lambda: " ".join(sorted(self.stage.members())) or "nobody", wanted)
            case ["generation", number]:
                return self._look_at(lambda: str(self.stage.seen.generation), number)
            case ["rebalances", number]:
                return self._look_at(lambda: str(self.stage.seen.generation - self._generation), number)
            case ["digest", digest]:
                return self._look_at(self.stage.digest, digest)
            case ["cause", *words]:
                return Look(lambda: " ".join(words) in self._causes(), lambda: ", ".join(self._causes()) or "none")
            case ["committed", place, offset]:
                at = found.partition(place)
                return self._look_at(lambda: _offset(self.stage.committed(at)), offset)
            case [who, form, *words] if form in _ABOUT_MEMBERS:
                name = found.known(who, self._members, "a member of this story")
                if (look := self._look_at_member(found, name, form, words)) is not None:
                    return look
        forms = {form.removeprefix("WHO ").split()[0]: f"expect {form}" for form in EXPECTATIONS}
        near = [forms[key] for word in found.words[:2] for key in nearest(word, forms, 0.6)] or list(forms.values())
        raise found.wrong("a form of expect", repr(found.text), f"write {'; '.join(near)}")

    def _look_at_member(self, found: Command, name: str, form: str, words: Sequence[str]) -> Look | None:
        match form, words:
            case "owns", ["nothing"]:
                return self._look_at(lambda: shown(self.stage.seen.owned.get(name, ())), "nothing")
            case "owns", [_, *_]:
                wanted = shown([found.partition(place) for place in words])
                return self._look_at(lambda: shown(self.stage.seen.owned.get(name, ())), wanted)
            case "read", [number]:
                return self._look_at(lambda: str(self._last_read(name)), number)
            case "ended", []:
                return Look(lambda: self._has(name, "ended"), lambda: f"{name} runs")
            case "raised", [error]:
                return Look(lambda: self._has(name, "raises", error), lambda: self._list(name, "raises"))
            case (("got" | "never"), _):
                return self._answered(found, name, form, words)
            case "sent", [first]:
                return self._sent(name, first, first)
            case "sent", [first, "before", second]:
                return self._sent(name, first, second)
        return None

    def _look_at(self, now: Callable[[], str], wanted: str) -> Look:
        return Look(lambda: now() == wanted, now)

    def _since(self, who: str) -> Iterator[Event]:
        return (event for event in self.stage.seen.events[self._events :] if event.who == who)

    def _last_read(self, who: str) -> int:
        events = reversed(self.stage.seen.events)
        return next((event.count for event in events if event.who == who and event.what == "reads"), 0)

    def _has(self, who: str, what: str, text: str = "") -> bool:
        return any(event.what == what and text in event.text for event in self._since(who))

    def _list(self, who: str, what: str) -> str:
        return ", ".join(event.text for event in self._since(who) if event.what == what) or "none"

    def _exchanges(self, kind: str, who: str) -> list[Mapping[str, Any]]:
        notes = self.stage.notes()[self._notes :]
        return [note for note in notes if note["note"] == kind and note["client_id"] == who]

    def _answered(self, found: Command, who: str, form: str, words: Sequence[str]) -> Look:
        wanted = list(words[1:] if form == "never" else words)
        if len(wanted) != 2:
            raise found.wrong("an API and an error", repr(" ".join(wanted)), f"write expect {who} got JoinGroup NONE")

        def answers() -> list[str]:
            return [f"{note['api']} {note['error']}" for note in self._exchanges("GroupAnswer", who)]

        def now() -> str:
            return ", ".join(dict.fromkeys(answers())) or "no answer"

        def was_got() -> bool:
            return any(
                wanted[0] in ("any", answer.split()[0]) and answer.split()[1] == wanted[1] for answer in answers()
            )

        return Look(lambda: was_got() is (form == "got"), now)

    def _sent(self, who: str, first: str, second: str) -> Look:
        def sent() -> list[str]:
            return [note["api"] for note in self._exchanges("GroupRequest", who)]

        def holds() -> bool:
            found = sent()
            return first in found and second in found and found.index(first) <= found.index(second)

        return Look(holds, lambda: ", ".join(dict.fromkeys(sent())) or "no request")

    def _causes(self) -> list[str]:
        accounts = accounts_of_notes(self.stage.notes())
        return [cause.what.value for cause in (accounts[-1].causes if accounts else ())]


def _sentences(block: Block) -> list[Command]:
    return [command(line, number) for number, line in enumerate(block.commands, start=block.line)]


def _offset(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)
