"""Use an installed Partita as a first user does: the command line, the import, and records through a broker and back.

Run it with the Python that Partita is installed for, as the checks of the wheels do. Fails with a traceback.
"""

from __future__ import annotations

import subprocess
import sys
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
    subprocess.run([script, "doctor"], check=True, capture_output=True)


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


def main() -> None:
    """Run all checks."""
    assert Path(partita.__file__).is_relative_to(sys.prefix), f"{partita.__file__} is not the installed package"
    assert version("partita") == partita.__version__
    command_line()
    round_trip()


if __name__ == "__main__":
    main()
