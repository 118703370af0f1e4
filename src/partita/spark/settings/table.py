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
    Option("startingTimestamp", "str", None, "milliseconds, or -10m, -2h...; start at the first record at or after it"),
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
    Option(
        "endingTimestamp",
        "str",
        None,
        "batch only: milliseconds, or -10m...; end before the first record at or after it",
    ),
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
FORMATS = ("json", "csv", "avro", "protobuf")
WITH_REGISTRY = ("avro", "protobuf")
ON_ERROR = ("fail", "column", "deadLetter")
TYPED = (
    Option(
        "valueFormat",
        "str",
        None,
        "decode values to columns: json, csv, avro or protobuf",
        choices=FORMATS,
        ignore_case=True,
    ),
    Option(
        "valueSchema",
        "str",
        None,
        "the wanted columns, as in carrier string, dep_delay int; or the schema of bare Avro or Protobuf",
    ),
    Option("keyFormat", "str", None, "the same for keys", choices=FORMATS, ignore_case=True),
    Option("keySchema", "str", None, "the same for keys"),
    Option("registry", "str", None, "where schemas are: a URL of a schema registry, or a folder"),
    Option(
        "onError",
        "str",
        "fail",
        "a record that cannot be decoded: fail the query; column: a row with its reason and bytes; deadLetter: no row",
        choices=ON_ERROR,
        ignore_case=True,
    ),
    Option("deadLetterTopic", "str", None, "where onError=deadLetter sends such records, durably"),
    Option("separator", "str", ",", "what stands between two values in csv: one character of ASCII"),
    Option("timeZone", "str", "UTC", "the zone of timestamps in texts that name none"),
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
        *("group", "state", "topic", "partition", "committedOffset", "endOffset", "lag", "lagSeconds"),
        *("memberId", "groupInstanceId", "clientId", "clientHost", "error", "sampledAt"),
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

SOURCE = (*TOPICS, *POSITIONS, *READING, *TYPED, *LIMITS, *GROUP, *MEMBER)
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
    "kafka.bootstrap.servers": "",
    "kafka.client.id": "",
    "kafka.client.rack": "source: each task resolves ${env:NAME} and fetches from a replica there",
    "kafka.isolation.level": "",
    "kafka.request.timeout.ms": "",
    "kafka.default.api.timeout.ms": "how long a broker that does not answer is waited for",
    "kafka.fetch.max.bytes": "source: ",
    "kafka.max.partition.fetch.bytes": "source: ",
    "kafka.fetch.max.wait.ms": "source: ",
    "kafka.session.timeout.ms": "source: groupMode=member: ",
    "kafka.heartbeat.interval.ms": "source: groupMode=member: ",
    "kafka.max.poll.interval.ms": "source: groupMode=member: longest time from one batch to the next",
    "kafka.group.protocol": "source: groupMode=member: ",
    "kafka.group.remote.assignor": "source: groupMode=member: ",
    "kafka.partition.assignment.strategy": "source: groupMode=member: ",
    "kafka.metadata.max.age.ms": "",
    "kafka.retry.backoff.ms": "",
    "kafka.retry.backoff.max.ms": "",
    "kafka.reconnect.backoff.ms": "",
    "kafka.reconnect.backoff.max.ms": "",
    "kafka.connections.max.idle.ms": "",
    "kafka.acks": "sink: ",
    "kafka.enable.idempotence": "sink: removes duplicates of retries inside a task",
    "kafka.compression.type": "sink: ",
    "kafka.compression.gzip.level": "sink: ",
    "kafka.compression.lz4.level": "sink: ",
    "kafka.compression.zstd.level": "sink: ",
    "kafka.batch.size": "sink: 900,000 by default; a batch too large for the topic is split",
    "kafka.partitioner.class": "sink: DefaultPartitioner, or RoundRobinPartitioner, which ignores keys",
    "kafka.partitioner.ignore.keys": "sink: ",
    "kafka.retries": "sink: within kafka.delivery.timeout.ms",
    "kafka.max.request.size": "sink: ",
    "kafka.max.block.ms": "sink: ",
    "kafka.delivery.timeout.ms": "sink: ",
    "kafka.transaction.timeout.ms": "sink: exactlyOnce: how long a task may write, 900000 by default",
}
"""Client options with an effect, each with the side it is for and what docs/options.md does not say of it.

Any other `kafka.*` is accepted with a warning.
"""

CLIENT_OF_MEMBER = tuple(name for name, text in CLIENT.items() if text.startswith("source: groupMode=member"))
"""Client options used only by a query with groupMode=member."""

CLIENT_OF_EXECUTOR = ("kafka.client.rack",)
"""Client options whose references mean something else on each executor, and are resolved there."""

OF_EXECUTOR = ("registry",)
"""The same of our own options: a secret in it stays out of plans and of what travels to executors."""

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
