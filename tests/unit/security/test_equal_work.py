"""A broker does the same work for a user that exists and for one that does not: hash operations are counted."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Broker
from partita.broker.security.users import Users
from partita.secret import Secret
from partita.security import scram
from partita.security.errors import SaslError
from partita.security.sasl_server import Mechanism, PlainServer, ScramServer

WRONG = "wrong password"


class Hashed:
    """How often each hash function ran, and over how many bytes."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int]] = []

    def counting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **more: Any) -> Any:
            self.runs.append((name, sum(len(part) for part in given if isinstance(part, bytes))))
            return function(*given, **more)

        return run


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Hashed:
    counted = Hashed()
    for module, name in ((hmac, "digest"), (hmac, "new"), (hashlib, "new"), (hashlib, "pbkdf2_hmac")):
        monkeypatch.setattr(module, name, counted.counting(name, getattr(module, name)))
    for name in ("sha256", "sha512"):
        monkeypatch.setattr(hashlib, name, counted.counting(name, getattr(hashlib, name)))
    return counted


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    with Broker(users={"alice": "alice's password"}) as broker:
        yield broker.running.services.users()


def by_plain(mechanism: Mechanism, user: str) -> None:
    with pytest.raises(SaslError, match="Invalid username or password"):
        mechanism.step(f"\0{user}\0{WRONG}".encode())


def by_scram(name: str, mechanism: Mechanism, user: str) -> None:
    client = scram.ScramClient(name, user, "n" * 16)
    challenge = client.challenged(mechanism.step(client.first()).message)
    with pytest.raises(SaslError, match="invalid credentials"):
        mechanism.step(client.final(challenge, b"s" * 32))


@pytest.mark.case("SE-C12", "SE-C03")
def test_plain_hashes_as_much_for_an_unknown_user(hashed: Hashed) -> None:
    work: dict[str, list[str]] = {}
    for user in ("alice", "nobody"):
        hashed.runs.clear()
        by_plain(PlainServer({"alice": Secret("alice's password")}), user)
        work[user] = [name for name, _ in hashed.runs]
    assert work["alice"] == work["nobody"] == ["digest", "digest"]


@pytest.mark.case("SE-C12", "SE-P05")
@pytest.mark.parametrize("name", scram.HASHES)
def test_scram_hashes_as_much_for_an_unknown_user(users: Users, hashed: Hashed, name: str) -> None:
    """The salt of an unknown user is made for known ones, too, and thrown away. No password is ever stretched here."""
    work = {}
    for user in ("alice", "nobo"):
        hashed.runs.clear()
        mechanism = ScramServer(name, users.of(name), "servernonce")
        by_scram(name, mechanism, user)
        work[user] = list(hashed.runs)
    assert [run for run, _ in work["alice"]] == [run for run, _ in work["nobo"]]
    assert sum(size for _, size in work["alice"]) == pytest.approx(sum(size for _, size in work["nobo"]), abs=8)
    assert not [run for run, _ in work["alice"] if run == "pbkdf2_hmac"]
