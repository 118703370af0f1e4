"""References in option values, in the syntax of Kafka's configuration providers. (KIP-297, KIP-421)

`${env:NAME}` is an environment variable, `${file:/path:key}` a property of a file, `${dir:/path:name}` the content of a
file in a folder, as Kubernetes mounts secrets. A reference is resolved where the client is made, so that a value need
not travel with a job. Anything else in `${...}` stays as it is.

Deviations: Kafka leaves a reference in place when there is no such variable or key, and fails later with it as a value;
the line end that editors put behind the only line of a file is no part of the value here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partita.lazy import later
from partita.options import ConfigError
from partita.properties import parse_properties

if TYPE_CHECKING:
    import pathlib
else:
    pathlib = later("pathlib")

REFERENCE = re.compile(r"\$\{(env|file|dir):(?:([^}]*):)?([^}:]*)\}")


class UnresolvedReference(ValueError):
    """The target of a reference is missing. The message names the target and never a value."""


def resolve(text: str) -> str:
    """The text with every reference replaced. Raises UnresolvedReference."""
    return REFERENCE.sub(_value, text) if "${" in text else text


def resolve_option(name: str, value: Any) -> Any:
    """The value of option `name`, resolved if it is text. Raises ConfigError when there is nothing to refer to."""
    if not isinstance(value, str):
        return value
    try:
        return resolve(value)
    except UnresolvedReference as error:
        raise ConfigError(f"{name}: {error}") from None


def resolve_options(given: Any) -> Any:
    """Options with every value resolved. Anything but a mapping is returned for a later check. Raises ConfigError."""
    if not isinstance(given, Mapping):
        return given
    return {name: resolve_option(name, value) for name, value in given.items()}


def _value(found: re.Match[str]) -> str:
    provider, path, key = found.groups()
    if provider == "env":
        return _variable(found[0], key)
    if not path or not key:
        inside = "key" if provider == "file" else "name"
        raise UnresolvedReference(f"{found[0]} must be ${{{provider}:/path:{inside}}}")
    if provider == "file":
        return _property(found[0], path, key)
    return _content(found[0], path, key).removesuffix("\n").removesuffix("\r")


def _variable(reference: str, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise UnresolvedReference(f"{reference}: the environment variable {name} is not set in this process")
    return value


def _property(reference: str, path: str, key: str) -> str:
    try:
        properties = parse_properties(_content(reference, path))
    except UnresolvedReference:
        raise
    except ValueError as error:
        raise UnresolvedReference(f"{reference}: {path} cannot be read: {error}") from None
    if key not in properties:
        names = ", ".join(sorted(properties)) or "none"
        raise UnresolvedReference(f"{reference}: {path} has no property {key!r}; its properties are: {names}")
    return properties[key]


def _content(reference: str, *parts: str) -> str:
    path = pathlib.Path(*parts)
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UnresolvedReference(f"{reference}: cannot read {path}: {reason}") from None
