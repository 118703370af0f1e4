"""AlterUserScramCredentials and DescribeUserScramCredentials, as Apache Kafka 4.3.1 answers them. (SE-E01 to E16)"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita.broker.api import context
from partita.broker.api.apis import SERVED
from partita.broker.api.served import CHANGES_MAX
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from partita.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from support.broker.data_plane import DataPlane, data_plane

TWICE = "A user credential cannot be altered twice in the same request"


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as running:
        yield running


def upsert(name: str, mechanism: int = 1, iterations: int = 4096, **fields: Any) -> ScramCredentialUpsertion:
    given = {"salt": b"salt", "salted_password": b"x" * 32, **fields}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, **given)


def delete(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(plane: DataPlane, *asked: ScramCredentialUpsertion | ScramCredentialDeletion) -> dict[str, tuple[int, Any]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in asked if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in asked if isinstance(each, ScramCredentialUpsertion)],
    )
    results = plane.ask("alter_user_scram_credentials", 0, request).results
    return {result.user: (result.error_code, result.error_message) for result in results}


def describe(plane: DataPlane, *names: str) -> dict[str, tuple[int, str, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] or None)
    answer = plane.ask("describe_user_scram_credentials", 0, request)
    assert answer.error_code == 0
    return {
        each.user: (
            each.error_code,
            each.error_message,
            [(info.mechanism, info.iterations) for info in each.credential_infos],
        )
        for each in answer.results
    }


@pytest.mark.case("SE-E01", "SE-E02", "SE-E03", "SE-E05", "SE-E11")
def test_what_is_set_is_described(plane: DataPlane) -> None:
    assert alter(plane, upsert("a"), upsert("b", 2, 8192)) == {"a": (0, None), "b": (0, None)}
    assert alter(plane, upsert("a", 2)) == {"a": (0, None)}
    every = {"a": (0, "", [(1, 4096), (2, 4096)]), "b": (0, "", [(2, 8192)])}
    assert describe(plane) == every
    request = DescribeUserScramCredentialsRequest(users=[])
    assert len(plane.ask("describe_user_scram_credentials", 0, request).results) == 2
    assert describe(plane, "b", "c") == {
        "b": every["b"],
        "c": (91, "Attempt to describe a user credential that does not exist: c", []),
    }


@pytest.mark.case("SE-E04")
def test_a_name_asked_for_twice_is_refused(plane: DataPlane) -> None:
    alter(plane, upsert("a"))
    text = "Cannot describe SCRAM credentials for the same user twice in a single request: a"
    assert describe(plane, "a", "a") == {"a": (92, text, [])}


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        pytest.param(upsert("a", iterations=4095), 93, "Too few iterations", id="SE-E06 few"),
        pytest.param(upsert("a", iterations=16_385), 93, "Too many iterations", id="SE-E06 many"),
        pytest.param(upsert("a", 9), 33, "Unknown SCRAM mechanism", id="SE-E07 mechanism"),
        pytest.param(upsert(""), 93, "Username must not be empty", id="SE-E07 name"),
        pytest.param(upsert("", 9, 1), 93, "Username must not be empty", id="the name comes first"),
        pytest.param(upsert("a", 9, 1), 33, "Unknown SCRAM mechanism", id="then the mechanism"),
        pytest.param(delete("a"), 91, "Attempt to delete a user credential that does not exist", id="SE-E09"),
        pytest.param(upsert("a", salt=b""), 93, "Salt must not be empty", id="SE-E16 salt"),
        pytest.param(upsert("a", salted_password=b""), 93, "Salted password must not be empty", id="SE-E16 password"),
    ],
)
@pytest.mark.case("SE-E06", "SE-E07", "SE-E09", "SE-E10", "SE-E16")
def test_what_is_refused_leaves_the_others(plane: DataPlane, asked: Any, code: int, text: str) -> None:
    assert alter(plane, asked, upsert("good")) == {asked.name: (code, text), "good": (0, None)}
    assert describe(plane) == {"good": (0, "", [(1, 4096)])}


@pytest.mark.case("SE-E06")
def test_the_bounds_themselves_are_good(plane: DataPlane) -> None:
    assert alter(plane, upsert("a", 1, 4096), upsert("b", 1, 16_384)) == {"a": (0, None), "b": (0, None)}


@pytest.mark.case("SE-E08")
@pytest.mark.parametrize("second", [upsert("a", 2), delete("a", 1)])
def test_a_user_twice_in_a_request_is_not_touched(plane: DataPlane, second: Any) -> None:
    assert alter(plane, upsert("a"), second) == {"a": (92, TWICE)}
    assert describe(plane) == {}


@pytest.mark.case("SE-E13")
def test_the_other_mechanism_stays(plane: DataPlane) -> None:
    alter(plane, upsert("a", 1))
    alter(plane, upsert("a", 2))
    assert alter(plane, delete("a", 1)) == {"a": (0, None)}
    assert describe(plane) == {"a": (0, "", [(2, 4096)])}


def test_others_have_their_turn_while_many_credentials_are_hashed(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of 19,000 credentials held the loop for 385 ms."""
    assert SERVED[51].elements_max == CHANGES_MAX
    turns: list[Callable[[], None]] = []
    wait = plane.services.turns.wait

    def counted(go_on: Callable[[], None]) -> None:
        turns.append(go_on)
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "wait", counted)
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    users = [f"user-{number}" for number in range(20)]
    assert set(alter(plane, *map(upsert, users))) == set(users)
    assert len(turns) == len(users)
