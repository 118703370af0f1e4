"""Settings every test shares."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from partita import Broker
from support import standstill
from support.broker.raw import Raw
from support.every_case import WALKED
from support.kafka.node import RELEASE, ask_release
from support.schedule import ByFile, begun

HISTORIES = 200
NO_BROWSER = pytest.StashKey[int]()
"""How many tests were left out for want of Chromium."""
settings.register_profile(
    "partita", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("seeds", settings.get_profile("partita"), derandomize=False, print_blob=True)
"""`pytest --hypothesis-profile=seeds --hypothesis-seed=7`: other examples than the gates try."""
settings.load_profile("partita")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--conformance", action="store_true", help="also compare with Apache Kafka (needs Java and Maven)")
    parser.addoption("--kafka", default=RELEASE, metavar="RELEASE", help="the release to compare with (%(default)s)")
    parser.addoption("--slow", action="store_true", help="also run what takes minutes: a Spark cluster, kill rounds")
    parser.addoption("--on-kafka", action="store_true", help="the Spark tests use Apache Kafka in place of our broker")
    parser.addoption(
        "--histories", type=int, default=HISTORIES, help="so many random histories of a shared Spark group"
    )
    parser.addoption("--standstill", action="store_true", help="stop the process now and then, to find tests of luck")
    parser.addoption("--soak-minutes", type=float, default=0, help="kill a member every 30 s for so long, not 10 times")


@pytest.fixture(scope="session", autouse=True)
def _standstill(pytestconfig: pytest.Config) -> Iterator[None]:
    if not pytestconfig.getoption("--standstill"):
        yield
        return
    with subprocess.Popen([sys.executable, standstill.__file__, str(os.getpid())]) as child:
        yield
        child.terminate()


def pytest_configure(config: pytest.Config) -> None:
    """Take SIGINT again: a job in the background of a shell ignores it, and so do the processes that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ask_release(config.getoption("--kafka"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look at what was collected: it stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow and conformance tests out unless asked for: they are gates of their own, not skipped tests."""
    gates = [name for name in ("conformance", "slow") if not config.getoption(f"--{name}")]
    closed = tuple(str(config.rootpath / "tests" / name) for name in gates)
    chosen = [item for item in items if not str(item.path).startswith(closed)]
    if config.getoption("--slow") or config.getoption("--soak-minutes") or config.getoption("--histories") > HISTORIES:
        for item in chosen:
            item.add_marker(pytest.mark.timeout(0))  # asked to take long
    if shutil.which("chromium") is None:
        config.stash[NO_BROWSER] = sum(item.get_closest_marker("browser") is not None for item in chosen)
        chosen = [item for item in chosen if item.get_closest_marker("browser") is None]
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen
    if hasattr(config, "workerinput"):
        items.sort(key=begun)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    """With `--dist loadgroup`, a file is one piece of work, or several that `support.schedule` names."""
    if config.getoption("dist") != "loadgroup":
        return None
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Undo what pyspark does to its loggers when a query is refused.

    They no longer propagate, so pytest gives them its own handlers, and they make these write JSON in later tests.
    """
    refused = [logging.root.manager.loggerDict.get(f"{name}QueryContextLogger") for name in ("DataFrame", "SQL")]
    for logger in refused:
        if isinstance(logger, logging.Logger) and not logger.propagate:
            logger.propagate = True
            capturing = item.config.pluginmanager.getplugin("logging-plugin")
            for handler in (capturing.caplog_handler, capturing.report_handler):
                handler.setFormatter(capturing.formatter)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say both numbers: golden vectors and versions turn one test function into many cases, some walked by one test."""
    if left_out := terminalreporter.config.stash.get(NO_BROWSER, 0):
        terminalreporter.write_line(f"{left_out} browser tests were left out: there is no chromium on the PATH")
    ran = {
        test.nodeid: next((int(str(count)) for name, count in test.user_properties if name == WALKED), 1)
        for outcome in ("passed", "failed", "error")
        for test in terminalreporter.stats.get(outcome, ())
        if isinstance(test, pytest.TestReport)
    }
    functions = {nodeid.partition("[")[0] for nodeid in ran}
    terminalreporter.write_line(f"{len(functions):,} test functions, {sum(ran.values()):,} cases")


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    """A connection to the broker of the test's folder or file: typed requests out, typed answers in."""
    with Raw(broker.port) as connection:
        yield connection
