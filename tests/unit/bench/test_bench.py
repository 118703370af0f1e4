"""The harness of the benchmarks: the rows of the table, the page that shows them, and the gate for regressions."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from partita.compiled import compiled_modules

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "bench"
sys.path.append(str(BENCH))

from harness import ROUNDS, Medians, report, turns  # noqa: E402
from instructions import RECORD, TOLERANCE, compare  # noqa: E402
from produce_fetch import produce_frame  # noqa: E402
from run import BEGIN, END, OTHERS, missing_peers, rounds_of, rows_of  # noqa: E402
from series import change  # noqa: E402
from table import (  # noqa: E402
    BY_NAME,
    HEAD,
    KAFKA,
    OURS,
    ROWS,
    SHORT,
    chosen,
    is_met,
    line,
    number,
    short_table,
    table,
)

PAGE, README = ((ROOT / page).read_text() for page in ("docs/numbers.md", "README.md"))


def rows_of_page() -> dict[str, list[str]]:
    """The cells of each row of the page's table."""
    text = PAGE.partition(BEGIN)[2].partition(END)[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]
    assert tuple(lines[0]) == HEAD
    return {cells[0]: cells for cells in lines[2:]}


def test_the_page_and_make_bench_have_the_same_rows() -> None:
    assert list(rows_of_page()) == [row.name for row in ROWS]


def test_the_page_tells_of_each_row_what_the_table_says_of_it() -> None:
    for name, cells in rows_of_page().items():
        row = BY_NAME[name]
        assert (cells[1], cells[6]) == (row.unit, " and ".join(goal.text for goal in row.goals))


def test_the_readme_shows_rows_of_the_page_and_no_figure_of_its_own() -> None:
    block = README.partition(BEGIN)[2].partition(END)[0].strip()
    assert block == short_table(PAGE.partition(BEGIN)[2].partition(END)[0].strip())
    shown = [text_line.split("|")[1].strip() for text_line in block.splitlines()[2:]]
    assert shown == [row.name for row in ROWS if row.name in SHORT]
    assert len(shown) == len(SHORT)


def test_every_missed_row_has_its_reason_and_no_other_has_one() -> None:
    missed = {name for name, cells in rows_of_page().items() if cells[-1] != "yes"}
    section = PAGE.partition("## What is missed, and why")[2].partition("\n## ")[0]
    named: set[str] = set()
    for bullet in re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE):
        named |= {name.strip() for name in bullet.split(";")}
    assert named == missed


def test_every_script_of_a_row_is_there_and_the_others_too() -> None:
    scripts = {row.script for row in ROWS} | set(OTHERS)
    assert {name for name in scripts if not (BENCH / f"{name}.py").exists()} == set()


def test_every_row_is_measured_by_the_script_that_it_names() -> None:
    for row in ROWS:
        assert f'"{row.name}"' in (BENCH / f"{row.script}.py").read_text(), row.name


def test_a_figure_is_met_by_its_goal_alone() -> None:
    row = BY_NAME["500 members joined"]
    assert is_met(row, {OURS: 20.0, KAFKA: 21.0, "kfake": 19.0}) is True
    assert is_met(row, {OURS: 22.0, KAFKA: 21.0, "kfake": 22.0}) is False
    assert is_met(row, {OURS: 22.0, KAFKA: 23.0, "kfake": 16.0}) is False


def test_a_goal_is_met_in_every_round_or_not_at_all() -> None:
    row = BY_NAME["range"]
    rounds = [{OURS: 3.0}, {OURS: 3.5}, {OURS: 4.5}]
    assert is_met(row, {OURS: 3.5}) is True
    assert is_met(row, {OURS: 3.5}, rounds) is False
    cells = line(row, {OURS: 3.5}, rounds)
    assert (cells[2], cells[-1]) == ("3.5 (3 to 4.5)", "**no**")


