"""Spark on a secured cluster: what works, what is refused at once, and that no secret is anywhere to be found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from partita import Admin, Producer
from support.broker.process import BrokerProcess
from support.certificates import Certificates
from support.spark import secured_job

pytestmark = pytest.mark.spark

PASSWORD = "correct-horse-battery-staple"
KEY_PASSWORD = "opens-no-door"
USERS = f"PlainLoginModule required user_alice='{PASSWORD}' user_admin='admin';"
ACLS = ("allow User:alice all topic in", "allow User:alice all topic copied", "allow User:alice read group mine")


class Job:
    """What the job told, and where everything is that it left."""

    def __init__(self, folder: Path, told: list[dict[str, Any]], committed: dict[str, int]) -> None:
        self.folder = folder
        self.committed = committed
        self._told = told

    def told(self, name: str, **wanted: object) -> Any:
        """The fact of this name that was told with these others."""
        return next(fact for fact in self._told if name in fact and wanted.items() <= fact.items())[name]

    def output(self) -> str:
        """Everything that Spark and the job printed."""
        return (self.folder / "output").read_text()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("job")
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(certificates.issue("localhost")),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with BrokerProcess(*(f"--set={name}={value}" for name, value in settings.items())) as broker:
        client: dict[str, Any] = {
            "bootstrap_servers": broker.bootstrap, "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN",
            "sasl_username": "admin", "sasl_password": "admin", "ssl_ca_location": str(certificates.ca),
        }  # fmt: skip
        with Admin(**client) as admin, Producer(**client) as producer:
            for topic in ("in", "copied"):
                admin.create_topic(topic, partitions=2)
            admin.create_acls(*ACLS)
            for value in (b"a", b"b", b"c"):
                producer.send("in", value)
            producer.flush()
            options = {
                "kafka.bootstrap.servers": broker.bootstrap,
                "kafka.security.protocol": "SASL_SSL",
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.jaas.config": f"PlainLoginModule required username='alice' password='{PASSWORD}';",
                "kafka.ssl.truststore.type": "PEM",
                "kafka.ssl.truststore.location": str(certificates.ca),
                "kafka.ssl.key.password": KEY_PASSWORD,
            }
            (folder / "options.json").write_text(json.dumps(options))
            told = run_job(folder)
            committed = {
                group: sum(offset.offset for offset in admin.group_offsets(group)) for group in ("mine", "theirs")
            }
    return Job(folder, told, committed)


def run_job(folder: Path) -> list[dict[str, Any]]:
    """Run it to its end; its output and errors, and those of Java and all workers, go into one file."""
    command = [sys.executable, str(Path(secured_job.__file__)), str(folder)]
    with (folder / "output").open("w") as output:
        done = subprocess.run(command, stdout=output, stderr=output, env=dict(os.environ), timeout=240)
    text = (folder / "output").read_text()
    (folder / "options.json").unlink()
    assert done.returncode == 0, text[-3000:]
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.case("SE-Q01")
def test_batch_stream_and_sink_work_with_the_options_of_sparks_connector(job: Job) -> None:
    assert job.told("read") == ["a", "b", "c"]
    assert job.told("ended", streamed="allowed") == "None"
    assert job.told("copied") == 9, "once by the batch, and by each of two streams"


@pytest.mark.case("SE-Q03")
def test_no_secret_is_in_anything_that_spark_prints_or_keeps(job: Job) -> None:
    """Plans in five forms, progress, the log at level INFO, the event log, checkpoints, the text of an error."""
    assert job.told("plans") == len(secured_job.EXPLAIN_MODES)
    assert job.told("progress", streamed="allowed"), "there is progress to look at"
    files = [path for path in job.folder.rglob("*") if path.is_file()]
    names = " ".join(str(path.relative_to(job.folder)) for path in files)
    assert "events/" in names
    assert "checkpoint-allowed/offsets/0" in names
    output = job.output()
    assert "== Physical Plan ==" in output
    assert " INFO " in output
    assert any(b"SparkListenerSQLExecutionStart" in path.read_bytes() for path in files), "the event log is readable"
    for path in files:
        content = path.read_bytes()
        for secret in (PASSWORD, KEY_PASSWORD):
            assert secret.encode() not in content, path


@pytest.mark.case("SE-Q04")
def test_a_wrong_password_fails_the_planning_at_once(job: Job) -> None:
    said = job.told("wrong")
    assert "refused the login of user 'alice' by PLAIN: Authentication failed: Invalid username or password" in said
    events = [json.loads(line) for path in (job.folder / "events").rglob("events_*") for line in path.open()]
    starts = [event for event in events if event["Event"] == "SparkListenerTaskStart"]
    failed = [event for event in events if event["Event"] == "SparkListenerTaskEnd" and event["Task Info"]["Failed"]]
    assert starts
    assert not failed, "no task was started for it"


@pytest.mark.case("SE-Q05")
def test_without_a_right_to_the_group_the_query_runs_and_commits_nothing(job: Job) -> None:
    assert job.told("ended", streamed="without-group") == "None"
    assert job.committed == {"mine": 3, "theirs": 0}
    warnings = [line for line in job.output().splitlines() if "group theirs" in line]
    assert len(warnings) == 1, warnings
    assert "The query goes on by its checkpoint" in warnings[0]
