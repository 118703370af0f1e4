"""Every option of `format("partita")`: names, types, bounds, one line of help each. Nothing is parsed here.

Names are those of Spark's own Kafka connector, so that only `.format()` changes; the rest are ours (GROUP, OURS).
The user guide prints its tables from here.
"""

from __future__ import annotations

from partita.options import Option

BOOTSTRAP = "kafka.bootstrap.servers"
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

TOPICS = (
    Option("subscribe", "str", None, "topics to read, separated by commas"),
    Option("subscribePattern", "str", None, "regular expression; a topic is read if it matches anywhere in its name"),
    Option("assign", "str", None, 'partitions to read, as JSON: {"topic":[0,1]}'),
)
POSITIONS = (
    Option("startingOffsets", "str", None, "earliest, latest, committed, or JSON; batch: earliest, stream: latest"),
    Option("startingTimestamp", "str", None, "milliseconds; start at the first record at or after it"),
    Option("startingOffsetsByTimestamp", "str", None, "milliseconds for each partition, as JSON"),
    Option(
        "startingOffsetsByTimestampStrategy",
        "str",
        "error",
        "what to do where no record is that young: error or latest",
        choices=("error", "latest"),
        ignore_case=True,
    ),
    Option("endingOffsets", "str", None, "batch only: latest, or JSON"),
    Option("endingTimestamp", "str", None, "batch only: milliseconds; end before the first record at or after it"),
    Option("endingOffsetsByTimestamp", "str", None, "batch only: milliseconds for each partition, as JSON"),
)
READING = (
    Option("failOnDataLoss", "bool", True, "fail when records were removed before they were read"),
    Option(
        "minPartitions", "int", None, "at least so many tasks, if there are records enough", minimum=1, maximum=INT_MAX
    ),
    Option("maxRecordsPerPartition", "int", None, "no task reads more offsets than this", minimum=1, maximum=LONG_MAX),
    Option(
        "maxRecordsPerSharedTask",
        "int",
        None,
        "partitions are read in one task up to so many offsets; 0: a task for each; stream: from 4096, views: 131072",
        minimum=0,
        maximum=LONG_MAX,
    ),
    Option("includeHeaders", "bool", False, "add the column headers"),
    Option("columns", "str", None, "only these columns, separated by commas; also leaderEpoch, keySize, valueSize"),
    Option("pushdown", "bool", None, "batch: false leaves filters on topic, partition, offset and timestamp to Spark"),
    Option("view", "str", "records", "records, lag, or one of the views of the log of groups and their offsets"),
)
LIMITS = (
    Option("maxOffsetsPerTrigger", "str", None, "stream: offsets in one batch, shared out by backlog"),
    Option("minOffsetsPerTrigger", "str", None, "stream: wait until so many offsets are there"),
    Option("maxTriggerDelay", "str", "15m", "stream: longest wait for minOffsetsPerTrigger"),
    Option("maxBytesPerTrigger", "str", None, "stream: record bytes in one batch, estimated"),
    Option(
        "offsetPollMs",
        "int",
        200,
        "stream: longest wait of an idle query for a record before it looks again",
        minimum=0,
        maximum=INT_MAX,
    ),
)
GROUP = (
    Option("group", "str", None, "consumer group that progress is committed to"),
    Option(
        "groupMode",
        "str",
        "none",
        "none: the group is not touched; commit: progress is committed; member: the group is shared",
        choices=("none", "commit", "member"),
        ignore_case=True,
    ),
    Option(
        "offsetAuthority",
        "str",
        "checkpoint",
        "who decides after a restart: checkpoint or group",
        choices=("checkpoint", "group"),
        ignore_case=True,
    ),
    Option(
        "commitFailure",
        "str",
        "warn",
        "when a group commit fails: warn and go on, or fail the query",
        choices=("warn", "fail"),
        ignore_case=True,
    ),
    Option("queryName", "str", None, "stable name of the query; part of the metadata of its commits"),
)
MEMBER = (
    Option(
        "groupMembers", "str", "1", "how many members the query is, its share of the partitions; auto: one per core"
    ),
    Option("groupInstanceId", "str", None, "static id of the members, which get -0, -1 and so on behind it"),
    Option(
        "onReplayLost",
        "str",
        "read",
        "a batch run again after a crash: read all of it, or skip what others have committed meanwhile",
        choices=("read", "skip"),
        ignore_case=True,
    ),
    Option("leaveOnStop", "bool", None, "leave the group when the query stops; unset: only AvailableNow does"),
)
"""Options of groupMode=member; without it, naming one fails."""

