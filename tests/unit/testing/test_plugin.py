"""The pytest plugin, seen from a test suite that uses it. Cases T3 to T10 of the newcomer's audit."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import partita.now
from partita import Broker
from partita.testing.notes import account_lines, note_lines
from partita.testing.plugin import BrokerFactory
from support.explain.staged import Stage

pytest_plugins = ["pytester"]


def test_partitas_own_modules_are_not_rewritten(pytestconfig: pytest.Config) -> None:
    loader = type(partita.now.__spec__.loader).__name__ if partita.now.__spec__ else ""
    assert loader in {"SourceFileLoader", "ExtensionFileLoader"}
    assert pytestconfig.pluginmanager.hasplugin("partita")


@pytest.mark.partita(nodes=3, num_partitions=4, topics={"orders": 6})
class TestMarkers:
    """Markers of a class hold for its functions; a function's own marker wins."""

    def test_the_marker_configures_the_broker(self, partita_broker: Broker, partita_topic: str) -> None:
        assert len(partita_broker.cluster.nodes) == 3
        assert {record.partition for record in partita_broker.produce("orders", "x", partition=5)} == {5}
        assert partita_broker.produce(partita_topic, "x", partition=3)[0].partition == 3
        partita_broker.control.move_leader("orders", 0, 2)

    @pytest.mark.partita(nodes=1)
    def test_the_nearest_marker_wins(self, partita_broker: Broker) -> None:
        assert len(partita_broker.cluster.nodes) == 1
        assert partita_broker.produce("orders", "x", partition=5)[0].partition == 5


@pytest.mark.parametrize("partita_broker", [{"nodes": 2}, {"nodes": 3}], indirect=True)
def test_indirect_parameters_are_options(partita_broker: Broker, request: pytest.FixtureRequest) -> None:
    assert len(partita_broker.cluster.nodes) == request.node.callspec.params["partita_broker"]["nodes"]


KAFKAS = {"heartbeat.interval.ms": 5000, "min.heartbeat.interval.ms": 5000, "assignment.interval.ms": 1000}
QUICK = {"heartbeat.interval.ms": 500, "min.heartbeat.interval.ms": 500, "assignment.interval.ms": 0}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, QUICK),
        ({"num.partitions": 3}, QUICK),
        ({"kafka_defaults": True}, KAFKAS),
        (
            {"group_consumer_heartbeat_interval_ms": 6000},
            {**KAFKAS, "heartbeat.interval.ms": 6000, "assignment.interval.ms": 0},
        ),
        ({"group.consumer.max.heartbeat.interval.ms": 5000}, {**KAFKAS, "assignment.interval.ms": 0}),
        ({"config": {"group.consumer.min.heartbeat.interval.ms": 5000}}, {**KAFKAS, "assignment.interval.ms": 0}),
        ({"group_consumer_min_assignment_interval_ms": 10}, {**QUICK, "assignment.interval.ms": 1000}),
    ],
    ids=str,
)
def test_groups_of_the_consumer_protocol_are_quick_unless_the_options_say_otherwise(
    partita_broker_factory: BrokerFactory, options: dict[str, Any], expected: dict[str, int]
) -> None:
    broker = partita_broker_factory(**options)
    config = broker.cluster.config
    assert {name: broker.run(partial(config.int, f"group.consumer.{name}")) for name in expected} == expected


def test_a_broker_of_ones_own_has_kafkas_intervals() -> None:
    with Broker() as broker:
        config = broker.cluster.config
        assert {name: broker.run(partial(config.int, f"group.consumer.{name}")) for name in KAFKAS} == KAFKAS


def test_a_factory_starts_several_brokers(partita_broker_factory: BrokerFactory) -> None:
    one, two = partita_broker_factory(), partita_broker_factory(nodes=2, topics={"t": 3})
    assert one.bootstrap != two.bootstrap
    assert two.records("t") == []


def test_every_topic_has_a_name_of_its_own(partita_topic: str, partita_session_topic: str) -> None:
    assert partita_topic != partita_session_topic
    assert partita_topic.startswith("test_every_topic_has_a_name_of_its_own-")


SUITE = """
    import pytest

    def test_fails(partita_broker):
        partita_broker.control.fail("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", 2)
        assert False

    @pytest.mark.usefixtures("partita_session_broker")
    def test_passes_and_leaves_a_note(partita_session_broker):
        partita_session_broker.control.delay("Fetch", 5)

    def test_fails_with_its_own_notes(partita_session_broker):
        partita_session_broker.control.delay("Produce", 7)
        assert False

    def test_stops_it(partita_broker):
        partita_broker.stop()
        assert False
"""


def test_a_failing_test_shows_what_the_broker_noted(pytester: pytest.Pytester) -> None:
    """T4."""
    pytester.makepyfile(SUITE)
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.re_match_lines_random(
        [
            r"-+ partita <Broker 127.0.0.1:\d+> -+",
            r"\d\d:\d\d:\d\d\.\d{3}  Control  what=fault injected  fault=1  does=fail  times=2  api=OffsetCommit .*",
            r"\d\d:\d\d:\d\d\.\d{3}  Control  what=fault injected  fault=2  does=delay  times=1  api=Produce .*",
            r"-+ partita <Broker not running> -+",
        ]
    )
    result.stdout.no_fnmatch_line("*api=Fetch*")


