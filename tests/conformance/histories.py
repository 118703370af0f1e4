"""Generated histories of group requests: what each client asks, step by step, as a function of a seed.

A step names members, generations and instances symbolically ("mine", "current", "i1"); each broker's own ids are
filled in when the step is played. So one history means the same to both brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from partita.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

TOPICS = ("apples", "pears")
PARTITIONS = 3
CLIENTS = 4
VERSIONS = {
    "join": (0, 9), "sync": (0, 5), "heartbeat": (0, 4), "leave": (0, 5), "commit": (2, 10), "fetch": (1, 10),
    "describe": (0, 6), "list": (0, 5), "delete": (0, 2), "offset_delete": (0, 0), "find": (0, 6),
}  # fmt: skip
WEIGHTS = {
    "join": 26, "sync": 22, "heartbeat": 12, "leave": 6, "commit": 10, "fetch": 6, "describe": 8, "list": 3,
    "delete": 3, "offset_delete": 3, "find": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One request of one client. `member` and `generation` are symbols; `choice` seeds the rest of the request."""

    client: int
    verb: str
    version: int
    member: str
    generation: str
    instance: str | None
    choice: int


@dataclass(frozen=True, slots=True)
class History:
    """A seed's group and steps. Static clients use the same instance id throughout."""

    seed: int
    group: str
    steps: tuple[Step, ...]


def history(seed: int, prefix: str = "conformance") -> History:
    """The history of a seed: 5 to 40 steps, mostly sensible, sometimes wrong on purpose. A group is used once."""
    random = Random(seed)
    static = [random.random() < 0.25 for _ in range(CLIENTS)]
    calm = random.random() < 0.5
    lowest = random.choice((0, 0, 3, 4, 5))
    clients = random.randint(1, CLIENTS)
    steps = [_step(random, random.randrange(clients), static, calm, lowest) for _ in range(random.randint(5, 40))]
    return History(seed, f"{prefix}-{seed}", tuple(steps))


def _step(random: Random, client: int, static: list[bool], calm: bool, lowest: int) -> Step:
    verb = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    first, last = VERSIONS[verb]
    version = random.randint(min(max(first, lowest), last), last)
    wrong = random.random() < (0.05 if calm else 0.25)
    member = random.choice(("mine", "", "other", "bogus")) if wrong else "mine"
    generation = random.choice(("current", "older", "newer", "none")) if wrong else "current"
    instance = f"i{client % 2}" if static[client] else None
    if wrong and random.random() < 0.3:
        instance = random.choice((None, "i0", "i1", "i9"))
    if verb in ("leave", "commit") and random.random() < 0.25:
        member, generation = "", "none"
    return Step(client, verb, version, member, generation, instance, random.randrange(1 << 30))


def subscription(random: Random) -> bytes:
    """A consumer's metadata; now and then something that is none."""
    if random.random() < 0.1:
        return random.choice((b"", b"\x00"))
    topics = random.choice((["apples"], ["pears"], ["apples", "pears"]))
    return b"\x00\x01" + ConsumerProtocolSubscription(topics=list(topics)).encode(1)
