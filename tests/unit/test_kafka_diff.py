"""tools/kafka_diff.py: what a report on two releases says, from tables made by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from kafka_diff import changes, served


def release(newest: int, **more: Any) -> dict[str, Any]:
    """A release of one API, whose second version has a field more."""
    fields: list[dict[str, Any]] = [{"name": "ids", "type": "ARRAY", "of": "INT32"}]
    layouts = {("Heartbeat", "request", version): fields for version in range(newest + 1)}
    if newest:
        layouts["Heartbeat", "request", newest] = [*fields, {"name": "note", "type": "STRING", "tag": 3}]
    apis = {"Heartbeat": {"api": 12, "min": 0, "max": newest}}
    return {"apis": apis, "layouts": layouts, "features": {}, "errors": {}, "options": {}, **more}


def test_equal_releases_differ_in_nothing() -> None:
    assert [line for line in changes(release(1), release(1), {}) if line.startswith("-")] == []


def test_a_new_version_is_named_with_its_fields_and_what_is_served() -> None:
    lines = list(changes(release(0), release(1), {"Heartbeat": "served to 0"}))
    assert "- Heartbeat 12: 0-0 -> 0-1 (served to 0 *)" in lines
    assert "- Heartbeat request 1: +note string tag 3" in lines


def test_records_and_features_are_marked_where_partita_has_them() -> None:
    layouts = {("GroupMetadataValue", "record", 0): [{"name": "epoch", "type": "INT32"}]}
    features = {"share.version": {"min": 0, "max": 2}}
    lines = list(changes(release(0), release(0, layouts=layouts, features=features), served()))
    assert "- GroupMetadataValue record 0: +epoch int32 (written in 0-4 *)" in lines
    assert "- new share.version: min 0, max 2 (served in 0 to 2 *)" in lines


def test_options_and_errors_come_go_and_change() -> None:
    old = release(0, options={"topic: a": {"default": 1}, "topic: b": {"default": 1}}, errors={})
    new = release(0, options={"topic: a": {"default": 2}}, errors={"NEW": {"code": 134, "retriable": False}})
    lines = list(changes(old, new, {}))
    assert "- topic: a: default 1 -> 2" in lines
    assert "- gone topic: b" in lines
    assert "- new NEW: code 134, retriable false" in lines
