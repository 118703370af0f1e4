"""CreateAcls, DescribeAcls, DeleteAcls; what is kept over a restart; the audit log. (security.md 14 and 17)"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.embedded import StartError
from partita.broker.handlers import delete_acls
from partita.broker.permits.audit import LINES_PER_SECOND, Audit
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest
from partita.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from partita.protocol.messages.describe_acls import DescribeAclsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.security.rights.acls import AclFilter, Operation, PatternType, Permission, ResourceType
from partita.security.rights.authorizer import Authorizer
from support.broker.askers import acl, allow, raw_as, secured
from support.broker.raw import Raw

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED, ANY, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY, PatternType.MATCH
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1, "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip
INVALID, DENIED = ErrorCode.INVALID_REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NO_COLON = (
    "Could not parse principal from `alice` (no colon is present separating the principal type from the principal name)"
)


def creation(name: str = "t", **fields: Any) -> AclCreation:
    given: dict[str, Any] = {
        "resource_type": 2, "resource_pattern_type": 3, "principal": "User:alice", "host": "*", "operation": 3,
        "permission_type": 3,
    }  # fmt: skip
    return AclCreation(resource_name=name, **(given | fields))


def create(raw: Raw, *creations: AclCreation, version: int = 3) -> list[AclCreationResult]:
    results: list[AclCreationResult] = raw.ask(CreateAclsRequest(creations=list(creations)), version).results
    return results


def described(raw: Raw, name: str | None = None, pattern: int = ANY, version: int = 3, **fields: Any) -> list[str]:
    """What the filter finds, as type:pattern:name:operation."""
    given = EVERYTHING | fields
    request = DescribeAclsRequest(resource_name_filter=name, pattern_type_filter=pattern, **given)
    answer = raw.ask(request, version)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        f"{resource.resource_type}:{resource.pattern_type}:{resource.resource_name}:{each.operation}"
        for resource in answer.resources
        for each in resource.acls
    ]


def removal(name: str | None = None, pattern: int = ANY, **fields: Any) -> DeleteAclsFilter:
    given = EVERYTHING | fields
    return DeleteAclsFilter(resource_name_filter=name, pattern_type_filter=pattern, **given)


@pytest.mark.case("SE-I01", "SE-I02", "SE-I04")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_acl_is_listed_once_however_often_it_is_created(admin: Raw, version: int) -> None:
    results = create(admin, creation(), creation(operation=4), creation(), version=version)
    assert [(result.error_code, result.error_message) for result in results] == [(0, "")] * 3
    assert described(admin, "t", LITERAL, version=version) == ["2:3:t:3", "2:3:t:4"]


@pytest.mark.case("SE-I03")
def test_match_finds_what_applies_and_any_only_the_name(admin: Raw) -> None:
    patterns = [("orders", 3), ("ord", 4), ("*", 3), ("x", 3)]
    create(admin, *(creation(name, resource_pattern_type=pattern) for name, pattern in patterns))
    assert described(admin, "orders", MATCH) == ["2:3:orders:3", "2:4:ord:3", "2:3:*:3"]
    assert described(admin, "orders", ANY) == ["2:3:orders:3"]
    assert described(admin, "ord", PREFIXED) == ["2:4:ord:3"]
    assert described(admin, "ord", LITERAL) == []
    assert described(admin, None, PREFIXED) == ["2:4:ord:3"]
    assert len(described(admin, principal_filter="User:alice", host_filter="*", operation=3)) == 4
    assert described(admin, principal_filter="User:bob") == []
    assert described(admin, host_filter="10.0.0.1") == []
    assert described(admin, operation=4) == described(admin, permission_type=2) == []
    assert described(admin, resource_type_filter=3) == []


WRONG = [
    pytest.param(creation(""), "Invalid empty resource name", marks=pytest.mark.case("SE-I05")),
    pytest.param(
        creation("x", resource_type=4),
        "The only valid name for the CLUSTER resource is kafka-cluster",
        marks=pytest.mark.case("SE-I06"),
    ),
    pytest.param(creation(principal="alice"), NO_COLON, marks=pytest.mark.case("SE-I07")),
    pytest.param(creation(host=""), "Host pattern cannot be null or empty", marks=pytest.mark.case("SE-J08")),
    pytest.param(
        creation(host="10.0.0.0/33"),
        "Invalid CIDR notation '10.0.0.0/33': it needs an address and a length, such as 10.1.0.0/16",
        marks=pytest.mark.case("SE-J08"),
    ),
    pytest.param(creation(resource_type=9), "Invalid resourceType UNKNOWN", marks=pytest.mark.case("SE-I08")),
    pytest.param(creation(operation=99), "Invalid operation UNKNOWN", marks=pytest.mark.case("SE-I08")),
    pytest.param(creation(resource_type=1), "Invalid resourceType ANY", marks=pytest.mark.case("SE-I09", "SE-I15")),
    pytest.param(creation(operation=1), "Invalid operation ANY", marks=pytest.mark.case("SE-I15")),
    pytest.param(creation(permission_type=1), "Invalid permissionType ANY", marks=pytest.mark.case("SE-I15")),
    pytest.param(
        creation(resource_pattern_type=2), "Invalid patternType MATCH", marks=pytest.mark.case("SE-I09", "SE-I15")
    ),
    pytest.param(creation(resource_pattern_type=1), "Invalid patternType ANY", marks=pytest.mark.case("SE-I15")),
    pytest.param(creation(resource_type=0), "Invalid resourceType UNKNOWN", marks=pytest.mark.case("SE-I10", "SE-I15")),
    pytest.param(creation(operation=0), "Invalid operation UNKNOWN", marks=pytest.mark.case("SE-I15")),
    pytest.param(creation(permission_type=-3), "Invalid permissionType UNKNOWN", marks=pytest.mark.case("SE-I15")),
]


@pytest.mark.case("SE-I11")
@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_what_is_no_acl_is_refused_and_the_others_are_created(admin: Raw, wrong: AclCreation, message: str) -> None:
    results = create(admin, wrong, creation("good"))
    assert [(result.error_code, result.error_message) for result in results] == [(INVALID, message), (0, "")]
    assert described(admin) == ["2:3:good:3"]


@pytest.mark.case("SE-I12")
def test_odd_names_hosts_principals_and_operations_are_accepted(admin: Raw) -> None:
    odd = [creation("b@d name"), creation(host="localhost"), creation(host="10.0.0.0/8"), creation(principal="Role:x")]
    odd += [creation(operation=12), creation("kafka-cluster", resource_type=4, operation=3)]
    assert [result.error_code for result in create(admin, *odd)] == [0] * len(odd)


@pytest.mark.case("SE-I13")
def test_filters_delete_and_both_report_what_both_select(admin: Raw) -> None:
    create(admin, creation("a"), creation("b"), creation("b", operation=4))
    filters = [removal("a"), removal("a", LITERAL), removal("nothing"), removal("b", MATCH, operation=4)]
    filters.append(removal(operation=0))
    results = admin.ask(DeleteAclsRequest(filters=filters), 3).filter_results
    found = [[(each.resource_name, each.operation) for each in result.matching_acls] for result in results]
    assert found == [[("a", 3)], [("a", 3)], [], [("b", 4)], []]
    assert [(result.error_code, result.error_message) for result in results] == [
        *[(0, None)] * 4,
        (INVALID, "Invalid operation UNKNOWN"),
    ]
    assert described(admin) == ["2:3:b:3"]


def test_filters_that_would_report_too_much_are_refused_and_delete_nothing(
    admin: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 filters for everything beside 28,000 ACLs would have been an answer of gigabytes."""
    monkeypatch.setattr(delete_acls, "REPORTED_MAX", 2)
    create(admin, creation("a"), creation("b"), creation("c"))
    results = admin.ask(DeleteAclsRequest(filters=[removal("a"), removal("b"), removal("c")]), 3).filter_results
    assert [(len(result.matching_acls), result.error_code) for result in results] == [(1, 0), (1, 0), (0, INVALID)]
    assert results[2].error_message == (
        "the filters before this one have selected too many ACLs for one answer; send it in a request of its own"
    )
    assert described(admin) == ["2:3:c:3"]
    assert [
        len(each.matching_acls) for each in admin.ask(DeleteAclsRequest(filters=[removal()]), 3).filter_results
    ] == [1]


