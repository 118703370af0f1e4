"""`partita mirror`: copy topics to another cluster, or under another name, and carry groups' offsets over."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import partita
from partita.cli.address import Address, address_options, find_address
from partita.cli.connecting import connected, patient_for, require_topics
from partita.cli.records.patience import Patience, brief_calls, told_once
from partita.cli.terminal import complain, say
from partita.errors import KafkaError
from partita.lazy import later
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.wording import count

if TYPE_CHECKING:
    from partita import Consumer, Producer
    from partita import admin as admin_client
    from partita.consumer.records import ConsumerRecords
    from partita.producer.shell.client import DeliveryFuture
else:
    admin_client = later("partita.admin")


Partition = tuple[str, int]
TEXT_PREFIX = "partita.mirror 1 "
TEXT_CHARACTERS_MAX = 2_000
"""How long a translation is as text: half of what Kafka's brokers take as metadata of a commit by default."""
_STRETCH = re.compile(r"(\d+):(\d+):(\d+)")


@dataclass(slots=True)
class Translation:
    """The offsets of one partition. Each stretch is (first original offset, first offset of the copy, length)."""

    stretches: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, original: int, copy: int) -> None:
        """Record that the record at `original` was written at `copy`. Both rise from call to call."""
        if self.stretches:
            first, first_copy, length = self.stretches[-1]
            if original == first + length and copy == first_copy + length:
                self.stretches[-1] = (first, first_copy, length + 1)
                return
        self.stretches.append((original, copy, 1))

    def committed(self, offset: int) -> int | None:
        """Return the committed offset of the copy that skips no record the group has not read.

        None if the offset lies before everything that was copied, where no translation is known.
        """
        place = bisect_right(self.stretches, (offset, -1, -1)) - 1
        following = self.stretches[place + 1] if place + 1 < len(self.stretches) else None
        if following is not None and following[0] == offset:
            return following[1]
        if place < 0:
            return None
        first, first_copy, length = self.stretches[place]
        return first_copy + min(offset - first, length)

    def as_text(self) -> str:
        """Return the newest stretches as text for the metadata of a commit, to be read after a restart."""
        kept: list[str] = []
        room = TEXT_CHARACTERS_MAX - len(TEXT_PREFIX)
        for first, first_copy, length in reversed(self.stretches):
            stretch = f"{first}:{first_copy}:{length}"
            room -= len(stretch) + 1
            if room < 0:
                break
            kept.append(stretch)
        return TEXT_PREFIX + ",".join(reversed(kept))

    @classmethod
    def from_text(cls, text: str | None) -> Translation:
        """Return the translation of `as_text`; an empty one for any other text."""
        if text is None or not text.startswith(TEXT_PREFIX):
            return cls()
        parts = [_STRETCH.fullmatch(part) for part in text.removeprefix(TEXT_PREFIX).split(",")]
        return cls([(int(part[1]), int(part[2]), int(part[3])) for part in parts if part is not None])


POLL_S = 0.5
TRANSLATE_EVERY_S = 5.0
GIVE_UP_AFTER_S = 15
"""How long the target may take for a record, if the command is to end by itself."""


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@address_options
@click.option("--to", "target", metavar="HOST:PORT", help="Address of the other cluster; without it, the same one.")
@click.option("--to-profile", metavar="NAME", help="Profile of the other cluster.")
@click.option("--to-command-config", type=click.Path(dir_okay=False, path_type=Path), help="Its properties file.")
@click.option("--prefix", default="", metavar="TEXT", help="Put this before the names of the copies.")
@click.option("--group", "-g", help="Remember in this group, on the source, what is copied, and go on from there.")
@click.option("--translate", "translated", multiple=True, metavar="GROUP",
              help="Commit this group's offsets on the copies too, translated to their offsets.")  # fmt: skip
