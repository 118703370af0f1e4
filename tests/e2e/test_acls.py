"""ACLs through the admin client and the command line, against a broker over real sockets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Producer
from partita.admin import AclBinding, AclFilter, SomeFailed
from partita.broker.launch import StartError
from partita.cli.commands import cli
from partita.errors import InvalidRequestError, SecurityDisabledError, TopicAuthorizationFailedError
from partita.security.rights.acls import Operation, PatternType, Permission, ResourceType

Run = Callable[..., str]
READ_T = AclBinding(ResourceType.TOPIC, "t", "User:alice", Operation.READ)


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Whoever connects without a login may do everything."""
    with Broker({"authorizer.class.name": "standard", "super.users": "User:ANONYMOUS"}) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as client:
        yield client


@pytest.fixture
def run(broker: Broker) -> Run:
    def call(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, ["acls", *words, "-b", broker.bootstrap])
        assert result.exit_code == code, result.output
        return result.output

    return call


def test_acls_are_created_found_and_deleted(admin: Admin) -> None:
    admin.create_acls(READ_T, "deny User:bob all topic o*", "allow User:* describe cluster from 127.0.0.1")
    prefix = AclBinding(ResourceType.TOPIC, "o", "User:bob", Operation.ALL, Permission.DENY, PatternType.PREFIXED)
    assert len(admin.describe_acls()) == 3
    assert admin.describe_acls(AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH)) == [prefix]
    assert admin.delete_acls(READ_T, AclFilter(principal="User:bob")) == [READ_T, prefix]
    (left,) = admin.describe_acls()
    assert (left.host, left.resource_name) == ("127.0.0.1", "kafka-cluster")


def test_an_acl_that_is_refused_is_named(admin: Admin) -> None:
    nameless = AclBinding(ResourceType.TOPIC, "", "User:alice", Operation.READ)
    with pytest.raises(InvalidRequestError, match="Invalid empty resource name"):
        admin.create_acls(nameless)
    with pytest.raises(SomeFailed, match="on TOPIC:LITERAL:: INVALID_REQUEST: Invalid empty resource name"):
        admin.create_acls(nameless, READ_T)
    assert admin.describe_acls() == [READ_T]
    with pytest.raises(InvalidRequestError):
        admin.delete_acls(AclFilter(operation=Operation.UNKNOWN))


def test_without_an_authorizer_the_error_says_so() -> None:
    with (
        Broker() as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        pytest.raises(SecurityDisabledError, match="No Authorizer is configured"),
    ):
        admin.describe_acls()


def shown(output: str) -> list[tuple[str, ...]]:
    """The rows of the table, without principal and host."""
    return [tuple(line.split()[1:6]) for line in output.splitlines() if line.startswith("User:")]


@pytest.mark.case("SE-Q08")
def test_the_roles_of_kafka_acls(run: Run) -> None:
    told = run("add", "--consumer", "--principal", "User:a", "--topic", "t", "--group", "g")
    consumer = [
        ("ALLOW", "READ", "TOPIC", "t", "LITERAL"),
        ("ALLOW", "DESCRIBE", "TOPIC", "t", "LITERAL"),
        ("ALLOW", "READ", "GROUP", "g", "LITERAL"),
    ]
    assert shown(told) == shown(run("list")) == consumer
    run("add", "--producer", "--allow", "User:b", "--topic", "p", "--prefix", "--transactional-id", "x")
    assert shown(run("list", "--principal", "User:b")) == [
        ("ALLOW", "WRITE", "TOPIC", "p", "PREFIXED"),
        ("ALLOW", "DESCRIBE", "TOPIC", "p", "PREFIXED"),
        ("ALLOW", "CREATE", "TOPIC", "p", "PREFIXED"),
        ("ALLOW", "WRITE", "TRANSACTIONAL_ID", "x", "PREFIXED"),
        ("ALLOW", "DESCRIBE", "TRANSACTIONAL_ID", "x", "PREFIXED"),
    ]
    assert len(shown(run("list", "--topic", "pa", "--match"))) == 3
    assert len(shown(run("list", "--topic", "p", "--prefix"))) == 3
    assert run("list", "--group", "other") == "no ACLs\n"


