"""Every change of metadata on a disk that does not take it: the answer and the state agree (issue 26.6, D7, D8).

The state is looked at from outside, right after the answer and after a kill and a start.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from partita import Admin, Broker
from partita.admin.configs import Kind
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from partita.protocol.messages.alter_configs import AlterableConfig as Whole
from partita.protocol.messages.alter_configs import AlterConfigsRequest
from partita.protocol.messages.alter_configs import AlterConfigsResource as WholeResource
from partita.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from partita.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from partita.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.primitives import Message
from support.broker.raw import Raw

TOPIC, BROKER, GROUP = 2, 4, 32
OPTIONS = {
    "authorizer.class.name": "standard",
    "super.users": "User:ANONYMOUS",
    "partita.log.failure": "offline",
    "offsets.topic.num.partitions": 1,
}
RECORDS = 5


def embedded(root: Path) -> Broker:
    return Broker(OPTIONS, data_dir=str(root), nodes=2)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one of everything."""
    root = tmp_path_factory.mktemp("image") / "data"
    with embedded(root) as broker, Raw(broker.port) as raw:
        topic = broker.run(partial(broker.cluster.create_topic, "t", 2, 2))
        broker.run(partial(broker.cluster.elect, topic.partitions[0], 2))
        broker.produce("t", *map(str, range(RECORDS)), partition=1)
        for change in (CREATE_ACL, SET_QUOTA, SET_PASSWORD):
            assert set(change[1](raw.ask(*change[0]))) == {0}
    return root


def incremental(kind: int, name: str, configs: dict[str, str]) -> tuple[Message, int]:
    listed = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=listed)
    return IncrementalAlterConfigsRequest(resources=[resource]), 1


def quota(user: str) -> tuple[Message, int]:
    entity = [EntityData(entity_type="user", entity_name=user)]
    ops = [OpData(key="producer_byte_rate", value=1000.0, remove=False)]
    return AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)]), 1


def password(user: str) -> tuple[Message, int]:
    new = ScramCredentialUpsertion(name=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"x" * 32)
    return AlterUserScramCredentialsRequest(deletions=[], upsertions=[new]), 0


def acl(name: str) -> tuple[Message, int]:
    new = AclCreation(
        resource_type=TOPIC, resource_name=name, resource_pattern_type=3, principal="User:u", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    return CreateAclsRequest(creations=[new]), 3


def codes(field: str) -> Callable[[Any], list[int]]:
    return lambda answer: [each.error_code for each in getattr(answer, field)]


Change = tuple[tuple[Message, int], Callable[[Any], list[int]]]
CREATE_ACL: Change = acl("t"), codes("results")
SET_QUOTA: Change = quota("u"), codes("entries")
SET_PASSWORD: Change = password("u"), codes("results")
NEW = CreatableTopic(name="new", num_partitions=2, replication_factor=1)
NO_ACL = DeleteAclsFilter(
    resource_type_filter=TOPIC, resource_name_filter="t", pattern_type_filter=3, principal_filter=None,
    host_filter=None, operation=1, permission_type=1,
)  # fmt: skip
MOVED = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=1, replicas=[1])])
DELETION = "delete topics"
WHOLE = Whole(name="retention.ms", value="55")
CHANGES: dict[str, Change] = {
    "create topics": ((CreateTopicsRequest(topics=[NEW], timeout_ms=30_000), 5), codes("topics")),
    DELETION: ((DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 4), codes("responses")),
    "create partitions": (
        (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)]), 3),
        codes("results"),
    ),
    "create acls": (acl("other"), codes("results")),
    "delete acls": ((DeleteAclsRequest(filters=[NO_ACL]), 3), codes("filter_results")),
    "quotas": (quota("other"), codes("entries")),
    "a password": (password("other"), codes("results")),
    "no password": (
        (AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="u", mechanism=1)]), 0),
        codes("results"),
    ),
    "configs of a topic": (incremental(TOPIC, "t", {"retention.ms": "77", "segment.ms": "88"}), codes("responses")),
    "all configs of a topic": (
        (
            AlterConfigsRequest(resources=[WholeResource(resource_type=TOPIC, resource_name="t", configs=[WHOLE])]),
            2,
        ),
        codes("responses"),
    ),
    "configs of brokers": (
        incremental(BROKER, "", {"log.retention.ms": "77", "log.segment.bytes": "1048576"}),
        codes("responses"),
    ),
    "configs of a broker": (
        incremental(BROKER, "1", {"log.retention.ms": "77", "log.segment.bytes": "1048576"}),
        codes("responses"),
    ),
    "configs of a group": (
        incremental(GROUP, "g", {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "6000"}),
        codes("responses"),
    ),
    "elect leaders": (
        (ElectLeadersRequest(topic_partitions=[ElectLeadersTopic(topic="t", partitions=[0])], timeout_ms=30_000), 2),
        lambda answer: [p.error_code for t in answer.replica_election_results for p in t.partition_result],
    ),
    "reassign": (
        (AlterPartitionReassignmentsRequest(topics=[MOVED], allow_replication_factor_change=True), 1),
        lambda answer: [p.error_code for t in answer.responses for p in t.partitions] + [answer.error_code],
    ),
}


