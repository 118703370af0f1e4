"""Users that do not exist are challenged like those that do: wrong and unknown users look the same. (Finding F5)"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from partita import Broker
from partita.broker.security.users import KAFKAS, Shape, Users, shape_of
from partita.security.scram import HASHES, Credential

COUNT = 400


@pytest.fixture
def users() -> Iterator[Users]:
    """Of a broker that serves SCRAM, with nobody in it."""
    with Broker(
        {"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512", "listeners": "SASL_PLAINTEXT://127.0.0.1:0"}
    ) as broker:
        yield broker.running.services.users()


def kafkas_salt(chance: random.Random) -> bytes:
    """130 random bits to base 36, as Kafka's tools make salts (see the conformance test of kafka-configs)."""
    number, text = chance.getrandbits(130), ""
    while number:
        number, digit = divmod(number, 36)
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + text
    return text.encode()


def made(users: Users, mechanism: str, name: str, salt: bytes, iterations: int) -> None:
    users.store({(name, mechanism): Credential(salt, b"k" * 32, b"k" * 32, iterations)})


def seen(users: Users, mechanism: str, prefix: str) -> Counter[tuple[int, bool, int]]:
    """How many challenges have which length of salt, whether as text, and which iterations."""
    find = users.of(mechanism)
    found = [find(f"{prefix}{number}") for number in range(COUNT)]
    return Counter((len(each.salt), each.salt.isalnum() and each.salt.islower(), each.iterations) for each in found)


Populate = Callable[[random.Random, int], tuple[bytes, int]]
POPULATIONS: dict[str, Populate] = {
    "by kafka-configs": lambda chance, number: (kafkas_salt(chance), 4096),
    "with 8,192 iterations": lambda chance, number: (kafkas_salt(chance), 8192),
    "of the start": lambda chance, number: (chance.randbytes(16), 4096),
    "of another tool": lambda chance, number: (chance.randbytes(64), 15_000),
    "of two kinds": lambda chance, number: (kafkas_salt(chance), 4096) if number % 4 else (chance.randbytes(16), 8192),
}


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("population", POPULATIONS)
def test_an_unknown_user_is_challenged_like_a_known_one(users: Users, mechanism: str, population: str) -> None:
    """No shape of a challenge is seen of one kind of users alone, and each is about as common among both."""
    chance = random.Random(7)
    for number in range(COUNT):
        made(users, mechanism, f"real{number}", *POPULATIONS[population](chance, number))
    known, unknown = seen(users, mechanism, "real"), seen(users, mechanism, "made up")
    for shape in known.keys() | unknown.keys():
        if known[shape] + unknown[shape] > 20:
            # Both are drawn: so far apart they are by chance in one of 100,000 cases, and 21 against none is more.
            by_chance = 4.5 * (known[shape] + unknown[shape]) ** 0.5
            assert abs(known[shape] - unknown[shape]) <= by_chance, (shape, known, unknown)


@pytest.mark.parametrize("mechanism", HASHES)
def test_where_nobody_exists_all_look_as_if_kafkas_tools_had_made_them(users: Users, mechanism: str) -> None:
    found = [users.of(mechanism)(f"nobody{number}") for number in range(COUNT)]
    assert {shape_of(each.salt, each.iterations) for each in found} == {KAFKAS}
    assert {len(each.salt) for each in found} >= {25, 26}
    assert len({each.salt for each in found}) == COUNT


def test_the_shape_of_the_other_mechanism_is_not_drawn(users: Users) -> None:
    made(users, "SCRAM-SHA-512", "alice", b"\0" * 40, 9000)
    assert shape_of(*_challenge(users, "SCRAM-SHA-512", "eve")) == Shape(40, 9000)
    assert shape_of(*_challenge(users, "SCRAM-SHA-256", "eve")) == KAFKAS
    users.store({("alice", "SCRAM-SHA-512"): None})
    assert shape_of(*_challenge(users, "SCRAM-SHA-512", "eve")) == KAFKAS


def test_a_made_up_challenge_stays_as_it_is(users: Users) -> None:
    """The same name gets the same again, after a restart too; another user changes it for few names only."""
    for number in range(9):
        made(users, "SCRAM-SHA-256", f"old{number}", b"\0" * 16, 4096)
    names = [f"nobody{number}" for number in range(COUNT)]
    before = {name: _challenge(users, "SCRAM-SHA-256", name) for name in names}
    users.prepare(with_scram=True)
    assert before == {name: _challenge(users, "SCRAM-SHA-256", name) for name in names}
    made(users, "SCRAM-SHA-256", "new", b"\0" * 24, 8192)
    changed = [name for name in names if _challenge(users, "SCRAM-SHA-256", name) != before[name]]
    assert COUNT * 0.05 < len(changed) < COUNT * 0.15
    assert {shape_of(*_challenge(users, "SCRAM-SHA-256", name)) for name in changed} == {Shape(24, 8192)}


def _challenge(users: Users, mechanism: str, name: str) -> tuple[bytes, int]:
    found = users.of(mechanism)(name)
    return found.salt, found.iterations
