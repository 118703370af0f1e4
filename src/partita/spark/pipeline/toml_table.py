"""One table of a pipeline file: gives typed values and remembers which keys were read. Pure.

Every error is a ConfigError that names the place in the file, the key, and the expected value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from partita.options import ConfigError, whole_names


class TomlTable:
    """The values of one table; `place` is its name in errors. The outermost table is the file."""

    def __init__(self, place: str, values: Mapping[str, Any], *, is_file: bool = False) -> None:
        self.place = place
        self._values = values
        self._is_file = is_file
        self._asked: set[str] = set()
        self._inner: dict[str, TomlTable] = {}

    def has(self, name: str) -> bool:
        """Whether the file gives this key here."""
        return name in self._values

    def text(self, name: str, default: str | None = None, choices: tuple[str, ...] = ()) -> str:
        """Return a text that is not empty. Raises ConfigError if it is missing and has no default."""
        found = self._value(name, default)
        among = f": {', '.join(choices)}" if choices else ""
        if found is None:
            near = get_close_matches(name, [key for key in self._values if key not in self._asked], n=1, cutoff=0.6)
            hint = f"; is {near[0]!r} meant?" if near else ""
            raise ConfigError(f"{self.place} needs {name}, a text{among}{hint}")
        if not isinstance(found, str):
            raise ConfigError(f"{name} of {self.place} must be a text in quotes{among}, not {_shown(found)}")
        if not found.strip() and found != default:
            raise ConfigError(f"{name} of {self.place} must not be empty")
        if choices and found not in choices:
            near = get_close_matches(found, choices, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{name} of {self.place} must be one of {', '.join(choices)}, not {found!r}{hint}")
        return found

    def ratio(self, name: str, default: float) -> float:
        """Return a number from 0 to 1."""
        found = self._value(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
            raise ConfigError(f"{name} of {self.place} must be a number from 0 to 1, not {_shown(found)}")
        return float(found)

    def flag(self, name: str) -> bool:
        """Return true or false; false if missing."""
        found = self._value(name, False)
        if not isinstance(found, bool):
            raise ConfigError(f"{name} of {self.place} must be true or false without quotes, not {_shown(found)}")
        return found

    def inner(self, name: str) -> TomlTable:
        """Return the table of this name; an empty one if missing."""
        if name not in self._inner:
            found = self._value(name, {})
            if not isinstance(found, Mapping):
                raise ConfigError(f"{self._of(name)} must be one table, not {_shown(found)}")
            self._inner[name] = TomlTable(self._of(name), found)
        return self._inner[name]

    def several(self, name: str) -> list[TomlTable]:
        """Return the tables of a list, [[name]]; none if missing."""
        found = self._value(name, [])
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            raise ConfigError(f"there may be several of {name}: write [[{name}]], in double brackets")
        tables = {f"[[{name}]] number {i}": one for i, one in enumerate(found, 1)}
        self._inner |= {place: TomlTable(place, one) for place, one in tables.items()}
        return [self._inner[place] for place in tables]

    def options(self, name: str, prefix: str = "") -> dict[str, str]:
        """Return the table of this name as options: dotted names joined again, every value as text.

        `prefix` is put before each name, and must not be there already.
        """
        found = self._value(name, {})
        if not isinstance(found, Mapping):
            raise ConfigError(f"{self._of(name)} must be one table, not {_shown(found)}")
        options = dict(_texts(found, self._of(name)))
        doubled = next((key for key in options if prefix and key.startswith(prefix)), None)
        if doubled is not None:
            raise ConfigError(f"{self._of(name)}: write {doubled.removeprefix(prefix)}, without the prefix {prefix}")
        return {prefix + key: value for key, value in options.items()}

    def refuse_others(self) -> None:
        """Raises ConfigError for a key that was never read, here or in an inner table."""
        for name in self._values:
            if name not in self._asked:
                near = get_close_matches(name, self._asked, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"it may have {', '.join(sorted(self._asked))}"
                raise ConfigError(f"{self.place} has no {name!r}; {hint}")
        for table in self._inner.values():
            table.refuse_others()

    def _value(self, name: str, default: Any) -> Any:
        self._asked.add(name)
        return self._values.get(name, default)

    def _of(self, name: str) -> str:
        return f"[{name}]" if self._is_file else f"{name} of {self.place}"


@contextmanager
def named(place: str, prefix: str = "") -> Iterator[None]:
    """Put the place in front of a ConfigError, and remove a `prefix` that the file leaves out from its text."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{place}: {str(error).replace(prefix, '') if prefix else error}") from None


def _texts(values: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    for key, value in whole_names(values):
        if isinstance(value, bool):
            yield key, str(value).lower()
        elif isinstance(value, str | int | float):
            yield key, str(value)
        elif isinstance(value, list):
            raise ConfigError(f'{key} of {place} must be one text, not a list: "{",".join(map(str, value))}"')
        else:
            raise ConfigError(f"{key} of {place} must be a text, a number, true or false, not {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "a table"
    return repr(value) if isinstance(value, str | int | float) else str(value)
