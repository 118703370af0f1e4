"""What a topic's settings want done with the records of a produced batch: checks, another codec. (LogValidator.)

Small batches are worked on at once, large ones beside the event loop; nothing is appended here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.broker.config import TopicConfig
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.produce import BatchIndexAndErrorMessage
from partita.protocol.primitives import Buffer
from partita.records.header import CODEC_NAMES, BatchHeader, InvalidBatch, read_header, with_max_timestamp
from partita.records.validate import inflated_bytes_max

if TYPE_CHECKING:
    from partita.records.opened.inspect import Checked, RecordChecks

PRODUCERS_CODEC = "producer"


class RecordsRejected(InvalidBatch):
    """Some records of a batch are not accepted, and so none of it is; `errors` names the first 100 of them.

    Deviation: an answer to Produce names the first 100 rejected records of a batch; Kafka names all of them.
    """

    def __init__(self, code: ErrorCode, reason: str, errors: list[BatchIndexAndErrorMessage]) -> None:
        super().__init__(code, reason)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class RecordWork:
    """What to do with a batch: check its records, give it another codec."""

    where: str
    checks: RecordChecks | None
    fixes_max_timestamp: bool
    codec: int | None
    level: int | None
    max_message_bytes: int

    def is_long(self, header: BatchHeader) -> bool:
        """Whether to do it beside the event loop."""
        from partita.records.opened.inspect import is_long

        return is_long(header)

    def run(self, batch: Buffer) -> Buffer:
        """Return the batch to append. Raises InvalidBatch. Looks at nothing that changes, so any thread may run it."""
        if self.checks is not None:
            from partita.records.opened.inspect import check_records

            checked = check_records(batch, self.checks)
            if checked.keyless_count or checked.mistimed_count:
                raise self._rejected(checked)
            if self.fixes_max_timestamp and checked.max_timestamp != read_header(batch).max_timestamp:
                batch = with_max_timestamp(batch, checked.max_timestamp)
        return batch if self.codec is None else self._recoded(batch, self.codec)

    def _recoded(self, batch: Buffer, codec: int) -> Buffer:
        from partita.records.opened.recompress import recompress

        recoded = recompress(batch, codec, self.level, max_bytes=inflated_bytes_max(self.max_message_bytes))
        if len(recoded) > self.max_message_bytes:
            reason = (
                f"record batch of {len(recoded)} bytes as {CODEC_NAMES[codec]}; "
                f"max.message.bytes is {self.max_message_bytes}"
            )
            raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
        return recoded

    def _rejected(self, checked: Checked) -> RecordsRejected:
        text = (
            f"Compacted topic cannot accept message without key in topic partition {self.where}."
            if checked.keyless_count
            else f"Timestamp of message in topic partition {self.where} is out of range."
        )
        errors = [
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text) for place in checked.rejected
        ]
        if checked.keyless_count:
            return RecordsRejected(ErrorCode.INVALID_RECORD, "One or more records have been rejected", errors)
        reason = "One or more records have been rejected due to invalid timestamp"
        return RecordsRejected(ErrorCode.INVALID_TIMESTAMP, reason, errors)


def record_work(config: TopicConfig, where: str, now: Now) -> RecordWork | None:
    """What the settings of a topic want done with each batch; None when the records need not be looked at."""
    is_full = config.broker.text("partita.validate.records") == "full"
    is_compacted = "compact" in config.list("cleanup.policy")
    wanted = config.text("compression.type")
    if not is_full and not is_compacted and wanted == PRODUCERS_CODEC:
        return None
    max_message_bytes = config.int("max.message.bytes")
    has_own_time = config.text("message.timestamp.type") == "CreateTime"
    return RecordWork(
        where=where,
        checks=_checks(config, now, is_full and has_own_time) if is_full or is_compacted else None,
        fixes_max_timestamp=is_full and has_own_time,
        codec=None if wanted == PRODUCERS_CODEC else CODEC_NAMES.index("none" if wanted == "uncompressed" else wanted),
        level=config.int(f"compression.{wanted}.level") if wanted in ("gzip", "lz4", "zstd") else None,
        max_message_bytes=max_message_bytes,
    )


def _checks(config: TopicConfig, now: Now, with_timestamps: bool) -> RecordChecks:
    from partita.records.opened.inspect import RecordChecks

    needs_key = "compact" in config.list("cleanup.policy")
    max_bytes = inflated_bytes_max(config.int("max.message.bytes"))
    if not with_timestamps:
        return RecordChecks(needs_key=needs_key, max_bytes=max_bytes)
    return RecordChecks(
        needs_key=needs_key,
        earliest=max(0, now.wall_ms - config.int("message.timestamp.before.max.ms")),
        latest=min(2**63 - 1, now.wall_ms + config.int("message.timestamp.after.max.ms")),
        max_bytes=max_bytes,
    )


def wrong_time(header: BatchHeader, wall_ms: int, config: TopicConfig) -> str | None:
    """Why a batch's timestamps are not accepted: the header's first and largest stand for all of its records."""
    before_max_ms = config.int("message.timestamp.before.max.ms")
    after_max_ms = config.int("message.timestamp.after.max.ms")
    if header.max_timestamp - wall_ms > after_max_ms:
        return f"timestamp {header.max_timestamp} is more than {after_max_ms} ms ahead of the broker's {wall_ms}"
    if header.base_timestamp >= 0 and wall_ms - header.base_timestamp > before_max_ms:
        return f"timestamp {header.base_timestamp} is more than {before_max_ms} ms behind the broker's {wall_ms}"
    return None
