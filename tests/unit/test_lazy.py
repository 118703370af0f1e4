"""What is made on first use: modules named at the head of a file, and objects of a broker."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType

import pytest

from partita.lazy import Lazy, later

RARE = "colorsys"
"""A module that nothing else needs."""


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, RARE, raising=False)


@pytest.mark.usefixtures("unloaded")
def test_a_module_is_imported_when_a_name_of_it_is_asked_for() -> None:
    module = later(RARE)
    assert repr(module) == f"later('{RARE}')"
    assert RARE not in sys.modules
    assert module.rgb_to_hsv(0, 0, 0) == (0, 0, 0)
    assert RARE in sys.modules


def test_a_name_may_be_a_module_of_a_package() -> None:
    assert isinstance(later("xml").dom, ModuleType)


def test_a_module_that_is_replaced_is_replaced_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    module = later(RARE)
    monkeypatch.setitem(sys.modules, RARE, ModuleType(RARE))
    with pytest.raises(AttributeError, match="rgb_to_hsv"):
        _ = module.rgb_to_hsv
    monkeypatch.setitem(sys.modules, RARE, None)
    with pytest.raises(ImportError, match=RARE):
        _ = module.rgb_to_hsv


@pytest.mark.parametrize(
    ("package", "extra", "module", "name"),
    [
        ("pyarrow", "arrow", "partita.records.to_arrow", "to_arrow"),
        ("fastavro", "registry", "partita.registry", "HttpRegistry"),
        ("opentelemetry", "opentelemetry", "partita.telemetry", "processing"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    package: str, extra: str, module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [loaded for loaded in sys.modules if loaded.startswith((module, f"{package}."))]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package}.*pip install 'partita\[{extra}\]'$"):
        getattr(later(module), name)


@pytest.mark.usefixtures("unloaded")
def test_pickling_imports_nothing() -> None:
    """Spark sends functions with the names that they use to its workers."""
    copied = pickle.loads(pickle.dumps(later(RARE)))
    assert RARE not in sys.modules
    assert copied.rgb_to_hsv(0, 0, 0) == (0, 0, 0)


def test_an_object_is_made_once_and_can_be_looked_at_without_making_it() -> None:
    numbers = iter(range(10))
    lazy: Lazy[object] = Lazy(lambda: [next(numbers)])
    assert lazy.made is None
    assert lazy() is lazy()
    assert lazy.made == [0]
    assert next(numbers) == 1
