"""The designs of a rebalance under the same troubles, on a real ZooKeeper and a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.designs.zookeeper import require_zookeeper

pytest.importorskip("kazoo", reason="left out, the old designs speak to ZooKeeper through kazoo")

from partita.designs.compare import Run, is_built, run_one
from partita.designs.ground import Ground
from partita.designs.journal import Fact
from partita.designs.lab import Lab
from partita.designs.measure import GROUP_REQUESTS
from partita.designs.members.settings import Timings
from partita.designs.scenarios import BY_NAME, joiner, names, victim

MEMBERS, PARTITIONS = 5, 12
FAST = Timings().faster(4)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    require_zookeeper()
    with Ground(MEMBERS + 2, FAST) as running:
        yield running


_numbers = iter(range(10_000))


def run(ground: Ground, scenario: str, design: str) -> Run:
    """One scenario on one design, with a group that got together."""
    result = run_one(ground, BY_NAME[scenario], design, MEMBERS, PARTITIONS, next(_numbers))
    assert result.measures is not None, result.remark
    return result


def join(ground: Ground, design: str) -> Run:
    """One more member. Sessions outlive a machine that stands still: what is counted exactly has no other cause."""
    patient = replace(BY_NAME["join"], session_factor=20)
    result = run_one(ground, patient, design, MEMBERS, PARTITIONS, next(_numbers))
    assert result.measures is not None, result.remark
    return result


@pytest.mark.case("GC-W01", "GC-W12")
def test_one_join_in_design_1_makes_everybody_read_everything(ground: Ground) -> None:
    joined = join(ground, "1")
    found, journal = joined.measures, joined.journal
    assert found is not None
    since = [fact for fact in journal.facts if fact.at_s >= journal.cause_s]
    conflicts = sum(fact.event == "conflict" for fact in since)
    taken = sum(fact.event == "claimed" for fact in since) + conflicts  # its offset is read before it is claimed
    assert found.notifications == MEMBERS
    assert found.zk_reads == found.attempts * (MEMBERS + 10) + taken + conflicts + 2 * MEMBERS + 3
    assert found.settled_ms is not None
    assert found.group_requests == 0
    assert ground.admin.list_groups() == []


@pytest.mark.case("GC-W02", "GC-W12")
def test_one_join_in_design_2_is_one_event_and_one_multi_at_the_coordinator(ground: Ground) -> None:
    joined = join(ground, "2")
    found, journal = joined.measures, joined.journal
    assert found is not None
    seen = [
        frame for frame in journal.frames if frame.at_s >= journal.cause_s and frame.name not in ("ping", "connect")
    ]
    by_member = [
        f.name for f in seen if not f.member.startswith("coordinator-") and f.name in ("create", "event", "getData")
    ]
    coordinators = [frame.name for frame in seen if frame.member.startswith("coordinator-")]
    assert by_member == ["create"]
    assert coordinators.count("event") == coordinators.count("multi") == 1
    assert coordinators.count("exists") == coordinators.count("getChildren") == 1
    assert found.notifications == MEMBERS
    asked = [frame.name for frame in seen if frame.name in GROUP_REQUESTS - {"heartbeat"}]  # these go by the clock
    assert sorted(asked) == ["find", *["join"] * (MEMBERS + 1)]


@pytest.mark.case("GC-W03", "GC-W12")
@pytest.mark.parametrize("design", ["3", "3c", "848"])
def test_the_later_designs_need_no_zookeeper(ground: Ground, design: str) -> None:
    if not is_built(design):
        assert design == "848"
        return
    before = _packets(ground)
    found = join(ground, design).measures
    assert found is not None
    assert found.settled_ms is not None
    assert (found.zk_reads, found.zk_writes, found.back, found.orphans) == (0, 0, 0, 0)
    assert found.group_requests > 0
    assert _packets(ground) - before <= 4, "only the question itself"


def _packets(ground: Ground) -> int:
    server = ground.zookeeper(ensemble=False).servers[0]
    return int(server.four_letters("srvr").split("Received: ")[1].split()[0])


@pytest.mark.case("GC-W04")
def test_a_claim_that_meets_an_unreleased_partition_is_given_back_and_tried_again(ground: Ground) -> None:
    with Lab(ground, "1", "join", number=next(_numbers), partitions=4) as lab:
        lab.gather(["a"], alone=["a"])
        held = lab.taps["a"].stop_before(lambda name, path: name == "delete" and "/owners/" in path)
        lab.cause("b joins")
        lab.start("b")
        lab.until(held.reached.is_set, "a stands before its first release")
        lab.until(lambda: len(lab.told("b", "failed")) >= 1, "b meets what a has not released")
        assert {fact.facts["holder"] for fact in lab.told("b", "conflict")} == {"a-0"}
        lab.taps["a"].go(held)
        lab.watch()
        assert lab.is_settled()
    assert len(lab.told("b", "attempt")) >= 2


@pytest.mark.case("GC-W11")
def test_an_ended_session_is_replaced_and_everything_has_one_owner_again(ground: Ground) -> None:
    found = run(ground, "expiry", "1").measures
    assert found is not None
    assert found.settled_ms is not None
    assert found.orphans == 0


@pytest.mark.parametrize("design", ["3", "848"])
def test_a_member_of_a_group_whose_session_ends_joins_again(ground: Ground, design: str) -> None:
    """Members of a KIP-848 group choose ids that do not begin with their name."""
    ended = run(ground, "expiry", design)
    assert ended.measures is not None
    assert ended.measures.settled_ms is not None
    since = [fact for fact in ended.journal.facts if fact.at_s >= ended.journal.cause_s]
    assert victim(MEMBERS) in {fact.member for fact in since if fact.event == "claimed"}, "it gets partitions again"


@pytest.mark.case("GC-W13", "GC-W14")
def test_a_member_cut_off_from_zookeeper_reads_on_beside_the_new_owners(ground: Ground) -> None:
    cut = run(ground, "zk-partition", "1")
    assert cut.measures is not None
    assert cut.measures.two_readers_ms > 0
    assert cut.measures.twice > 0
    late = [fact for fact in cut.journal.facts if fact.event == "commit" and fact.member == victim(MEMBERS)]
    assert any(fact.at_s > cut.journal.healed_s for fact in late), "a commit of the old session comes late"


@pytest.mark.case("GC-W14", "GC-W28")
@pytest.mark.parametrize("design", ["2", "3"])
def test_a_coordinator_lets_no_offset_go_back(ground: Ground, design: str) -> None:
    """Until its next heartbeat the old owner may read beside the new one; what it commits then is refused."""
    cut = run(ground, "zk-partition", design)
    assert cut.measures is not None
    assert (cut.measures.back, cut.measures.orphans) == (0, 0)
    assert cut.measures.settled_ms is not None


@pytest.mark.case("GC-W15", "GC-W19")
def test_a_pause_leaves_partitions_of_a_healthy_group_without_an_owner_until_the_next_event(ground: Ground) -> None:
    scenario = BY_NAME["pause"]
    factor = scenario.session_factor
    with Lab(ground, "1", "pause", number=next(_numbers), partitions=PARTITIONS, session_factor=factor) as lab:
        scenario.run(lab, MEMBERS)
        assert not lab.is_settled()
        idle = {fact.member for fact in lab.journal.facts if fact.event == "gave_up"}
        assert idle
        assert victim(MEMBERS) not in idle
        bystander = next(iter(sorted(idle)))
        assert not any(
            span.member == bystander and span.to_s >= lab.journal.end_s - 0.01 for span in lab.journal.spans()
        )
        lab.close(names(MEMBERS)[0])
        lab.until(lab.is_settled, "one leave repairs it")


@pytest.mark.case("GC-W16")
def test_the_same_pause_is_over_when_it_is_over_with_a_coordinator_in_the_broker(ground: Ground) -> None:
    found = run(ground, "pause", "3").measures
    assert found is not None
    assert found.settled_ms is not None
    assert (found.orphans, found.gave_up) == (0, 0)


@pytest.mark.case("GC-W26")
def test_another_coordinator_takes_over_and_the_generation_goes_on(ground: Ground) -> None:
    with Lab(ground, "2", "coordinator", number=next(_numbers), partitions=PARTITIONS) as lab:
        lab.gather(names(MEMBERS))
        lab.cause("coordinator lost")
        lab.fail_over()
        lab.until(lambda: len({fact.member for fact in _plans(lab)}) == 2, "another one plans")
        lab.until(lab.is_settled, "the group is together again")
        generations = [fact.facts["generation"] for fact in _plans(lab)]
    assert generations == sorted(set(generations))


def _plans(lab: Lab) -> list[Fact]:
    return [fact for fact in lab.journal.facts if fact.event == "plan" and fact.facts["failed"] is None]


@pytest.mark.case("GC-W27")
def test_a_coordinator_that_is_cut_off_writes_no_plan_that_counts(ground: Ground) -> None:
    with Lab(ground, "2", "coordinator", number=next(_numbers), partitions=PARTITIONS) as lab:
        lab.gather(names(3))
        (old,) = {fact.member for fact in lab.journal.facts if fact.event == "plan"}
        lab.cause("the coordinator is cut off")
        lab.taps[old].cut()
        lab.until(lambda: {f.member for f in lab.journal.facts if f.event == "plan"} - {old}, "another plans")
        lab.start(joiner(3))
        lab.taps[old].heal(reset=True)
        lab.until(lab.is_settled, "the group is together again")
        generations = [fact.facts["generation"] for fact in _plans(lab)]
        assert len(generations) == len(set(generations)), "at no moment two plans of one generation"


@pytest.mark.case("GC-W05", "GC-W17")
def test_members_of_a_late_server_make_a_fast_one_fail(ground: Ground) -> None:
    found = run(ground, "stale", "1").measures
    assert found is not None
    assert found.failed > 0
    assert (found.disagree_ms or 0) >= 300


@pytest.mark.case("GC-W18")
def test_every_conflict_of_two_joins_seen_late_names_who_holds_the_partition(ground: Ground) -> None:
    """How many members give up depends on who comes first; that some attempts fail, and at whom, does not."""
    twice = run(ground, "stale-twice", "1")
    assert twice.measures is not None
    conflicts = [fact for fact in twice.journal.facts if fact.event == "conflict"]
    members = set(names(MEMBERS + 2))
    holders = {fact.facts["holder"] for fact in conflicts} - {None, ""}  # who let go meanwhile has no name any more
    assert holders
    assert {holder.rpartition("-")[0] for holder in holders} <= members
    assert twice.measures.failed > 0


@pytest.mark.case("GC-W09")
@pytest.mark.parametrize(
    ("design", "settles", "told"),
    [("2", False, "INCONSISTENT_GROUP_PROTOCOL"), ("3", True, "")],
)
def test_a_strategy_of_ones_own(ground: Ground, design: str, settles: bool, told: str) -> None:
    tried = run(ground, "strategy", design)
    assert tried.measures is not None
    assert (tried.measures.settled_ms is not None) is settles
    assert told in tried.remark


@pytest.mark.case("GC-W24")
def test_a_new_broker_wakes_nobody(ground: Ground) -> None:
    found = run(ground, "broker", "1").measures
    assert found is not None
    assert (found.notifications, found.attempts) == (0, 0)


class Parts(HTMLParser):
    """What a page contains."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.addresses: list[str] = []
        self.pictures = 0
        self._in_heading = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_heading = tag == "h2"
        self.pictures += tag == "svg"
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.headings.append(data)
            self._in_heading = False


