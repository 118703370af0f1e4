"""Use an installed Partita as a first user does: the command line, the import, and records through a broker and back.

Run it with the Python that Partita is installed for, as the checks of the wheels do. With the path of README.md it runs
that page's blocks too, but Spark's, and then it needs pytest. Fails with a traceback.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import partita
from partita import Broker, Consumer, Producer

RECORDS = 200


def command_line() -> None:
    """`partita --version` and `partita doctor`, by the script that the install made."""
    script = Path(sys.executable).with_name("partita")
    said = subprocess.run([script, "--version"], check=True, capture_output=True, text=True).stdout
    assert said.split()[-1] == partita.__version__, said
    # Without a cluster that the user's own profiles name.
    alone = {name: text for name, text in os.environ.items() if name != "PARTITA_BOOTSTRAP"}
    subprocess.run([script, "doctor"], env=alone | {"PARTITA_CONFIG": os.devnull}, check=True, capture_output=True)


def round_trip() -> None:
    """Records of every codec that needs no extra come back from a group, each once and as they were."""
    codecs = ("none", "gzip", "snappy", "zstd")
    with Broker() as broker:
        for codec in codecs:
            with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec) as producer:
                for number in range(RECORDS):
                    producer.send("numbers", f"{codec} {number}", key=codec)
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["numbers"])
            values: list[bytes] = []
            while len(values) < RECORDS * len(codecs):
                values += [bytes(record.value) for record in consumer.poll(1.0)]
    assert sorted(values) == sorted(f"{codec} {number}".encode() for codec in codecs for number in range(RECORDS))


def blocks_of(readme: str) -> None:
    """The first run, the test and the commands, each by a process in an empty folder."""
    first_run, in_a_test, *_ = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (commands,) = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        Path(folder, "test_it.py").write_text(in_a_test)
        environment = {**os.environ, "PATH": path, "PARTITA_BOOTSTRAP": broker.bootstrap}

        def said(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        assert said(sys.executable, "-c", first_run) == "b'hello'\n"
        assert "1 passed" in said(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
        assert "one order" in said("sh", "-e", "-c", commands)


def main() -> None:
    """Run all checks."""
    assert Path(partita.__file__).is_relative_to(sys.prefix), f"{partita.__file__} is not the installed package"
    assert version("partita") == partita.__version__
    command_line()
    round_trip()
    for readme in sys.argv[1:]:
        blocks_of(Path(readme).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
