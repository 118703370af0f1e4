"""What `from partita import ...` gives, and that importing it costs next to nothing (clients.md 5)."""

from __future__ import annotations

import subprocess
import sys

import pytest

import partita
from partita.errors import KafkaError


@pytest.mark.parametrize("name", sorted(partita.__all__))
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(partita, name) is not None
    assert name in dir(partita)


@pytest.mark.parametrize(
    "name", ["KafkaError", "CommitFailedError", "UndeliveredError", "TopicAlreadyExistsError", "AuthenticationError"]
)
def test_every_error_can_be_imported(name: str) -> None:
    assert issubclass(getattr(partita, name), KafkaError)


@pytest.mark.parametrize("name", ["Konsumer", "NoSuchError"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'partita' has no attribute '{name}'; it has Admin"):
        getattr(partita, name)


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, partita; print([name for name in sys.modules if name.startswith('partita.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