def test_a_peer_that_was_measured_once_is_compared_with_every_round() -> None:
    row = BY_NAME["sticky, one leaves"]
    figures = {OURS: 3.5, "Java": 2.0}
    assert is_met(row, figures, [{OURS: 3.0}, {OURS: 3.9}]) is True
    assert is_met(row, figures, [{OURS: 3.0}, {OURS: 4.1}]) is False


def test_a_round_is_the_median_of_what_was_measured_in_a_row() -> None:
    found = Medians({OURS: [1.0, 9.0, 2.0, 4.0, 5.0, 6.0], "kfake": [3.0, 3.0, 3.0]}, each=3)
    assert found == {OURS: 4.5, "kfake": 3.0}
    assert found.rounds == [{OURS: 2.0, "kfake": 3.0}, {OURS: 5.0}]


def test_a_row_has_at_least_two_rounds_and_no_third_one_once_it_has_taken_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(turns(each=2)) == list(range(ROUNDS * 2))
    monkeypatch.setattr("harness.ROW_SECONDS", 0.0)
    assert list(turns(each=2)) == [0, 1, 2, 3]


def test_a_goal_whose_peer_was_left_out_is_not_judged() -> None:
    assert is_met(BY_NAME["one of 500 leaves"], {OURS: 20.0}) is None


def test_a_line_says_how_many_times_as_good_as_the_best_peer_and_the_floor() -> None:
    cells = line(BY_NAME["heartbeats 100 x 1"], {OURS: 300e3, KAFKA: 100e3, "kfake": 150e3, "C echo": 600e3})
    assert cells[2:6] == ("300 k", "Apache Kafka 100 k, kfake 150 k", "2.00", "0.50 (C echo 600 k)")
    assert cells[-1] == "**no**"
    less = line(BY_NAME["range"], {OURS: 8.0, "Java": 2.0})
    assert less[4] == "0.25", "less is better here"


def test_ways_of_our_own_are_shown_and_are_no_peers() -> None:
    row = BY_NAME["sent one by one"]
    assert row.best_peer({OURS: 2.0, "partita asyncio": 9.0, "confluent-kafka": 1.0}) == ("confluent-kafka", 1.0)


def test_the_table_has_the_rows_that_were_measured() -> None:
    text = table({"range": {OURS: 3.0}, "fetch 1 MB": {OURS: 9.0, KAFKA: 8.0}})
    assert [text_line.split("|")[1].strip() for text_line in text.splitlines()[2:]] == ["fetch 1 MB", "range"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.1234, "0.123"), (9.5, "9.5"), (1234.0, "1,234"), (12_345.0, "12.3 k"), (2.5e6, "2.5 M")]
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


def test_rows_are_picked_by_script_or_by_a_part_of_the_name() -> None:
    assert [row.name for row in chosen(["assignors"])] == ["sticky, all new", "sticky, one leaves", "range"]
    assert [row.name for row in chosen(["range", "idle"])] == ["idle memory", "range"]
    assert chosen([]) == list(ROWS)
    with pytest.raises(ValueError, match="no such row"):
        chosen(["nothing like it"])


def test_results_become_rows_and_peers_that_were_left_out_are_told_once() -> None:
    results: list[dict[str, object]] = [
        {"bench": "row", "row": "range", "figures": {OURS: 1.0}, "rounds": [{OURS: 0.9}, {OURS: 1.1}]},
        {"bench": "start", "peer": "kfake", "left_out": "go is not installed"},
        {"bench": "groups", "peer": "kfake", "left_out": "go is not installed"},
    ]
    assert rows_of(results) == {"range": {OURS: 1.0}}
    assert rounds_of(results) == {"range": [{OURS: 0.9}, {OURS: 1.1}]}
    assert missing_peers(results) == ["Left out: kfake: go is not installed."]


