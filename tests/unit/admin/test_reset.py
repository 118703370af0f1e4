import pytest

from partita.admin.reset import Known, Target, parse_datetime_ms, parse_table, plan_move
from partita.options import parse_duration_ms

LOG = Known(committed=40, log_start=10, log_end=100, at_time=70)
NEW = Known(committed=None, log_start=10, log_end=100)


@pytest.mark.parametrize(
    ("target", "known", "after", "note"),
    [
        (Target.earliest(), LOG, 10, ""),
        (Target.latest(), LOG, 100, ""),
        (Target.current(), LOG, 40, ""),
        (Target.current(), NEW, 100, "nothing committed"),
        (Target.offset(55), LOG, 55, ""),
        (Target.offset(5), LOG, 10, "5 is outside the log, which starts at 10"),
        (Target.offset(500), LOG, 100, "500 is outside the log, which ends at 100"),
        (Target.shift_by(7), LOG, 47, ""),
        (Target.shift_by(-35), LOG, 10, "5 is outside the log, which starts at 10"),
        (Target.shift_by(99), LOG, 100, "139 is outside the log, which ends at 100"),
        (Target.time(1234), LOG, 70, ""),
        (Target.time(1234), NEW, 100, "no record that young"),
        (Target.offsets({("t", 0): 33}), LOG, 33, ""),
    ],
)
def test_every_target_leads_somewhere_inside_the_log(target: Target, known: Known, after: int, note: str) -> None:
    move = plan_move(("t", 0), target, known)
    assert (move.topic, move.partition, move.before, move.after, move.note) == ("t", 0, known.committed, after, note)


def test_a_target_that_says_nothing_about_a_partition_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is committed for t-0, so it cannot be shifted"):
        plan_move(("t", 0), Target.shift_by(1), NEW)
    with pytest.raises(ValueError, match="no offset is given for t-0"):
        plan_move(("t", 0), Target.offsets({("t", 1): 1}), LOG)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("PT0.5S", 500), ("p2dt3h4m5s", 183_845_000), ("PT20M", 1_200_000)],
)
def test_durations_are_iso(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "-P1D", "1 day"])
def test_other_durations_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="expected such as P7D or PT1H30M"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T00:00:01.250", 1_250),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000),
    ],
)
def test_dates_are_utc_unless_they_say_otherwise(text: str, ms: int) -> None:
    assert parse_datetime_ms(text) == ms
    assert Target.datetime(text).value == ms


def test_a_duration_counts_back_from_now() -> None:
    assert Target.duration("PT1M", now_ms=100_000).value == 40_000


def test_a_wrong_date_is_refused() -> None:
    with pytest.raises(ValueError, match="is no date and time"):
        parse_datetime_ms("yesterday")


def test_a_table_is_kafkas_export() -> None:
    assert parse_table('"topic","partition","offset"\n"t",0,5\nt,1, 7\n\n') == {("t", 0): 5, ("t", 1): 7}
    assert parse_table("t,0,5") == {("t", 0): 5}
    with pytest.raises(ValueError, match="line 2: expected topic,partition,offset"):
        parse_table("t,0,5\nt,0")
