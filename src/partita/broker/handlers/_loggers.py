"""Levels of the loggers of this process, as settings of the resource BROKER_LOGGER. (Kafka: LoggingController)

"root" is the logger that all of Partita's are below; loggers of an application around the broker are not its own. As in
Kafka a level lasts until the process ends.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.incremental_alter_configs import AlterableConfig

ROOT = "root"
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_OURS = "partita"
_LEVELS = {
    "DEBUG": logging.DEBUG, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL, "INFO": logging.INFO, "TRACE": 5,
    "WARN": logging.WARNING,
}  # fmt: skip
_OPERATIONS = {APPEND: "APPEND operation", SUBTRACT: "SUBTRACT operation"}


def levels() -> dict[str, str]:
    """The level that counts for each logger, in Kafka's words."""
    return {name: _word(logger.getEffectiveLevel()) for name, logger in sorted(_loggers().items())}


def change_levels(configs: Sequence[AlterableConfig], *, validate_only: bool) -> None:
    """Set levels, or with DELETE let loggers have that of the one above. Raises Refused; then none has changed."""
    found = _loggers()
    for config in configs:
        _check(found, config)
    if not validate_only:
        for config in configs:
            is_set = config.config_operation == SET and config.value is not None
            found[config.name].setLevel(_LEVELS[config.value] if is_set and config.value else logging.NOTSET)


def _loggers() -> dict[str, logging.Logger]:
    known = logging.getLogger().manager.loggerDict
    ours = {name: each for name, each in dict(known).items() if isinstance(each, logging.Logger)}
    return {ROOT: logging.getLogger(_OURS)} | {n: each for n, each in ours.items() if n.startswith(f"{_OURS}.")}


def _check(found: dict[str, logging.Logger], config: AlterableConfig) -> None:
    operation = config.config_operation
    if operation not in (SET, DELETE):
        what = _OPERATIONS.get(operation, f"Unknown operation type {operation}")
        raise Refused(ErrorCode.INVALID_REQUEST, f"{what} is not allowed for the BROKER_LOGGER resource")
    if config.name not in found:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!")
    if operation == SET and config.value not in _LEVELS:
        why = f"as it is not a supported log level. Valid log levels are {', '.join(sorted(_LEVELS))}"
        message = f"Cannot set the log level of {config.name} to {config.value} {why}"
        raise Refused(ErrorCode.INVALID_CONFIG, message)
    if operation == DELETE and config.name == ROOT:
        raise Refused(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")


def _word(level: int) -> str:
    """The nearest level that is not above."""
    return max((each for each in _LEVELS.items() if each[1] <= level), key=lambda each: each[1], default=("TRACE", 0))[
        0
    ]
