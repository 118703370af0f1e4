"""The lines of the catalogue as a file: a checksum before each, torn tails, damage, and copies in topic folders.

Every folder below `topics` holds a file `topic` with the catalogue's line about it, so that a lost catalogue can be
rebuilt. Nothing here knows more of a line than its type and its topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from partita.log.snapshots import STATE_NAME, decode_state
from partita.log.storage import Storage, StorageError, read_file

CATALOGUE, TOPICS, DESCRIPTION = "catalogue", "topics", "topic"
DELETED_SUFFIX = ".deleted"
_ID_DIGITS = 32
_SKIPPED_PRODUCER_IDS = 1_000_000
"""Producer ids that a repair skips: lines that reserved some may be lost."""


_DURABLE_BEFORE, _UNSYNCED_BEFORE = b" ", b"~"
"""The byte between checksum and line: whether all lines before it were durable when it was written."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The good lines of a catalogue. `torn`: bytes that a crash may have left of the last sync; `bad`: damaged lines.

    A crash can damage lines that nothing durable follows, and any of them: a disk may write the last one first.
    """

    good: list[bytes]
    valid_bytes: int
    torn: int
    bad: list[int] = field(default_factory=list)


def encode(line: bytes, *, is_durable_before: bool = True) -> bytes:
    """The line as it is in the file. `is_durable_before`: a damaged line above it is no work of a crash."""
    mark = _DURABLE_BEFORE if is_durable_before else _UNSYNCED_BEFORE
    return b"%08x%s%s\n" % (crc32(line), mark, line)


def decode(content: bytes) -> Lines:
    """Check every line. What a crash may have torn is left out, with all behind it."""
    good: list[bytes] = []
    bad: list[int] = []
    valid_bytes = at = intact = 0
    has_durable_behind = False
    for number, raw in enumerate(content.split(b"\n"), 1):
        raw = content[at : at + len(raw) + 1]
        at += len(raw)
        line = _checked(raw)
        if not raw:
            break
        if line is None:
            bad.append(number)
            continue
        good.append(line)
        if not bad:
            valid_bytes, intact = at, len(good)
        else:
            has_durable_behind = has_durable_behind or raw[8:9] != _UNSYNCED_BEFORE
    if bad and not has_durable_behind:
        return Lines(good[:intact], valid_bytes, len(content) - valid_bytes)
    return Lines(good, valid_bytes, 0, bad)


def encode_ends(ends: Mapping[str, int]) -> bytes:
    """The content of the file that says where logs end, by their folders."""
    return b"".join(encode(b"%s %d" % (folder.encode(), end)) for folder, end in ends.items() if end)


def decode_ends(content: bytes) -> dict[str, int]:
    """Return where logs end, by their folders, up to the first damaged line."""
    words = [line.split() for raw in content.splitlines(keepends=True) if (line := _checked(raw)) is not None]
    return {word[0].decode(): int(word[1]) for word in words if len(word) == 2 and word[1].isdigit()}


def _checked(raw: bytes) -> bytes | None:
    if not raw.endswith(b"\n"):
        return None
    if raw.startswith(b"{"):
        line = raw.rstrip(b"\n")
        return line if _entry(line) is not None else None
    crc, mark, line = raw[:8], raw[8:9], raw[9:-1]
    is_good = mark in (_DURABLE_BEFORE, _UNSYNCED_BEFORE) and crc == b"%08x" % crc32(line)
    return line if is_good else None


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def topic_folders(storage: Storage) -> list[str]:
    """The ids, in hexadecimal digits, of all topics that have a folder and no grave."""
    names = storage.list(TOPICS)
    buried = {topic_id for name in names if (topic_id := buried_by(name)) is not None}
    return [name for name in names if len(name) == _ID_DIGITS and name not in buried]


def grave(topic_id: str) -> str:
    """The empty file that says, where the catalogue has no room for its line, that a topic is deleted."""
    return f"{TOPICS}/{topic_id}{DELETED_SUFFIX}"


def buried_by(name: str) -> str | None:
    """The id of the topic that a file of this name calls deleted; None for other names."""
    topic_id = name.removesuffix(DELETED_SUFFIX)
    return topic_id if name != topic_id and len(topic_id) == _ID_DIGITS else None


def buried_topics(storage: Storage, lines: list[bytes]) -> list[str]:
    """The ids of topics that have a grave, and live on in these lines."""
    buried = [topic_id for name in storage.list(TOPICS) if (topic_id := buried_by(name)) is not None]
    topics = _replayed(lines)[0] if buried else {}
    return [topic_id for topic_id in buried if topic_id in topics]


def deleted_line(topic_id: str) -> bytes:
    """The line that says that a topic is deleted."""
    return _line({"type": "deleted", "id": topic_id})


def forgotten_topics(storage: Storage, lines: Iterable[bytes]) -> list[str]:
    """The ids of topic folders that no line speaks of."""
    known = {entry.get("id") for line in lines if (entry := _entry(line)) is not None}
    return [topic_id for topic_id in topic_folders(storage) if topic_id not in known]


def line_of_folder(storage: Storage, topic_id: str) -> bytes | None:
    """Return a topic's catalogue line from its folder; None when the folder lacks the topic's name.

    Leader epochs begin after the highest ones in the partitions' logs.
    """
    content = read_file(storage, f"{TOPICS}/{topic_id}", DESCRIPTION)
    line = _checked(bytes(content)) if content is not None else None
    entry = _entry(line) if line is not None else None
    if entry is None or entry.get("id") != topic_id:
        return None
    return _line(_with_partitions_of_folder(storage, entry))


@dataclass(slots=True)
class Repair:
    """A rebuilt catalogue, and sentences that describe the repairs."""

    lines: list[bytes]
    done: list[str]


def repaired(storage: Storage) -> Repair:
    """Rebuild the catalogue from its good lines and the topic folders. Changes nothing. Raises StorageError."""
    content = read_file(storage, "", CATALOGUE)
    found = decode(bytes(content)) if content is not None else Lines([], 0, 0)
    done = ["the catalogue is missing"] if content is None else []
    done += [f"line {number} is damaged and was left out" for number in found.bad]
    if found.torn:
        done.append(f"the last line is incomplete ({found.torn} bytes) and was left out")
    good = found.good + [deleted_line(topic_id) for topic_id in buried_topics(storage, found.good)]
    topics, others, deleted = _replayed(good)
    for topic_id in topic_folders(storage):
        if topic_id in topics or topic_id in deleted:
            continue
        line = line_of_folder(storage, topic_id)
        entry = _entry(line) if line is not None else None
        if entry is None:
            entry = _with_partitions_of_folder(storage, _unnamed(topic_id))
            done.append(f"topic folder {topic_id} does not say its name; the topic is now called {entry['name']}")
        elif any(topic["name"] == entry["name"] for topic in topics.values()):
            taken, entry["name"] = entry["name"], _unnamed(topic_id)["name"]
            done.append(f"topic folder {topic_id} says {taken}, which another topic is called; now {entry['name']}")
        else:
            done.append(f"topic {entry['name']} was restored from its folder")
        topics[topic_id] = entry
    if done and "producer-ids" in others:
        others["producer-ids"]["next"] += _SKIPPED_PRODUCER_IDS
    elif done:
        others["producer-ids"] = {"type": "producer-ids", "next": _SKIPPED_PRODUCER_IDS}
    return Repair([_line(entry) for entry in [*others.values(), *topics.values()]], done)


def _replayed(lines: list[bytes]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], set[str]]:
    """(Topics by id, the newest of every other kind of line, ids of deleted topics)."""
    topics: dict[str, dict[str, Any]] = {}
    others: dict[str, dict[str, Any]] = {}
    deleted: set[str] = set()
    for entry in filter(None, map(_entry, lines)):
        topic = topics.get(str(entry.get("id")))
        match entry["type"]:
            case "topic":
                topics[entry["id"]] = entry
            case "deleted":
                deleted.add(entry["id"])
                topics.pop(entry["id"], None)
            case "partitions" if topic is not None:
                topic["replicas"] += entry["replicas"]
            case "config" if topic is not None:
                topic["config"] = entry["config"]
            case "leader" if topic is not None:
                topic["leaders"] = _leaders(topic)
                topic["leaders"][entry["p"]] = [entry["leader"], entry["epoch"]]
                topic["replicas"][entry["p"]] = entry["nodes"]
            case "unclean-start":
                for each in topics.values():
                    each["leaders"] = [[leader, epoch + 1] for leader, epoch in _leaders(each)]
            case "config" | "partitions" | "leader":
                pass  # of a topic that is gone
            case _:
                others[_subject(entry)] = entry
    return topics, others, deleted


def _subject(entry: dict[str, Any]) -> str:
    """Return the subject of a line; a later line with the same subject replaces it."""
    match entry["type"]:
        case "broker-config":
            return f"broker-config {entry['name']} {entry.get('of_nodes')}"
        case "kept":
            return f"kept {entry['kind']} {entry['key']}"
        case "unforgotten" | "forgotten":
            return f"offsets of {entry['name']}"
        case kind:
            return str(kind)


def _leaders(topic: dict[str, Any]) -> list[list[int]]:
    known = list(topic.get("leaders", ()))
    return known + [[nodes[0], 0] for nodes in topic["replicas"][len(known) :]]


def _unnamed(topic_id: str) -> dict[str, Any]:
    return {"type": "topic", "name": f"recovered-{topic_id}", "id": topic_id, "replicas": [[1]], "config": {}}


def _with_partitions_of_folder(storage: Storage, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with as many partitions as have a folder, and leader epochs beyond those of their logs."""
    folder = f"{TOPICS}/{entry['id']}"
    indexes = [int(name) for name in storage.list(folder) if name.isdigit()]
    replicas = list(entry["replicas"])
    replicas += [replicas[0]] * (max(indexes, default=-1) + 1 - len(replicas))
    entry = {**entry, "replicas": replicas}
    leaders = _leaders(entry)
    for index in indexes:
        leaders[index] = [leaders[index][0], max(leaders[index][1], _last_epoch(storage, f"{folder}/{index}") + 1)]
    return {**entry, "leaders": leaders}


def _last_epoch(storage: Storage, directory: str) -> int:
    try:
        content = read_file(storage, directory, STATE_NAME)
    except StorageError:
        return 0
    state = decode_state(content) if content is not None else None
    return state.epochs[-1][0] if state is not None and state.epochs else 0


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()
