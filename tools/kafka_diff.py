"""Print what changed between two releases of Apache Kafka, as their jars show it: `kafka_diff.py OLD NEW`.

Messages and stored records with versions and fields, features, error codes and options, as Markdown; an asterisk marks
those that Partita has. Behaviour is not compared. Needs Java 17 and Maven, which fetches both releases.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from partita.admin.config import OPTIONS as ADMIN
from partita.broker.api.apis import SERVED
from partita.broker.api.features import RANGES
from partita.broker.config import BROKER_OPTIONS, TOPIC_OPTIONS
from partita.broker.groups.settings import OPTIONS as GROUP
from partita.consumer.config import OPTIONS as CONSUMER
from partita.producer.config import OPTIONS as PRODUCER
from partita.protocol.error_codes import ErrorCode
from vectors import make

SCHEMA = Path(make.ROOT, "src", "partita", "protocol", "schema")
OPTIONS: dict[str, Iterable[str]] = {
    "broker": BROKER_OPTIONS,
    "topic": TOPIC_OPTIONS,
    "group": GROUP,
    "consumer": [option.name for option in CONSUMER],
    "producer": [option.name for option in PRODUCER],
    "admin": [option.name for option in ADMIN],
}
"""The options of Partita, by the tables in which Kafka keeps its own."""
Release = dict[str, Any]
Served = Mapping[str, str]
"""What is said of the things that Partita has, by their names in the report."""


def release(version: str) -> Release:
    """The tables of a release, as the makers of the vectors print them."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("schema.json", "errors.json", "configs.json", "layouts.jsonl")]
        for file in files:
            file.write_text('{"broker": []}\n')
        schema, errors, configs, layouts = make.ask(files, version, ["--whole"]).values()
    return {
        "apis": {api["name"]: api for api in json.loads(schema)["apis"] if api["max"] >= 0},
        "features": json.loads(schema)["features"],
        "errors": {error["name"]: error for error in json.loads(errors)["errors"]},
        "options": {f"{table}: {option['name']}": option for table in OPTIONS for option in json.loads(configs)[table]},
        "layouts": {
            (row["name"], row["kind"], row["version"]): row["fields"] for row in map(json.loads, layouts.splitlines())
        },
    }


def served() -> Served:
    """What Partita has: APIs and features with their versions, records, errors and options."""
    texts = "\n".join(file.read_text() for file in SCHEMA.glob("*.txt"))
    records = re.findall(r"^(?:record_key|record_value|struct) (\w+) (\S+)", texts, re.MULTILINE)
    return {
        **{api.name: f"served to {api.max_version}" for api in SERVED.values()},
        **{f"{name} record": f"written in {versions}" for name, versions in records},
        **{name: f"served in {low} to {high}" for name, (low, high) in RANGES.items()},
        **dict.fromkeys(ErrorCode.__members__, "known"),
        **{f"{table}: {name}": "known" for table, options in OPTIONS.items() for name in options},
    }


def changes(old: Release, new: Release, served: Served) -> Iterator[str]:
    """The lines of the report."""

    def marked(name: str) -> str:
        return f" ({served[name]} *)" if name in served else ""

    yield "## APIs"
    for name in [*old["apis"], *(name for name in new["apis"] if name not in old["apis"])]:
        before, after = versions(old["apis"].get(name)), versions(new["apis"].get(name))
        if before != after:
            api = (new["apis"].get(name) or old["apis"][name])["api"]
            yield f"- {name} {api}: {before} -> {after}{marked(name)}"
    yield "\n## Fields"
    for title, said in layouts(old["layouts"], new["layouts"], old["apis"].keys()):
        yield f"- {title}: {said}{marked(title.rpartition(' ')[0])}"
    for heading, table, facts in (
        ("Features", "features", ("min", "max")),
        ("Errors", "errors", ("code", "retriable")),
        ("Options", "options", ("type", "default", "valid")),
    ):
        yield f"\n## {heading}"
        for name, line in rows(old[table], new[table], facts):
            yield f"- {line}{marked(name)}"


def versions(api: Mapping[str, Any] | None) -> str:
    return "none" if api is None else f"{api['min']}-{api['max']}"


def layouts(old: Mapping[Any, Any], new: Mapping[Any, Any], known: Any) -> Iterator[tuple[str, str]]:
    """Fields of versions that both have and that differ, and of new versions and records against the one before."""
    for key, fields in new.items():
        name, kind, version = key
        if name not in known and kind not in ("header", "record"):
            continue
        before = old[key] if key in old else new.get((name, kind, version - 1), [])
        if before == fields:
            continue
        had, has = dict(flat(before)), dict(flat(fields))
        came = [f"+{path} {has[path]}" for path in has if path not in had]
        went = [f"-{path}" for path in had if path not in has]
        other = [f"{path} {had[path]} -> {has[path]}" for path in has if path in had and has[path] != had[path]]
        yield f"{name} {kind} {version}", ", ".join(came + went + other) or "another order"
    for name, kind, version in sorted(old.keys() - new.keys()):
        if kind == "record":
            yield f"{name} {kind} {version}", "gone"


def flat(fields: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(path, type) of each field and of those inside it."""
    for field in fields:
        tag = f" tag {field['tag']}" if "tag" in field else ""
        yield prefix + field["name"], field["type"].lower() + tag
        yield from flat(field.get("fields", []), f"{prefix}{field['name']}.")


def rows(old: Mapping[str, Any], new: Mapping[str, Any], facts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(name, line) of each row of a table that came, went, or says something else."""
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = (
            {fact: row.get(fact) for fact in facts} if row else None for row in (old.get(name), new.get(name))
        )
        if before is None:
            said = ", ".join(f"{fact} {json.dumps(value)}" for fact, value in (after or {}).items())
            yield name, f"new {name}: {said}"
        elif after is None:
            yield name, f"gone {name}"
        elif before != after:
            said = ", ".join(
                f"{f} {json.dumps(before[f])} -> {json.dumps(after[f])}" for f in facts if before[f] != after[f]
            )
            yield name, f"{name}: {said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    options = parser.parse_args()
    print(f"# Apache Kafka {options.new} against {options.old}\n")
    print("\n".join(changes(release(options.old), release(options.new), served())))


if __name__ == "__main__":
    main()