def test_acls_are_added_and_removed_by_options_and_by_lines(run: Run) -> None:
    run("add", "--deny", "User:a", "--operation", "alter-configs", "--cluster", "--host", "10.0.0.7")
    run("add", "allow User:a read,write topic t", "allow User:b all topic *")
    (first, *_) = json.loads(run("list", "--json"))
    assert first == {
        "principal": "User:a", "permission": "DENY", "operation": "ALTER_CONFIGS", "resource_type": "CLUSTER",
        "resource_name": "kafka-cluster", "pattern_type": "LITERAL", "host": "10.0.0.7",
    }  # fmt: skip
    assert "removed 1 ACL\n" in run("remove", "allow User:a read topic t", "--yes")
    assert "removed 1 ACL\n" in run("remove", "--topic", "t", "--yes")
    assert "removed 1 ACL\n" in run("remove", "--deny", "User:a", "--operation", "alter_configs", "--cluster",
                                    "--host", "10.0.0.7", "--yes")  # fmt: skip
    assert shown(run("list")) == [("ALLOW", "ALL", "TOPIC", "*", "LITERAL")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["add", "--allow", "User:a"], "say who (--allow or --deny) and which resource"),
        (["add", "--topic", "t"], "say who (--allow or --deny)"),
        (["add"], "say who (--allow or --deny)"),
        (["add", "--allow", "User:a", "--topic", "t", "--operation", "eat"], "'eat' is none of all, read"),
        (["add", "--allow", "User:a", "--topic", "t", "--consumer", "--operation", "read"], "leave --operation out"),
        (["add", "allow alice read topic t"], "write User:alice"),
        (["remove", "--yes"], "which ACLs?"),
    ],
)
def test_what_is_no_acl_is_bad_input(run: Run, words: list[str], told: str) -> None:
    assert told in run(*words, code=2)


def test_a_host_that_can_never_match_is_warned_of(run: Run) -> None:
    told = run("add", "--allow", "User:a", "--topic", "t", "--host", "example.com")
    assert "host example.com is no address and no network: this rule will never match" in told


def test_refusals_are_among_the_notes() -> None:
    acls = ["allow User:alice read topic t"]
    with Broker(users={"alice": "a", "bob": "b"}, acls=acls) as broker:
        broker.create_topics({"t": 1})
        with Producer(**broker.client_options("bob")) as producer, pytest.raises(TopicAuthorizationFailedError):
            producer.send("t", b"x").result()
        denied = [note for note in broker.notes() if note["note"] == "Denied"]
    assert {key: denied[-1][key] for key in ("principal", "operation", "resource", "name", "api")} == {
        "principal": "User:bob", "operation": "DESCRIBE", "resource": "Topic", "name": "t", "api": "Metadata",
    }  # fmt: skip


def damaged(folder: Path, line: int, *, is_torn: bool) -> None:
    """A catalogue after a crash: the line from behind is torn, or a byte of it is wrong."""
    (folder / "clean").unlink()
    path = folder / "catalogue"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line][: len(lines[line]) // 2] if is_torn else lines[line].replace(b"User:a", b"User:x", 1)
    path.write_bytes(b"".join(lines))


@pytest.mark.case("SE-P16")
def test_a_damaged_catalogue_never_forgets_a_denial(tmp_path: Path) -> None:
    """A line that a crash tore was answered to nobody. Anything else is refused: no fewer denials are ever served."""
    settings = {"authorizer.class.name": "standard", "super.users": "User:ANONYMOUS"}
    denials = [f"deny User:{user} read topic t" for user in ("a", "b", "c")]
    with Broker(settings, data_dir=str(tmp_path / "d")) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        for denial in denials:
            admin.create_acls(denial)
    for name in ("torn", "bad"):
        shutil.copytree(tmp_path / "d", tmp_path / name)
    damaged(tmp_path / "bad", -3, is_torn=False)
    with pytest.raises(StartError, match=r"catalogue is damaged in line \d+"):
        Broker(settings, data_dir=str(tmp_path / "bad")).start()
    damaged(tmp_path / "torn", -1, is_torn=True)
    with (
        Broker(settings, data_dir=str(tmp_path / "torn")) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        assert [acl.principal for acl in admin.describe_acls()] == ["User:a", "User:b"]
