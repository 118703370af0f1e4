"""The five jars that are a ZooKeeper server, from `partita designs jars` or pyspark, and the Java for them."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from partita.cached_programs import cache_folder
from partita.java import JavaNotFound, find_java
from partita.lazy import later

if TYPE_CHECKING:
    from urllib import request
else:
    request = later("urllib.request")

NEEDED = ("zookeeper-3", "zookeeper-jute-", "slf4j-api-", "metrics-core-", "snappy-java-")
"""How the file names begin. Without snappy-java a server opens its port and never serves."""
REPOSITORY = "https://repo1.maven.org/maven2"
PINNED = {
    "org/apache/zookeeper/zookeeper/3.9.5/zookeeper-3.9.5.jar": (
        "936d025db1a85f085edea25048c3f5b3de5fc29329c371a10925e3b78b0b38a0"
    ),
    "org/apache/zookeeper/zookeeper-jute/3.9.5/zookeeper-jute-3.9.5.jar": (
        "abcbc7f9d6c493daa118da6fa3061a201e2c521217526e8535adfb56b629e52a"
    ),
    "org/slf4j/slf4j-api/2.0.17/slf4j-api-2.0.17.jar": (
        "7b751d952061954d5abfed7181c1f645d336091b679891591d63329c622eb832"
    ),
    "io/dropwizard/metrics/metrics-core/4.2.37/metrics-core-4.2.37.jar": (
        "3c70d19049d10f474ab803706b9c0677bcf5fd9e1afeb4f6c496f62e38b27678"
    ),
    "org/xerial/snappy/snappy-java/1.1.10.8/snappy-java-1.1.10.8.jar": (
        "50485d06037fea3d6e40c968386feeca6338cc9872e25549593ff3eb352cefcc"
    ),
}
"""The place of each jar in a Maven repository, and its SHA-256."""
ADVICE = "get its five jars, 4 MB, with: partita designs jars"
KAZOO_ADVICE = "install it with: pip install 'partita[designs]'"
FETCH_TIMEOUT_S = 30.0


class NoZooKeeper(RuntimeError):
    """ZooKeeper cannot be started here; the message is one line with the reason."""


def fetched_folder() -> Path:
    """The folder that `partita designs jars` fills."""
    return cache_folder() / "zookeeper"


def fetch_jars(repository: str = REPOSITORY) -> list[Path]:
    """Download the jars that are not there yet. Raises NoZooKeeper; a jar that is not the pinned one is not kept."""
    folder = fetched_folder()
    folder.mkdir(parents=True, exist_ok=True)
    fetched = []
    for place, digest in PINNED.items():
        jar = folder / place.rpartition("/")[2]
        if not jar.exists():
            url = f"{repository.rstrip('/')}/{place}"
            try:
                with request.urlopen(url, timeout=FETCH_TIMEOUT_S) as answer:
                    content: bytes = answer.read()
            except (OSError, ValueError) as error:
                raise NoZooKeeper(f"{url} could not be fetched: {error}") from None
            if hashlib.sha256(content).hexdigest() != digest:
                raise NoZooKeeper(f"{url} is not the file that was expected: its SHA-256 is not {digest}")
            half = folder / f".{jar.name}.{os.getpid()}"
            half.write_bytes(content)
            half.replace(jar)
        fetched.append(jar)
    return fetched


def find_jars(folder: Path | None = None) -> list[Path]:
    """The jars in `folder`; else those that were fetched; else those of an installed pyspark.

    Raises NoZooKeeper naming those that are missing.
    """
    if folder is None:
        fetched = [fetched_folder() / place.rpartition("/")[2] for place in PINNED]
        if all(jar.exists() for jar in fetched):
            return fetched
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise NoZooKeeper(f"ZooKeeper is not here, nor pyspark, which has it too; {ADVICE}")
        folder = Path(spec.origin).parent / "jars"
    found = {name: sorted(folder.glob(f"{name}*.jar")) for name in NEEDED}
    missing = [f"{name}*.jar" for name, files in found.items() if not files]
    if missing:
        raise NoZooKeeper(f"{folder} lacks {', '.join(missing)}; {ADVICE}")
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


def no_kazoo() -> str | None:
    """Return one line on the missing package without which no design can be imported; None if it is there."""
    if find_spec("kazoo") is None:
        return f"the old designs speak to ZooKeeper through kazoo, which is not installed; {KAZOO_ADVICE}"
    return None


def why_not() -> str | None:
    """Return one line on why ZooKeeper cannot be used here; None if it can."""
    if reason := no_kazoo():
        return reason
    try:
        server_command(find_jars(), Path("zoo.cfg"))
    except NoZooKeeper as error:
        return str(error)
    return None