def noisy(chance: random.Random, ratio: float, noise: float, count: int = 7) -> list[float]:
    """Ratios of pairs around this one."""
    return [ratio * chance.lognormvariate(0, noise) for _ in range(count)]


def test_series_that_differ_by_chance_are_hardly_ever_named_and_never_twice() -> None:
    chance = random.Random(7)
    named = [change(noisy(chance, 1.0, 0.1)).is_worse and change(noisy(chance, 1.0, 0.1)).is_worse for _ in range(500)]
    assert sum(named) <= 2


@pytest.mark.parametrize(("slowdown", "noise"), [(0.93, 0.01), (0.8, 0.04), (0.5, 0.1)])
def test_a_slowdown_beyond_the_noise_is_named(slowdown: float, noise: float) -> None:
    chance = random.Random(7)
    assert sum(change(noisy(chance, slowdown, noise)).is_worse for _ in range(200)) >= 190


def test_a_gain_is_not_named() -> None:
    assert not change([1.5, 1.6, 1.4]).is_worse


def test_one_run_that_was_disturbed_names_nothing() -> None:
    assert not change([1.0, 1.01, 0.99, 0.2, 1.0, 1.02, 0.98]).is_worse


def test_a_change_below_three_per_cent_is_not_named_however_quiet_it_was() -> None:
    assert not change([0.98] * 7).is_worse
    assert change([0.96] * 7).is_worse


def test_two_pairs_show_no_noise() -> None:
    with pytest.raises(ValueError, match="three pairs"):
        change([0.5, 0.5])


def test_compare_names_a_planted_slowdown_and_nothing_else(tmp_path: Path) -> None:
    """The range assignor works four times in the copy; the row of range is named, and the exit code is 1."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    planted = tmp_path / "src" / "partita" / "assignors" / "range.py"
    planted.write_text(
        planted.read_text()
        + "\n\n_once = RangeAssignor.assign\n\n\n"
        + "def _often(self, metadata, subscriptions):\n"
        + "    for _ in range(3):\n        _once(self, metadata, subscriptions)\n"
        + "    return _once(self, metadata, subscriptions)\n\n\n"
        + "RangeAssignor.assign = _often\n"
    )
    command = [sys.executable, str(BENCH / "compare.py"), "--rounds", "3", str(ROOT), str(tmp_path), "range"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "Slower: range."


def test_every_result_says_whether_the_compiled_modules_are_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    """Issue 13: a benchmark of the plain modules measured half the speed and did not say why."""
    report("mine", rows=1.23456)
    told = json.loads(capsys.readouterr().out)
    assert told["compiled"] is all(compiled_modules().values())
    assert (told["bench"], told["rows"]) == ("mine", 1.235)


def test_a_request_is_dearer_from_the_tolerance_on_and_a_new_one_is_not_judged() -> None:
    recorded = {"Fetch": 1000, "Join": 1000, "Sync": 1000}
    found = {"Fetch": 1000 * (1 + TOLERANCE) + 1, "Join": 1000 * (1 + TOLERANCE) - 1, "Sync": 900, "Commit": 5}
    lines, is_dearer = compare(recorded, {name: int(count) for name, count in found.items()})
    words = [line.partition("%")[2].strip() for line in lines]
    assert words == ["dearer", "", "cheaper", "new"]
    assert is_dearer
    assert not compare(recorded, {"Join": 1000, "Sync": 1, "Commit": 5})[1]


def test_the_record_counts_the_same_requests_for_every_build() -> None:
    records = json.loads(RECORD.read_text())
    assert records
    assert len({tuple(found) for found in records.values()}) == 1


@pytest.mark.parametrize("record_bytes", [100, 1000])
def test_the_batches_of_the_benchmark_are_no_larger_than_a_topic_takes(record_bytes: int) -> None:
    """Batches of 100-byte records had 1,101,805 bytes: what was measured was how quickly they are refused."""
    assert 950_000 < produce_frame(record_bytes)[1] <= 1_048_588
