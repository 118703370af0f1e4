"""Apache Kafka and our broker with the same security settings, for stories that are played on both."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from partita import Broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from partita.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.primitives import ZERO_UUID, Message, Structure
from partita.secret import Secret
from partita.security import scram
from support.broker.secured import PASSWORD, SecuredRaw
from support.certificates import Certificates, as_pkcs8
from support.kafka.node import KafkaNode

LISTENERS = {
    "OPEN": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "BEARER": "SASL_PLAINTEXT",
    "SHORT": "SASL_PLAINTEXT",
}
DELAY_MS = 200
LIFETIME_MS = 1_500
TOPICS = ("secret", "t", "u")
RULES = "RULE:^CN=(svc-[a-z]+),.*$/$1/U,RULE:^CN=([A-Za-z]+),OU=.*$/$1@team/L,DEFAULT"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
USERS = f'{PLAIN} user_admin="admin" user_bob="bob" user_carol="carol" user_alice="{PASSWORD}";'
LEFT_OUT = {"throttle_time_ms", "cluster_id", "log_dir", "port", "member_id", "producer_id"}
"""What differs from cluster to cluster, or from moment to moment."""


class Side:
    """One of the two: where its listeners are, and clients of them."""

    def __init__(self, name: str, ports: Mapping[str, int], certificates: Certificates) -> None:
        self.name = name
        self.ports = ports
        self.certificates = certificates
        self.names: dict[bytes, str] = {}
        """Topics by id."""
        self.ids: dict[str, bytes] = {}
        self.served: dict[int, tuple[int, int]] = {}
        """The versions that both sides serve, by API."""

    def raw(
        self, listener: str, certificate: Path | None = None, *, highest: ssl.TLSVersion | None = None
    ) -> SecuredRaw:
        """A client that has said nothing yet."""
        context = None
        if LISTENERS[listener].endswith("SSL"):
            context = ssl.create_default_context(cafile=self.certificates.ca)
            if highest is not None:
                context.maximum_version = highest
            if certificate is not None:
                context.load_cert_chain(certificate)
        return SecuredRaw(self.ports[listener], tls=context)

    def user(self, name: str, listener: str = "LOGIN") -> SecuredRaw:
        """A client that has logged in by PLAIN."""
        raw = self.raw(listener)
        answer = raw.log_in(name, {"alice": PASSWORD}.get(name, name))
        assert answer.error_code == 0, answer
        return raw

    def versions(self) -> dict[int, tuple[int, int]]:
        """What is served."""
        with self.raw("OPEN") as raw:
            answer = raw.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
        return {found.api_key: (found.min_version, found.max_version) for found in answer.api_keys}

    def prepare(self) -> None:
        """Topics, a coordinator for groups, SCRAM credentials of alice."""
        with self.user("admin") as admin:
            new = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPICS]
            admin.ask(CreateTopicsRequest(topics=new, timeout_ms=10_000), 5)
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPICS])
            found = admin.ask(asked, 12).topics
            while any(topic.error_code for topic in found):
                found = admin.ask(asked, 12).topics
            self.names = {topic.topic_id: topic.name for topic in found}
            self.ids = {name: topic_id for topic_id, name in self.names.items()}
            set_scram(admin, "alice", PASSWORD)
            set_scram(admin, "a=b,c", PASSWORD)
            settle(admin)
            while admin.ask(FindCoordinatorRequest(key="hidden"), 1).error_code:
                pass
            while admin.committed("hidden", "t") < -1:
                pass

    def allow(self, *acls: AclCreation) -> None:
        """Add ACLs; returns when they hold."""
        with self.user("admin") as admin:
            results = admin.ask(CreateAclsRequest(creations=list(acls)), 3).results
            assert not any(result.error_code for result in results), results
            settle(admin)

    def forbid_all(self) -> None:
        """Remove every ACL."""
        with self.user("admin") as admin:
            every = DeleteAclsFilter(
                resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1,
                resource_name_filter=None, principal_filter=None, host_filter=None,
            )  # fmt: skip
            admin.ask(DeleteAclsRequest(filters=[every]), 3)
            settle(admin)

    def plain(self, value: Any, name: str = "") -> Any:
        """An answer as comparable values: ids as names, error codes as words, lists in one order."""
        if isinstance(value, Structure | Message):
            return {slot: self.plain(getattr(value, slot), slot) for slot in _fields(value) if slot not in LEFT_OUT}
        if isinstance(value, list):
            return sorted((self.plain(each, name) for each in value), key=repr)
        if name == "topic_id" and value != ZERO_UUID:
            return self.names.get(value, "another topic")
        if name == "error_code":
            return ErrorCode(value).name
        return bytes(value) if isinstance(value, memoryview | bytearray) else value


def _fields(value: Any) -> list[str]:
    return [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ()) if not slot.startswith("_")]


def settle(admin: SecuredRaw) -> None:
    """Return when every change made so far is known to the broker: in Kafka it comes to it by the metadata log.

    A mark comes behind them all, in the form of somebody's quota; then it is taken away.
    """
    named = [EntityData(entity_type="client-id", entity_name="mark")]
    wanted = ComponentData(entity_type="client-id", match_type=0, match="mark")
    for is_gone in (False, True):
        mark = EntryData(entity=named, ops=[OpData(key="request_percentage", value=1.0, remove=is_gone)])
        admin.ask(AlterClientQuotasRequest(entries=[mark]), 1)
        while bool(admin.ask(DescribeClientQuotasRequest(components=[wanted]), 1).entries) is is_gone:
            pass


def set_scram(raw: SecuredRaw, user: str, password: str, iterations: int = 4096) -> None:
    """Give a user credentials of both mechanisms, one request for each."""
    salt = b"0123456789abcdef"
    for number, mechanism in enumerate(scram.HASHES, 1):
        salted = scram.salted_password(mechanism, Secret(password), salt, iterations)
        asked = ScramCredentialUpsertion(
            name=user, mechanism=number, iterations=iterations, salt=salt, salted_password=salted
        )
        (result,) = raw.ask(AlterUserScramCredentialsRequest(upsertions=[asked]), 0).results
        assert result.error_code == 0, result


def acl(principal: str, operation: int, name: str, kind: int = 2, **more: Any) -> AclCreation:
    """One ACL in Kafka's numbers: a literal ALLOW on a topic from any host unless said otherwise."""
    given: dict[str, Any] = {"resource_pattern_type": 3, "permission_type": 3, "host": "*", **more}
    return AclCreation(resource_type=kind, resource_name=name, principal=principal, operation=operation, **given)


