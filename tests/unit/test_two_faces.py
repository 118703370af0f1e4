"""Blocking and asyncio faces of each client: the same calls with the same parameters, defaults and types.

They are written out twice for type checkers and editors, so something has to hold them together.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

from partita import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    Broker,
    Consumer,
    Producer,
    ShareConsumer,
)
from support.every_case import every_case


@dataclass(frozen=True)
class Faces:
    """A pair of classes, and where they differ on purpose: the name of a call -> why."""

    blocking: type
    asyncio: type
    only_blocking: dict[str, str] = field(default_factory=dict)
    only_asyncio: dict[str, str] = field(default_factory=dict)
    other_parameters: dict[str, str] = field(default_factory=dict)
    waits_itself: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.blocking.__name__


FACES = (
    Faces(Consumer, AsyncConsumer),
    Faces(ShareConsumer, AsyncShareConsumer, other_parameters={"work": "a handler is a coroutine function there"}),
    Faces(
        Producer,
        AsyncProducer,
        only_asyncio={
            "start": "`async with` starts it; so does this, without a block",
            "room": "`send` cannot wait in asyncio; it says to await this",
        },
        waits_itself={"send": "the blocking one waits while the buffer is full"},
        other_parameters={"flush": "asyncio.timeout is the time-out there"},
    ),
    Faces(
        Admin,
        AsyncAdmin,
        only_asyncio={"start": "`async with` starts it; so does this, without a block", "cluster": "for the commands"},
    ),
)


EACH = [pytest.param(face, id=face.__name__) for faces in FACES for face in (faces.blocking, faces.asyncio)]


KINDS = [kind for faces in FACES for kind in (faces.asyncio, faces.blocking)]


def made(face: Any, bootstrap: str = "127.0.0.1:1") -> Any:
    group = {"group_id": "g"} if issubclass(face, ShareConsumer | AsyncShareConsumer) else {}
    return face(bootstrap_servers=bootstrap, **group)


def calls(face: type) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_")}


def functions(face: type) -> set[str]:
    return {name for name in calls(face) if inspect.isfunction(inspect.getattr_static(face, name))}


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


PAIRS = [(faces, name) for faces in FACES for name in sorted(calls(faces.blocking) & calls(faces.asyncio))]


@pytest.mark.parametrize("faces", FACES, ids=str)
def test_both_faces_have_the_same_calls(faces: Faces) -> None:
    blocking, asyncio = calls(faces.blocking), calls(faces.asyncio)
    assert blocking - asyncio == set(faces.only_blocking)
    assert asyncio - blocking == set(faces.only_asyncio)


@every_case("faces, name", PAIRS, lambda pair: f"{pair[0]}.{pair[1]}")
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


@pytest.mark.parametrize("faces", FACES, ids=str)
def test_calls_that_do_not_wait_are_one_function_and_the_others_are_awaited_on_one_face(faces: Faces) -> None:
    for name in functions(faces.blocking) & functions(faces.asyncio) - set(faces.waits_itself):
        blocking, asyncio = getattr(faces.blocking, name), getattr(faces.asyncio, name)
        waits = inspect.iscoroutinefunction(asyncio) or "Async" in str(inspect.signature(asyncio).return_annotation)
        assert (blocking is asyncio) is not waits, name
        assert not inspect.iscoroutinefunction(blocking), name


@pytest.mark.parametrize("face", EACH)
def test_every_call_stands_on_the_class(face: Any) -> None:
    """Finding D5: 24 calls of a consumer were attributes of its instances."""
    client = made(face)
    assert not [name for name in vars(client) if not name.startswith("_")]
    assert dict(inspect.getmembers(client)).keys() >= functions(face)
    assert all(inspect.getdoc(getattr(face, name)) for name in calls(face))


@pytest.mark.parametrize("face", EACH)
def test_a_mock_has_every_call_with_its_parameters(face: type) -> None:
    """Finding D5: "Mock object has no attribute 'subscribe'"."""
    double, loose = create_autospec(face), Mock(spec=face)
    for name in functions(face):
        assert shape(getattr(double.return_value, name)) == shape(getattr(face, name))
        assert callable(getattr(loose, name))
        with pytest.raises(TypeError):
            getattr(double.return_value, name)(no_such_parameter=1)


@pytest.mark.parametrize("face", EACH)
def test_a_subclass_and_a_patch_may_stand_before_every_call(face: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding D5: an override was silently not called, and `super()` had no such method."""
    seen: list[str] = []

    def instead(name: str) -> Callable[..., Any]:
        return lambda self: seen.append(f"{type(self).__name__}.{name}")

    names = sorted(functions(face))
    derived = type("Derived", (face,), {name: instead(name) for name in names})
    client = made(derived)
    assert all(callable(getattr(super(derived, client), name)) for name in names)
    patched = made(face)
    for name in names:
        monkeypatch.setattr(face, name, instead(name))
        getattr(client, name)()
        getattr(patched, name)()
    assert seen == [f"{kind}.{name}" for name in names for kind in ("Derived", face.__name__)]
    monkeypatch.undo()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy])
def test_a_client_is_not_pickled_and_the_message_says_what_to_do(kind: type, copied: Callable[[Any], Any]) -> None:
    """Users meet this when a function that is sent to another process uses a client."""
    client = made(kind)
    with pytest.raises(TypeError, match=f"a {kind.__name__} cannot be pickled or copied: .* make a {kind.__name__} "):
        copied(client)


@pytest.mark.parametrize("kind", KINDS)
def test_looking_at_a_client_raises_nothing(kind: type) -> None:
    """Clients, D5: `inspect.getmembers(producer)` raised TransactionMisuseError."""
    client = made(kind)
    assert inspect.getmembers(client)
    if kind in (Admin, Consumer, Producer, ShareConsumer):
        client.close()
        assert inspect.getmembers(client)
        with Broker() as broker, made(kind, broker.bootstrap) as used:
            assert inspect.getmembers(used)


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_has_one_name(kind: type) -> None:
    """Clients, 4: `begin` beside `begin_transaction` made every reader ask for the difference."""
    names = functions(kind)
    assert len({getattr(kind, name) for name in names}) == len(names)
