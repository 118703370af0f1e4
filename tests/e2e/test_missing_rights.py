"""What a client says when a right is missing: whose, which, and the command that grants it (security.md 19, row 11)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Consumer, Producer, SomeFailed
from partita.cli.commands import cli
from partita.errors import KafkaError, MissingRightError, error_for
from partita.protocol.error_codes import ErrorCode

RIGHTS = ["allow User:alice read topic in", "allow User:alice read group open", "allow User:alice write topic out"]
RIGHTS += ["allow User:bob describe topic in"]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"super.users": "User:root"}, users={"alice": "a", "bob": "b", "root": "r"}, acls=RIGHTS) as running:
        running.create_topics({"in": 1, "orders": 1})
        yield running


def grant(broker: Broker, text: str, folder: Path) -> None:
    """Run the command that the message names, as root."""
    words = shlex.split(text[text.index("partita acls add") :])
    config = folder / "root.properties"
    options = broker.client_options("root", style="java")
    config.write_text("".join(f"{name}={value}\n" for name, value in options.items() if name != "bootstrap.servers"))
    result = CliRunner().invoke(cli, [*words[1:], "-b", broker.bootstrap, "--command-config", str(config)])
    assert result.exit_code == 0, result.output


def read_one(broker: Broker, topic: str, group: str) -> None:
    with Consumer(**broker.client_options("alice"), group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.2)
        consumer.commit({(topic, 0): 0})


def write_one(broker: Broker, topic: str, group: str) -> None:
    with Producer(**broker.client_options("alice")) as producer:
        producer.send(topic, b"x").result(10)


def write_as_bob(broker: Broker, topic: str, group: str) -> None:
    with Producer(**broker.client_options("bob")) as producer:
        producer.send(topic, b"x").result(10)


def in_transaction(broker: Broker, topic: str, group: str) -> None:
    with Producer(**broker.client_options("alice"), transactional_id="bank") as producer:
        producer.init_transactions()


@pytest.mark.parametrize(
    ("act", "topic", "group", "right", "option"),
    [
        (read_one, "orders", "open", "READ topic 'orders'", "--operation READ --topic orders"),
        (read_one, "in", "shut", "READ group 'shut'", "--operation READ --group shut"),
        (write_one, "in", "", "WRITE topic 'in'", "--operation WRITE --topic in"),
        (write_as_bob, "in", "", "IDEMPOTENT_WRITE the cluster", "--operation IDEMPOTENT_WRITE --cluster"),
        (in_transaction, "in", "", "WRITE transactional id 'bank'", "--operation WRITE --transactional-id bank"),
    ],
    ids=["topic", "group", "write", "cluster", "transactional-id"],
)
def test_the_message_names_who_lacks_what_and_its_command_grants_it(
    broker: Broker, tmp_path: Path, act: Callable[[Broker, str, str], None], topic: str, group: str, right: str,
    option: str,
) -> None:  # fmt: skip
    with pytest.raises(KafkaError) as refused:
        act(broker, topic, group)
    text = str(refused.value)
    code = error_of(refused.value).code.name
    user = "bob" if act is write_as_bob else "alice"
    command = f"partita acls add --allow User:{user} {option}"
    assert text.endswith(f"user {user!r} may not {right} ({code}). An administrator can allow it: {command}")
    grant(broker, text, tmp_path)
    if act is write_as_bob:  # who may write somewhere is not asked for the right to the cluster
        with pytest.raises(KafkaError, match="user 'bob' may not WRITE topic 'in'") as refused:
            act(broker, topic, group)
        grant(broker, str(refused.value), tmp_path)
    act(broker, topic, group)


def error_of(error: BaseException) -> MissingRightError:
    """The missing right itself, which an error about a transaction carries as its cause."""
    while not isinstance(error, MissingRightError):
        assert error.__cause__ is not None, repr(error)
        error = error.__cause__
    return error


@pytest.mark.parametrize("code", [29, 30, 31, 53])
def test_each_of_the_four_codes_names_the_right_if_it_is_known(code: int) -> None:
    names = [] if code == 31 else ["a", "b"]
    known = str(error_for(code, "text", operation="READ", names=names, user="u"))
    assert re.match(r"user 'u' may not READ [a-z ]+('a', 'b' )?\([A-Z_]+_FAILED\)\. An administrator", known)
    assert str(error_for(code, "text")) == f"{ErrorCode(code).name}: text"
    assert "this client may not" in str(error_for(code, "text", operation="READ", names=names))


def test_other_errors_keep_their_text() -> None:
    told: dict[str, Any] = {"operation": "READ", "names": ["t"], "user": "u"}
    assert str(error_for(ErrorCode.NOT_COORDINATOR, "gone", **told)) == "NOT_COORDINATOR: gone"
    assert json.dumps(str(error_for(3, "", **told))).startswith('"UNKNOWN_TOPIC_OR_PARTITION')


ADMIN: list[tuple[Callable[[Admin], Any], str]] = [
    (lambda a: a.create_topics("new"), "CREATE topic 'new'"),
    (lambda a: a.delete_topics("in"), "DELETE topic 'in'"),
    (lambda a: a.delete_records({("in", 0): 0}), "DELETE topic 'in'"),
    (lambda a: a.create_partitions("in", 3), "ALTER topic 'in'"),
    (lambda a: a.create_acls("allow User:x read topic y"), "ALTER the cluster"),
    (lambda a: a.describe_acls(), "DESCRIBE the cluster"),
    (lambda a: a.describe_client_quotas(), "DESCRIBE_CONFIGS the cluster"),
    (lambda a: a.describe_scram_users(), "DESCRIBE the cluster"),
    (lambda a: a.elect_leaders([("in", 0)]), "ALTER the cluster"),
    (lambda a: a.list_partition_reassignments(), "DESCRIBE the cluster"),
    (lambda a: a.describe_group("shut"), "DESCRIBE group 'shut'"),
    (lambda a: a.delete_groups("shut"), "DELETE group 'shut'"),
    (lambda a: a.group_offsets("shut"), "DESCRIBE group 'shut'"),
    (lambda a: a.alter_group_offsets("shut", {("in", 0): 1}), "READ group 'shut'"),
    (lambda a: a.alter_group_offsets("open", {("out", 0): 1}), "READ topic 'out'"),
]


@pytest.mark.parametrize(("act", "right"), ADMIN, ids=[right for _, right in ADMIN])
def test_the_admin_client_names_whose_right_is_missing_too(
    broker: Broker, act: Callable[[Admin], Any], right: str
) -> None:
    with Admin(**broker.client_options("alice")) as admin, pytest.raises(MissingRightError) as refused:
        act(admin)
    told = str(refused.value)
    assert told.startswith(f"user 'alice' may not {right} (")
    assert f"partita acls add --allow User:alice --operation {right.split()[0]} --" in told


def test_of_several_each_failure_names_its_own_thing(broker: Broker) -> None:
    with Admin(**broker.client_options("alice")) as admin, pytest.raises(SomeFailed) as refused:
        admin.delete_topics(["in", "out"])
    assert "may not DELETE topic 'in' (" in str(refused.value.failures["in"])
    assert "may not DELETE topic 'out' (" in str(refused.value.failures["out"])
