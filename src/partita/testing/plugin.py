"""The pytest plugin: a broker for a test, ready in milliseconds. It is installed with partita and needs no setup.

    @pytest.mark.partita(nodes=3, topics={"orders": 6})
    def test_orders(partita_broker):
        service = start_my_service(partita_broker.bootstrap)
        partita_broker.wait_group("billing", state="Stable", members=1)
        partita_broker.control.expire_session("billing")

The marker takes every option of `partita.Broker`, and `topics`. The broker is imported when a test first asks for one.
Its KIP-848 groups are quick unless options say otherwise: see `QUICK_GROUPS`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

import partita
from partita.lazy import later
from partita.testing.notes import account_lines, note_lines

if TYPE_CHECKING:
    from partita import errors as kafka_errors
    from partita.broker import embedded as embedded_broker
    from partita.testing import report as report_writer
else:
    embedded_broker = later("partita.broker.embedded")
    kafka_errors = later("partita.errors")
    report_writer = later("partita.testing.report")

INI_OPTION = "partita_options"
REPORTS_OPTION = "--partita-reports"
NOTES_SHOWN = 60
REBALANCES_SHOWN = 10
SHARED_BROKERS = ("partita_module_broker", "partita_session_broker")
MARKER = "partita(topics={}, **options): start this test's broker with these options, such as nodes=3, num_partitions=4"
QUICK_GROUPS: Mapping[str, Mapping[str, int]] = {
    "heartbeat_interval_ms": {
        "group_consumer_heartbeat_interval_ms": 500,
        "group_consumer_min_heartbeat_interval_ms": 500,
    },
    "assignment_interval_ms": {"group_consumer_assignment_interval_ms": 0, "group_share_assignment_interval_ms": 0},
}
"""Intervals of the fixtures' brokers instead of Kafka's 5 s and 1 s, so that members need not wait for assignments."""
_topic_numbers = itertools.count(1)
_started = pytest.StashKey[list[tuple["embedded_broker.Broker", int]]]()
"""The brokers that a test uses, each with the number of the first note that belongs to the test."""


class BrokerFactory(Protocol):
    """The value of `partita_broker_factory`: call it for another broker, as often as you like."""

    def __call__(self, *, topics: Mapping[str, int] | None = None, **options: Any) -> embedded_broker.Broker:
        """Start a broker with these options and topics. It is stopped after the test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option for settings of all brokers, and the option for reports about failing tests."""
    parser.getgroup("partita").addoption(
        REPORTS_OPTION,
        metavar="DIR",
        help="write the dashboard of each failing test's broker to this folder, one HTML file per test",
    )
    parser.addini(INI_OPTION, "options of all brokers that fixtures start, one name=value per line", type="linelist")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Leave the asserts of partita itself unchanged, before any conftest imports it.

    pytest rewrites the asserts of every package that brings a plugin. For partita that would only make the first start
    slower, and in Python 3.11 two threads that compile rewritten modules at the same time can fail with a SystemError.
    """
    # pytest has no public way to take a package back; without the private set nothing is lost but time.
    rewritten = getattr(early_config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(rewritten, set):
        rewritten.discard("partita")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Record which notes of shared brokers belong to this test."""
    # A broker of this test alone is recorded by `_running`, from its first note on.
    for name in SHARED_BROKERS:
        broker = getattr(item, "funcargs", {}).get(name)
        if broker is not None:
            _remember(item, broker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the notes of its brokers to a failing test: members, rebalances and their causes, injected faults."""
    report = yield
    if report.failed and report.when in ("setup", "call"):
        folder = item.config.getoption(REPORTS_OPTION)
        started = item.stash.get(_started, [])
        for number, (broker, first) in enumerate(started):
            report.sections += _section(broker, first)
            if folder:
                report.sections.append((f"partita {broker!r}: report", _reported(item, broker, Path(folder), number)))
    return report


def _reported(item: pytest.Item, broker: embedded_broker.Broker, folder: Path, number: int) -> str:
    """Write the report; return one line with its path, or the reason why there is none."""
    path = report_writer.report_path(folder, item.nodeid, number)
    try:
        report_writer.write_report(broker, path)
    except ModuleNotFoundError as error:
        return f"no report: {error.name} is missing; pip install 'partita[dashboard]'"
    except (RuntimeError, kafka_errors.KafkaError, OSError) as error:
        return f"no report: {error or type(error).__name__}"
    return str(path)


def _section(broker: embedded_broker.Broker, first: int) -> list[tuple[str, str]]:
    try:
        notes = list(broker.notes(since=first))
    except RuntimeError:
        return [(f"partita {broker!r}", "stopped by the test")]
    lines = "\n".join([*account_lines(notes, REBALANCES_SHOWN), *note_lines(notes, NOTES_SHOWN)])
    return [(f"partita {broker!r}", lines or "nothing happened")]


@pytest.fixture
def partita_broker(request: pytest.FixtureRequest) -> Iterator[embedded_broker.Broker]:
    """A new in-memory broker for this test, on a free loopback port, with the options of the `partita` marker.

    Indirect parameters are options too: `parametrize("partita_broker", [{"nodes": 3}], indirect=True)`.
    """
    yield from _of_fixture(request, {})


@pytest.fixture
def partita_secure_broker(request: pytest.FixtureRequest) -> Iterator[embedded_broker.Broker]:
    """A new in-memory broker with TLS and the user "alice", whose password is "alice-secret".

    `partita_secure_broker.client_options("alice")` returns the options a client needs. The `partita` marker changes all
    of it: other users, ACLs, client certificates. Needs `pip install 'partita[testing-tls]'`.
    """
    yield from _of_fixture(request, {"tls": True, "users": {"alice": "alice-secret"}})


@pytest.fixture(scope="module")
def partita_module_broker(request: pytest.FixtureRequest) -> Iterator[embedded_broker.Broker]:
    """One in-memory broker for the tests of a module, with the options of the module's `partita` marker."""
    yield from _of_fixture(request, {})


@pytest.fixture(scope="session")
def partita_session_broker(request: pytest.FixtureRequest) -> Iterator[embedded_broker.Broker]:
    """One in-memory broker for the whole run, or for each worker of pytest-xdist.

    Tests use their own topics and groups, for example with `partita_session_topic`, or clear the broker.
    """
    yield from _of_fixture(request, {})


@pytest.fixture
def partita_broker_factory(request: pytest.FixtureRequest) -> Iterator[BrokerFactory]:
    """Starts brokers: `partita_broker_factory(nodes=3, topics={"orders": 6})`. They stop after the test."""
    with ExitStack() as stack:

        def start(*, topics: Mapping[str, int] | None = None, **options: Any) -> embedded_broker.Broker:
            __tracebackhide__ = True
            try:
                return stack.enter_context(_running(request, topics, {**_ini_options(request.config), **options}))
            except _refusals() as error:
                raise error.with_traceback(None) from None  # the line of the test says where

        yield start


@pytest.fixture
def partita_topic(request: pytest.FixtureRequest, partita_broker: embedded_broker.Broker) -> str:
    """The name of a new topic of `partita_broker`, with as many partitions as the broker gives by default."""
    return _new_topic(request, partita_broker)


@pytest.fixture
def partita_session_topic(request: pytest.FixtureRequest, partita_session_broker: embedded_broker.Broker) -> str:
    """The name of a new topic of `partita_session_broker` that no other test has."""
    return _new_topic(request, partita_session_broker)


@pytest.fixture
def partita_admin(partita_broker: embedded_broker.Broker) -> Iterator[partita.Admin]:
    """An admin client of `partita_broker`."""
    with partita.Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        yield admin


@pytest.fixture
def partita_producer(partita_broker: embedded_broker.Broker) -> Iterator[partita.Producer]:
    """A producer of `partita_broker`."""
    with partita.Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
        yield producer


def _of_fixture(request: pytest.FixtureRequest, defaults: Mapping[str, Any]) -> Iterator[embedded_broker.Broker]:
    """A fixture's broker. What is wrong with its options fails the test with one line: no line of the test ran yet."""
    refused: Exception | None = None
    with ExitStack() as stack:
        try:
            options = {**defaults, **_options(request)}
            broker = stack.enter_context(_running(request, options.pop("topics", None), options))
        except _refusals() as error:
            refused = error
        if refused is not None:
            pytest.fail(f"{request.fixturename}: {refused}", pytrace=False)
        yield broker


def _refusals() -> tuple[type[Exception], ...]:
    """How wrong options and topics of a broker are refused."""
    return pytest.UsageError, partita.StartError, kafka_errors.KafkaError, TypeError


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options from the ini file, then from the markers of module, class and function, then from the parameter."""
    options = _ini_options(request.config)
    for marker in reversed(list(request.node.iter_markers("partita"))):
        if marker.args:
            raise pytest.UsageError(f"pytest.mark.partita takes keywords such as nodes=3, not {marker.args!r}")
        options |= marker.kwargs
    given = getattr(request, "param", None)
    if given is None:
        return options
    if not isinstance(given, Mapping):
        raise pytest.UsageError(f'a parameter of {request.fixturename} is a dict such as {{"nodes": 3}}, not {given!r}')
    return options | dict(given)


def _ini_options(config: pytest.Config) -> dict[str, Any]:
    """The options of the ini file; names with dots are Kafka's, and numbers of nodes and ports are numbers."""
    options: dict[str, Any] = {}
    for line in config.getini(INI_OPTION):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{INI_OPTION} expects lines name=value, not {line!r}")
        name, value = name.strip().replace(".", "_"), value.strip()
        options[name] = int(value) if name in ("nodes", "port", "admin_port") else _boolean(name, value)
    return options


def with_quick_groups(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with those of `QUICK_GROUPS`, where a test has given nothing of that kind, bounds included.

    Nothing is added for a broker with `kafka_defaults`.
    """
    if options.get("kafka_defaults"):
        return dict(options)
    names = [str(name).replace(".", "_") for name in (*options, *(options.get("config") or {}))]
    given = tuple(name for name in names if name.startswith("group_consumer_"))
    added: dict[str, Any] = {}
    for kind, quick in QUICK_GROUPS.items():
        if not any(name.endswith(kind) for name in given):
            # Interval and bounds together: one without the others could contradict Kafka's default bounds.
            added |= quick
    return added | dict(options)


def _boolean(name: str, value: str) -> str | bool:
    return value.lower() == "true" if name == "kafka_defaults" else value


@contextmanager
def _running(
    request: pytest.FixtureRequest, topics: Mapping[str, int] | None, options: Mapping[str, Any]
) -> Iterator[embedded_broker.Broker]:
    """A broker that runs as long as the block does."""
    with embedded_broker.Broker(**with_quick_groups(options)) as broker:
        if topics:
            broker.create_topics(topics)
        if isinstance(request.node, pytest.Item):
            _remember(request.node, broker)
        yield broker


def _remember(item: pytest.Item, broker: embedded_broker.Broker) -> None:
    first = broker.run(lambda: broker.cluster.notes.next_seq)
    item.stash.setdefault(_started, []).append((broker, first))


def _new_topic(request: pytest.FixtureRequest, broker: embedded_broker.Broker) -> str:
    safe = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")[:80]
    name = f"{safe}-{next(_topic_numbers)}"
    broker.create_topics({name: -1})
    return name