def described(side: Side, raw: SecuredRaw, name: str) -> str:
    """The error with which Metadata answers for a topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (found,) = raw.ask(request, 12).topics
    return ErrorCode(found.error_code).name


def settings(certificates: Certificates) -> dict[str, str]:
    """What both are told."""
    stores = {name: certificates.issue(f"server-{name.lower()}") for name, p in LISTENERS.items() if p.endswith("SSL")}
    given = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "connection.failed.authentication.delay.ms": str(DELAY_MS),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": RULES,
        "listener.name.bearer.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.bearer.oauthbearer.sasl.jaas.config": BEARER,
        "listener.name.short.connections.max.reauth.ms": str(LIFETIME_MS),
        "listener.name.both.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "offsets.topic.num.partitions": "1",
    }
    for name, path in stores.items():
        prefix = f"listener.name.{name.lower()}.ssl"
        given |= {f"{prefix}.keystore.type": "PEM", f"{prefix}.keystore.location": str(as_pkcs8(path))}
        given |= {f"{prefix}.truststore.type": "PEM", f"{prefix}.truststore.location": str(certificates.ca)}
    for name in ("login", "both", "short"):
        given[f"listener.name.{name}.plain.sasl.jaas.config"] = USERS
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            if name != "both" or mechanism == "scram-sha-512":
                given[f"listener.name.{name}.{mechanism}.sasl.jaas.config"] = SCRAM
    return given


@contextmanager
def both_sides(folder: Path) -> Iterator[tuple[Side, Side]]:
    """(Kafka, ours), prepared alike."""
    certificates = Certificates(folder)
    given = settings(certificates)
    with ExitStack() as stack:
        node = stack.enter_context(KafkaNode(LISTENERS, **given))
        kafka = Side("Kafka", node.ports, certificates)
        ours = stack.enter_context(Broker(_ours(given)))
        ports = {name: int(ours.bootstrap_by(name).rpartition(":")[2]) for name in LISTENERS}
        sides = kafka, Side("Partita", ports, certificates)
        theirs, own = (side.versions() for side in sides)
        both = {
            key: (max(low, theirs[key][0]), min(high, theirs[key][1]))
            for key, (low, high) in own.items()
            if key in theirs
        }
        for side in sides:
            side.served = both
            side.prepare()
        yield sides


def _ours(given: Mapping[str, str]) -> dict[str, object]:
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "advertised.listeners": ",".join(f"{name}://localhost:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        **given,
    }
