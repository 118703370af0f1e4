"""Settings of a sink, from the `kafka.*` options of a write. Pure: nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.options import ConfigError
from partita.spark.settings.client_checks import whole_number

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LEVELS = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131_072, 22)}
GZIP_DEFAULT = -1
ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
TRANSACTION_TIMEOUT_MS = 900_000
"""Time limit of a task that writes exactly once, unless an option sets it: the most that brokers allow."""


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """Settings of a sink; times in milliseconds, sizes in bytes. `level` is the codec's own; None: its default."""

    acks: int = -1
    idempotent: bool = True
    codec: int = 0
    level: int | None = None
    batch_bytes: int = 900_000
    request_bytes: int = 16 << 20
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    ignore_keys: bool = False
    retries: int = 2**31 - 1
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS


def produce_settings(client: Mapping[str, str]) -> ProduceSettings:
    """From the client options of a sink. Raises ConfigError."""
    plain = ProduceSettings()
    acks = _choice(client, "acks", "all", ACKS)
    wanted = _choice(client, "enable.idempotence", "true" if acks == -1 else "false", {"true": True, "false": False})
    if wanted and acks != -1:
        raise ConfigError("kafka.enable.idempotence=true needs kafka.acks=all")
    codec = client.get("compression.type", "none").strip().lower()
    return ProduceSettings(
        acks=acks,
        idempotent=bool(wanted),
        codec=_choice(client, "compression.type", "none", CODECS),
        level=_level(client, codec),
        ignore_keys=_ignores_keys(client),
        retries=whole_number(client, "retries", plain.retries),
        batch_bytes=max(1, whole_number(client, "batch.size", plain.batch_bytes)),
        request_bytes=whole_number(client, "max.request.size", plain.request_bytes),
        max_block_ms=whole_number(client, "max.block.ms", plain.max_block_ms),
        delivery_timeout_ms=whole_number(client, "delivery.timeout.ms", plain.delivery_timeout_ms),
        transaction_timeout_ms=whole_number(client, "transaction.timeout.ms", plain.transaction_timeout_ms),
    )


def _level(client: Mapping[str, str], codec: str) -> int | None:
    """The level given for this codec. Levels of the others are checked, too."""
    given: dict[str, int] = {}
    for of_codec, (least, most) in LEVELS.items():
        name = f"compression.{of_codec}.level"
        if name in client:
            given[of_codec] = level = whole_number(client, name, 0)
            is_default = of_codec == "gzip" and level == GZIP_DEFAULT
            if not least <= level <= most and not is_default:
                default = f", or {GZIP_DEFAULT} for its default" if of_codec == "gzip" else ""
                raise ConfigError(f"kafka.{name} must be between {least} and {most}{default}, not {level}")
    return given.get(codec)


def _ignores_keys(client: Mapping[str, str]) -> bool:
    """Whether keys do not decide the partition. Raises ConfigError for a partitioner that runs only in Java."""
    partitioner = client.get("partitioner.class", "").strip().rpartition(".")[2]
    if partitioner not in ("", "DefaultPartitioner", "RoundRobinPartitioner"):
        raise ConfigError(
            f"kafka.partitioner.class={client['partitioner.class']} cannot run here; expected DefaultPartitioner or "
            f"RoundRobinPartitioner. A column partition puts each row where you want it"
        )
    ignores = _choice(client, "partitioner.ignore.keys", "false", {"true": True, "false": False})
    return partitioner == "RoundRobinPartitioner" or bool(ignores)


def _choice(client: Mapping[str, str], name: str, default: str, allowed: Mapping[str, int]) -> int:
    text = client.get(name, default).strip().lower()
    if text not in allowed:
        raise ConfigError(f"kafka.{name} must be one of {', '.join(allowed)}, not {text!r}")
    return allowed[text]