class Disk:
    """Fails the writes, or the syncs, of one file while `number` is set."""

    def __init__(self, patch: pytest.MonkeyPatch, catalogue: Path, fails: str) -> None:
        self.number: int | None = None
        for name in ("pwritev", "pwrite") if fails == "write" else ("fsync", "fdatasync"):
            patch.setattr(os, name, self._failing(getattr(os, name), catalogue))

    def _failing(self, call: Callable[..., Any], catalogue: Path) -> Callable[..., Any]:
        def failing(fd: int, *rest: Any) -> Any:
            if self.number is not None and os.path.samestat(os.fstat(fd), catalogue.stat()):
                raise OSError(self.number, os.strerror(self.number))
            return call(fd, *rest)

        return failing

    @contextmanager
    def failing(self, number: int) -> Iterator[None]:
        self.number = number
        try:
            yield
        finally:
            self.number = None


def state(broker: Broker) -> dict[str, object]:
    """All that a change could have changed, as clients see it."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        topics = [topic.name for topic in admin.list_topics()]
        configs: list[tuple[Kind, str]] = [("topic", name) for name in topics]
        configs += [("broker", ""), ("broker", "1"), ("group", "g")]
        return {
            "topics": [
                (topic.name, [(p.partition, p.leader, p.replicas) for p in topic.partitions])
                for topic in admin.describe_topics(topics)
            ],
            "acls": sorted(map(str, admin.describe_acls())),
            "quotas": sorted(map(str, admin.describe_client_quotas())),
            "users": sorted(map(str, admin.describe_scram_users())),
            "configs": {
                (kind, name): sorted((entry.name, entry.value) for entry in admin.describe_configs(kind, name))
                for kind, name in configs
            },
        }


@pytest.mark.parametrize("fatal", [errno.EIO, errno.EROFS], ids=["EIO", "EROFS"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_answer_to_a_change_and_the_state_agree(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, fatal: int
) -> None:
    """Issue 26.6: refused without room and then by a broken disk, it has changed nothing, now and after a kill.

    The same change on a good disk is seen, so that this compares something. Deletion makes room and needs none.
    """
    root, killed = tmp_path / "data", tmp_path / "killed"
    shutil.copytree(image, root)
    (request, version), codes_of = CHANGES[change]
    disk = Disk(monkeypatch, root / "catalogue", "write")
    with embedded(root) as broker, Raw(broker.port) as raw:
        before = state(broker)
        for number in (errno.ENOSPC, fatal):
            if (change, number) == (DELETION, errno.ENOSPC):
                continue
            with disk.failing(number):
                assert ErrorCode.KAFKA_STORAGE_ERROR in codes_of(raw.ask(request, version))
                assert state(broker) == before
        shutil.copytree(root, killed)
    with embedded(killed) as broker, Raw(broker.port) as raw:
        assert state(broker) == before
        assert len(broker.records("t", partition=1)) == RECORDS
        assert set(codes_of(raw.ask(request, version))) == {0}
        assert state(broker) != before


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("change", ["create topics", DELETION])
def test_a_change_whose_line_cannot_be_synced_is_there_as_a_whole_or_not_at_all(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, number: int
) -> None:
    """Issue 26.6, D7: after a failed sync the line may be on the disk or not; a topic that is there has its records."""
    root, killed = tmp_path / "data", tmp_path / "killed"
    shutil.copytree(image, root)
    (request, version), codes_of = CHANGES[change]
    disk = Disk(monkeypatch, root / "catalogue", "sync")
    with embedded(root) as broker, Raw(broker.port) as raw:
        with disk.failing(number):
            assert set(codes_of(raw.ask(request, version))) == {ErrorCode.KAFKA_STORAGE_ERROR}
        shutil.copytree(root, killed)
    lines = (killed / "catalogue").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"deleted"' not in line and b'"new"' not in line and b'"forgotten"' not in line]
    assert len(kept) < len(lines)
    for is_on_the_disk in (True, False):
        if not is_on_the_disk:
            shutil.rmtree(killed)
            shutil.copytree(root, killed)
            (killed / "catalogue").write_bytes(b"".join(kept))
        with embedded(killed) as broker:
            names = {topic.name for topic in broker.cluster.catalogue}
            assert ("new" if change != DELETION else "t") in names or is_on_the_disk == (change == DELETION)
            if "t" in names:
                assert len(broker.records("t", partition=1)) == RECORDS


def test_a_deletion_without_room_for_its_line_holds_now_and_after_a_kill(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26.6: no other write is refused meanwhile, and the topic is gone, records and all."""
    root, killed = tmp_path / "data", tmp_path / "killed"
    shutil.copytree(image, root)
    (request, version), codes_of = CHANGES[DELETION]
    disk = Disk(monkeypatch, root / "catalogue", "write")
    with embedded(root) as broker, Raw(broker.port) as raw:
        broker.produce("other", "before")
        with disk.failing(errno.ENOSPC):
            assert set(codes_of(raw.ask(request, version))) == {0}
            broker.produce("other", "meanwhile")
            assert {topic.name for topic in broker.cluster.catalogue} == {"other"}
            shutil.copytree(root, killed)
    for directory in (killed, root):
        with embedded(directory) as broker:
            assert {topic.name for topic in broker.cluster.catalogue} == {"other"}
            assert len(broker.records("other")) == 2
