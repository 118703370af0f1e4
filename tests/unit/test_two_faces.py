"""Blocking and asyncio faces of each client: the same calls with the same parameters, defaults and types.

They are written out twice for type checkers and editors, so something has to hold them together.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from partita import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer


@dataclass(frozen=True)
class Faces:
    """A pair of classes, and where they differ on purpose: the name of a call -> why."""

    blocking: type
    asyncio: type
    only_blocking: dict[str, str] = field(default_factory=dict)
    only_asyncio: dict[str, str] = field(default_factory=dict)
    other_parameters: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.blocking.__name__


FACES = (
    Faces(Consumer, AsyncConsumer),
    Faces(
        Producer,
        AsyncProducer,
        only_blocking={"config": "what tests and the dead letters read"},
        only_asyncio={
            "start": "`async with` starts it; so does this, without a block",
            "room": "`send` cannot wait in asyncio; it says to await this",
        },
        other_parameters={"flush": "asyncio.timeout is the time-out there"},
    ),
    Faces(
        Admin,
        AsyncAdmin,
        only_asyncio={"start": "`async with` starts it; so does this, without a block", "cluster": "for the commands"},
    ),
)


def calls(face: type | Consumer) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_") and name != "over"}


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    made = Consumer(bootstrap_servers="127.0.0.1:1")
    yield made
    made.close(0)


def shape(call: object) -> list[tuple[str, object, object, object]]:
    """Parameters without self, and the type that comes back; types as they are written, awaiting left out."""
    signature = inspect.signature(call)  # type: ignore[arg-type]  # whatever a class has; what is no call raises
    found: list[tuple[str, object, object, object]] = [
        (p.name, p.kind, p.default, one_face(p.annotation)) for p in signature.parameters.values() if p.name != "self"
    ]
    return [*found, ("return", None, None, one_face(signature.return_annotation))]


def one_face(annotation: object) -> str:
    """The type as both faces would write it."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    return re.sub(r"\bAsync(?=[A-Z])", "", text)


PAIRS = [
    pytest.param(faces, name, id=f"{faces}.{name}")
    for faces in FACES
    for name in sorted(calls(faces.blocking) & calls(faces.asyncio))
]


@pytest.mark.parametrize("faces", FACES, ids=str)
def test_both_faces_have_the_same_calls(faces: Faces, consumer: Consumer) -> None:
    blocking = calls(consumer if faces.blocking is Consumer else faces.blocking)
    asyncio = calls(faces.asyncio)
    assert blocking - asyncio == set(faces.only_blocking)
    assert asyncio - blocking == set(faces.only_asyncio)


@pytest.mark.parametrize(("faces", "name"), PAIRS)
def test_a_call_has_the_same_parameters_on_both_faces(faces: Faces, name: str) -> None:
    blocking, asyncio = (inspect.getattr_static(face, name) for face in (faces.blocking, faces.asyncio))
    if isinstance(asyncio, property):
        blocking, asyncio = blocking.fget, asyncio.fget
    is_same = shape(blocking) == shape(asyncio)
    assert is_same is (name not in faces.other_parameters), (shape(blocking), shape(asyncio))


@pytest.mark.parametrize("faces", FACES, ids=str)
def test_both_faces_are_made_with_the_same_options(faces: Faces) -> None:
    """Each overload too, which says what type of records comes from which deserializers."""
    blocking, asyncio = faces.blocking.__init__, faces.asyncio.__init__  # type: ignore[misc]  # never called
    assert shape(blocking) == shape(asyncio)
    ours, theirs = typing.get_overloads(blocking), typing.get_overloads(asyncio)
    assert [receiver(call) for call in ours] == [receiver(call) for call in theirs]
    assert [shape(call) for call in ours] == [shape(call) for call in theirs]


def receiver(overload: Callable[..., Any]) -> str:
    return one_face(inspect.signature(overload).parameters["self"].annotation)


def test_consumers_take_over_calls_as_they_are(consumer: Consumer) -> None:
    """Calls that never wait are the same functions, so they cannot differ."""
    taken = calls(consumer) - calls(Consumer)
    assert taken == calls(AsyncConsumer) - calls(Consumer)
    assert all(getattr(consumer, name).__func__ is getattr(AsyncConsumer, name) for name in taken)
    assert {"subscribe", "seek", "pause", "done"} <= taken


@pytest.mark.parametrize("kind", [Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer])
@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy])
def test_a_client_is_not_pickled_and_the_message_says_what_to_do(kind: type, copied: Callable[[Any], Any]) -> None:
    """Users meet this when a function that is sent to another process uses a client."""
    client = kind(bootstrap_servers="127.0.0.1:1")
    with pytest.raises(TypeError, match=f"a {kind.__name__} cannot be pickled or copied: .* make a {kind.__name__} "):
        copied(client)
