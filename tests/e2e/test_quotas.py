"""Quotas through the admin client and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from partita import Admin, Broker
from partita.admin.results import ClientQuota
from partita.cli.commands import cli
from partita.errors import InvalidRequestError


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_quotas_are_set_found_and_removed(broker: Broker) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_client_quotas({"producer_byte_rate": 1000, "request_percentage": 50}, user="alice")
        admin.alter_client_quotas({"consumer_byte_rate": 10}, user=None, client_id="c")
        admin.alter_client_quotas({"producer_byte_rate": 1}, user="bob", validate_only=True)
        own = ClientQuota({"user": "alice"}, {"producer_byte_rate": 1000, "request_percentage": 50})
        default = ClientQuota({"client-id": "c", "user": None}, {"consumer_byte_rate": 10})
        assert admin.describe_client_quotas() == [own, default]
        assert admin.describe_client_quotas(user="alice") == [own]
        assert admin.describe_client_quotas(user=None) == [default]
        assert admin.describe_client_quotas(user=None, strict=True) == []
        admin.alter_client_quotas({"producer_byte_rate": None, "request_percentage": None}, user="alice")
        assert admin.describe_client_quotas() == [default]
        with pytest.raises(InvalidRequestError, match="Quota producer_byte_rate must be greater than 0"):
            admin.alter_client_quotas({"producer_byte_rate": 0}, user="alice")
        with pytest.raises(InvalidRequestError, match="Invalid empty client quota entity"):
            admin.alter_client_quotas({"producer_byte_rate": 1})


def test_quotas_on_the_command_line(broker: Broker) -> None:
    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, ["quotas", *words, "-b", broker.bootstrap])
        assert result.exit_code == code, result.output
        return result.output

    assert run("list") == "no quotas\n"
    assert run("set", "producer_byte_rate=1000000", "request_percentage=12.5", "--user", "alice") == "set 2 quotas\n"
    assert run("set", "connection_creation_rate=5", "--ip", "<default>") == "set 1 quota\n"
    rows = [line.split() for line in run("list").splitlines()]
    assert rows[1:] == [
        ["alice", "-", "-", "producer_byte_rate", "1000000"],
        ["alice", "-", "-", "request_percentage", "12.5"],
        ["-", "-", "<default>", "connection_creation_rate", "5"],
    ]
    (found,) = json.loads(run("list", "--ip", "<default>", "--json"))
    assert found == {"entity": {"ip": None}, "quotas": {"connection_creation_rate": 5.0}}
    assert run("remove", "producer_byte_rate", "request_percentage", "--user", "alice") == "removed 2 quotas\n"
    assert "whose quotas?" in run("set", "producer_byte_rate=1", code=2)
    assert "a quota is a number" in run("set", "producer_byte_rate=fast", "--user", "a", code=2)
    assert "cannot be a fractional value" in run("set", "producer_byte_rate=1.5", "--user", "a", code=1)
