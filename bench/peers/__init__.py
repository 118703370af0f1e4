"""The peers of the benchmarks that come as source: built once from their published modules, into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
NOIDA_DB = "0.2.3"
BUILD_LIMIT_S = 900.0
GO_PLACES = ("/usr/local/go/bin",)
CARGO_PLACES = (str(Path.home() / ".cargo" / "bin"),)


class PeerUnavailable(RuntimeError):
    """The toolchain of a peer is absent, or the peer could not be built."""


def cache(name: str) -> Path:
    """The folder in which a peer is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita" / name


def kfake() -> Path:
    """The program of bench/peers/kfake: one broker of franz-go's kfake. Raises PeerUnavailable."""
    source = HERE / "kfake"
    program = cache("kfake") / "kfake"
    newest = max((source / name).stat().st_mtime for name in ("main.go", "go.mod", "go.sum"))
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        _build([_tool("go", GO_PLACES), "build", "-o", str(program), "."], source)
    return program


def noida_db() -> Path:
    """The published crate noida-db with its Kafka service alone. Raises PeerUnavailable."""
    root = cache(f"noida-db-{NOIDA_DB}")
    program = root / "bin" / "noida-db"
    if not program.exists():
        features = ["--no-default-features", "--features", "kafka", "--locked"]
        command = [_tool("cargo", CARGO_PLACES), "install", "noida-db", "--version", NOIDA_DB, *features]
        _build([*command, "--root", str(root)], HERE)
    return program


def kcat() -> Path:
    """The installed kcat. Raises PeerUnavailable."""
    return Path(_tool("kcat", ()))


def java_clients(*arguments: str) -> list[str]:
    """The command that runs Clients.java with Kafka's jars. Raises PeerUnavailable."""
    from support.kafka.node import KafkaUnavailable, jars

    try:
        classpath = f"{jars()}/*"
    except KafkaUnavailable as reason:
        raise PeerUnavailable(str(reason).splitlines()[0]) from reason
    compiled = cache("java-clients")
    source, target = HERE / "Clients.java", compiled / "Clients.class"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        _build([_tool("javac", ()), "-cp", classpath, "-d", str(compiled), str(source)], HERE)
    return [_tool("java", ()), "-Xmx512m", "-cp", f"{compiled}:{classpath}", "Clients", *arguments]


def _tool(name: str, places: tuple[str, ...]) -> str:
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *places)))
    if found is None:
        raise PeerUnavailable(f"{name} is not installed")
    return found


def _build(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise PeerUnavailable(f"{Path(command[0]).name} took more than {BUILD_LIMIT_S:.0f} s to build") from late
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerUnavailable(f"{Path(command[0]).name} could not build it: {last}")
