"""The topic catalogue: names, ids, partitions, leaders and leader epochs, settings. Every change is one durable line.

A restart reads the lines back, and their sum is the catalogue again. In Kafka the KRaft metadata log does this.
Handlers check clients' requests; this file carries out the decisions.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from partita.broker.config import BrokerConfig, TopicConfig
from partita.broker.options import Value
from partita.broker.storage.store import Store
from partita.log.storage import StorageError, StorageFull
from partita.secret import Secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from partita.log.partition_log import PartitionLog

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})
NO_LEADER = -1
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_PRODUCER_ID_BLOCK = 1000


def name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic's, in Kafka's words; None when it can."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > 249:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length 249"
    if not _LEGAL.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


class Partition:
    """One partition: its leader, leader epoch, and log (opened at first use)."""

    __slots__ = ("_has_log", "_log", "_store", "index", "leader", "leader_epoch", "replicas", "topic")

    def __init__(self, topic: Topic, index: int, replicas: list[int], store: Store) -> None:
        self.topic = topic
        self.index = index
        self.replicas = replicas
        self.leader = replicas[0]
        self.leader_epoch = 0
        self._store = store
        self._log: PartitionLog | None = None
        self._has_log: bool | None = None

    @property
    def log(self) -> PartitionLog:
        """The log, opened when it is first asked for. Raises StorageError."""
        if self._log is None:
            self._log = self._store.open_log(
                self.topic.topic_id,
                self.index,
                self.topic.config,
                is_group_log=self.topic.is_internal,
                description=self._description,
            )
        return self._log

    def _description(self) -> bytes:
        return _line(_entry_of(self.topic))

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever written here; then its log need not be opened to know that it is empty."""
        if self._log is not None:
            return False
        if self._has_log is None:  # only `log` makes one, so the disk is asked once
            self._has_log = self._store.has_log(self.topic.topic_id, self.index)
        return not self._has_log

    @property
    def opened_log(self) -> PartitionLog | None:
        """The log if it is in use already; for work that need not touch idle partitions."""
        return self._log


class Topic:
    """One topic. `partitions[i].index == i` always."""

    __slots__ = ("config", "deleted", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, config: TopicConfig) -> None:
        self.name = name
        self.topic_id = topic_id
        self.config = config
        self.partitions: list[Partition] = []
        self.deleted = False

    @property
    def is_internal(self) -> bool:
        """Whether only the broker itself writes to the topic."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition | None:
        """The partition with this index, or None."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class NewTopic(NamedTuple):
    """A topic to be created: one entry of `replicas` per partition, and its own settings."""

    name: str
    replicas: list[list[int]]
    settings: dict[str, Value]


def flat(name: str) -> str:
    """A topic name as metrics show it: periods and underscores look alike there, so no two topics may share it."""
    return name.replace(".", "_")


class TopicCatalogue:
    """All topics of the cluster, by name and by id. Changes survive a kill when a method returns.

    They survive a power loss once `Upkeep.durable` says so.
    """

    def __init__(self, store: Store, config: BrokerConfig, new_topic_id: Callable[[], bytes]) -> None:
        self._store = store
        self._config = config
        self._new_topic_id = new_topic_id
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.partition_count = 0
        self._by_flat_name: dict[str, dict[str, None]] = {}
        self.cluster_id = ""
        self.unforgotten: set[str] = set()
        """Names of deleted topics whose committed offsets are not yet known to be gone. (S25)"""
        self._with_data: deque[Partition] = deque()
        """Partitions of deleted topics whose data is still there."""
        self.kept: dict[str, dict[str, Any]] = {}
        """The values given to `keep`, by kind and key."""
        self._next_producer_id = self._reserved_producer_id = 0
        self._on_created: list[Callable[[Topic], None]] = []
        self._on_deleted: list[Callable[[list[Topic]], None]] = []
        self._on_configured: list[Callable[[Topic], None]] = []
        lines = store.read_catalogue()
        self._replay(lines)
        self._next_producer_id = self._reserved_producer_id
        if store.unclean and lines:
            unclean = {"type": "unclean-start"}
            store.append_catalogue(_line(unclean), may_wait=True, holds_appends=True)
            self._apply(unclean)
            # Before any record is written at the new leader epochs, or a second crash could give one out again. (D5)
            store.sync_catalogue()

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.by_name.values())

    def get(self, name: str) -> Topic | None:
        """The topic of this name, or None."""
        return self.by_name.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.name

    def names_like(self, name: str) -> list[str]:
        """The topics whose names differ from `name` only in periods and underscores."""
        return [other for other in self._by_flat_name.get(flat(name), ()) if other != name]

    def partition(self, name: str, index: int) -> Partition | None:
        """The partition of this topic name and index, or None."""
        topic = self.by_name.get(name)
        return None if topic is None else topic.partition(index)

    def on_created(self, listener: Callable[[Topic], None]) -> None:
        """Call `listener(topic)` when a topic appeared or got more partitions."""
        self._on_created.append(listener)

    def on_deleted(self, listener: Callable[[list[Topic]], None]) -> None:
        """Call `listener(topics)` when topics are gone from the catalogue and before their data goes."""
        self._on_deleted.append(listener)

    def on_configured(self, listener: Callable[[Topic], None]) -> None:
        """Call `listener(topic)` when a topic's own settings have changed."""
        self._on_configured.append(listener)

    def create(self, name: str, replicas: list[list[int]], settings: dict[str, Value] | None = None) -> Topic:
        """Add a topic with one partition per entry of `replicas` (node ids, the first one leads)."""
        return self.create_all([NewTopic(name, replicas, settings or {})])[0]

    def create_all(self, new: Sequence[NewTopic]) -> list[Topic]:
        """Add topics, all with one write. Their names are checked already. Raises StorageError; then none is added."""
        for topic in new:
            assert topic.name not in self.by_name, f"topic {topic.name} exists already"
        self._record(
            *(
                {
                    "type": "topic",
                    "name": topic.name,
                    "id": self._new_topic_id().hex(),
                    "replicas": topic.replicas,
                    "config": topic.settings,
                }
                for topic in new
            )
        )
        created = [self.by_name[topic.name] for topic in new]
        for listener in self._on_created:
            for made in created:
                listener(made)
        return created

    def add_partitions(self, topic: Topic, replicas: list[list[int]]) -> None:
        """Add one partition per entry of `replicas` (node ids, the first one leads)."""
        self._record({"type": "partitions", "id": topic.topic_id.hex(), "replicas": replicas})
        self._store.describe(topic.topic_id, _line(_entry_of(topic)))
        for listener in self._on_created:
            listener(topic)

    def delete(self, topics: Iterable[Topic]) -> None:
        """Remove topics: first from the catalogue, then their committed offsets (listeners), then their data.

        The data goes once the deletion is durable. A full disk has room for that, too: the lines come when there is
        more. Raises StorageError; then nothing is removed.
        """
        for _ in self.deleting(topics):
            pass

    def deleting(self, topics: Iterable[Topic]) -> Generator[None, None, None]:
        """Delete the topics in steps: all of them are gone after the first, and each partition's data after its own."""
        gone = list(topics)
        lines = [{"type": "deleted", "id": topic.topic_id.hex()} for topic in gone]
        try:
            self._record(*lines)
        except StorageFull:
            self._store.bury([topic.topic_id for topic in gone], map(_line, lines))
            for line in lines:
                self._apply(line)
        for listener in self._on_deleted:
            listener(gone)
        self._with_data.extend(partition for topic in gone for partition in topic.partitions)
        while self._with_data:
            self._delete_data(self._with_data.popleft())
            yield

    def _delete_data(self, partition: Partition) -> None:
        if partition.opened_log is not None:
            partition.opened_log.discard()
        self._store.delete_log(partition.topic.topic_id, partition.index)

    def configure(self, topic: Topic, settings: dict[str, Value]) -> None:
        """Replace the topic's own settings."""
        self._record({"type": "config", "id": topic.topic_id.hex(), "config": settings})
        self._store.describe(topic.topic_id, _line(_entry_of(topic)))
        for listener in self._on_configured:
            listener(topic)

    def configure_broker(self, changes: Mapping[str, Value], *, of_nodes: bool = False) -> None:
        """Change broker settings while running (None: back to what the start gave), all with one write.

        They survive a restart. Raises StorageError; then none has changed.
        """
        kind = "broker-config"
        entries = [{"type": kind, "name": n, "value": _stored(v), "of_nodes": of_nodes} for n, v in changes.items()]
        self._record(*entries)

    def keep(self, kind: str, changes: Mapping[str, Any]) -> None:
        """Set the values of these keys of a kind (None: remove the key), all with one write.

        Values are plain JSON values. Kinds are names that callers choose; `kept` has the present values.
        Raises StorageError; then nothing has changed.
        """
        self._record(*({"type": "kept", "kind": kind, "key": key, "value": value} for key, value in changes.items()))

    def elect(self, partition: Partition, leader: int, replicas: list[int]) -> None:
        """Make node `leader` (or NO_LEADER) lead the partition, at the next leader epoch, and `replicas` hold it."""
        if leader != NO_LEADER and leader not in replicas:
            replicas = [leader, *replicas[1:]]
        epoch = partition.leader_epoch + 1
        topic_id = partition.topic.topic_id.hex()
        self._record(
            {
                "type": "leader",
                "id": topic_id,
                "p": partition.index,
                "leader": leader,
                "epoch": epoch,
                "nodes": replicas,
            }
        )

    def allocate_producer_id(self) -> int:
        """A producer id never given out before, restarts included (reserved in blocks)."""
        if self._next_producer_id == self._reserved_producer_id:
            self._record({"type": "producer-ids", "next": self._reserved_producer_id + _PRODUCER_ID_BLOCK})
        given = self._next_producer_id
        self._next_producer_id += 1
        return given

    def offsets_forgotten(self, names: Iterable[str]) -> None:
        """Take note that no committed offset of these deleted topics is left, so that no restart looks for them."""
        lines = [{"type": "forgotten", "name": name} for name in names if name in self.unforgotten]
        self._record(*lines, may_wait=True)

    def name_cluster(self, cluster_id: str) -> None:
        """Record the id of the cluster."""
        self._record({"type": "cluster", "id": cluster_id})

    def close(self) -> None:
        """Close every open log and shorten the catalogue to valid lines.

        A log directory that is offline, or goes offline now, keeps its catalogue and gets no mark of a clean stop.
        """
        while self._with_data:
            self._delete_data(self._with_data.popleft())
        try:
            self._store.close_logs()
            if self._store.failure is None:
                self._store.rewrite_catalogue([_line(entry) for entry in self._entries()])
        except StorageError as error:
            self._store.fail(str(error))
        finally:
            self._store.close()

    def every_log(self) -> Iterator[PartitionLog | None]:
        """For each partition its log, opened now if it was not; None if it is empty, gone, or cannot be opened."""
        for topic in tuple(self):
            for partition in tuple(topic.partitions):
                found = None
                if not topic.deleted and not partition.is_untouched:
                    with suppress(StorageError):
                        found = partition.log
                yield found

    def _replay(self, lines: list[bytes]) -> None:
        """Apply the written lines, and finish deletions that a crash cut short: the data goes after the line."""
        deleted: list[Topic] = []
        for entry in map(json.loads, lines):
            if entry["type"] == "deleted":
                deleted.append(self.by_id[bytes.fromhex(entry["id"])])
            self._apply(entry)
        for topic in deleted:
            for partition in topic.partitions:
                self._delete_data(partition)

    def _record(self, *entries: dict[str, Any], may_wait: bool = False) -> None:
        """Write the entries, then apply them. With `may_wait` a full disk is no obstacle. Raises StorageError."""
        if entries:
            self._store.append_catalogue(*map(_line, entries), may_wait=may_wait)
        for entry in entries:
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        match entry["type"]:
            case "topic":
                self._apply_topic(entry)
            case "partitions":
                self._add(self.by_id[bytes.fromhex(entry["id"])], entry["replicas"])
            case "deleted":
                topic = self.by_id.pop(bytes.fromhex(entry["id"]))
                del self.by_name[topic.name]
                del self._by_flat_name[flat(topic.name)][topic.name]
                self.partition_count -= len(topic.partitions)
                self.unforgotten.add(topic.name)
                topic.deleted = True
            case "unforgotten" | "forgotten" as kind:
                change = self.unforgotten.add if kind == "unforgotten" else self.unforgotten.discard
                change(entry["name"])
            case "leader":
                partition = self.by_id[bytes.fromhex(entry["id"])].partitions[entry["p"]]
                partition.leader, partition.leader_epoch = entry["leader"], entry["epoch"]
                partition.replicas = list(entry["nodes"])
            case "producer-ids":
                self._reserved_producer_id = entry["next"]
            case "cluster":
                self.cluster_id = entry["id"]
            case "unclean-start":
                for partition in (p for topic in self for p in topic.partitions):
                    partition.leader_epoch += 1
            case _:
                self._apply_settings(entry)

    def _apply_settings(self, entry: dict[str, Any]) -> None:
        match entry["type"]:
            case "config":
                topic = self.by_id[bytes.fromhex(entry["id"])]
                topic.config.own = _settings(entry["config"])
                opened = (partition.opened_log for partition in topic.partitions)
                self._store.refresh_configs(log for log in opened if log is not None)
            case "broker-config":
                value = entry["value"]
                value = tuple(value) if isinstance(value, list) else value
                self._config.change(entry["name"], value, of_nodes=entry.get("of_nodes", False))
            case "kept":
                kept = self.kept.setdefault(entry["kind"], {})
                if entry["value"] is None:
                    kept.pop(entry["key"], None)
                else:
                    kept[entry["key"]] = entry["value"]

    def _apply_topic(self, entry: dict[str, Any]) -> None:
        config = TopicConfig(self._config, _settings(entry["config"]))
        topic = Topic(entry["name"], bytes.fromhex(entry["id"]), config)
        self._add(topic, entry["replicas"])
        for partition, (leader, epoch) in zip(topic.partitions, entry.get("leaders", ()), strict=False):
            partition.leader, partition.leader_epoch = leader, epoch
        self.by_name[topic.name] = self.by_id[topic.topic_id] = topic
        self._by_flat_name.setdefault(flat(topic.name), {})[topic.name] = None

    def _add(self, topic: Topic, replicas: list[list[int]]) -> None:
        for nodes in replicas:
            topic.partitions.append(Partition(topic, len(topic.partitions), list(nodes), self._store))
        self.partition_count += len(replicas)

    def _entries(self) -> Iterator[dict[str, Any]]:
        yield {"type": "cluster", "id": self.cluster_id}
        yield {"type": "producer-ids", "next": self._reserved_producer_id}
        for of_nodes, changed in ((False, self._config.cluster_wide), (True, self._config.of_nodes)):
            for name, value in changed.items():
                yield {"type": "broker-config", "name": name, "value": _stored(value), "of_nodes": of_nodes}
        for name in sorted(self.unforgotten):
            yield {"type": "unforgotten", "name": name}
        for kind, kept in self.kept.items():
            for key, value in kept.items():
                yield {"type": "kept", "kind": kind, "key": key, "value": value}
        for topic in self:
            yield _entry_of(topic)


def _entry_of(topic: Topic) -> dict[str, Any]:
    """The line that says all of a topic."""
    return {
        "type": "topic",
        "name": topic.name,
        "id": topic.topic_id.hex(),
        "replicas": [partition.replicas for partition in topic.partitions],
        "leaders": [[partition.leader, partition.leader_epoch] for partition in topic.partitions],
        "config": topic.config.own,
    }


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


def _stored(value: Value) -> object:
    """A value as JSON can say it. A password is kept as it is, as in Kafka: the file is its owner's alone."""
    return value.reveal() if isinstance(value, Secret) else value


def _settings(stored: dict[str, Any]) -> dict[str, Value]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
