"""A broker goes away and comes back: `partita consume` says so once each, and reads on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from partita import Broker, Producer
from partita.designs.zookeeper.ports import free_ports


def test_consume_tells_of_an_outage_and_of_its_end(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with Broker(data_dir=str(tmp_path), port=port) as broker:
        bootstrap = broker.bootstrap
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send("t", b"before").result(60)
        command = [sys.executable, "-m", "partita.cli.main", "consume", "t", "-b", bootstrap, "--from", "earliest"]
        process = subprocess.Popen(
            [*command, "--max", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "before\n"
    told = process.stderr.readline()
    assert "no broker can be reached; trying again until one answers" in told
    assert f"127.0.0.1:{port}" in told
    with Broker(data_dir=str(tmp_path), port=port), Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("t", b"after").result(60)
        out, err = process.communicate(timeout=120)
    assert out == "after\n"
    (line,) = err.splitlines()
    assert "a broker answers again, after " in line
    assert process.returncode == 0
