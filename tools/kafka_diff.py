"""Print what changed between two releases of Apache Kafka, as their jars show it: `kafka_diff.py OLD NEW`.

Messages with their versions and fields, error codes and options, as Markdown; APIs that Partita serves are marked with
an asterisk. Behaviour is not compared. Needs Java 17 and Maven, which fetches both releases.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from partita.broker.api.apis import SERVED
from vectors import make

TABLES = ("broker", "topic", "group", "consumer", "producer", "admin")
Release = dict[str, Any]


def release(version: str) -> Release:
    """The tables of a release, as the makers of the vectors print them."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("schema.json", "errors.json", "configs.json", "layouts.jsonl")]
        for file in files:
            file.write_text('{"broker": []}\n')
        schema, errors, configs, layouts = make.ask(files, version, ["--whole"]).values()
    return {
        "apis": {api["name"]: api for api in json.loads(schema)["apis"] if api["max"] >= 0},
        "errors": {error["name"]: error for error in json.loads(errors)["errors"]},
        "options": {f"{table}: {option['name']}": option for table in TABLES for option in json.loads(configs)[table]},
        "layouts": {
            (row["name"], row["kind"], row["version"]): row["fields"] for row in map(json.loads, layouts.splitlines())
        },
    }


def changes(old: Release, new: Release, served: Mapping[str, int]) -> Iterator[str]:
    """The lines of the report. `served` maps the names of APIs to the newest version that Partita serves."""
    yield "## APIs"
    yield from apis(old["apis"], new["apis"], served)
    yield "\n## Fields"
    yield from layouts(old["layouts"], new["layouts"], old["apis"].keys())
    yield "\n## Errors"
    yield from rows(old["errors"], new["errors"], ("code", "retriable"))
    yield "\n## Options"
    yield from rows(old["options"], new["options"], ("type", "default", "valid"))


def apis(old: Mapping[str, Any], new: Mapping[str, Any], served: Mapping[str, int]) -> Iterator[str]:
    """APIs that came, went, or read other versions."""
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = versions(old.get(name)), versions(new.get(name))
        if before != after:
            mark = f", served to {served[name]} *" if name in served else ""
            yield f"- {name} {(new.get(name) or old[name])['api']}: {before} -> {after}{mark}"


def versions(api: Mapping[str, Any] | None) -> str:
    return "none" if api is None else f"{api['min']}-{api['max']}"


def layouts(old: Mapping[Any, Any], new: Mapping[Any, Any], known: Any) -> Iterator[str]:
    """Fields of versions that both have and that differ, and of new versions against the one before."""
    for key, fields in new.items():
        name, kind, version = key
        if name not in known and kind != "header":
            continue
        before = old[key] if key in old else new.get((name, kind, version - 1), [])
        if before == fields:
            continue
        had, has = dict(flat(before)), dict(flat(fields))
        came = [f"+{path} {has[path]}" for path in has if path not in had]
        went = [f"-{path}" for path in had if path not in has]
        other = [f"{path} {had[path]} -> {has[path]}" for path in has if path in had and has[path] != had[path]]
        yield f"- {name} {kind} {version}: {', '.join(came + went + other) or 'another order'}"


def flat(fields: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(path, type) of each field and of those inside it."""
    for field in fields:
        tag = f" tag {field['tag']}" if "tag" in field else ""
        yield prefix + field["name"], field["type"].lower() + tag
        yield from flat(field.get("fields", []), f"{prefix}{field['name']}.")


def rows(old: Mapping[str, Any], new: Mapping[str, Any], facts: tuple[str, ...]) -> Iterator[str]:
    """Rows of a table that came, went, or say something else."""
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = (
            {fact: row.get(fact) for fact in facts} if row else None for row in (old.get(name), new.get(name))
        )
        if before is None:
            said = ", ".join(f"{fact} {json.dumps(value)}" for fact, value in (after or {}).items())
            yield f"- new {name}: {said}"
        elif after is None:
            yield f"- gone {name}"
        elif before != after:
            said = ", ".join(
                f"{f} {json.dumps(before[f])} -> {json.dumps(after[f])}" for f in facts if before[f] != after[f]
            )
            yield f"- {name}: {said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    options = parser.parse_args()
    served = {api.name: api.max_version for api in SERVED.values()}
    print(f"# Apache Kafka {options.new} against {options.old}\n")
    print("\n".join(changes(release(options.old), release(options.new), served)))


if __name__ == "__main__":
    main()
