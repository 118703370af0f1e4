"""Checking of configuration options, one way for every client and for the broker.

An `Option` says name, type, default and bounds; `check_options` takes keyword arguments in Kafka's names with
underscores and, if wanted, a dict in Kafka's dotted spelling, and returns every value converted and checked.
A wrong name is answered with the nearest right one, a wrong value with its bound.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from partita.lazy import later
from partita.secret import Secret
from partita.wording import unsendable

if TYPE_CHECKING:
    import difflib
else:
    difflib = later("difflib")

Value: TypeAlias = Any
"""An option's value: of the type its kind says, or an object of the user's own. Checked at run time, by this module."""
Kind = Literal["int", "float", "bool", "str", "list", "secret", "any"]
REQUIRED: Value = object()
"""Default of an option that the user has to give."""

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")
_SENT = ("client_id", "client_rack", "group_id", "transactional_id")
"""Options whose text is sent to brokers."""
_TRUE_OR_FALSE = {"true": True, "false": False}


class ConfigError(ValueError):
    """An option is unknown, missing, or has a value it must not have."""


def whole_names(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table of TOML, which reads `security.protocol` as a table in a table, by their whole names."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from whole_names(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


class Option(NamedTuple):
    """One option. Bounds are inclusive; `choices` are compared without case when `ignore_case`.

    `aliases` are names that other clients use for the same setting. A value of kind "secret" becomes a `Secret`.
    """

    name: str
    kind: Kind
    default: Value
    help: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    ignore_case: bool = False
    nullable: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """The name as Kafka spells it."""
        return self.name.replace("_", ".")


def check_options(
    options: Iterable[Option], given: Mapping[str, Value], dotted: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """Every option's value: what was given, converted and checked, or the default.

    `given` holds keyword arguments; `dotted` a dict with Kafka's own names. Both spellings are accepted in both.
    Raises ConfigError for unknown names (all of them at once), a value out of bounds, a missing required option, a name
    given twice.
    """
    if dotted is not None and not isinstance(dotted, Mapping):
        raise ConfigError(
            f"a client takes a dict of options or keyword arguments, not {dotted!r}; "
            "give servers as bootstrap_servers=..., topics to subscribe()"
        )
    known = {option.name: option for option in options}
    spellings: dict[str, str] = {}
    asked = [spelled for spelled in (*(dotted or {}), *given) if spelled.replace(".", "_") not in known]
    if asked:  # names of other clients, which few programs use
        spellings = {alias: option.name for option in known.values() for alias in option.aliases}
        if unknown := [spelled for spelled in asked if spelled.replace(".", "_") not in spellings]:
            raise ConfigError("; ".join(unknown_option(spelled, known) for spelled in unknown))
    values: dict[str, Value] = {}
    came_as: dict[str, str] = {}
    for source in (dotted or {}, given):
        for spelled, value in source.items():
            name = spelled.replace(".", "_")
            name = spellings.get(name, name)
            if name in came_as:
                raise ConfigError(f"{name} is given twice: as {came_as[name]} and as {spelled}; give it once")
            came_as[name] = spelled
            values[name] = check_value(known[name], value)
    for name, option in known.items():
        if name not in values:
            default = option.default
            if default is REQUIRED:
                raise ConfigError(f"{name} is required: {option.help or 'it has no default'}")
            values[name] = list(default) if isinstance(default, list) else default
    return values


def table_in(path: str) -> dict[str, Any]:
    """Return the object of a JSON file of this package, which Python may run from a zip (`spark-submit --py-files`)."""
    table: dict[str, Any] = json.loads(__spec__.loader.get_data(path))  # type: ignore[union-attr]  # a file's or a zip's loader
    return table


@cache
def elsewhere() -> dict[str, str]:
    """Options of librdkafka, aiokafka and kafka-python that no client here has, with their replacements."""
    table = table_in(f"{__file__.rpartition('options')[0]}other_clients.json")
    return {name: answer for answer, names in table.items() for name in names.split()}


_LIKE = 0.75


def nearest(name: str, known: Iterable[str], cutoff: float) -> list[str]:
    """Return the known name that is most like this one, or nothing if none comes near."""
    return difflib.get_close_matches(name, known, n=1, cutoff=cutoff)


def unknown_option(spelled: str, known: Iterable[str]) -> str:
    """The message for an unknown name: what to do instead, or the nearest name that exists."""
    names, name = list(known), spelled.replace(".", "_")
    if answer := elsewhere().get(name):
        return f"unknown option {spelled!r}; {answer}"
    longer = [one for one in names if one.startswith(f"{name}_")]
    near = longer if len(longer) == 1 else nearest(name, names, _LIKE)
    if not near:
        return f"unknown option {spelled!r}"
    suggestion = near[0].replace("_", ".") if "." in spelled else near[0]
    return f"unknown option {spelled!r}; did you mean {suggestion!r}?"


def check_value(option: Option, value: object) -> Value:
    """The value in the option's type, within its bounds. Text is converted as Kafka does."""
    if value is None:
        if option.nullable or option.default is None:
            return None
        raise ConfigError(f"{option.name} must not be None")
    converted = _convert(option, value)
    if option.kind in ("int", "float"):
        _check_bounds(option, converted)
    if option.choices:
        return _check_choice(option, converted)
    return converted


