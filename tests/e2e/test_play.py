"""A story on a real broker: processes, sockets, real time; what it waits for may take a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from partita import Broker
from partita.admin import Admin
from partita.cli.stories.play import play


def run(tmp_path: Path, story: str, broker: str) -> Result:
    file = tmp_path / "story.txt"
    file.write_text(story)
    return CliRunner().invoke(play, [str(file), "--broker", broker])


def test_members_share_crash_and_poll_by_hand_on_our_own_broker(tmp_path: Path) -> None:
    story = """\
# Two processes share; one crashes, and its partition finds a reader.
topic T 2
records T-0 5
hand join T polls=by-hand enable_auto_commit=false
expect members nobody
hand poll
expect hand owns T-0 T-1
expect hand read 5
hand commit
expect committed T-0 5
hand close
expect hand ended
one join T heartbeat_interval_ms=100
expect one owns T-0 T-1
two join T session_timeout_ms=6000 heartbeat_interval_ms=100
expect one owns T-0
expect two owns T-1
two crash
expect one owns T-0 T-1
expect cause session expired
move-coordinator
expect one got any NOT_COORDINATOR
one close
expect one ended
expect members nobody
"""
    done = run(tmp_path, story, "own")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("verb", ["fail-append", "crash-broker 1s", "expect one got JoinGroup NONE"])
def test_a_verb_that_a_broker_of_others_cannot_do_is_refused_before_anything_begins(tmp_path: Path, verb: str) -> None:
    with Broker() as broker:
        done = run(tmp_path, f"# Refused.\ntopic T 2\none join T\n{verb}\n", broker.bootstrap)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            assert [topic.name for topic in admin.list_topics()] == []
    assert done.exit_code == 1
    assert "line 4: expected a verb for a broker, came" in done.output
    assert "simulator" in done.output


def test_a_story_cleans_up_behind_itself(tmp_path: Path) -> None:
    with Broker() as broker:
        story = "# Clean.\ntopic T 1\none join T\nexpect one owns T-0\none close\nexpect one ended\n"
        done = run(tmp_path, story, broker.bootstrap)
        assert done.exit_code == 0, done.output
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            assert [topic.name for topic in admin.list_topics()] == []
            assert admin.list_groups() == []
