"""The pytest plugin, seen from a test suite that uses it."""

from __future__ import annotations

import pytest

import partita.now


def test_partitas_own_modules_are_not_rewritten(pytestconfig: pytest.Config) -> None:
    loader = type(partita.now.__spec__.loader).__name__ if partita.now.__spec__ else ""
    assert loader in {"SourceFileLoader", "ExtensionFileLoader"}
    assert pytestconfig.pluginmanager.hasplugin("partita")