def _convert(option: Option, value: object) -> Value:
    match option.kind:
        case "any":
            return value
        case "bool":
            return _to_bool(option, value)
        case "int" | "float":
            return _to_number(option, value)
        case "list":
            return _to_list(option, value)
        case "str":
            if option.choices and type(value) is int:
                value = str(value)
            if not isinstance(value, str):
                raise ConfigError(f"{option.name} must be a string, not {value!r}")
            text = value.strip()
            if option.name in _SENT and (reason := unsendable(text)):
                raise ConfigError(f"{option.name} {reason}")
            return text
        case "secret":
            if isinstance(value, Secret):
                return value
            if not isinstance(value, str):
                raise ConfigError(f"{option.name} must be a string, not a value of type {type(value).__name__}")
            return Secret(value)


def _to_bool(option: Option, value: object) -> bool:
    if isinstance(value, str):
        value = _TRUE_OR_FALSE.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise ConfigError(f"{option.name} must be true or false, not {value!r}")
    return value


def _to_number(option: Option, value: Value) -> int | float:
    wanted = int if option.kind == "int" else float
    try:
        if isinstance(value, bool):
            raise ValueError
        number = wanted(value)
        if wanted is int and number != (float(value) if isinstance(value, float) else number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        word = "a whole number" if wanted is int else "a number"
        raise ConfigError(f"{option.name} must be {word}, not {value!r}") from None
    return number


def _to_list(option: Option, value: object) -> list[Value]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        return list(value)
    raise ConfigError(f"{option.name} must be a list or comma-separated text, not {value!r}")


def _check_bounds(option: Option, value: float) -> None:
    if option.minimum is not None and value < option.minimum:
        raise ConfigError(f"{option.name} must be at least {option.minimum}, not {value}")
    if option.maximum is not None and value > option.maximum:
        raise ConfigError(f"{option.name} must be at most {option.maximum}, not {value}")


def _check_choice(option: Option, value: object) -> str:
    text = str(value)
    for choice in option.choices:
        if text == choice or (option.ignore_case and text.lower() == choice.lower()):
            return choice
    raise ConfigError(not_one_of(option.choices, text, option.name))


def one_of(names: Iterable[str], given: str, what: str) -> str:
    """The name that is given, in any case. Raises ValueError for another, with the nearest one that exists."""
    known = {name.lower(): name for name in names}
    if (found := known.get(str(given).lower())) is None:
        raise ValueError(not_one_of(known.values(), given, what))
    return found


def not_one_of(names: Iterable[str], given: object, what: str) -> str:
    """The message for a name that is none of these: the names, what came, and the nearest name."""
    known = {name.lower(): name for name in names}
    near = nearest(str(given).lower(), known, 0.5)
    hint = f"; did you mean {known[near[0]]!r}?" if near else ""
    return f"{what} must be one of {', '.join(known.values())}, not {given!r}{hint}"


def check_arguments(function: Callable[..., Any], names: Sequence[str], what: str) -> None:
    """Raise ConfigError if a user's function cannot be called with these arguments; one without a signature passes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind(*names)
    except TypeError:
        raise ConfigError(f"{what} is called with ({', '.join(names)}), and yours takes {signature}") from None


def parse_duration_ms(text: str) -> int:
    """Milliseconds of an ISO duration of days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no duration; expected such as P7D or PT1H30M")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
