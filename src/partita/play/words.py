"""The words of stories, and their sentences as values: who, verb, words, settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from partita.offsets.topic_partition import TopicPartition
from partita.options import nearest

MEMBER_VERBS = {
    "join": ("TOPIC ... [OPTION=VALUE ...]", "start as a process, subscribe, and poll as time passes"),
    "poll": ("[TIMES]", "call poll by hand; only for members that joined with polls=by-hand"),
    "commit": ("", "commit the positions, and wait for the answer"),
    "subscribe": ("TOPIC ...", "subscribe to these topics instead"),
    "work": ("TIME", "work for so long after the next poll, without another poll"),
    "close": ("", "close the consumer: commit, leave, end"),
    "crash": ("", "end without a goodbye, as by kill -9"),
    "stop": ("", "stand still, as by kill -STOP"),
    "continue": ("", "go on after stop"),
    "restart": ("", "start again with the settings of join; one that still runs crashes first"),
}
WORLD_VERBS = {
    "topic": ("NAME PARTITIONS", "create a topic"),
    "records": ("TOPIC-PARTITION COUNT", "append so many records"),
    "advance": ("TIME", "let time pass, such as 500ms, 10s, 2m"),
    "add-partitions": ("TOPIC COUNT", "give a topic so many partitions in all"),
    "delete-topic": ("NAME", "delete a topic"),
    "move-coordinator": ("", "let another node coordinate the group"),
    "fail-append": ("", "let the coordinator's next write fail"),
    "crash-broker": ("TIME", "kill the broker, and start it again after this time"),
    "seed": (
        "NUMBER PROTOCOL safety|liveness",
        "let a seed draw the world, its members and its faults",
    ),
    "fault": ("NUMBER ...", "do not leave out this fault of the seed"),
    "heal": ("", "end the faults of the seed, repair what is broken, and require progress"),
    "expect": ("...", "end the story unless this holds; see the forms"),
}
EXPECTATIONS = {
    "WHO owns PARTITION ... | nothing": "the partitions of a member, by its callbacks",
    "WHO read COUNT": "the number of records of its last poll by hand",
    "WHO got API ERROR": "an answer since the last deed; NONE is success, and API may be any",
    "WHO never got API ERROR": "no such answer since the last deed",
    "WHO sent API [before API]": "a request since the last deed, and their order",
    "WHO raised ERROR": "an error of its poll or commit since the last deed",
    "WHO ended": "it runs no longer",
    "members WHO ... | nobody": "the members of the group, by the coordinator",
    "generation NUMBER": "the newest generation, or epoch, that a member has",
    "rebalances NUMBER": "how far it went on since the last deed",
    "cause WORDS": "a cause of the last rebalance, such as session expired",
    "digest DIGEST": "the history of the simulation is exactly this one",
    "committed TOPIC-PARTITION OFFSET | nothing": "the committed offset",
}
REMARK = "#"
"""The verb of a comment inside a block."""
_QUIET = frozenset({"advance", "expect", REMARK})
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_NAME = re.compile(r"[A-Za-z][\w.-]*$")


class StoryError(ValueError):
    """A sentence that cannot be read or played; `line` is its line in the file."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.args[0]}" if self.line else str(self.args[0])


@dataclass(frozen=True, slots=True)
class Command:
    """One sentence. `who` are the members it is about, `settings` its words with an equals sign."""

    text: str
    line: int
    verb: str
    who: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def is_deed(self) -> bool:
        """Does it change something by itself?"""
        return self.verb not in _QUIET

    def wrong(self, expected: str, came: str, todo: str) -> StoryError:
        """The error of this sentence."""
        return StoryError(f"expected {expected}, came {came}; {todo}", self.line)

    def one(self, expected: str) -> str:
        """Its only word."""
        if len(self.words) != 1:
            raise self.wrong(expected, repr(" ".join(self.words)), f"write {usage(self.verb)}")
        return self.words[0]

    def pair(self, expected: str) -> tuple[str, int]:
        """Its two words, a name and a number."""
        if len(self.words) != 2 or not self.words[1].isdigit():
            raise self.wrong(expected, repr(" ".join(self.words)), f"write {usage(self.verb)}")
        return self.words[0], int(self.words[1])

    def milliseconds(self) -> int:
        """Its only word as a time."""
        text = self.one("a time such as 500ms, 10s or 2m")
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
        if match is None:
            raise self.wrong("a time such as 500ms, 10s or 2m", repr(text), "write a number and ms, s, m or h")
        return round(float(match[1]) * _UNITS[match[2]])

    def partition(self, text: str) -> TopicPartition:
        """A word as a partition."""
        topic, _, number = text.rpartition("-")
        if not topic or not number.isdigit():
            raise self.wrong("a partition such as T-0", repr(text), "write topic, hyphen, number")
        return TopicPartition(topic, int(number))

    def known(self, name: str, known: Iterable[str], what: str) -> str:
        """The name, which must be one of those."""
        names = list(known)
        if name not in names:
            listed = ", ".join(names) or "none yet"
            raise self.wrong(f"{what} ({listed})", repr(name), _instead(name, names))
        return name


def usage(verb: str) -> str:
    """A verb with its words."""
    if verb in MEMBER_VERBS:
        return f"NAME {verb} {MEMBER_VERBS[verb][0]}".rstrip()
    return f"{verb} {WORLD_VERBS[verb][0]}".rstrip()


def command(text: str, line: int) -> Command:
    """Read one sentence. Raises StoryError."""
    if text.startswith(REMARK):
        return Command(text, line, REMARK)
    words = text.split()
    at = 0 if words[0] in WORLD_VERBS else next((i for i, word in enumerate(words) if word in MEMBER_VERBS), 0)
    who, verb, rest = tuple(words[:at]), words[at], words[at + 1 :]
    if not at and verb not in WORLD_VERBS:
        raise StoryError(_no_verb(words), line)
    for name in who:
        if not _NAME.match(name):
            raise StoryError(f"expected a member's name, came {name!r}; use letters and digits", line)
    settings = dict(word.split("=", 1) for word in rest if "=" in word)
    if settings and verb != "join":
        came = next(iter(settings))
        raise StoryError(f"expected no options after {verb}, came {came!r}; options belong to join", line)
    return Command(text, line, verb, who, tuple(word for word in rest if "=" not in word), settings)


def _no_verb(words: list[str]) -> str:
    """The message for a sentence without a verb that exists; the likeliest place of the verb is the second word."""
    verbs = [*MEMBER_VERBS, *WORLD_VERBS]
    for word in words[1:2] + words[:1]:
        if near := nearest(word, verbs, 0.6):
            return f"expected a verb, came {word!r}; did you mean {near[0]}? write {usage(near[0])}"
    return f"expected one of the verbs {', '.join(verbs)}; came {' '.join(words)!r}; write NAME VERB, such as one join"


def _instead(name: str, known: list[str]) -> str:
    near = nearest(name, known, 0.5)
    return f"did you mean {near[0]}?" if near else "use one of these"
