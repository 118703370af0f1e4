"""The page for Prometheus: what it holds, what stays on it when something fails, and that its size is bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from partita.observe.metrics import METRICS, metrics_text
from partita.observe.seen import CommitSeen, GroupSeen, LogSeen, NodeSeen
from support.dashboard.world import FakeCluster, member

PAGE = Path(__file__).parents[3] / "docs" / "monitoring.md"
ORDERS = [("orders", 0), ("orders", 1)]


@pytest.fixture
def world() -> FakeCluster:
    """Two members of `workers` share two partitions; the second member came after the first look."""
    world = FakeCluster()
    for step, members in enumerate(([member("a", *ORDERS)], [member("a", ORDERS[0]), member("b", ORDERS[1])])):
        world.log("orders", 0, 100 + 10 * step)
        world.log("orders", 1, 200)
        world.group("workers", {ORDERS[0]: 90, ORDERS[1]: 200}, members)
        world.group('quote " and\n', {ORDERS[0]: 130})
        world.look()
        world.pass_s(10)
    return world


def samples(text: str) -> dict[str, float]:
    """Values by metric and labels, as in `partita_group_up{group="g"}`."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_groups_partitions_and_members_with_their_lag(world: FakeCluster) -> None:
    found = samples(metrics_text(world.observed))
    expected = {
        "partita_up": 1,
        "partita_last_look_timestamp_seconds": 1_800_000_010,
        'partita_node_up{node="1"}': 1,
        "partita_groups": 2,
        "partita_series_left_out": 0,
        'partita_group_up{group="workers"}': 1,
        'partita_group_state{group="workers",type="classic",state="Stable"}': 1,
        'partita_group_lag_records{group="workers"}': 20,
        'partita_group_members{group="workers"}': 2,
        'partita_group_commit_age_seconds{group="workers"}': 10,
        'partita_group_topic_lag_records{group="workers",topic="orders"}': 20,
        'partita_group_rebalances_total{group="workers"}': 1,
        'partita_group_partition_lag_records{group="workers",topic="orders",partition="0"}': 20,
        'partita_group_partition_lag_records{group="workers",topic="orders",partition="1"}': 0,
        'partita_group_partition_offset{group="workers",topic="orders",partition="1"}': 200,
        'partita_group_partition_lag_seconds{group="workers",topic="orders",partition="1"}': 0,
        'partita_group_member_lag_records{group="workers",member="a-id",client_id="a",host="/10.0.0.1"}': 20,
        'partita_group_member_lag_records{group="workers",member="b-id",client_id="b",host="/10.0.0.1"}': 0,
        'partita_group_member_partitions{group="workers",member="b-id",client_id="b",host="/10.0.0.1"}': 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert found['partita_group_lag_seconds{group="workers"}'] > 10
    assert 'partita_group_lag_records{group="quote " and\\n"}' in found, "a control character is shown as an escape"


def test_lag_is_never_negative_and_that_of_a_share_group_is_its_coordinators(world: FakeCluster) -> None:
    commits = (CommitSeen("orders", 0, 130, "", 0), CommitSeen("orders", 1, 150, "", 0, lag=0))
    group = GroupSeen("jobs", "Stable", "share", "share", "simple", 1, (member("c", *ORDERS),), commits, seen_ms=1)
    world.observed.take_group(group)
    text = metrics_text(world.observed)
    lags = {name: value for name, value in samples(text).items() if "_lag_" in name and 'group="jobs"' in name}
    assert len(lags) == 9
    assert set(lags.values()) == {0}


def test_a_clock_that_goes_back_makes_no_age_negative(world: FakeCluster) -> None:
    commits = (CommitSeen("orders", 0, 90, "", 5_000), CommitSeen("orders", 1, 200, "", 9_000))
    world.observed.take_group(GroupSeen("jobs", "Empty", "classic", "", "", 1, (), commits, seen_ms=1_000))
    ages = {name: value for name, value in samples(metrics_text(world.observed)).items() if 'group="jobs"' in name}
    assert ages['partita_group_commit_age_seconds{group="jobs"}'] == 0
    assert min(ages.values()) >= 0


def test_a_deleted_topic_takes_only_its_own_series(world: FakeCluster) -> None:
    del world.observed.logs["orders", 1]
    found = samples(metrics_text(world.observed))
    assert not any('partition="1"' in name for name in found)
    assert found['partita_group_partition_lag_records{group="workers",topic="orders",partition="0"}'] == 20
    assert 'partita_group_member_lag_records{group="workers",member="b-id",client_id="b",host="/10.0.0.1"}' not in found


def test_what_fails_keeps_its_last_values_and_says_so(world: FakeCluster) -> None:
    before = samples(metrics_text(world.observed))
    seen = world.observed
    seen.nodes[2] = replace(NodeSeen(2, "b", 1), error="gone")
    seen.groups["workers"] = replace(seen.groups["workers"], error="GROUP_AUTHORIZATION_FAILED")
    seen.groups["secret"] = GroupSeen("secret", "", "classic", "", "", 1, error="GROUP_AUTHORIZATION_FAILED")
    seen.logs["orders", 0] = replace(seen.logs["orders", 0], error="NOT_LEADER_OR_FOLLOWER")
    seen.trouble = "gone"
    after = samples(metrics_text(seen))
    assert after == before | {
        "partita_up": 0,
        'partita_node_up{node="2"}': 0,
        "partita_partitions_failing": 1,
        "partita_groups": 3,
        "partita_groups_failing": 2,
        'partita_group_up{group="workers"}': 0,
        'partita_group_up{group="secret"}': 0,
    }


def test_a_static_member_keeps_its_series_over_a_restart(world: FakeCluster) -> None:
    old, new = (replace(member("s", *ORDERS), member_id=number, instance_id="desk") for number in ("1", "2"))
    pages = []
    for one in (old, new):
        world.group("workers", {ORDERS[0]: 90}, [one])
        world.look()
        pages.append({name for name in samples(metrics_text(world.observed)) if "_member_" in name})
    assert pages[0] == pages[1] != set()


def test_a_bound_leaves_out_whole_groups_and_their_parts_first(world: FakeCluster) -> None:
    everything = samples(metrics_text(world.observed))
    of_groups = sum("partita_group_" in name for name in everything)
    parts = sum(bool(re.search("_(partition|member)_", name)) for name in everything)
    quoted = sum("partita_group_" in name and "quote" in name for name in everything)
    without_parts = samples(metrics_text(world.observed, of_groups - parts))
    assert without_parts["partita_series_left_out"] == parts
    assert not any(re.search("_(partition|member)_", name) for name in without_parts)
    one = samples(metrics_text(world.observed, of_groups - parts - 1))
    assert not any("quote" in name for name in one), "it has no lag, so it is the first to go"
    assert one["partita_series_left_out"] == parts + quoted - sum(
        bool(re.search("_partition_.*quote", name)) for name in everything
    )
    assert samples(metrics_text(world.observed, 0))["partita_series_left_out"] == of_groups


def test_causes_are_counted_beside_the_rebalances(world: FakeCluster) -> None:
    for cause in ("session expired", "member joined", "session expired"):
        world.observed.history.count_cause("workers", cause)
    name = 'partita_group_rebalances_by_cause_total{group="workers",cause="session expired"}'
    assert samples(metrics_text(world.observed))[name] == 2
    world.observed.drop_group("workers")
    world.observed.take_group(GroupSeen("workers", "Empty", "classic", "", "", 1, seen_ms=1))
    assert name not in samples(metrics_text(world.observed)), "a group of the same name begins anew"


def test_every_metric_is_in_the_documents(world: FakeCluster) -> None:
    world.observed.history.count_cause("workers", "member joined")
    epochs = replace(world.observed.groups["workers"], epoch=3)
    world.observed.take_group(epochs)
    text = metrics_text(world.observed)
    written = set(re.findall(r"^(partita_\w+)", text, re.MULTILINE))
    assert written == {metric.name for metric in METRICS}
    labels = [f" ({', '.join(metric.labels.split())})" if metric.labels else "" for metric in METRICS]
    rows = "\n".join(f"- `{metric.name}`{of}: {metric.help}" for metric, of in zip(METRICS, labels, strict=True))
    assert rows in PAGE.read_text(), f"docs/monitoring.md lacks these rows:\n{rows}"


def test_an_unknown_end_of_a_log_is_no_lag() -> None:
    world = FakeCluster()
    world.observed.take_log(LogSeen("orders", 0, error="LEADER_NOT_AVAILABLE"), world.now_ms)
    world.group("workers", {("orders", 0): 5})
    world.observed.topics = {}
    for group in world._groups.values():
        world.observed.take_group(replace(group, seen_ms=world.now_ms))
    found = samples(metrics_text(world.observed))
    assert not any("_lag_" in name for name in found)
    assert found['partita_group_partitions{group="workers"}'] == 1
