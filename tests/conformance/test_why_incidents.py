"""Incidents of groups of librdkafka and kafka-python, staged side by side on Apache Kafka and on ours.

`partita groups why` and the dashboard explain each; they must agree, and are compared with the truth.
`pytest --conformance -k "incidents and killed"` stages some; `-rP` prints the words.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from partita import Admin
from partita.cli.commands import cli
from partita.dashboard.models.accounts import Accounts
from partita.observe.followers import Followers
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller
from partita.wording import What
from support.explain.incidents import INCIDENTS, Incident
from support.explain.staging import SETTINGS, Group, Node, OurNode, Traffic
from support.kafka.node import KafkaNode, KafkaUnavailable

pytestmark = pytest.mark.conformance

AT_ONCE = 8
"""So many incidents are staged at once, since each member is a process."""
LOOKS_S = 60.0
TRUE_OF_ALL = {What.JOINED, What.UNEXPLAINED}


@dataclass(frozen=True)
class Outcome:
    """An incident as the product explains it."""

    text: str
    accounts: list[dict[str, Any]]
    on_dashboard: list[str]
    formed_ms: int


class Dashboard:
    """The dashboard's sources and accounts on a loop of their own, from before the incidents."""

    def __init__(self, node: Node) -> None:
        self._observed = Observed(node.bootstrap)
        options = {"bootstrap.servers": node.bootstrap}
        self._poller = ClusterPoller(options, self._observed)
        notes = f"http://127.0.0.1:{node.admin_port}" if isinstance(node, OurNode) else None
        followers = Followers(options, self._poller, notes, OurNode.TOKEN)
        self._accounts = Accounts(self._observed, followers.facts_of)
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(followers),))

    async def _run(self, followers: Followers) -> None:
        self._task = asyncio.current_task()
        with suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as both:  # which ends when both have
                both.create_task(self._poller.run())
                both.create_task(followers.run())

    def __enter__(self) -> Dashboard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def headlines(self, group: str, expected: list[str]) -> list[str]:
        """All headlines, as soon as they are the expected ones: it looks at the cluster now and then."""
        end, found = time.monotonic() + LOOKS_S, [""]
        while found != expected and time.monotonic() < end:
            known = asyncio.run_coroutine_threadsafe(self._known(group), self._loop).result()
            found = [account.headline for account in known]
            threading.Event().wait(0.2)
        return found

    async def _known(self, group: str) -> Any:
        return self._accounts.of(group)[1]


class Stage:
    """All incidents on one broker; its outcome is there when it is over."""

    def __init__(self, node: Node, dashboard: Dashboard, traffic: Traffic, admin: Admin) -> None:
        self._node, self._dashboard, self._traffic, self._admin = node, dashboard, traffic, admin
        self._asking = threading.Lock()

    def play(self, incident: Incident) -> Outcome:
        """Stage it, and ask before its members are ended."""
        group = Group(self._node, incident.name, self._admin, self._traffic)
        try:
            incident.stage(group)
            return self._ask(group)
        finally:
            group.end()

    def _ask(self, group: Group) -> Outcome:
        words = ["groups", "why", group.name, "-b", self._node.bootstrap]
        if isinstance(self._node, OurNode):
            words += ["--admin-port", str(self._node.admin_port), "--admin-token", OurNode.TOKEN]
        with self._asking:  # the runner replaces the standard output of the process
            accounts = json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)
            text = CliRunner().invoke(cli, words).output
        headlines = [account["headline"] for account in accounts]
        return Outcome(text, accounts, self._dashboard.headlines(group.name, headlines), group.formed_ms)


@contextmanager
def node_of(name: str, folder: Path) -> Iterator[Node]:
    if name == "ours":
        with OurNode(folder) as ours:
            yield ours
    else:
        try:
            with KafkaNode(None, **{key: str(value) for key, value in SETTINGS.items()}) as kafka:
                yield kafka
        except KafkaUnavailable as reason:
            pytest.skip(f"no Apache Kafka: {reason}")


@pytest.fixture(scope="module", params=["kafka", "ours"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Outcome]]]:
    """The incidents that are asked for, staged on one broker."""
    chosen = wanted(request.session.items, request.param)
    with ExitStack() as stack:
        node = stack.enter_context(node_of(request.param, tmp_path_factory.mktemp("ours")))
        admin = stack.enter_context(Admin(bootstrap_servers=node.bootstrap))
        traffic = stack.enter_context(Traffic(node.bootstrap))
        dashboard = stack.enter_context(Dashboard(node))
        stage = Stage(node, dashboard, traffic, admin)
        found: dict[str, Future[Outcome]] = {}
        for is_last in (False, True):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                found |= {one.name: pool.submit(stage.play, one) for one in chosen if one.is_last is is_last}
        yield found


def wanted(items: Sequence[pytest.Item], broker: str) -> list[Incident]:
    """The incidents of the tests that were chosen for a broker."""
    functions = [item for item in items if isinstance(item, pytest.Function) and "incident" in item.fixturenames]
    chosen = [item.callspec.params["incident"] for item in functions if item.callspec.params["outcomes"] == broker]
    return [incident for incident in INCIDENTS if incident in chosen]


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_an_incident_is_explained_as_it_was(
    outcomes: dict[str, Future[Outcome]], incident: Incident, request: pytest.FixtureRequest
) -> None:
    found = outcomes[incident.name].result()
    print(found.text)
    has_notes = request.node.callspec.params["outcomes"] == "ours"
    assert not list(faults(incident, found, has_notes)), found.text


def faults(incident: Incident, outcome: Outcome, has_notes: bool) -> Iterator[str]:
    """Everything that is missing, wrong or harmful in the words."""
    accounts = [account for account in outcome.accounts if account["ended_ms"] > outcome.formed_ms]
    causes = [cause for account in accounts for cause in account["causes"]]
    claimed = {(What(cause["what"]), cause["who"]) for cause in causes if cause["sure"] != "unknown"}
    unsure = {cause["who"] for cause in causes if cause["sure"] == "unknown"}
    for what, who in incident.said:
        is_said = any(what is w and who in ("", named) for w, named in claimed)
        if not is_said and (has_notes or who not in incident.unsure or who not in unsure):
            yield f"not said: {what.value} {who}"
    for what, who in sorted(claimed):
        true = any(what is w and named in ("", who) for w, named in incident.said)
        if not true and what not in TRUE_OF_ALL and what not in incident.also:
            yield f"wrong: {what.value} {who}"
    advice = {account["advice"] for account in accounts}
    if incident.advice and not any(incident.advice in text for text in advice):
        yield f"no such advice: {incident.advice}"
    for words in (incident.words, incident.words_of_notes if has_notes else ""):
        if words not in outcome.text:
            yield f"not in the text: {words}"
    if outcome.on_dashboard != (headlines := [account["headline"] for account in outcome.accounts]):
        yield f"the dashboard differs: {outcome.on_dashboard} instead of {headlines}"
