from importlib import import_module

from partita.compiled import COMPILED, compiled_modules


def test_a_module_is_told_to_be_compiled_exactly_when_it_runs_compiled() -> None:
    told = compiled_modules()
    assert tuple(told) == COMPILED
    for name, is_compiled in told.items():
        assert is_compiled == (not str(import_module(name).__file__).endswith(".py"))
