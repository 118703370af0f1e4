"""ACLs in words."""

from __future__ import annotations

import pytest

from partita.security.rights.acl_text import AclTextError, acls_of
from partita.security.rights.acls import AclBinding, Operation, PatternType, Permission, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
ALLOW, DENY = Permission.ALLOW, Permission.DENY


@pytest.mark.parametrize(
    ("line", "acls"),
    [
        (
            "allow User:alice read,describe topic orders-*",
            [
                AclBinding(TOPIC, "orders-", "User:alice", Operation.READ, ALLOW, PatternType.PREFIXED),
                AclBinding(TOPIC, "orders-", "User:alice", Operation.DESCRIBE, ALLOW, PatternType.PREFIXED),
            ],
        ),
        ("DENY User:* all group *", [AclBinding(GROUP, "*", "User:*", Operation.ALL, DENY)]),
        (
            "allow User:a alter-configs cluster",
            [AclBinding(CLUSTER, "kafka-cluster", "User:a", Operation.ALTER_CONFIGS)],
        ),
        (
            'allow "User:CN=a b,O=c" idempotent_write cluster kafka-cluster from 10.0.0.7',
            [AclBinding(CLUSTER, "kafka-cluster", "User:CN=a b,O=c", Operation.IDEMPOTENT_WRITE, host="10.0.0.7")],
        ),
        (
            "allow User:a write transactional-id tx",
            [AclBinding(ResourceType.TRANSACTIONAL_ID, "tx", "User:a", Operation.WRITE)],
        ),
    ],
)
def test_a_line_stands_for_its_acls(line: str, acls: list[AclBinding]) -> None:
    assert acls_of(line) == acls


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("allow User:a read", "is not of the form: allow|deny PRINCIPAL"),
        ("allow User:a read topic a b", "is not of the form"),
        ("permit User:a read topic t", "'permit' is none of deny, allow"),
        ("allow User:a eat topic t", "'eat' is none of all, read, write"),
        ("allow User:a any topic t", "'any' is none of all"),
        ("allow alice read topic t", "names no type; write User:alice"),
        ("allow User:a read topic", "which topic? * means every one"),
        ("allow User:a alter cluster mine", "the cluster has no other name than kafka-cluster"),
        ("allow 'User:a read topic t", "No closing quotation"),
    ],
)
def test_a_line_that_says_none_is_refused_with_a_reason(line: str, reason: str) -> None:
    with pytest.raises(AclTextError) as raised:
        acls_of(line)
    assert reason in str(raised.value)
