"""`partita exporter` as a process: it answers from memory, also before a cluster is there and after it is gone."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from partita import Admin, Broker
from partita.cli.address import Address
from partita.cli.commands import cli
from partita.cli.service.exporter import Exporter
from support.clients.broker import until


@contextmanager
def exporter(*words: str) -> Iterator[str]:
    """Run it; its address. SIGTERM ends it well."""
    command = [sys.executable, "-m", "partita.cli.main", "exporter", "--port", "0", "--every", "0.1", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def page(url: str) -> str:
    with urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_lag_is_served_and_stays_when_the_cluster_is_gone() -> None:
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("orders", partitions=1)
            for name in ("billing", "bill\nof lading", "shipping"):
                admin.alter_group_offsets(name, {("orders", 0): 0})
        broker.produce("orders", b"x")
        with exporter("-b", broker.bootstrap, "--groups", "bill.*") as url:
            lag = 'partita_group_partition_lag_records{group="billing",topic="orders",partition="0"} 1\n'
            until(lambda: lag in page(url), "the lag is served")
            other = lag.replace("billing", "bill\\\\nof lading")
            until(lambda: other in page(url), "a newline hides no group")
            assert "shipping" not in page(url)
            assert "process_cpu_seconds_total" in page(url)
            broker.stop()
            until(lambda: "partita_up 0\n" in page(url), "the cluster is gone")
            assert lag in page(url)


def test_it_starts_without_a_cluster() -> None:
    with exporter("-b", "127.0.0.1:1", "-X", "socket.connection.setup.timeout.ms=200") as url:
        assert "partita_up 0\n" in page(url)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--groups", "("], "--groups expects a regular expression, not '('"),
        (["-X", "security.protocol=PLAINTXT"], "PLAINTXT"),
    ],
)
def test_wrong_options_are_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["exporter", *words])
    assert result.exit_code == 2
    assert said in result.output


def test_it_takes_a_properties_file(tmp_path: Path) -> None:
    """Like every command that connects (SE-Q06)."""
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("security.protocol=PLAINTXT\n")
    result = CliRunner().invoke(cli, ["exporter", "--command-config", str(wrong)])
    assert result.exit_code == 2
    assert "PLAINTXT" in result.output


def test_a_port_that_is_taken_is_one_line(partita_broker: Broker) -> None:
    port = partita_broker.bootstrap.rpartition(":")[2]
    result = CliRunner().invoke(cli, ["exporter", "-b", partita_broker.bootstrap, "--port", port])
    assert result.exit_code == 1
    assert f"cannot listen at 127.0.0.1:{port}" in result.output


def test_what_the_user_may_not_describe_takes_nothing_else_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Groups without the right are not listed, topics are left out, and the missing causes are named once."""
    rights = ["allow User:eve describe topic open", "allow User:eve describe group open"]
    with Broker({"super.users": "User:root"}, users={"eve": "e", "root": "r"}, acls=rights) as broker:
        with Admin(**broker.client_options("root")) as admin:
            broker.create_topics({"open": 1, "secret": 1})
            for group in ("open", "secret"):
                admin.alter_group_offsets(group, {("open", 0): 0, ("secret", 0): 0})
        options = dict(broker.client_options("eve"))
        exporter = Exporter(Address(str(options.pop("bootstrap_servers")), options), re.compile(".*"))

        async def looks() -> None:
            following = asyncio.create_task(exporter.followers.run())
            for _ in range(3):
                assert await exporter.look(), exporter.observed.trouble
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await exporter.poller.close()

        asyncio.run(looks())
    page = exporter.metrics_text()
    assert 'partita_group_up{group="open"} 1\n' in page
    assert 'partita_group_partition_lag_records{group="open",topic="open",partition="0"} 0\n' in page
    assert "secret" not in page
    assert capsys.readouterr().err.count("causes of rebalances are not known: __consumer_offsets is hidden") == 1
