"""Every block of the README does what it says, and the page of compatibility is what the code says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Producer
from partita.cli.commands import cli
from support.spark.world import QUICK_START

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)
FIRST_RUN, IN_A_TEST, IN_SPARK = PYTHON_BLOCKS


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_first_run_prints_what_was_sent(tmp_path: Path) -> None:
    assert run("-W", "error", "-c", FIRST_RUN, cwd=tmp_path) == "b'hello'\n"


def test_the_test_of_the_readme_passes(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(IN_A_TEST)
    assert "1 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)


def test_the_commands_do_what_they_say() -> None:
    """As a user types them, with `echo ... |` as input; the broker beside them is named by the environment."""
    found = re.search(r"```sh\n(.*?)```", README, re.S)
    assert found is not None
    outputs = []
    with Broker() as broker:
        for line in found[1].splitlines():
            before, _, command = line.rpartition(" | ")
            words = shlex.split(command)
            assert words[0] == "partita"
            given = f"{shlex.split(before)[1]}\n" if before else None
            done = CliRunner(env={"PARTITA_BOOTSTRAP": broker.bootstrap}).invoke(cli, words[1:], input=given)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            outputs.append(done.output)
    assert "one order" in outputs[2]
    assert "readers" in outputs[3]


@pytest.mark.spark
def test_spark_reads_the_topic(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_START["spark.driver.extraJavaOptions"])
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("orders")
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("orders", "one order")
        assert "localhost:9092" in IN_SPARK
        exec(IN_SPARK.replace("localhost:9092", broker.bootstrap), {})
    assert "one order" in capsys.readouterr().out


def test_the_page_of_compatibility_is_current() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "compatibility.py"), "--check"])
    assert done.returncode == 0, "docs/compatibility.md is stale; run: python tools/compatibility.py"


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []
