"""Lag from the progress of a query."""

from __future__ import annotations

import json

from partita.spark.progress import lag_of


def test_lag_is_what_lies_beyond_the_last_batch() -> None:
    end = {"v": 1, "t": {"a": {"0": [3, 10, 0], "1": [0, 4, 0]}}}
    latest = {"v": 1, "t": {"a": {"0": [25, 25, 0], "1": [4, 4, 0], "2": [9, 9, 0]}}}
    ours = {"endOffset": json.dumps(end), "latestOffset": json.dumps(latest)}
    other = {"endOffset": "17", "latestOffset": None}
    assert lag_of({"sources": [ours, other]}) == {"a": {0: 15, 1: 0, 2: 0}}
    assert lag_of(None) == {}
