"""The five jars of pyspark that are a ZooKeeper server, and the Java to run them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from partita.java import JavaNotFound, find_java

NEEDED = ("zookeeper-3", "zookeeper-jute-", "slf4j-api-", "metrics-core-", "snappy-java-")
"""How the file names begin. Without snappy-java a server opens its port and never serves."""
ADVICE = "install it with: pip install 'partita[designs]'"


class NoZooKeeper(RuntimeError):
    """ZooKeeper cannot be started here; the message is one line that says what is missing."""


def find_jars(folder: Path | None = None) -> list[Path]:
    """The jars in `folder`, or in the installed pyspark. Raises NoZooKeeper naming those that are missing."""
    if folder is None:
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise NoZooKeeper(f"ZooKeeper is started from the jars of pyspark, which is not installed; {ADVICE}")
        folder = Path(spec.origin).parent / "jars"
    found = {name: sorted(folder.glob(f"{name}*.jar")) for name in NEEDED}
    missing = [f"{name}*.jar" for name, files in found.items() if not files]
    if missing:
        raise NoZooKeeper(f"{folder} lacks {', '.join(missing)}; a pyspark of version 4.3 has them, {ADVICE}")
    return [files[0] for files in found.values()]


def server_command(jars: list[Path], settings: Path) -> list[str]:
    """The command that runs one server. Raises NoZooKeeper if there is no Java."""
    try:
        java = find_java("ZooKeeper")
    except JavaNotFound as error:
        raise NoZooKeeper(str(error)) from None
    return [
        str(java.binary), "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
        "-Dzookeeper.jmx.log4j.disable=true", "-cp", ":".join(map(str, jars)),
        "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings),
    ]  # fmt: skip


def why_not() -> str | None:
    """The one line that says why ZooKeeper cannot be used here; None if it can."""
    if find_spec("kazoo") is None:
        return f"the old designs speak to ZooKeeper through kazoo, which is not installed; {ADVICE}"
    try:
        server_command(find_jars(), Path("zoo.cfg"))
    except NoZooKeeper as error:
        return str(error)
    return None