NO_EFFECT = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "kafkaConsumer.*",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
"""Accepted because users of Spark's connector set them."""

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
"""Columns of a read by default, in this order."""
LOG_PLACE = ("logPartition", "logOffset", "logTimestamp")
VIEWS = {
    "records": COLUMNS,
    "lag": (
        *("group", "state", "topic", "partition", "committedOffset", "endOffset", "lag"),
        *("memberId", "groupInstanceId", "clientId", "clientHost", "sampledAt"),
    ),
    "offset_commits": (
        *("group", "topic", "partition", "offset", "leaderEpoch", "metadata", "commitTime", "expireTime"),
        *("isTombstone", "unknownValue", *LOG_PLACE),
    ),
    "commit_lineage": ("group", "topic", "partition", "offset", "query", "batch", "commitTime", *LOG_PLACE),
    "lag_history": (
        *("group", "topic", "partition", "offset", "endOffset", "lag", "isInterpolated", "commitTime", *LOG_PLACE),
    ),
    "groups": (
        *("group", "protocolType", "protocol", "generation", "leader", "memberCount", "stateTime"),
        *("isTombstone", "unknownValue", *LOG_PLACE),
    ),
    "members": (
        *("group", "generation", "memberId", "groupInstanceId", "clientId", "clientHost", "isLeader"),
        *("sessionTimeoutMs", "rebalanceTimeoutMs", "topics", "partitionCount", "userDataBytes", *LOG_PLACE),
    ),
    "assignments": (
        *("group", "generation", "topic", "partition", "memberId", "groupInstanceId", "clientId", *LOG_PLACE),
    ),
    "rebalances": (
        *("group", "generation", "previousGeneration", "stateTime", "sincePreviousMs", "memberCount"),
        *("added", "removed", "moved", "unassigned", *LOG_PLACE),
    ),
    "group_log": ("group", "keyVersion", "valueVersion", "isTombstone", "key", "value", *LOG_PLACE),
}
"""The columns of each view."""
GROUP_LOG = "__consumer_offsets"
EXTRA_COLUMNS = ("headers", "leaderEpoch", "keySize", "valueSize")
"""Columns of a read only on request."""

SOURCE = (*TOPICS, *POSITIONS, *READING, *LIMITS, *GROUP, *MEMBER)
SINK = (
    Option("topic", "str", None, "topic for every row; without it, the column topic decides"),
    Option("includeHeaders", "bool", False, "accepted without effect: a column headers is always written"),
    Option("exactlyOnce", "bool", False, "stream: every row exactly once for readers with read_committed"),
    Option("sinkName", "str", None, "exactlyOnce: the sink's own name, kept over restarts, that no other query uses"),
    Option(
        "sinkStart",
        "int",
        None,
        "exactlyOnce: the one batch that may be written without earlier markers",
        minimum=1,
        maximum=LONG_MAX,
    ),
)
SPARK_OWN = (
    "checkpointlocation",
    "asyncprogresstrackingenabled",
    "asyncprogresstrackingcheckpointintervalms",
)
"""Options of Spark's writers that it passes to the data source; lower case."""
TABLE_MARK = "provider"
"""Spark adds this name when a table of its catalog is created."""
PREFIX = "option."
"""Spark puts this before the names of a table's options, beside its own and the table's properties."""
SECRET = ("password", "secret", "jaas", "token", "keystore.key")
"""Parts of the names of options that must stay out of a catalog."""


