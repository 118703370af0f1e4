"""Decisions of the authorizer: 9,600 of Kafka's own, and the rules one by one. (security.md 13)"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from partita.security.rights.acls import (
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    restored,
    stored,
)
from partita.security.rights.authorizer import DECISIONS_MAX, Authorizer, super_users

VECTORS = Path(__file__).parents[2] / "vectors" / "acls.jsonl.gz"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(VECTORS.read_bytes()).splitlines()]
TOPIC = ResourceType.TOPIC
DENY, ALLOW = Permission.DENY, Permission.ALLOW
HERE = "127.0.0.1"


def acl(
    operation: Operation = Operation.READ,
    name: str = "t",
    *,
    permission: Permission = ALLOW,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> AclBinding:
    return AclBinding(TOPIC, name, principal, operation, permission, pattern, host)


def authorizer_of(*acls: AclBinding, **options: Any) -> Authorizer:
    authorizer = Authorizer(**options)
    authorizer.change(added=acls)
    return authorizer


def may(authorizer: Authorizer, operation: Operation, name: str = "t", user: str = "alice", host: str = HERE) -> bool:
    return authorizer.allows(f"User:{user}", host, operation, TOPIC, name)


def of_vector(row: dict[str, Any]) -> Authorizer:
    supers = super_users("User:root;User:CN=x,O=y")
    acls = (
        restored(
            (
                each["resource_type"], each["resource_name"], each["pattern_type"], each["principal"], each["host"],
                each["operation"], each["permission"],
            )
        )
        for each in row["acls"]
    )  # fmt: skip
    return authorizer_of(*acls, super_users=supers, allow_everyone=row["allow_everyone"])


@pytest.mark.case("SE-J19")
def test_every_decision_is_kafkas() -> None:
    """Names that begin with a star are left to the test of our deviation."""
    wrong, count = [], 0
    for row in ROWS:
        authorizer = of_vector(row)
        for asked in row["asked"]:
            fields = (asked["host"], asked["operation"], asked["resource_type"], asked["resource_name"])
            if authorizer.allows(f"User:{asked['user']}", *fields) != asked["allowed"]:
                wrong.append(asked)
            count += 1
    assert count == 9600
    assert len(wrong) == 17
    assert all(asked.get("quirk") for asked in wrong)


@pytest.mark.case("SE-J19")
def test_what_may_be_done_to_some_topic_is_kafkas() -> None:
    for row in ROWS:
        authorizer = of_vector(row)
        for asked in row["any_topic"]:
            found = authorizer.allows_some(f"User:{asked['user']}", HERE, asked["operation"], TOPIC)
            assert found == asked["allowed"], (row["acls"], asked)


@pytest.mark.case("SE-J17")
def test_a_denied_star_covers_names_that_begin_with_a_star() -> None:
    denied = AclBinding(ResourceType.GROUP, "*", "User:alice", Operation.READ, DENY)
    allowed = AclBinding(ResourceType.GROUP, "*x", "User:alice", Operation.READ)
    authorizer = authorizer_of(denied, allowed)
    assert not authorizer.allows("User:alice", HERE, Operation.READ, ResourceType.GROUP, "*x")


@pytest.mark.case("SE-J01", "SE-J18")
def test_without_an_acl_nobody_may_unless_everyone_may() -> None:
    assert not may(authorizer_of(), Operation.READ)
    assert may(authorizer_of(allow_everyone=True), Operation.READ)
    for pattern in (PatternType.LITERAL, PatternType.PREFIXED):
        closed = authorizer_of(acl(principal="User:bob", pattern=pattern), allow_everyone=True)
        assert not may(closed, Operation.READ)
        assert may(closed, Operation.READ, "other")


@pytest.mark.case("SE-J02")
def test_a_super_user_is_never_denied() -> None:
    authorizer = authorizer_of(acl(Operation.ALL, permission=DENY), super_users=super_users(" User:alice ; User:b"))
    assert may(authorizer, Operation.READ)
    assert str(authorizer.decide("User:alice", HERE, Operation.READ, TOPIC, "t")) == "SuperUser"


def test_a_super_user_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match=r"super\.users: 'alice' names no type; write User:alice"):
        super_users("alice")


@pytest.mark.case("SE-J03")
def test_operations_that_imply_another() -> None:
    implying = {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE, Operation.ALL}
    found = {op for op in Operation if op >= Operation.ALL and may(authorizer_of(acl(op)), Operation.DESCRIBE)}
    assert found == implying
    assert may(authorizer_of(acl(Operation.ALTER_CONFIGS)), Operation.DESCRIBE_CONFIGS)
    assert not may(authorizer_of(acl(Operation.CREATE)), Operation.DESCRIBE)


@pytest.mark.case("SE-J04", "SE-J05")
def test_a_denial_wins_and_implies_nothing() -> None:
    denied_describe = authorizer_of(acl(Operation.READ), acl(Operation.DESCRIBE, permission=DENY))
    assert not may(denied_describe, Operation.DESCRIBE)
    denied_read = authorizer_of(acl(Operation.READ, permission=DENY), acl(Operation.DESCRIBE))
    assert may(denied_read, Operation.DESCRIBE)
    assert not may(authorizer_of(acl(Operation.READ), acl(Operation.ALL, permission=DENY)), Operation.READ)


@pytest.mark.case("SE-J06", "SE-J07", "SE-J15")
def test_principals_are_exact_or_everybody() -> None:
    everybody = authorizer_of(acl(principal="User:*"), acl(principal="User:bob", permission=DENY))
    assert may(everybody, Operation.READ)
    assert not may(everybody, Operation.READ, user="bob")
    for other in ("User:Alice", "user:alice", "Group:alice"):
        assert not may(authorizer_of(acl(principal=other)), Operation.READ)


@pytest.mark.case("SE-J08", "SE-J20")
def test_the_host_of_an_acl_is_one_address_in_any_spelling() -> None:
    assert may(authorizer_of(acl(host=HERE)), Operation.READ)
    for host in ("127.0.0.2", "localhost", "126.0.0.0/8"):
        assert not may(authorizer_of(acl(host=host)), Operation.READ)
    for host in ("::1", "0:0:0:0:0:0:0:1"):
        assert may(authorizer_of(acl(host=host)), Operation.READ, host="::1")


@pytest.mark.case("SE-J08")
def test_the_host_of_an_acl_may_be_a_network() -> None:
    """Since Kafka 4.4.0."""
    for network in ("127.0.0.0/8", "127.9.9.9/8", "0.0.0.0/0", "127.0.0.1/32"):
        assert may(authorizer_of(acl(host=network)), Operation.READ)
        assert authorizer_of(acl(host=network)).allows_some("User:alice", HERE, Operation.READ, TOPIC)
        assert not may(authorizer_of(acl(), acl(host=network, permission=DENY)), Operation.READ)
        assert not may(authorizer_of(acl(host=network)), Operation.READ, host="::1")
    for network in ("127.0.0.0/33", "127.0.0.0/255.0.0.0", "127.0.0.0/", "/8", "localhost/8", "fe80::/10", "127/8"):
        assert not may(authorizer_of(acl(host=network)), Operation.READ)
    assert may(authorizer_of(acl(host="fe80::/10")), Operation.READ, host="fe80::1%eth0")
    assert not may(authorizer_of(acl(host="fe80::/10")), Operation.READ, host="a unix socket")


@pytest.mark.case("SE-J09", "SE-J10", "SE-J11", "SE-J13", "SE-J16")
def test_names_are_literal_prefixes_or_the_star() -> None:
    prefix = PatternType.PREFIXED
    assert may(authorizer_of(acl(name="or", pattern=prefix)), Operation.READ, "orders")
    assert not may(authorizer_of(acl(name="Or", pattern=prefix)), Operation.READ, "orders")
    denied = authorizer_of(acl(name="orders"), acl(name="o", pattern=prefix, permission=DENY))
    assert not may(denied, Operation.READ, "orders")
    stars = authorizer_of(acl(name="*", pattern=prefix))
    assert may(stars, Operation.READ, "*x")
    assert not may(stars, Operation.READ, "x")
    everything = authorizer_of(acl(name="*"), acl(name="secret", permission=DENY))
    assert may(everything, Operation.READ, "any")
    assert not may(everything, Operation.READ, "secret")


@pytest.mark.case("SE-J14")
def test_a_change_holds_for_the_next_decision() -> None:
    given = acl()
    authorizer = authorizer_of(given)
    assert may(authorizer, Operation.READ)
    authorizer.change(removed=[given, given])
    assert not may(authorizer, Operation.READ)
    assert not authorizer.allows_some("User:alice", HERE, Operation.READ, TOPIC)
    authorizer.change(added=[given, given])
    assert may(authorizer, Operation.READ)
    assert authorizer.allows_some("User:alice", HERE, Operation.READ, TOPIC)
    assert (len(authorizer), given in authorizer, list(authorizer)) == (1, True, [given])


@pytest.mark.case("SE-K31")
def test_a_denied_prefix_takes_away_the_right_on_some_topic() -> None:
    allowed = acl(Operation.WRITE, name="orders-1")
    assert authorizer_of(allowed).allows_some("User:alice", HERE, Operation.WRITE, TOPIC)
    denied = acl(Operation.WRITE, name="orders", pattern=PatternType.PREFIXED, permission=DENY)
    assert not authorizer_of(allowed, denied).allows_some("User:alice", HERE, Operation.WRITE, TOPIC)


def test_prefixes_that_are_gone_are_not_looked_for() -> None:
    """Also when two ACLs share a prefix, and two prefixes a length."""
    one, two, three = (
        acl(op, name=name, pattern=PatternType.PREFIXED)
        for op, name in ((Operation.READ, "ab"), (Operation.WRITE, "ab"), (Operation.READ, "xy"))
    )
    authorizer = authorizer_of(one, two, three)
    authorizer.change(removed=[one])
    assert may(authorizer, Operation.WRITE, "abc")
    authorizer.change(removed=[two])
    assert not may(authorizer, Operation.WRITE, "abc")
    assert may(authorizer, Operation.READ, "xyz")


@pytest.mark.case("SE-L05")
def test_authorized_operations_are_bits_of_what_the_type_has() -> None:
    everything = Authorizer(["User:alice"])
    bits = {
        ResourceType.TOPIC: (3, 4, 5, 6, 7, 8, 10, 11),
        ResourceType.GROUP: (3, 6, 8, 10, 11),
        ResourceType.CLUSTER: (5, 7, 8, 9, 10, 11, 12),
    }
    for kind, operations in bits.items():
        assert everything.operations("User:alice", HERE, kind, "x") == sum(1 << op for op in operations)
    assert authorizer_of(acl()).operations("User:alice", HERE, TOPIC, "t") == (1 << 3) + (1 << 8)


def test_the_memory_of_decisions_is_bounded() -> None:
    authorizer = authorizer_of(acl(name="*"))
    for number in range(DECISIONS_MAX + 10):
        assert may(authorizer, Operation.READ, str(number))
    assert len(authorizer._decided) == 10


def test_an_acl_comes_back_as_it_was_stored() -> None:
    given = acl(Operation.ALL, "x y", pattern=PatternType.PREFIXED, permission=DENY, host="10.0.0.1")
    assert restored(json.loads(json.dumps(stored(given)))) == given
