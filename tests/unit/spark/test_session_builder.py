"""The settings of `session()`: those that were measured stay, and a user's own go before them."""

from __future__ import annotations

import pytest

from partita.spark.session_builder import settings_for

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
SOCKETS = "spark.python.unix.domain.socket.enabled"


def settings(master: str = "local[2]") -> dict[str, str]:
    return settings_for(master, ui=False, config={})


@pytest.mark.parametrize("master", ["local[2]", "spark://h:7077", "yarn"])
def test_batches_to_the_sink_have_16_384_rows(master: str) -> None:
    """Decision 0310: of larger ones the JVM takes longer for each row, of smaller ones the sink."""
    assert settings(master)[ROWS] == "16384"


def test_workers_are_spoken_to_over_tcp() -> None:
    """Decision 0312: Unix sockets are quicker, but noisy at the end, and no task runs where the path of one is long."""
    assert SOCKETS not in settings()


def test_batches_are_offered_filters_and_times_are_in_utc() -> None:
    found = settings()
    assert found["spark.sql.python.filterPushdown.enabled"] == "true"
    assert found["spark.sql.session.timeZone"] == "UTC"
    assert found["spark.driver.extraJavaOptions"] == "-Xss8m"


def test_what_the_user_sets_stays_set() -> None:
    own = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.sql.python.filterPushdown.enabled": "false",
        "spark.driver.host": "10.0.0.1",
        "spark.ui.enabled": "true",
        "spark.mine": "1",
    }
    found = settings_for("local[2]", ui=False, config=own)
    assert {name: found[name] for name in own} == own


def test_only_a_local_master_is_bound_to_this_machine() -> None:
    assert settings("local[*]")["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.host" not in settings("spark://h:7077")
