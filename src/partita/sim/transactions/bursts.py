"""A client that sends bursts without transactions, some of its records such as the broker refuses.

TI15: exactly the refused records fail; each other one that was acknowledged is in the log once, at the offset that its
producer received, in the order of the sends; one that timed out is there once at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha512

from partita.errors import KafkaError
from partita.producer.errors import DeliveryTimeoutError
from partita.protocol.error_codes import ErrorCode
from partita.sim.rules.rule import must
from partita.sim.transactions.client import Client, Script
from partita.sim.transactions.ledger import Sent, TopicPartition
from partita.sim.transactions.model import Entry
from partita.sim.transactions.producer import SimProducer
from partita.sim.transactions.stage import STRICT, Stage

MAX_MESSAGE_BYTES = 1_000
"""Of the topic `STRICT`. Its producers make larger batches of small records, too."""
FINE, TOO_LARGE = ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE
KEYLESS, MISTIMED = ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP
_NEVER_MS = 10**15
_ANSWERS = {FINE: (), TOO_LARGE: (TOO_LARGE,), KEYLESS: (KEYLESS, MISTIMED), MISTIMED: (MISTIMED,)}
"""The errors that each may fail with: a batch has one error code, also if one of its records has no key and another one
a wrong timestamp."""


def send_bursts(stage: Stage, client: Client, producer: SimProducer) -> Script:
    """Send bursts without waiting for them; at the end wait until every record is done."""
    dice = stage.world.dice
    share = dice.choice((0.0, 0.05, 0.3))
    mine: list[Sent] = []
    while stage.is_producing:
        for _ in range(dice.between(1, 12)):
            refusal = dice.choice((TOO_LARGE, KEYLESS, MISTIMED)) if dice.chance(share) else FINE
            mine.append(_send(client, producer, f"{client.name}.{len(mine)}", dice.choice(STRICT), refusal))
            stage.ledger.bursts.append(mine[-1])
        yield client.pause_for(dice.between(0, 200))
    yield lambda: all(sent.delivery.done() for sent in mine)


def _send(client: Client, producer: SimProducer, name: str, where: TopicPartition, refusal: ErrorCode) -> Sent:
    size = client.world.dice.between(0, MAX_MESSAGE_BYTES // 3)
    value = f"{name} {_noise(name) if refusal is TOO_LARGE else '.' * size}"
    key = None if refusal is KEYLESS else name
    timestamp = _NEVER_MS if refusal is MISTIMED else None
    return Sent(client.name, where, value, refusal, producer.send(*where, value, key, timestamp))


def _noise(name: str) -> str:
    """Text that is too large for the topic under every codec."""
    return "".join(sha512(b"%d" % n + name.encode()).hexdigest() for n in range(MAX_MESSAGE_BYTES // 32))


def judge_bursts(
    bursts: Sequence[Sent], logs: Mapping[TopicPartition, Sequence[Entry]], *, has_forgotten: bool
) -> None:
    """TI15. Partitions that `has_forgotten` producers may hold batches twice, and out of order."""
    places: dict[str, list[tuple[TopicPartition, int]]] = defaultdict(list)
    for where in STRICT:
        for entry in logs.get(where, ()):
            places["" if entry.value is None else entry.value.decode()].append((where, entry.offset))
    last: dict[tuple[str, TopicPartition], int] = {}
    for sent in bursts:
        found = places[sent.value]
        name = sent.value.partition(" ")[0]
        _judge_outcome(sent, name, found)
        must(len(found) <= 1 or has_forgotten, "TI15", f"{name} is there {len(found)} times: {found}")
        for where, offset in [] if has_forgotten else found:
            before = last.get((sent.life, where), -1)
            must(where == sent.where and before < offset, "TI15", f"{name} is at {where} {offset}, after {before}")
            last[sent.life, where] = offset


def _judge_outcome(sent: Sent, name: str, found: Sequence[tuple[TopicPartition, int]]) -> None:
    must(sent.refusal is FINE or not found, "TI15", f"{name} is at {found}, and was to be refused")
    if not sent.delivery.done():
        return
    failure = sent.delivery.failure()
    if failure is None:
        told = sent.delivery.metadata().offset
        must(sent.refusal is FINE, "TI15", f"{name} was acknowledged, and was to be refused with {sent.refusal.name}")
        is_there = bool(found) and (told < 0 or (sent.where, told) in found)
        must(is_there, "TI15", f"{name} was acknowledged at {told}, and is at {found}")
    else:
        code = failure.code if isinstance(failure, KafkaError) else None
        is_fair = isinstance(failure, DeliveryTimeoutError) or code in _ANSWERS[sent.refusal]
        must(is_fair, "TI15", f"{name}, for which {sent.refusal.name} was due, failed with {failure!r}")