@pytest.mark.case("SE-I10")
@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_a_filter_with_an_unknown_code_is_refused(admin: Raw, field: str) -> None:
    codes: dict[str, Any] = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    for code in (0, 99):
        answer = admin.ask(DescribeAclsRequest(**(codes | {field: code})), 3)
        assert answer.error_code == INVALID
        assert answer.error_message.endswith("UNKNOWN")


@pytest.mark.case("SE-I14", "SE-I17")
def test_rights_on_the_cluster_are_needed(broker: Broker, alice: Raw) -> None:
    told = [(result.error_code, result.error_message) for result in create(alice, creation(), creation())]
    removed = alice.ask(DeleteAclsRequest(filters=[removal(), removal()]), 3).filter_results
    told += [(result.error_code, result.error_message) for result in removed]
    answer = alice.ask(DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1), 3)
    told.append((answer.error_code, answer.error_message))
    assert told == [(DENIED, "Cluster authorization failed.")] * 5
    allow(broker, acl("alice", Operation.ALTER, "kafka-cluster", CLUSTER))
    assert create(alice, creation())[0].error_code == 0
    assert "2:3:t:3" in described(alice)


@pytest.mark.case("SE-I16")
def test_without_an_authorizer_there_are_no_acls() -> None:
    with Broker() as broker, Raw(broker.port) as raw:
        created = create(raw, creation())[0]
        deleted = raw.ask(DeleteAclsRequest(filters=[removal()]), 3).filter_results[0]
        for result in (created, deleted):
            assert (result.error_code, result.error_message) == (54, "No Authorizer is configured.")
        answer = raw.ask(DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1), 3)
        assert (answer.error_code, answer.error_message) == (54, "No Authorizer is configured on the broker")