@pytest.mark.case("GC-W12")
def test_the_command_compares_prints_and_draws(tmp_path: Path) -> None:
    require_zookeeper()
    page = tmp_path / "page.html"
    command = [
        sys.executable, "-m", "partita.cli.main", "designs", "compare", "--members", "3", "--partitions", "6",
        "--designs", "1,3", "--scenario", "join", "--json", "--html", str(page),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [(one["scenario"], one["design"]) for one in runs] == [
        ("join", "1"),
        ("join", "3"),
    ]
    assert all(None not in (one["measures"]["settled_ms"], one["measures"]["twice"]) for one in runs)
    parts = Parts(page.read_text())
    assert {"The herd", "One join on the wire", "Every measure", "What is simplified"} <= set(parts.headings)
    assert parts.pictures == 2
    assert parts.addresses == []
    assert len(page.read_text()) < 300_000


def test_a_comparison_that_is_interrupted_keeps_its_runs(tmp_path: Path) -> None:
    require_zookeeper()
    page = tmp_path / "page.html"
    command = [
        sys.executable, "-m", "partita.cli.main", "designs", "compare", "--members", "2", "--partitions", "4",
        "--designs", "3", "--scenario", "join", "--scenario", "slow", "--json", "--html", str(page),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert any("join, 2 members, design 3" in line for line in running.stderr)
        running.send_signal(signal.SIGINT)
        printed, said = running.stdout.read(), running.stderr.read()
    assert running.returncode == 130
    assert "ended after 1 of 2 runs" in said
    assert [one["scenario"] for one in json.loads(printed)["runs"]] == ["join"]
    assert "1 of 2 runs are missing" in page.read_text()


def test_a_design_runs_until_ctrl_c_and_shows_what_a_kill_does() -> None:
    """Section 1: each member is a process that its user may kill; the lines name who takes over."""
    require_zookeeper()
    command = [sys.executable, "-m", "partita.cli.main", "designs", "run", "1", "--members", "2", "--partitions", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stdout is not None
        said: list[str] = []

        def until(words: str) -> str:
            for line in running.stdout or ():
                said.append(line)
                if words in line:
                    return line
            raise AssertionError(f"{words!r} was not said in {said}")

        pid = int(until("m00 is process").split()[-1])
        until("m01 reads 2-3")
        os.kill(pid, signal.SIGKILL)
        until("m00 is dead")
        until("m01 reads 0-3")
        until("each of the 4 partitions has one reader")
        for partition in range(4):
            assert until(f"/owners/run-0/{partition}").split()[3::2] == ["ephemeral", "m01-0"], "the node in ZooKeeper"
        running.send_signal(signal.SIGINT)
        running.stdout.read()
    assert running.returncode == 0
