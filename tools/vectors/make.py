"""Make the golden vectors: put the cases of each file to Apache Kafka's own classes and write what they answer.

`make.py [FILE...]` writes the files (all of them by default), `--check` compares and writes nothing. A file is its own
list of cases: what is an input stays, what is an answer is asked again. Versions of an API without a case are given new
ones from a fixed seed; `--api NAME` does that for an API without any. tools/vectors/README.md says what each file asks.

Needs Java 17 and Maven, which fetches the release that `--kafka` names.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VECTORS = ROOT / "tests" / "vectors"
BUILD = ROOT / "build" / "vectors"
RELEASE = "4.4.0"
MADE = (
    "acls.jsonl.gz", "security.jsonl", "transaction-log-written.jsonl", "transaction-moves.jsonl.gz",
    "assignors-cooperative-sticky.jsonl.gz", "assignors-range.jsonl.gz", "assignors-roundrobin.jsonl.gz",
    "assignors-server-range.jsonl.gz", "assignors-server-simple.jsonl.gz", "assignors-server-uniform.jsonl.gz",
    "assignors-sticky.jsonl.gz", "record-batches.jsonl.gz", "streams.jsonl.gz",
    "configs.json", "consumer-protocol.jsonl", "coordinator-hash.jsonl", "errors.json", "group-log.jsonl",
    "layouts.jsonl.gz", "messages.jsonl.gz", "murmur2.jsonl", "schema.json",
    "share-log.jsonl", "transaction-log.jsonl",
)  # fmt: skip
"""The files that the programs beside this one can ask."""
BY_MEASURE = ("assignors-server-uniform", "assignors-server-simple")
"""Here the order of Java's hash maps, which the cases do not hold, chooses among answers that are equally good."""


def class_path(release: str) -> str:
    """The jars of a release and the makers compiled against them; Maven is asked once."""
    jars = BUILD / release / "classpath"
    if not jars.exists():
        jars.parent.mkdir(parents=True, exist_ok=True)
        made = f"-Dmdep.outputFile={jars}.new"
        options = [f"-Dkafka.version={release}", "-DincludeScope=runtime", made]
        run("mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:build-classpath", *options)
        Path(f"{jars}.new").replace(jars)
    classes = BUILD / release / "classes"
    sources = sorted((HERE / "java").rglob("*.java"))
    newest = max(source.stat().st_mtime for source in sources)
    if not (classes / "Ask.class").exists() or (classes / "Ask.class").stat().st_mtime < newest:
        copies = fitted(sources, jars.read_text().split(os.pathsep), BUILD / release / "java")
        run("javac", "-d", str(classes), "-cp", jars.read_text(), *map(str, copies))
        os.utime(classes / "Ask.class")
    return f"{classes}{os.pathsep}{jars.read_text()}"


def fitted(sources: Sequence[Path], jars: Sequence[str], folder: Path) -> list[Path]:
    """Copies of the sources whose imports name the packages of this release: Kafka moves classes between packages.

    A source that asks a class which the release does not have is left out.
    """
    packages: dict[str, set[str]] = defaultdict(set)
    for jar in jars:
        for entry in zipfile.ZipFile(jar).namelist():
            package, _, name = entry.removesuffix(".class").replace("/", ".").rpartition(".")
            if package.startswith("org.apache.kafka"):
                packages[name].add(package)

    def where(found: re.Match[str]) -> str:
        package, name = found.groups()
        there = packages[name.replace(".", "$")]
        return f"import {package if package in there or len(there) != 1 else next(iter(there))}.{name};"

    folder.mkdir(parents=True, exist_ok=True)
    imports = re.compile(r"import (org\.apache\.kafka[a-z.]*)\.([A-Z][\w.]*);")
    kept: list[Path] = []
    for source in sources:
        text = source.read_text()
        if all(packages[name.replace(".", "$")] for _, name in imports.findall(text)):
            kept.append(folder / source.name)
            kept[-1].write_text(imports.sub(where, text))
    return kept


def run(*command: str) -> None:
    """Run a program to its end; leave with what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def text_of(path: Path) -> str:
    """The file as text, unpacked."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def write(path: Path, text: str) -> None:
    """Write a vector file; the same text gives the same bytes."""
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def ask(files: Sequence[Path], release: str, arguments: Sequence[str] = ()) -> dict[Path, str]:
    """What Kafka answers to the cases of each file, as the text of the file."""
    with tempfile.TemporaryDirectory() as folder:
        cases, answers = Path(folder, "cases"), Path(folder, "answers")
        cases.mkdir()
        answers.mkdir()
        names = {file: file.name.removesuffix(".gz") for file in files}
        for file, name in names.items():
            text = text_of(file)
            Path(cases, name).write_text(json.dumps(json.loads(text)) if name.endswith(".json") else text)
        java = ["java", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        run(*java, "-cp", class_path(release), "Ask", str(cases), str(answers), ",".join(names.values()), *arguments)
        return {file: Path(answers, name).read_text() for file, name in names.items()}


def records(file: Path, text: str) -> list[Any]:
    """The lines of a file, parsed; a file that is one JSON text counts as one."""
    parts = [text] if file.name.endswith(".json") else text.splitlines()
    return [json.loads(part) for part in parts]


def verdict(file: Path, answered: str) -> str:
    """How the answers compare with the file: the words that are printed."""
    present = text_of(file)
    if answered == present:
        return "byte for byte"
    old, new = records(file, present), records(file, answered)
    if old == new:
        return "equal as JSON"
    if file.name.startswith(BY_MEASURE) and [measured(case) for case in old] == [measured(case) for case in new]:
        return "equal in every measure"
    different = [number for number, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b]
    first = f", first in line {different[0]}" if different else ""
    return f"DIFFERS: {len(different)} of {len(old)} lines{first}; {len(new)} lines answered"


def measured(case: Any) -> list[tuple[list[int], object, object]]:
    """What must not change in a sequence of rounds: how many partitions members have, and the measures."""
    return [
        (sorted(round_.get("counts", {}).values()), round_.get("measures"), round_.get("error"))
        for round_ in case["rounds"]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="names of files, without suffix or with it")
    parser.add_argument("--kafka", default=RELEASE, metavar="RELEASE", help="the release to ask (%(default)s)")
    parser.add_argument("--vectors", type=Path, default=VECTORS, metavar="FOLDER", help="where the files are")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write there instead of over the files")
    parser.add_argument("--api", action="append", default=[], metavar="NAME", help="make cases for this API too")
    parser.add_argument("--check", action="store_true", help="compare, write nothing, fail if a file differs")
    options = parser.parse_args(arguments)
    present = [file for file in sorted(options.vectors.glob("*.json*")) if file.name in MADE]
    wanted = [file for file in present if not options.files or file.name.partition(".")[0] in stems(options.files)]
    if missing := stems(options.files) - {file.name.partition(".")[0] for file in wanted}:
        parser.error(f"no such files in {options.vectors}: {', '.join(sorted(missing))}")
    differing = 0
    for file, answered in ask(wanted, options.kafka, options.api).items():
        said = verdict(file, answered)
        differing += said.startswith("DIFFERS")
        print(f"{file.name}: {said}")
        if not options.check and (said.startswith("DIFFERS") or options.out):
            write((options.out or options.vectors) / file.name, answered)
    return 1 if options.check and differing else 0


def stems(names: Sequence[str]) -> set[str]:
    """File names without what follows the first point."""
    return {Path(name).name.partition(".")[0] for name in names}


if __name__ == "__main__":
    sys.exit(main())
