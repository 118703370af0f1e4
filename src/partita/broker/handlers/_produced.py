"""The work that a topic's settings require on a produced batch: checks, another codec. (LogValidator.)

Small batches are worked on at once, large ones beside the event loop; nothing is appended here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.broker.config import TopicConfig
from partita.lazy import later
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.produce import BatchIndexAndErrorMessage
from partita.protocol.primitives import Buffer
from partita.records.header import CODEC_NAMES, BatchHeader, InvalidBatch, read_header, with_max_timestamp
from partita.records.validate import inflated_bytes_max

if TYPE_CHECKING:
    from partita.records.opened import inspect as inspect_records
    from partita.records.opened import recompress as opened_recompress
else:
    inspect_records = later("partita.records.opened.inspect")
    opened_recompress = later("partita.records.opened.recompress")

PRODUCERS_CODEC = "producer"


class RecordsRejected(InvalidBatch):
    """Some records of a batch are not accepted, and so none of it is; `errors` names the first 100 of them.

    Deviation: Partita names the first 100 rejected records of a batch in an answer to Produce, where Kafka names all of
    them.
    """

    def __init__(self, code: ErrorCode, reason: str, errors: list[BatchIndexAndErrorMessage]) -> None:
        super().__init__(code, reason)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class RecordWork:
    """The work on one batch: check its records, recompress it."""

    where: str
    checks: inspect_records.RecordChecks | None
    fixes_max_timestamp: bool
    codec: int | None
    level: int | None
    max_message_bytes: int

    def is_long(self, header: BatchHeader) -> bool:
        """Whether to do it beside the event loop."""
        return inspect_records.is_long(header)

    def run(self, batch: Buffer) -> Buffer:
        """Return the batch to append. Raises InvalidBatch. Looks at nothing that changes, so any thread may run it."""
        if self.checks is not None:
            checked = inspect_records.check_records(batch, self.checks)
            if checked.keyless_count or checked.mistimed_count:
                raise self._rejected(checked, self.checks)
            if self.fixes_max_timestamp and checked.max_timestamp != read_header(batch).max_timestamp:
                batch = with_max_timestamp(batch, checked.max_timestamp)
        return batch if self.codec is None else self._recoded(batch, self.codec)

    def _recoded(self, batch: Buffer, codec: int) -> Buffer:
        recoded = opened_recompress.recompress(
            batch, codec, self.level, max_bytes=inflated_bytes_max(self.max_message_bytes)
        )
        if len(recoded) > self.max_message_bytes:
            reason = (
                f"record batch of {len(recoded)} bytes as {CODEC_NAMES[codec]}; "
                f"max.message.bytes is {self.max_message_bytes}"
            )
            raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
        return recoded

    def _rejected(self, checked: inspect_records.Checked, checks: inspect_records.RecordChecks) -> RecordsRejected:
        keyless = f"Compacted topic cannot accept message without key in topic partition {self.where}."
        mistimed = (
            f"Timestamp of message in topic partition {self.where} is out of range. "
            f"The timestamp should be within [{checks.earliest}, {checks.latest}]."
        )
        texts = {**dict.fromkeys(checked.keyless, keyless), **dict.fromkeys(checked.mistimed, mistimed)}
        errors = [
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=texts[place])
            for place in sorted(texts)
        ]
        if checked.mistimed_count:
            reason = "One or more records have been rejected due to invalid timestamp"
            return RecordsRejected(ErrorCode.INVALID_TIMESTAMP, reason, errors)
        return RecordsRejected(ErrorCode.INVALID_RECORD, "One or more records have been rejected", errors)


def record_work(config: TopicConfig, where: str, now: Now, *, checks_times: bool = False) -> RecordWork | None:
    """Return the work that a topic's settings require on each batch; None when the records need not be read."""
    is_full = checks_times or config.broker.text("partita.validate.records") == "full"
    is_compacted = "compact" in config.list("cleanup.policy")
    wanted = config.text("compression.type")
    max_message_bytes = config.int("max.message.bytes")
    is_bounded = config.int("max.decompressed.message.bytes") < inflated_bytes_max(max_message_bytes)
    if not is_full and not is_compacted and not is_bounded and wanted == PRODUCERS_CODEC:
        return None
    has_own_time = config.text("message.timestamp.type") == "CreateTime"
    return RecordWork(
        where=where,
        checks=_checks(config, now, is_full and has_own_time) if is_full or is_compacted or is_bounded else None,
        fixes_max_timestamp=is_full and has_own_time,
        codec=None if wanted == PRODUCERS_CODEC else CODEC_NAMES.index("none" if wanted == "uncompressed" else wanted),
        level=config.int(f"compression.{wanted}.level") if wanted in ("gzip", "lz4", "zstd") else None,
        max_message_bytes=max_message_bytes,
    )


def _checks(config: TopicConfig, now: Now, with_timestamps: bool) -> inspect_records.RecordChecks:
    needs_key = "compact" in config.list("cleanup.policy")
    max_bytes = _inflated_max(config)
    if not with_timestamps:
        return inspect_records.RecordChecks(needs_key=needs_key, max_bytes=max_bytes)
    return inspect_records.RecordChecks(
        needs_key=needs_key,
        earliest=max(0, now.wall_ms - config.int("message.timestamp.before.max.ms")),
        latest=min(2**63 - 1, now.wall_ms + config.int("message.timestamp.after.max.ms")),
        max_bytes=max_bytes,
    )


def _inflated_max(config: TopicConfig) -> int:
    return min(inflated_bytes_max(config.int("max.message.bytes")), config.int("max.decompressed.message.bytes"))


def may_be_mistimed(header: BatchHeader, wall_ms: int, config: TopicConfig) -> bool:
    """Whether a look at each timestamp is worth it: the header's first and largest stand for all of its records."""
    if header.max_timestamp - wall_ms > config.int("message.timestamp.after.max.ms"):
        return True
    return header.base_timestamp >= 0 and wall_ms - header.base_timestamp > config.int(
        "message.timestamp.before.max.ms"
    )
