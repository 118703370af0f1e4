"""Every option of the producer: Kafka's names with underscores, Kafka's defaults and bounds.

`ProducerConfig.of(...)` takes keyword arguments and, if wanted, a dict in Kafka's dotted spelling; wrong names and
values are refused with what would be right. (Kafka: ProducerConfig.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from partita.client_options import CLIENT_OPTIONS, options_of
from partita.options import ConfigError, Value, check_options
from partita.producer.named_partitioners import NAMED
from partita.records.compression import codec_number
from partita.security.meaning import Security, security_of

MAX_IN_FLIGHT_IDEMPOTENT = 5

OPTIONS = (*CLIENT_OPTIONS, *options_of("producer"))


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Checked options; `values` holds them all, the attributes those that the producer reads often."""

    values: Mapping[str, Value]
    acks: int
    enable_idempotence: bool
    codec: int
    codec_level: int | None
    batch_size: int
    linger_ms: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    max_in_flight: int
    delivery_timeout_ms: int
    request_timeout_ms: int
    retries: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    partitioner: Callable[..., int | None] | None
    ignore_keys: bool
    adaptive: bool
    rack: str
    """Where leaders are preferred; "" where that does not matter."""
    transactional_id: str | None
    transaction_timeout_ms: int

    @property
    def user(self) -> str | None:
        """The user of a login by name and password; None for other logins."""
        security: Security = self.values["security"]
        return security.user

    @classmethod
    def of(cls, config: Mapping[str, Value] | None = None, /, **options: Value) -> ProducerConfig:
        """Check everything. Raises ConfigError with the option, its value and the valid ones."""
        values = check_options(OPTIONS, options, config)
        given = {name.replace(".", "_") for name in (*(config or {}), *options)}
        _refuse_unsupported(values)
        acks = {"all": -1, "-1": -1, "0": 0, "1": 1}[values["acks"]]
        codec = values["compression_type"]
        return cls(
            values=values,
            acks=acks,
            enable_idempotence=_idempotence(values, given, acks),
            codec=codec_number(codec),
            codec_level=None if codec in ("none", "snappy") else _level(values, codec, given),
            delivery_timeout_ms=_delivery_timeout(values, given),
            max_in_flight=values["max_in_flight_requests_per_connection"],
            partitioner=_partitioner(values["partitioner_class"]),
            ignore_keys=values["partitioner_ignore_keys"],
            adaptive=values["partitioner_adaptive_partitioning_enable"],
            rack=values["client_rack"] if values["partitioner_rack_aware"] else "",
            **{name: values[name] for name in _TAKEN_OVER},
        )


_TAKEN_OVER = (
    "batch_size",
    "linger_ms",
    "buffer_memory",
    "max_block_ms",
    "max_request_size",
    "request_timeout_ms",
    "retries",
    "retry_backoff_ms",
    "retry_backoff_max_ms",
    "transactional_id",
    "transaction_timeout_ms",
)


def _refuse_unsupported(values: dict[str, Value]) -> None:
    if values["transaction_two_phase_commit_enable"]:
        raise ConfigError("transaction_two_phase_commit_enable: two-phase commit is not supported; leave it out")
    if values["transactional_id"] is not None and not values["transactional_id"].strip():
        raise ConfigError(
            "transactional_id must be a name that is not blank; leave it out to send without transactions"
        )
    values["security"] = security_of(values)


def _idempotence(values: Mapping[str, Value], given: set[str], acks: int) -> bool:
    """On by default; options at odds with it switch it off, unless it was asked for by name or transactions need it."""
    is_transactional = values["transactional_id"] is not None
    if not values["enable_idempotence"]:
        if is_transactional:
            raise ConfigError("with transactional_id enable_idempotence must be true, not false")
        return False
    in_flight = values["max_in_flight_requests_per_connection"]
    reasons = [
        *([f"acks must be all, not {values['acks']}"] if acks != -1 else []),
        *(["retries must be at least 1, not 0"] if values["retries"] == 0 else []),
        *([f"max_in_flight_requests_per_connection must be at most {MAX_IN_FLIGHT_IDEMPOTENT}, not {in_flight}"]
          if in_flight > MAX_IN_FLIGHT_IDEMPOTENT else []),
    ]  # fmt: skip
    if reasons and (is_transactional or "enable_idempotence" in given):
        wanted = "transactional_id" if is_transactional else "enable_idempotence"
        raise ConfigError(f"with {wanted} {'; '.join(reasons)}")
    return not reasons


def _delivery_timeout(values: Mapping[str, Value], given: set[str]) -> int:
    least: int = values["linger_ms"] + values["request_timeout_ms"]
    timeout: int = values["delivery_timeout_ms"]
    if timeout < least and "delivery_timeout_ms" in given:
        raise ConfigError(
            f"delivery_timeout_ms must be at least linger_ms + request_timeout_ms, which is {least}, not {timeout}"
        )
    return max(timeout, least)


def _level(values: Mapping[str, Value], codec: str, given: set[str]) -> int | None:
    name = f"compression_{codec}_level"
    level: int = values[name]
    if codec == "gzip" and level == 0:
        raise ConfigError("compression_gzip_level must be -1 or 1 to 9, not 0")
    return level if name in given and not (codec == "gzip" and level == -1) else None


def _partitioner(given: object) -> Callable[..., int | None] | None:
    if isinstance(given, str):
        if given not in NAMED:
            raise ConfigError(f"partitioner_class must be one of {', '.join(NAMED)}, or a function, not {given!r}")
        return NAMED[given]
    if isinstance(given, type):
        given = given()
    chosen = getattr(given, "partition", given)
    if chosen is not None and not callable(chosen):
        raise ConfigError(f"partitioner_class must be callable or have a method partition, not {given!r}")
    return chosen