@click.option("--until-end", "-e", is_flag=True, help="Stop at the end that the topics have now.")
def mirror(
    topics: tuple[str, ...], bootstrap: Address, target: str | None, to_profile: str | None,
    to_command_config: Path | None, prefix: str,
    group: str | None, translated: tuple[str, ...], until_end: bool,
) -> None:  # fmt: skip
    """Copy TOPICs with keys, values, headers, timestamps and partitions to another cluster, until Ctrl-C.

    Missing topics are created with the same number of partitions. Every record is copied at least once: with --group a
    restart goes on after the last record that the target has confirmed, and translates what earlier runs have copied.
    With --until-end it fails if no broker can be reached for 15 s.
    """
    if target is None and to_profile is None and to_command_config is None:
        there = bootstrap
    else:
        there = find_address(target, to_profile, config_file=to_command_config)
    if there == bootstrap and not prefix:
        raise click.UsageError("source and target are the same topics; give --to or --prefix")
    with connected(bootstrap) as admin, connected(there) as other:
        require_topics(admin, topics)
        partitions = _create_copies(admin, other, topics, prefix)
        options = bootstrap.client_options(
            group_id=group, enable_auto_commit=False, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        goal = there.client_options()
        if until_end:
            options |= brief_calls({}, options)
            goal |= patient_for({}, goal, GIVE_UP_AFTER_S)
        copied = Copying(prefix)
        with told_once(outages=until_end), partita.Consumer(options) as consumer, partita.Producer(goal) as producer:
            consumer.assign(partitions)
            if group is None:
                consumer.seek_to_beginning()
            else:
                copied.go_on(consumer.committed(partitions))
            ends = consumer.end_offsets(partitions) if until_end else None
            carry = Carrying(admin, other, translated, copied, prefix)
            with suppress(KeyboardInterrupt):
                _copy(consumer, producer, copied, ends, carry, commits=group is not None)
            failed = carry.now()
    say(f"copied {count(copied.total, 'record')} of {count(len(topics), 'topic')}", err=True)
    if failed:
        raise SystemExit(1)


def _create_copies(
    admin: admin_client.Admin, other: admin_client.Admin, topics: Iterable[str], prefix: str
) -> list[TopicPartition]:
    """The partitions to copy. Raises ClickException if a copy exists with fewer partitions."""
    existing = {topic.name: topic.partitions for topic in other.list_topics(include_internal=True)}
    found: list[TopicPartition] = []
    for described in admin.describe_topics(topics):
        total, copy = len(described.partitions), prefix + described.name
        if copy not in existing:
            other.create_topics(admin_client.NewTopic(copy, total))
        elif existing[copy] < total:
            raise click.ClickException(
                f"{copy} has {count(existing[copy], 'partition')} and {described.name} has {total:,}; add some with: "
                f"partita topics alter {copy} --partitions {total}"
            )
        found += [TopicPartition(described.name, part.partition) for part in described.partitions]
    return found


class Copying:
    """The number of records copied so far, and each partition's offsets."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.total = 0
        self.translations: dict[tuple[str, int], Translation] = {}

    def copy(self, records: ConsumerRecords, producer: Producer) -> Mapping[tuple[str, int], OffsetAndMetadata]:
        """Send records and wait until the target has them all. Returns the next offset of each partition.

        Raises KafkaError if one could not be delivered.
        """
        sent: list[tuple[Any, DeliveryFuture]] = []
        for record in records:
            future = producer.send(
                self.prefix + record.topic, record.value, record.key, headers=record.headers,
                partition=record.partition, timestamp=max(record.timestamp, 0),
            )  # fmt: skip
            sent.append((record, future))
        producer.flush()
        done: dict[tuple[str, int], int] = {}
        for record, future in sent:
            where = record.topic, record.partition
            self.translations.setdefault(where, Translation()).add(record.offset, future.result(0).offset)
            done[where] = record.offset + 1
        self.total += len(sent)
        return {
            where: OffsetAndMetadata(offset, metadata=self.translations[where].as_text())
            for where, offset in done.items()
        }

    def go_on(self, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Translate with the offsets that an earlier run has stored in its commits."""
        for where, left in committed.items():
            if left is not None:
                self.translations[where] = Translation.from_text(left.metadata)


class Carrying:
    """Commits groups' offsets on the copies, translated."""

    def __init__(
        self,
        source: admin_client.Admin,
        target: admin_client.Admin,
        groups: Iterable[str],
        copied: Copying,
        prefix: str,
    ) -> None:
        self._source, self._target = source, target
        self._groups = tuple(groups)
        self._copied = copied
        self._prefix = prefix
        self._next = time.monotonic() + TRANSLATE_EVERY_S

    def sometimes(self) -> None:
        """Commit if the last time is long enough ago."""
        if self._groups and time.monotonic() >= self._next:
            self.now()

    def now(self) -> bool:
        """Commit all offsets that can be translated. Prints failures, such as members on the target; True if any."""
        failed = False
        for group_id in self._groups:
            try:
                self._carry(group_id)
            except KafkaError as error:
                complain(f"the offsets of group {group_id} are not carried over: {error}")
                failed = True
        self._next = time.monotonic() + TRANSLATE_EVERY_S
        return failed

    def _carry(self, group_id: str) -> None:
        offsets: dict[tuple[str, int], int] = {}
        for committed in self._source.group_offsets(group_id):
            translation = self._copied.translations.get((committed.topic, committed.partition))
            offset = None if translation is None else translation.committed(committed.offset)
            if offset is not None:
                offsets[self._prefix + committed.topic, committed.partition] = offset
        if offsets:
            self._target.alter_group_offsets(group_id, offsets)


def _copy(
    consumer: Consumer, producer: Producer, copied: Copying, ends: Mapping[TopicPartition, int] | None,
    carry: Carrying, *, commits: bool,
) -> None:  # fmt: skip
    patience = Patience(consumer, ends or {})
    while (behind := patience.behind(ends or ())) or ends is None:
        records = consumer.poll(POLL_S)
        done = copied.copy(records, producer)
        if commits and done:
            consumer.commit(done)
        carry.sometimes()
        if behind and not records:
            patience.nothing_came(behind)
