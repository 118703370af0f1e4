"""Credentials, ACLs, decisions, every API and quotas, as stories that can be played on any broker (security-cases.md).

A story yields (label, what was seen); see `conformance.login_stories`.
"""

from __future__ import annotations

import time
from typing import Any

from conformance.login_stories import Seen, Story, outcome
from conformance.security_sides import Side, acl, described, settle
from partita.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from partita.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from partita.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from partita.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from partita.protocol.messages.describe_acls import DescribeAclsRequest
from partita.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Message
from partita.records.builder import build_batch
from support.broker import everything
from support.broker.secured import took
from support.kafka.node import asks_from

# Credentials


def credentials(side: Side) -> Seen:
    """SE-E01 to E14."""

    def upsert(name: str, mechanism: int = 1, iterations: int = 4096, **more: Any) -> ScramCredentialUpsertion:
        given = {"salt": b"salt", "salted_password": b"x" * 32, **more}
        return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, **given)

    def delete(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
        return ScramCredentialDeletion(name=name, mechanism=mechanism)

    steps: dict[str, list[ScramCredentialUpsertion | ScramCredentialDeletion]] = {
        "SE-E01 two users": [upsert("v"), upsert("w", 2, 8192)],
        "SE-E06 too few": [upsert("x", iterations=4095)],
        "SE-E06 too many": [upsert("x", iterations=16_385)],
        "SE-E06 most": [upsert("x", iterations=16_384)],
        "SE-E07 unknown mechanism": [upsert("x", 9)],
        "SE-E07 no name": [upsert("")],
        "SE-E07 delete, unknown mechanism": [delete("x", 9)],
        "SE-E08 twice": [upsert("y"), upsert("y", 2)],
        "SE-E08 set and deleted": [upsert("v"), delete("v")],
        "SE-E08 deleted twice": [delete("v"), delete("v", 2)],
        "SE-E09 not there": [delete("nobody")],
        "SE-E09 not that one": [delete("v", 2)],
        "SE-E10 a good one and a bad one": [upsert("z"), upsert("bad", iterations=1)],
        "SE-E11 a second mechanism": [upsert("v", 2)],
    }
    with side.user("admin") as admin, side.user("alice") as alice:
        for label, asked in steps.items():
            request = AlterUserScramCredentialsRequest(
                deletions=[each for each in asked if isinstance(each, ScramCredentialDeletion)],
                upsertions=[each for each in asked if isinstance(each, ScramCredentialUpsertion)],
            )
            yield label, side.plain(admin.ask(request, 0))
            settle(admin)
            if label == "SE-E01 two users":
                refused = alice.ask(request, 0).results
                yield "SE-E14 alter without the right", sorted((r.user, r.error_code) for r in refused)
        looked: dict[str, list[str] | None] = {
            "SE-E02": ["v", "w"], "SE-E03": ["nobody", "v"], "SE-E04": ["v", "v"], "SE-E05 null": None,
            "SE-E05 empty": [],
        }  # fmt: skip
        for label, names in looked.items():
            users = None if names is None else [UserName(name=name) for name in names]
            asked_for = DescribeUserScramCredentialsRequest(users=users)
            yield f"{label} described", side.plain(admin.ask(asked_for, 0))
            if names:  # Kafka does not answer a refusal of all users
                yield f"SE-E14 {label} without the right", side.plain(alice.ask(asked_for, 0))


# ACLs


NO_NETWORKS = ("", "10.0.0.0/33", "10/8", "10.0.0.0/255.0.0.0", "10.0.0.0/", "fe80::/129", "localhost/8")


def acl_requests(side: Side) -> Seen:
    """SE-I01 to I15."""
    side.forbid_all()
    created = {
        "SE-I01 two the same": [acl("User:a", 3, "t"), acl("User:a", 4, "t"), acl("User:a", 3, "t")],
        "SE-I05 no name": [acl("User:a", 3, "")],
        "SE-I06 cluster": [acl("User:a", 3, "x", 4)],
        "SE-I07 no colon": [acl("alice", 3, "t")],
        "SE-I08 type 9": [acl("User:a", 3, "t", 9)],
        "SE-I08 operation 99": [acl("User:a", 99, "t")],
        "SE-I11 bad and good": [acl("User:a", 99, "t"), acl("User:a", 3, "good")],
        "SE-I12 odd": [
            acl("User:a", 3, "b@d name"), acl("User:a", 3, "h", host="localhost"),
            acl("User:a", 3, "n", host="10.0.0.0/8"), acl("Role:x", 3, "r"),
            acl("User:a", 12, "o"), acl("User:a", 3, "kafka-cluster", 4),
        ],
        "SE-I03 prefix": [acl("User:a", 3, "go", resource_pattern_type=4), acl("User:a", 3, "*")],
    }  # fmt: skip
    with side.user("admin") as admin, side.user("alice") as alice:
        for version in (1, 2, 3):
            for label, creations in created.items():
                answer = admin.ask(CreateAclsRequest(creations=creations), version)
                yield f"{label}, version {version}", [side.plain(result) for result in answer.results]
        for host in NO_NETWORKS if asks_from(4, 4) else ():
            answer = admin.ask(CreateAclsRequest(creations=[acl("User:a", 3, "t", host=host)]), 3)
            yield f"SE-J08 host {host}", answer.results[0].error_code
        settle(admin)
        odd = {
            "type ANY": {"kind": 1}, "operation ANY": {"operation": 1}, "permission ANY": {"permission_type": 1},
            "pattern ANY": {"resource_pattern_type": 1}, "pattern MATCH": {"resource_pattern_type": 2},
            "type 0": {"kind": 0}, "operation 0": {"operation": 0}, "permission 0": {"permission_type": 0},
        }  # fmt: skip
        for label, fields in odd.items():
            wrong = acl(**{"principal": "User:odd", "operation": 3, "name": "odd", **fields})  # type: ignore[arg-type]  # of its own fields
            with side.user("admin") as other:
                request = CreateAclsRequest(creations=[wrong])
                yield f"SE-I09 SE-I10 SE-I15 {label}!", outcome(lambda o=other, r=request: o.ask(r, 3), side)  # type: ignore[misc]
        filters: dict[str, dict[str, Any]] = {
            "everything": {}, "literal": {"pattern_type_filter": 3, "resource_name_filter": "t"},
            "SE-I03 match": {"pattern_type_filter": 2, "resource_name_filter": "good"},
            "SE-I03 any": {"pattern_type_filter": 1, "resource_name_filter": "go"},
            "prefixed": {"pattern_type_filter": 4}, "principal": {"principal_filter": "Role:x"},
            "host": {"host_filter": "localhost"}, "operation": {"operation": 12}, "permission": {"permission_type": 2},
            "cluster": {"resource_type_filter": 4}, "no such name": {"resource_name_filter": "no"},
        }  # fmt: skip
        for label, given in filters.items():
            wanted = DescribeAclsRequest(**_filter(**given))
            yield (
                f"SE-I02 SE-I04 described: {label}",
                [side.plain(admin.ask(wanted, version)) for version in (1, 2, 3)],
            )
            yield f"SE-I14 SE-I17 not described: {label}!", _code(alice.ask(wanted, 3))
        refused = alice.ask(CreateAclsRequest(creations=created["SE-I01 two the same"]), 3).results
        yield "SE-I14 create without the right", [result.error_code for result in refused]
        removal = [DeleteAclsFilter(**_filter(resource_name_filter="good", pattern_type_filter=2))]
        yield (
            "SE-I14 delete without the right",
            [r.error_code for r in alice.ask(DeleteAclsRequest(filters=removal), 3).filter_results],
        )
        both = [
            DeleteAclsFilter(**_filter(resource_name_filter="t")),
            DeleteAclsFilter(**_filter(principal_filter="User:a")),
        ]
        none = [DeleteAclsFilter(**_filter(resource_name_filter="no"))]
        for label, chosen in {"match": removal, "both": both, "none": none}.items():
            answer = admin.ask(DeleteAclsRequest(filters=chosen), 3)
            yield f"SE-I13 deleted: {label}", [side.plain(result) for result in answer.filter_results]
            settle(admin)
        yield "SE-I13 left", side.plain(admin.ask(DescribeAclsRequest(**_filter()), 3))


def _filter(**given: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
        "host_filter": None, "operation": 1, "permission_type": 1, **given,
    }  # fmt: skip


def _code(answer: Any) -> tuple[int, bool]:
    """The code, and whether the text shows objects of the broker's insides."""
    return answer.error_code, "@" in (answer.error_message or "") or "(" in (answer.error_message or "")


# Decisions


HOSTS = ("127.0.0.1", "127.0.0.2", "localhost", *(("127.0.0.0/8",) if asks_from(4, 4) else ()))


def decisions(side: Side) -> Seen:
    """SE-J01 to J16: what alice may describe under each set of ACLs."""
    a, e = "User:alice", "User:*"
    deny: dict[str, Any] = {"permission_type": 2}
    prefix: dict[str, Any] = {"resource_pattern_type": 4}
    sets: dict[str, list[AclCreation]] = {
        "SE-J01 none": [],
        **{f"SE-J03 operation {code}": [acl(a, code, "t")] for code in range(2, 16)},
        "SE-J04 READ allowed, DESCRIBE denied": [acl(a, 3, "t"), acl(a, 8, "t", **deny)],
        "SE-J04 READ denied, DESCRIBE allowed": [acl(a, 8, "t"), acl(a, 3, "t", **deny)],
        "SE-J05 READ allowed, ALL denied": [acl(a, 3, "t"), acl(a, 2, "t", **deny)],
        "SE-J06 everybody": [acl(e, 8, "t")],
        "SE-J06 everybody but her": [acl(e, 8, "t"), acl(a, 8, "t", **deny)],
        "SE-J07 case of the user": [acl("User:Alice", 8, "t")],
        "SE-J07 case of the type": [acl("user:alice", 8, "t")],
        **{f"SE-J08 host {h}": [acl(a, 8, "t", host=h)] for h in HOSTS},
        "SE-J09 prefix of itself": [acl(a, 8, "t", **prefix)],
        "SE-J09 prefix of secret": [acl(a, 8, "sec", **prefix)],
        "SE-J10 denied prefix": [acl(a, 8, "t"), acl(a, 8, "t", **deny, **prefix)],
        "SE-J11 case of the topic": [acl(a, 8, "T")],
        "SE-J12 a topic that is not there": [acl(a, 8, "nowhere")],
        "SE-J13 prefix star": [acl(a, 8, "*", **prefix)],
        "SE-J15 group": [acl("Group:alice", 8, "t")],
        "SE-J16 star": [acl(a, 8, "*")],
        "SE-J16 star but one": [acl(a, 8, "*"), acl(a, 8, "t", **deny)],
        "SE-J02 a super user is denied": [acl("User:admin", 2, "*", **deny), acl("User:ANONYMOUS", 2, "*", **deny)],
    }  # fmt: skip
    names = ("t", "u", "secret", "nowhere")
    with side.user("alice") as alice, side.user("bob") as bob, side.user("admin") as admin, side.raw("OPEN") as anybody:
        for label, acls in sets.items():
            side.forbid_all()
            if acls:
                side.allow(*acls)
            askers = {"alice": alice, "bob": bob, "admin": admin, "nobody": anybody}
            yield label, {who: [described(side, raw, name) for name in names] for who, raw in askers.items()}
        side.forbid_all()
        yield "SE-J14 taken away", described(side, alice, "t")
        side.allow(acl(a, 8, "*x", 3), acl(e, 2, "*", 3, **deny))
        (group,) = alice.ask(DescribeGroupsRequest(groups=["*x"]), 5).groups
        yield "SE-J17 a group whose name begins with a star!", group.error_code


# Every API


REFUSALS = {29, 30, 31, 53, 55}
RIGHTS = [
    (kind, name)
    for kind, name in ((2, everything.TOPIC), (3, everything.GROUP), (4, "kafka-cluster"), (5, everything.ID))
]
OPERATIONS = range(3, 13)
_CREATES_AND_DELETES = {19, 20, 31, 42, 91, 92}
"""What would change what the later requests are about."""


def without_rights(side: Side) -> Seen:
    """SE-K01 to K34: every API in every version, asked by somebody who may do nothing; the whole answers."""
    side.forbid_all()
    for key in sorted(everything.ASKED - {18, 60}):
        low, high = side.served.get(key, (0, -1))
        with side.user("alice") as raw:
            for version in range(max(low, 3) if key == 0 else low, high + 1):
                answer = raw.ask(_request(side, key, version), version)
                yield f"SE-K34 API {key} version {version}", _without_texts(side.plain(answer))


def _request(side: Side, key: int, version: int) -> Message:
    """A good request; topics by id where the version wants that, and with time enough for a controller."""
    if key == 50:  # Kafka answers nothing when it refuses to tell of all users
        return DescribeUserScramCredentialsRequest(users=[UserName(name="v")])
    request: Any = everything.one_of_each(key)
    if key == 0:
        request.topic_data[0].topic_id = side.ids[everything.TOPIC]
        request.topic_data[0].partition_data[0].records = build_batch([(1, None, b"x", [])])
    if key == 1:
        request.topics[0].topic_id = side.ids[everything.TOPIC]
    if hasattr(request, "timeout_ms"):
        request.timeout_ms = 10_000
    return request  # type: ignore[no-any-return]  # made of fields of many APIs


def _without_texts(answer: object) -> object:
    """Kafka's texts of refusals show its insides, and differ from API to API."""
    if isinstance(answer, dict):
        return {name: _without_texts(value) for name, value in answer.items() if name != "error_message"}
    return [_without_texts(each) for each in answer] if isinstance(answer, list) else answer


def one_right(side: Side) -> Seen:
    """SE-K01 to K33, SE-L: with one right alone, which APIs still refuse, and what they refuse."""
    for kind, name in RIGHTS:
        for operation in OPERATIONS:
            side.forbid_all()
            side.allow(acl("User:alice", operation, name, kind))
            yield from _refusals(side, f"allowed {operation} on {kind}")


def all_rights_but_one(side: Side) -> Seen:
    """SE-K01 to K33: with every right but one."""
    for kind, name in RIGHTS:
        for operation in OPERATIONS:
            side.forbid_all()
            side.allow(*(acl("User:alice", 2, n, k) for k, n in RIGHTS))
            side.allow(acl("User:alice", operation, name, kind, permission_type=2))
            yield from _refusals(side, f"denied {operation} on {kind}")


def _refusals(side: Side, label: str) -> Seen:
    """Only codes of refusals are compared: what is allowed depends on more than rights."""
    with side.user("alice") as raw:
        for key in sorted(everything.ASKED - _CREATES_AND_DELETES - {11, 13, 14, 18}):
            _, version = side.served.get(key, (0, -1))
            if version >= 0:
                answer = raw.ask(_request(side, key, version), version)
                yield f"API {key}, {label}", sorted(_codes(answer) & REFUSALS)


def _codes(value: object) -> set[int]:
    if isinstance(value, list):
        return set().union(*map(_codes, value))
    found: set[int] = set()
    for name in getattr(value, "__slots__", ()):
        part = getattr(value, name)
        found |= {part} if name == "error_code" else _codes(part)
    return found


# Quotas


def quota_requests(side: Side) -> Seen:
    """SE-M01 to M08."""

    def entry(entity: dict[str, str | None], **ops: float | None) -> EntryData:
        named = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        changes = [OpData(key=key, value=0.0 if v is None else v, remove=v is None) for key, v in ops.items()]
        return EntryData(entity=named, ops=changes)

    user: dict[str, str | None] = {"user": "v"}
    entries = {
        "SE-M01 three kinds": [
            entry(user, producer_byte_rate=1000.0), entry({**user, "client-id": "c"}, consumer_byte_rate=10.0),
            entry({"ip": "10.0.0.1"}, connection_creation_rate=5.0), entry({"user": None}, request_percentage=12.5),
        ],
        "SE-M04 unknown key": [entry(user, no_such_rate=1.0)],
        "SE-M04 zero": [entry(user, producer_byte_rate=0.0)],
        "SE-M04 fraction": [entry(user, producer_byte_rate=1.5)],
        "SE-M04 no entity": [entry({}, producer_byte_rate=1.0)],
        "SE-M04 empty name": [entry({"user": ""}, producer_byte_rate=1.0)],
        "SE-M04 unknown entity": [entry({"group": "g"}, producer_byte_rate=1.0)],
        "SE-M04 ip with a producer's rate": [entry({"ip": "10.0.0.1"}, producer_byte_rate=1.0)],
        "SE-M07 not there": [entry({"user": "nobody"}, producer_byte_rate=None)],
        "SE-M07 last key": [entry({**user, "client-id": "c"}, consumer_byte_rate=None)],
    }  # fmt: skip
    looked: dict[str, list[ComponentData]] = {
        "all": [],
        "SE-M02 exact": [ComponentData(entity_type="user", match_type=0, match="v")],
        "default": [ComponentData(entity_type="user", match_type=1, match=None)],
        "any": [ComponentData(entity_type="user", match_type=2, match=None)],
        "SE-M03 unknown type": [ComponentData(entity_type="group", match_type=0, match="v")],
        "SE-M03 unknown match": [ComponentData(entity_type="user", match_type=7, match="v")],
        "SE-M03 empty type": [ComponentData(entity_type="", match_type=0, match="v")],
        "SE-M03 twice": [ComponentData(entity_type="user", match_type=0, match=n) for n in ("v", "w")],
        "SE-M05 ip with user": [ComponentData(entity_type=t, match_type=2, match=None) for t in ("ip", "user")],
    }
    with side.user("admin") as admin, side.user("alice") as alice:
        for label, asked in entries.items():
            for validate in (True, False):
                request = AlterClientQuotasRequest(entries=asked, validate_only=validate)
                yield f"{label}, validate={validate}", side.plain(admin.ask(request, 1))
            settle(admin)
            for name, components in looked.items():
                for strict in (False, True):
                    found = admin.ask(DescribeClientQuotasRequest(components=components, strict=strict), 1)
                    yield f"{name} strict={strict} after {label}", side.plain(found)
        both = admin.ask(
            AlterClientQuotasRequest(entries=[entry({"ip": "10.0.0.1", **user}, request_percentage=1.0)]), 1
        )
        yield "SE-M05 ip with user", [each.error_code for each in both.entries]
        asked = entries["SE-M01 three kinds"]
        yield "SE-M08 alter", [e.error_code for e in alice.ask(AlterClientQuotasRequest(entries=asked), 1).entries]
        yield "SE-M08 describe", alice.ask(DescribeClientQuotasRequest(components=[]), 1).error_code
        gone = [entry(user, producer_byte_rate=None), entry({"ip": "10.0.0.1"}, connection_creation_rate=None)]
        gone.append(entry({"user": None}, request_percentage=None))
        yield "SE-M07 all gone", side.plain(admin.ask(AlterClientQuotasRequest(entries=gone), 1))
        settle(admin)
        yield "nothing is left", side.plain(admin.ask(DescribeClientQuotasRequest(components=[]), 1))


def throttled(side: Side) -> Seen:
    """SE-M09, SE-M10: carol may produce 1,000 bytes a second and sends 60,000: stored, told to wait, made to wait."""
    side.allow(acl("User:carol", 4, "u"), acl("User:carol", 8, "u"))
    rate = OpData(key="producer_byte_rate", value=10_000.0, remove=False)
    quota = EntryData(entity=[EntityData(entity_type="user", entity_name="carol")], ops=[rate])
    records = build_batch([(int(time.time() * 1000), None, b"x" * 30_000, [])])
    data = [TopicProduceData(name="u", partition_data=[PartitionProduceData(index=0, records=records)])]
    with side.user("admin") as admin, side.user("carol") as carol:
        admin.ask(AlterClientQuotasRequest(entries=[quota]), 1)
        settle(admin)
        waits: list[int] = []
        for _ in range(6):
            begin = time.monotonic()
            answer = carol.ask(ProduceRequest(acks=1, timeout_ms=5000, topic_data=data), 9)
            waits.append(answer.throttle_time_ms)
            if waits[-1]:
                break
        stored = answer.responses[0].partition_responses[0]
        carol.serves()
        yield "SE-M09 stored and told to wait", (stored.error_code, waits[-1] > 0)
        yield "SE-M09 requests until then", len(waits)
        yield "SE-M10 the next one waits", took(begin) >= 0.8 * waits[-1]
        quota.ops[0].remove = True
        admin.ask(AlterClientQuotasRequest(entries=[quota]), 1)


STORIES: tuple[Story, ...] = (
    credentials, acl_requests, decisions, without_rights, one_right, all_rights_but_one, quota_requests, throttled,
)  # fmt: skip