@pytest.mark.case("SE-E15")
@pytest.mark.parametrize("durability", ["os", "sync"])
def test_acls_are_there_after_a_restart(tmp_path: Path, durability: str) -> None:
    with secured(data_dir=str(tmp_path), durability=durability) as broker, raw_as(broker, "admin") as admin:
        create(admin, creation("kept"), creation("gone"), creation("prefix", resource_pattern_type=4))
        admin.ask(DeleteAclsRequest(filters=[removal("gone")]), 3)
    for _ in range(2):
        with secured(data_dir=str(tmp_path), durability=durability) as broker, raw_as(broker, "admin") as admin:
            assert described(admin) == ["2:3:kept:3", "2:4:prefix:3"]


@pytest.mark.case("SE-P15")
def test_a_failed_write_leaves_the_rights_as_they_were(
    broker: Broker, admin: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(admin, creation("before"))

    def full(*lines: bytes, may_wait: bool = False) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(broker.cluster.store, "append_catalogue", full)
    results = create(admin, creation("new"), creation(""))
    assert [result.error_code for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR, INVALID]
    removed = admin.ask(DeleteAclsRequest(filters=[removal("before"), removal("none")]), 3).filter_results
    assert [(each.error_code, each.matching_acls) for each in removed] == [(ErrorCode.KAFKA_STORAGE_ERROR, []), (0, [])]
    assert described(admin) == ["2:3:before:3"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"authorizer.class.name": "my.Authorizer"}, "Invalid value my.Authorizer for configuration authorizer.class"),
        ({"authorizer.class.name": "standard", "super.users": "alice"}, "'alice' names no type; write User:alice"),
    ],
)
def test_settings_that_make_no_authorizer_are_refused_at_the_start(options: dict[str, object], message: str) -> None:
    with pytest.raises(StartError, match=message):
        Broker(options).start()


def test_kafkas_class_names_mean_the_one_authorizer_there_is() -> None:
    with Broker({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}) as broker:
        assert broker.running.services.rights is not None


def ask_about(raw: Raw, *names: str) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    raw.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)


def test_refusals_are_logged_in_kafkas_words(broker: Broker, alice: Raw, caplog: pytest.LogCaptureFixture) -> None:
    allow(broker, acl("alice", Operation.READ, "u"), acl("alice", Operation.ALL, "denied", permission=Permission.DENY))
    with caplog.at_level(logging.INFO, "partita.authorizer"):
        ask_about(alice, "t", "u", "denied")
    assert [record.getMessage() for record in caplog.records] == [
        "Principal = User:alice is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = Topic:LITERAL:t for "
        "request = Metadata with resourceRefCount = 1 based on rule DefaultDeny",
        "Principal = User:alice is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = Topic:LITERAL:"
        "denied for request = Metadata with resourceRefCount = 1 based on rule MatchingAcl(acl=(principal=User:alice, "
        "host=*, operation=ALL, permissionType=DENY) on TOPIC:LITERAL:denied)",
    ]


def test_what_is_allowed_is_logged_for_debugging_only(
    broker: Broker, admin: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "partita.authorizer"):
        ask_about(admin, "t")
    (record,) = caplog.records
    assert (record.levelname, "is Allowed" in record.getMessage()) == ("DEBUG", True)
    assert record.getMessage().endswith("based on rule SuperUser")


@pytest.mark.case("SE-P11")
def test_names_are_escaped_and_cut_in_the_log(alice: Raw, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "partita.authorizer"):
        ask_about(alice, "a\nb\x1b[2J\u202ec" + "x" * 9_000)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.isprintable()
    assert line.isascii()
    assert len(line) < 600


def test_a_flood_of_refusals_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 5.0
    audit = Audit(lambda: now, lambda **note: None)
    decision = Authorizer().decide("User:a", "h", Operation.READ, TOPIC, "t")

    def refuse() -> None:
        audit.record(decision, "User:a", "h", Operation.READ, TOPIC, "t", "Fetch", 1)

    with caplog.at_level(logging.INFO, "partita.authorizer"):
        for _ in range(LINES_PER_SECOND + 7):
            refuse()
        assert len(caplog.records) == LINES_PER_SECOND
        now = 6.5
        refuse()
    assert caplog.records[-2].getMessage() == "7 more decisions were not written: there are at most 100 in a second"


def test_a_filter_of_nothing_selects_everything() -> None:
    assert AclFilter().selects(acl("a", Operation.READ, "t", GROUP))