CLIENT = {
    "kafka.bootstrap.servers": "brokers to ask first, host:port separated by commas",
    "kafka.client.id": "name shown in the broker's logs",
    "kafka.client.rack": "source: rack of the tasks, which fetch from a replica there; each task resolves ${env:NAME}",
    "kafka.isolation.level": "read_uncommitted (default) or read_committed",
    "kafka.request.timeout.ms": "how long one answer may take",
    "kafka.default.api.timeout.ms": "how long a broker that does not answer is waited for",
    "kafka.fetch.max.bytes": "source: most bytes of one fetch answer",
    "kafka.max.partition.fetch.bytes": "source: most bytes of one partition in a fetch answer",
    "kafka.fetch.max.wait.ms": "source: how long the broker may wait for records",
    "kafka.session.timeout.ms": "source: groupMode=member: silence after which the group gives the partitions away",
    "kafka.heartbeat.interval.ms": "source: groupMode=member: time between heartbeats",
    "kafka.max.poll.interval.ms": "source: groupMode=member: longest time from one batch to the next",
    "kafka.group.protocol": "source: groupMode=member: classic (default), or consumer, the protocol of KIP-848",
    "kafka.group.remote.assignor": "source: groupMode=member with kafka.group.protocol=consumer: the broker's assignor",
    "kafka.partition.assignment.strategy": "source: groupMode=member: assignors; range,cooperative-sticky by default",
    "kafka.metadata.max.age.ms": "how old the knowledge of leaders may become",
    "kafka.retry.backoff.ms": "pause before the first retry of a request; it doubles up to kafka.retry.backoff.max.ms",
    "kafka.retry.backoff.max.ms": "longest pause between two retries",
    "kafka.reconnect.backoff.ms": "pause before connecting again; it doubles up to kafka.reconnect.backoff.max.ms",
    "kafka.reconnect.backoff.max.ms": "longest pause between two attempts to connect",
    "kafka.connections.max.idle.ms": "when an unused connection is closed",
    "kafka.acks": "sink: all (default), 1 or 0",
    "kafka.enable.idempotence": "sink: true (default) removes duplicates of retries inside a task",
    "kafka.compression.type": "sink: none (default), gzip, snappy, lz4 or zstd",
    "kafka.compression.gzip.level": "sink: level of gzip, 1 to 9, or -1",
    "kafka.compression.lz4.level": "sink: level of lz4, 1 to 17",
    "kafka.compression.zstd.level": "sink: level of zstd, -131072 to 22",
    "kafka.batch.size": "sink: record bytes in one batch; a batch too large for the topic is split",
    "kafka.partitioner.class": "sink: DefaultPartitioner, or RoundRobinPartitioner, which ignores keys",
    "kafka.partitioner.ignore.keys": "sink: true spreads rows with keys as if they had none",
    "kafka.retries": "sink: how often a batch is sent again at most, within kafka.delivery.timeout.ms",
    "kafka.max.request.size": "sink: most bytes of one produce request",
    "kafka.max.block.ms": "sink: how long an unknown topic or partition is waited for",
    "kafka.delivery.timeout.ms": "sink: how long a batch is retried",
    "kafka.transaction.timeout.ms": "sink: exactlyOnce: how long a task may write, 900000 by default",
}
"""Client options with an effect; any other `kafka.*` is accepted with a warning."""

CLIENT_OF_MEMBER = tuple(name for name, text in CLIENT.items() if text.startswith("source: groupMode=member"))
"""Client options used only by a query with groupMode=member."""

CLIENT_OF_EXECUTOR = ("kafka.client.rack",)
"""Client options whose references mean something else on each executor, and are resolved there."""

CLIENT_NO_EFFECT = (
    "kafka.linger.ms",
    "kafka.buffer.memory",
    "kafka.max.in.flight.requests.per.connection",
    "kafka.max.poll.records",
    "kafka.fetch.min.bytes",
)
"""Accepted without a warning, since the result is the same without them: rows come in batches, requests in order."""

FORBIDDEN_SOURCE = (
    "kafka.auto.offset.reset",
    "kafka.key.deserializer",
    "kafka.value.deserializer",
    "kafka.enable.auto.commit",
    "kafka.interceptor.classes",
)
FORBIDDEN_SINK = ("kafka.key.serializer", "kafka.value.serializer", "kafka.transactional.id")


def as_markdown(options: tuple[Option, ...]) -> str:
    """The table that the user guide prints."""
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for option in options:
        default = "" if option.default is None else str(option.default).lower()
        rows.append(f"| `{option.name}` | {default} | {option.help} |")
    return "\n".join(rows)


def client_as_markdown() -> str:
    """The same for the `kafka.*` options."""
    return "\n".join(
        ["| option | meaning |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in CLIENT.items())]
    )
