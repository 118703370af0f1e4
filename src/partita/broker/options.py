"""Which options exist: Kafka's names, types, defaults and bounds, for the broker and for topics.

Mirrors KafkaConfig and LogConfig of Apache Kafka 4.3.1 (a test compares every row with Kafka's own answer). Options
whose subject Partita does not have (replication, remote storage of whole clusters) are absent from BROKER.
"""

# fmt: off
# ruff: noqa: E501
from __future__ import annotations

from typing import NamedTuple, TypeAlias

from partita.secret import Secret

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | Secret | None

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, PASSWORD = 1, 2, 3, 4, 5, 6, 7, 9
"""Kinds of values, numbered as DescribeConfigs numbers them."""


class Option(NamedTuple):
    """One option. Bounds are inclusive; `also` is one more value allowed outside them."""

    name: str
    kind: int
    default: Value
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    also: int | None = None
    changeable: bool = False
    synonym: str | None = None
    """The broker option a topic option falls back to."""


BROKER: tuple[Option, ...] = (
    Option("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, low=0),
    Option("add.partitions.to.txn.retry.backoff.ms", INT, 20, low=1),
    Option("advertised.listeners", LIST, None),
    Option("allow.everyone.if.no.acl.found", BOOLEAN, False),
    Option("authorizer.class.name", STRING, ""),
    Option("auto.create.topics.enable", BOOLEAN, True),
    Option("broker.rack", STRING, None),
    Option("compression.gzip.level", INT, -1, low=1, high=9, also=-1, changeable=True),
    Option("compression.lz4.level", INT, 9, low=1, high=17, changeable=True),
    Option("compression.type", STRING, "producer", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), changeable=True),
    Option("compression.zstd.level", INT, 3, low=-131072, high=22, changeable=True),
    Option("connection.failed.authentication.delay.ms", INT, 100, low=0),
    Option("connections.max.idle.ms", LONG, 600000),
    Option("connections.max.reauth.ms", LONG, 0),
    Option("default.replication.factor", INT, 1),
    Option("delegation.token.expiry.check.interval.ms", LONG, 3600000, low=1),
    Option("delegation.token.expiry.time.ms", LONG, 86400000, low=1),
    Option("delegation.token.max.lifetime.ms", LONG, 604800000, low=1),
    Option("delegation.token.secret.key", PASSWORD, None),
    Option("delete.topic.enable", BOOLEAN, True),
    Option("fetch.max.bytes", INT, 57671680, low=1024),
    Option("group.consumer.assignment.interval.ms", INT, 1000, low=0),
    Option("group.consumer.assignors", LIST, ("uniform", "range")),
    Option("group.consumer.heartbeat.interval.ms", INT, 5000, low=1),
    Option("group.consumer.max.assignment.interval.ms", INT, 15000, low=0),
    Option("group.consumer.max.heartbeat.interval.ms", INT, 15000, low=1),
    Option("group.consumer.max.session.timeout.ms", INT, 60000, low=1),
    Option("group.consumer.max.size", INT, 2147483647, low=1),
    Option("group.consumer.migration.policy", STRING, "bidirectional", choices=("disabled", "downgrade", "upgrade", "bidirectional")),
    Option("group.consumer.min.assignment.interval.ms", INT, 0, low=0),
    Option("group.consumer.min.heartbeat.interval.ms", INT, 5000, low=1),
    Option("group.consumer.min.session.timeout.ms", INT, 45000, low=1),
    Option("group.consumer.regex.refresh.interval.ms", INT, 600000, low=10000),
    Option("group.consumer.session.timeout.ms", INT, 45000, low=1),
    Option("group.coordinator.append.linger.ms", INT, -1, low=-1),
    Option("group.coordinator.background.threads", INT, 2, low=1),
    Option("group.coordinator.cached.buffer.max.bytes", INT, 1048588, low=524288),
    Option("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), choices=("consumer", "classic", "share", "streams")),
    Option("group.coordinator.threads", INT, 4, low=1),
    Option("group.initial.rebalance.delay.ms", INT, 3000),
    Option("group.max.session.timeout.ms", INT, 1800000),
    Option("group.max.size", INT, 2147483647, low=1),
    Option("group.min.session.timeout.ms", INT, 6000),
    Option("inter.broker.listener.name", STRING, None),
    Option("listener.security.protocol.map", STRING, "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"),
    Option("listeners", LIST, ("PLAINTEXT://:9092",)),
    Option("log.cleaner.backoff.ms", LONG, 15000, low=0, changeable=True),
    Option("log.cleaner.delete.retention.ms", LONG, 86400000, low=0, changeable=True),
    Option("log.cleaner.enable", BOOLEAN, True),
    Option("log.cleaner.max.compaction.lag.ms", LONG, 9223372036854775807, low=1, changeable=True),
    Option("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, low=0, high=1, changeable=True),
    Option("log.cleaner.min.compaction.lag.ms", LONG, 0, low=0, changeable=True),
    Option("log.cleanup.policy", LIST, ("delete",), choices=("compact", "delete"), changeable=True),
    Option("log.flush.interval.messages", LONG, 9223372036854775807, low=1, changeable=True),
    Option("log.flush.interval.ms", LONG, None, changeable=True),
    Option("log.index.interval.bytes", INT, 4096, low=0, changeable=True),
    Option("log.index.size.max.bytes", INT, 10485760, low=4, changeable=True),
    Option("log.message.timestamp.after.max.ms", LONG, 3600000, low=0, changeable=True),
    Option("log.message.timestamp.before.max.ms", LONG, 9223372036854775807, low=0, changeable=True),
    Option("log.message.timestamp.type", STRING, "CreateTime", choices=("CreateTime", "LogAppendTime"), changeable=True),
    Option("log.retention.bytes", LONG, -1, changeable=True),
    Option("log.retention.check.interval.ms", LONG, 300000, low=1),
    Option("log.retention.hours", INT, 168),
    Option("log.retention.minutes", INT, None),
    Option("log.retention.ms", LONG, None, changeable=True),
    Option("log.roll.hours", INT, 168, low=1),
    Option("log.roll.ms", LONG, None, changeable=True),
    Option("log.segment.bytes", INT, 1073741824, low=1048576, changeable=True),
    Option("log.segment.delete.delay.ms", LONG, 60000, low=0, changeable=True),
    Option("max.connection.creation.rate", INT, 2147483647, low=0, changeable=True),
    Option("max.connections", INT, 2147483647, low=0, changeable=True),
    Option("max.connections.per.ip", INT, 2147483647, low=0, changeable=True),
    Option("max.incremental.fetch.session.cache.slots", INT, 1000, low=0),
    Option("message.max.bytes", INT, 1048588, low=0, changeable=True),
    Option("min.insync.replicas", INT, 1, low=1, changeable=True),
    Option("node.id", INT, 1, low=0),
    Option("num.partitions", INT, 1, low=1),
    Option("offset.metadata.max.bytes", INT, 4096),
    Option("offsets.commit.timeout.ms", INT, 5000, low=1),
    Option("offsets.load.buffer.size", INT, 5242880, low=1),
    Option("offsets.retention.check.interval.ms", LONG, 600000, low=1),
    Option("offsets.retention.minutes", INT, 10080, low=1),
    Option("offsets.topic.compression.codec", INT, 0),
    Option("offsets.topic.num.partitions", INT, 50, low=1),
    Option("offsets.topic.replication.factor", SHORT, 3, low=1),
    Option("offsets.topic.segment.bytes", INT, 104857600, low=1),
    Option("partita.allow.plain.without.tls", BOOLEAN, False),
    Option("partita.groups.max", INT, 10000, low=1, changeable=True),
    Option("partita.log.failure", STRING, "exit", choices=("exit", "offline")),
    Option("partita.login.bytes.per.ip", INT, 16777216, low=0, changeable=True),
    Option("partita.rebalance.on.static.change", BOOLEAN, False, changeable=True),
    Option("partita.transaction.version", INT, 2, low=0, high=2),
    Option("partita.transactional.ids.max", INT, 100000, low=1, changeable=True),
    Option("partita.validate.records", STRING, "header", choices=("header", "full"), changeable=True),
    Option("producer.id.expiration.check.interval.ms", INT, 600000, low=1),
    Option("producer.id.expiration.ms", INT, 86400000, low=1, changeable=True),
    Option("sasl.enabled.mechanisms", LIST, ("GSSAPI",)),
    Option("sasl.jaas.config", PASSWORD, None),
    Option("sasl.oauthbearer.clock.skew.seconds", INT, 30),
    Option("sasl.oauthbearer.expected.audience", LIST, ()),
    Option("sasl.oauthbearer.expected.issuer", STRING, None),
    Option("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3600000),
    Option("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100),
    Option("sasl.oauthbearer.jwks.endpoint.url", STRING, None),
    Option("sasl.oauthbearer.sub.claim.name", STRING, "sub"),
    Option("sasl.server.callback.handler.class", STRING, None),
    Option("sasl.server.max.receive.size", INT, 524288),
    Option("security.inter.broker.protocol", STRING, "PLAINTEXT", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    Option("socket.request.max.bytes", INT, 104857600, low=1),
    Option("ssl.allow.dn.changes", BOOLEAN, False),
    Option("ssl.cipher.suites", LIST, ()),
    Option("ssl.client.auth", STRING, "none", choices=("required", "requested", "none")),
    Option("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3")),
    Option("ssl.key.password", PASSWORD, None),
    Option("ssl.keystore.certificate.chain", PASSWORD, None),
    Option("ssl.keystore.key", PASSWORD, None),
    Option("ssl.keystore.location", STRING, None),
    Option("ssl.keystore.password", PASSWORD, None),
    Option("ssl.keystore.type", STRING, "JKS"),
    Option("ssl.principal.mapping.rules", STRING, "DEFAULT"),
    Option("ssl.truststore.certificates", PASSWORD, None),
    Option("ssl.truststore.location", STRING, None),
    Option("ssl.truststore.password", PASSWORD, None),
    Option("ssl.truststore.type", STRING, "JKS"),
    Option("super.users", STRING, ""),
    Option("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000, low=1),
    Option("transaction.max.timeout.ms", INT, 900000, low=1),
    Option("transaction.partition.verification.enable", BOOLEAN, True, changeable=True),
    Option("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3600000, low=1),
    Option("transaction.state.log.load.buffer.size", INT, 5242880, low=1),
    Option("transaction.state.log.min.isr", INT, 2, low=1),
    Option("transaction.state.log.num.partitions", INT, 50, low=1),
    Option("transaction.state.log.replication.factor", SHORT, 3, low=1),
    Option("transaction.state.log.segment.bytes", INT, 104857600, low=1),
    Option("transactional.id.expiration.ms", INT, 604800000, low=1),
)

REMOVED: dict[str, str] = {
    **dict.fromkeys(("advertised.host.name", "advertised.port", "host.name", "port", "quota.consumer.default", "quota.producer.default"), "3.0"),
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter", "broker.id.generation.enable", "control.plane.listener.name", "delegation.token.master.key",
            "inter.broker.protocol.version", "log.message.downconversion.enable", "log.message.format.version",
            "log.message.timestamp.difference.max.ms", "offsets.commit.required.acks", "password.encoder.cipher.algorithm",
            "password.encoder.iterations", "password.encoder.key.length", "password.encoder.keyfactory.algorithm",
            "password.encoder.old.secret", "password.encoder.secret", "reserved.broker.max.id", "zookeeper.clientCnxnSocket",
            "zookeeper.connect", "zookeeper.connection.timeout.ms", "zookeeper.max.in.flight.requests",
            "zookeeper.metadata.migration.enable", "zookeeper.session.timeout.ms", "zookeeper.set.acl",
            "zookeeper.ssl.cipher.suites", "zookeeper.ssl.client.enable", "zookeeper.ssl.crl.enable",
            "zookeeper.ssl.enabled.protocols", "zookeeper.ssl.endpoint.identification.algorithm",
            "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.password", "zookeeper.ssl.keystore.type",
            "zookeeper.ssl.ocsp.enable", "zookeeper.ssl.protocol", "zookeeper.ssl.truststore.location",
            "zookeeper.ssl.truststore.password", "zookeeper.ssl.truststore.type",
        ),
        "4.0",
    ),
}
"""Broker options of older Kafkas and the version that removed them: accepted in any value, without effect."""

TOPIC: tuple[Option, ...] = (
    Option("cleanup.policy", LIST, ("delete",), choices=("compact", "delete"), changeable=True, synonym="log.cleanup.policy"),
    Option("compression.gzip.level", INT, -1, low=1, high=9, also=-1, changeable=True, synonym="compression.gzip.level"),
    Option("compression.lz4.level", INT, 9, low=1, high=17, changeable=True, synonym="compression.lz4.level"),
    Option("compression.type", STRING, "producer", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), changeable=True, synonym="compression.type"),
    Option("compression.zstd.level", INT, 3, low=-131072, high=22, changeable=True, synonym="compression.zstd.level"),
    Option("delete.retention.ms", LONG, 86400000, low=0, changeable=True, synonym="log.cleaner.delete.retention.ms"),
    Option("file.delete.delay.ms", LONG, 60000, low=0, changeable=True, synonym="log.segment.delete.delay.ms"),
    Option("flush.messages", LONG, 9223372036854775807, low=1, changeable=True, synonym="log.flush.interval.messages"),
    Option("flush.ms", LONG, 9223372036854775807, low=0, changeable=True, synonym="log.flush.interval.ms"),
    Option("follower.replication.throttled.replicas", LIST, (), changeable=True),
    Option("index.interval.bytes", INT, 4096, low=0, changeable=True, synonym="log.index.interval.bytes"),
    Option("internal.segment.bytes", INT, None, changeable=True),
    Option("leader.replication.throttled.replicas", LIST, (), changeable=True),
    Option("local.retention.bytes", LONG, -2, low=-2, changeable=True, synonym="log.local.retention.bytes"),
    Option("local.retention.ms", LONG, -2, low=-2, changeable=True, synonym="log.local.retention.ms"),
    Option("max.compaction.lag.ms", LONG, 9223372036854775807, low=1, changeable=True, synonym="log.cleaner.max.compaction.lag.ms"),
    Option("max.message.bytes", INT, 1048588, low=0, changeable=True, synonym="message.max.bytes"),
    Option("message.timestamp.after.max.ms", LONG, 3600000, low=0, changeable=True, synonym="log.message.timestamp.after.max.ms"),
    Option("message.timestamp.before.max.ms", LONG, 9223372036854775807, low=0, changeable=True, synonym="log.message.timestamp.before.max.ms"),
    Option("message.timestamp.type", STRING, "CreateTime", choices=("CreateTime", "LogAppendTime"), changeable=True, synonym="log.message.timestamp.type"),
    Option("min.cleanable.dirty.ratio", DOUBLE, 0.5, low=0, high=1, changeable=True, synonym="log.cleaner.min.cleanable.ratio"),
    Option("min.compaction.lag.ms", LONG, 0, low=0, changeable=True, synonym="log.cleaner.min.compaction.lag.ms"),
    Option("min.insync.replicas", INT, 1, low=1, changeable=True, synonym="min.insync.replicas"),
    Option("preallocate", BOOLEAN, False, changeable=True, synonym="log.preallocate"),
    Option("remote.log.copy.disable", BOOLEAN, False, changeable=True),
    Option("remote.log.delete.on.disable", BOOLEAN, False, changeable=True),
    Option("remote.storage.enable", BOOLEAN, False, changeable=True),
    Option("retention.bytes", LONG, -1, changeable=True, synonym="log.retention.bytes"),
    Option("retention.ms", LONG, 604800000, low=-1, changeable=True, synonym="log.retention.ms"),
    Option("segment.bytes", INT, 1073741824, low=1048576, changeable=True, synonym="log.segment.bytes"),
    Option("segment.index.bytes", INT, 10485760, low=4, changeable=True, synonym="log.index.size.max.bytes"),
    Option("segment.jitter.ms", LONG, 0, low=0, changeable=True, synonym="log.roll.jitter.ms"),
    Option("segment.ms", LONG, 604800000, low=1, changeable=True, synonym="log.roll.ms"),
    Option("unclean.leader.election.enable", BOOLEAN, False, changeable=True, synonym="unclean.leader.election.enable"),
)
