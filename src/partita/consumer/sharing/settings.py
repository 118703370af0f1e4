"""The options of a share consumer: those of a consumer that mean something in a share group, and its own (KIP-932).

An option that a share group decides is refused with what to set instead. (Kafka: ShareConsumerConfig.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partita.client_options import options_of
from partita.consumer import config as consumer_config
from partita.consumer.config import ConsumerConfig, check_delivery, follow_backoff
from partita.options import ConfigError, Option, check_options

_BY_THE_GROUP = "the group decides: set its config"
REFUSED: Mapping[str, str] = {
    "auto_offset_reset": f"{_BY_THE_GROUP} share.auto.offset.reset",
    "isolation_level": f"{_BY_THE_GROUP} share.isolation.level",
    "session_timeout_ms": f"{_BY_THE_GROUP} share.session.timeout.ms",
    "heartbeat_interval_ms": f"{_BY_THE_GROUP} share.heartbeat.interval.ms",
    "enable_auto_commit": "records are acknowledged one by one: see share_acknowledgement_mode",
    "auto_commit_interval_ms": "records are acknowledged one by one: see share_acknowledgement_mode",
    "commit_done_only": "records are acknowledged one by one: see share_acknowledgement_mode",
    "group_instance_id": "a share group has no static members",
    "group_protocol": "a share group has a protocol of its own",
    "group_remote_assignor": "the broker's assignor for share groups is chosen by group.share.assignors",
    "partition_assignment_strategy": "the broker assigns, and members may share a partition",
    "interceptor_classes": "on_acknowledged(callback) hears of acknowledgements",
    "max_partition_fetch_bytes": "a broker divides fetch_max_bytes among the partitions",
    "enable_partition_eof": "a share group has no position, so it reaches no end",
    "fetch_buffer_max_bytes": "nothing is fetched while records of the last answer wait",
    "progress_timeout_ms": "a share group has no position that could stand still",
    "exclude_internal_topics": "a share group is subscribed by names, not by patterns",
    "dead_letter_exactly_once": "an acknowledgement cannot be part of a transaction; the letter is durable before it",
    "internal_throw_on_fetch_stable_offset_unsupported": "it is for brokers that have no share groups",
}
"""Options of a `Consumer` that a share consumer does not have, and the reason."""

OWN = options_of("share consumer")
_OWN_NAMES = {option.name for option in OWN}
OPTIONS: tuple[Option, ...] = (
    *(one for one in consumer_config.OPTIONS if one.name not in REFUSED and one.name not in _OWN_NAMES),
    *OWN,
)


@dataclass(slots=True)
class ShareConfig(ConsumerConfig):
    """Checked options; those of a `Consumer` that have no meaning here keep their defaults."""

    is_explicit: bool = False
    is_record_limit: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any] | None = None, /, **options: Any) -> ShareConfig:
        """Check everything. Raises ConfigError with the option, its value and the valid ones."""
        spelled = (*(config if isinstance(config, Mapping) else ()), *options)
        given = {name.replace(".", "_") for name in spelled}
        for name in spelled:
            if (why := REFUSED.get(name.replace(".", "_"))) is not None:
                raise ConfigError(f"{name} is no option of a share consumer: {why}")
        values = {one.name: one.default for one in consumer_config.OPTIONS} | check_options(OPTIONS, options, config)
        if not values["group_id"]:
            raise ConfigError("group_id must not be empty or blank: a share consumer is always in a group")
        follow_backoff(values, given)
        check_delivery(values)
        names = [name for name in ConsumerConfig.__dataclass_fields__ if name in values]
        return cls(
            assignors=(),
            protocol=None,
            reset=None,
            read_committed=False,
            values=values,
            is_explicit=values["share_acknowledgement_mode"] == "explicit",
            is_record_limit=values["share_acquire_mode"] == "record_limit",
            **{name: values[name] for name in names},
        )