def test_a_failing_test_leaves_the_dashboard_of_its_broker_if_a_folder_is_given(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_good(partita_broker):
            pass

        def test_red(partita_broker, partita_broker_factory):
            partita_broker.produce("orders", "x")
            partita_broker_factory().stop()
            assert False
    """)
    result = pytester.runpytest("-p", "no:cacheprovider", "--partita-reports", "reports/of today")
    result.assert_outcomes(failed=1, passed=1)
    (page,) = (pytester.path / "reports/of today").iterdir()
    assert page.name.endswith("py-test_red.html")
    assert "orders" in page.read_text()
    result.stdout.fnmatch_lines([f"*{page.name}", "*: report*", "no report: the broker is not running*"])


@pytest.mark.parametrize(
    ("decorator", "told"),
    [
        ("@pytest.mark.partita(num_partition=4)", "*Unknown configuration num_partition; did you mean num_partitions*"),
        ("@pytest.mark.partita(node=3)", "*Unknown configuration node; did you mean nodes*"),
        ("@pytest.mark.partita(3)", "*pytest.mark.partita takes keywords such as nodes=3*"),
        ('@pytest.mark.parametrize("partita_broker", [3], indirect=True)', "*a parameter of partita_broker is a dict*"),
    ],
)
def test_a_wrong_option_is_told_before_the_test_runs(pytester: pytest.Pytester, decorator: str, told: str) -> None:
    """T3, T8."""
    pytester.makepyfile(f"import pytest\n{decorator}\ndef test_x(partita_broker): pass")
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([told])


def test_options_of_all_brokers_stand_in_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\npartita_options =\n    nodes=2\n    num.partitions=5\n    kafka_defaults=false\n")
    pytester.makepyfile(
        """
        import pytest

        def test_both(partita_session_broker, partita_broker_factory):
            for broker in (partita_session_broker, partita_broker_factory()):
                assert len(broker.cluster.nodes) == 2
                assert broker.produce("t", "x", partition=4)

        @pytest.mark.partita(nodes=1)
        def test_the_marker_wins(partita_broker, partita_admin, partita_producer):
            assert len(partita_broker.cluster.nodes) == 1
            partita_producer.send("t", "x").result()
            assert partita_admin.describe_topics("t")[0].partitions[4].partition == 4
        """
    )
    pytester.runpytest("-p", "no:cacheprovider", "--strict-markers").assert_outcomes(passed=2)


def test_a_module_has_one_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.partita(topics={"t": 2})

        def test_one(partita_module_broker):
            partita_module_broker.produce("t", "x", partition=1)

        def test_two(partita_module_broker):
            assert [record.value for record in partita_module_broker.records("t")] == [b"x"]
        """
    )
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_workers_of_xdist_have_brokers_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_x(partita_session_broker, partita_session_topic, number):
            partita_session_broker.produce(partita_session_topic, str(number))
            assert len(partita_session_broker.records(partita_session_topic)) == 1
        """
    )
    pytester.runpytest_subprocess("-n", "2", "-p", "no:cacheprovider").assert_outcomes(passed=6)


def test_many_notes_are_cut_at_the_front() -> None:
    cause = {"what": "session expired", "client_id": "c", "group_instance_id": None, "member_id": "m"}
    notes = [
        {"note": "Rebalanced", "seq": n, "wall_ms": 1000 + n, "group_id": "g\x1b", "causes": [cause]} for n in range(5)
    ]
    lines = list(note_lines(notes, 2))
    assert lines[0] == "... 3 earlier notes"
    assert lines[1].endswith(r"Rebalanced  group_id='g\x1b'  causes=[session expired (c)]")
    assert len(lines) == 3


def test_a_failing_test_reads_why_its_group_rebalanced() -> None:
    stage = Stage({"orders": 2})
    for name in ("a", "b"):
        stage.start(name)
        stage.pass_ms(200)
    stage.settle(30_000)
    stage.kill("b")
    stage.settle(60_000)
    lines = list(account_lines(stage.notes, 2))
    assert len(lines) == 4
    assert lines[1].endswith("generation 3: b was silent for its session timeout of 45 s and was removed.")
    assert "See whether the process of b crashed" in lines[2]
    assert list(account_lines([], 2)) == []


def test_a_wrong_marker_is_one_line_and_a_wrong_factory_call_is_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    """Newcomer's finding 13: neither shows a frame of partita."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.partita(nodez=3)
        def test_marker(partita_broker):
            pass

        def test_factory(partita_broker_factory):
            partita_broker_factory(nodez=3)
        """
    )
    ended = pytester.runpytest("-p", "no:cacheprovider", "--strict-markers")
    ended.assert_outcomes(errors=1, failed=1)
    ended.stdout.fnmatch_lines(["partita_broker: Unknown configuration nodez; did you mean nodes?"])
    ended.stdout.fnmatch_lines([">       partita_broker_factory(nodez=3)", "E *did you mean nodes?"])
    ended.stdout.no_fnmatch_line("*plugin.py*")
    ended.stdout.no_fnmatch_line("*embedded.py*")


@pytest.mark.partita(topics={"orders": 2})
def test_a_failing_test_says_that_it_ended_the_session_itself(partita_broker: Broker) -> None:
    """Newcomer's finding 12: no advice to look for a crash of a process that the test expired."""
    bootstrap = partita_broker.bootstrap
    with partita.Consumer(bootstrap_servers=bootstrap, group_id="billing", client_id="ana") as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        partita_broker.control.advance_clock(46_000)
        lines = list(account_lines(partita_broker.notes(), 1))
    assert lines[0].endswith(
        "generation 2: Your test expired the session of ana (control.advance_clock(46000)), and the group is empty now."
    )
    assert lines[1:] == [""]
