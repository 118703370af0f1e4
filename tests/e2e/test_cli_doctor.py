"""`partita doctor` on the way to a cluster: it stops where the way is blocked and says why. (SE-Q10, without TLS.)"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from partita import Broker
from partita.cli.commands import cli
from partita.designs.zookeeper.ports import free_ports
from partita.testing.plugin import BrokerFactory


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def doctor(servers: str, *words: str) -> tuple[int, list[str]]:
    """Exit code, and the lines after those about the installation."""
    result = CliRunner().invoke(cli, ["doctor", "-b", servers, *words])
    lines = result.output.splitlines()
    first: Any = next((place for place, line in enumerate(lines) if "bootstrap " in line), 0)
    return result.exit_code, lines[first:]


@pytest.mark.partita(nodes=2)
def test_the_whole_way_is_fine(partita_broker: Broker) -> None:
    code, lines = doctor(partita_broker.bootstrap.split(",")[0])
    assert code == 0
    assert [line.split()[0] for line in lines] == ["ok"] * 7
    assert "2 brokers, controller 1" in lines[2]
    assert "answers and serves" in lines[-1]


def test_nobody_listens(nobody: str) -> None:
    code, lines = doctor(nobody)
    assert code == 1
    assert "no TCP connection: Connection refused" in lines[0]
    assert "-> is a broker running there?" in lines[1]
    assert len(lines) == 2


def test_a_name_that_is_not_known() -> None:
    code, lines = doctor("nowhere.invalid:9092")
    assert code == 1
    assert "the name is not known" in lines[0]


def test_an_advertised_address_that_leads_nowhere(partita_broker_factory: BrokerFactory, nobody: str) -> None:
    (port,) = free_ports(1)
    broker = partita_broker_factory(
        listeners=f"PLAINTEXT://127.0.0.1:{port}", advertised_listeners=f"PLAINTEXT://{nobody}"
    )
    assert broker.bootstrap
    code, lines = doctor(f"127.0.0.1:{port}")
    assert code == 1
    assert any(f"broker 1 at {nobody}" in line and "no TCP connection" in line for line in lines), lines
    assert "check advertised.listeners" in lines[-1]


def test_the_wrong_protocol_is_told_as_a_client_tells_it(partita_broker: Broker) -> None:
    code, lines = doctor(partita_broker.bootstrap, "-X", "security.protocol=SSL")
    assert code == 1
    assert "FAULT    protocol SSL" in lines[1]


def test_nonsense_is_no_address() -> None:
    assert doctor("x:y")[0] == 2


def test_without_an_address_only_the_installation_is_checked() -> None:
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 0
    assert "bootstrap" not in result.output
