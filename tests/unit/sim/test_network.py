"""The simulated network: order is kept, a silent direction stays silent, ends learn of an end one by one."""

from __future__ import annotations

from partita.sim.world.network import Link, Network
from partita.sim.world.world import Trace, World


class End:
    """Either end: writes down what reaches it."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.is_up = True
        self.heard: list[tuple[int, bytes]] = []
        self.ended: list[int] = []

    def receive(self, link: Link, frame: bytes) -> None:
        self.heard.append((self.world.ms, frame))

    arrived = receive

    def closed(self, link: Link) -> None:
        self.ended.append(self.world.ms)

    broken = closed


class Scene:
    """A client that is connected to a broker."""

    def __init__(self) -> None:
        self.world = World(1, Trace())
        self.network = Network(self.world)
        self.broker, self.client = End(self.world, "broker"), End(self.world, "client")
        self.network.listener = self.broker
        link = self.network.connect(self.client, "main")
        assert link is not None
        self.link = link

    def run(self, ms: int) -> None:
        self.world.run(self.world.ms + ms)


def test_frames_arrive_in_order_each_within_its_delay() -> None:
    scene = Scene()
    for n in range(20):
        scene.network.send(scene.link, b"%d" % n)
        scene.network.reply(scene.link, b"%d" % n)
    scene.run(25)
    for end in (scene.broker, scene.client):
        assert [frame for _, frame in end.heard] == [b"%d" % n for n in range(20)]
        assert all(1 <= ms <= 25 for ms, _ in end.heard)


def test_a_slow_direction_is_slow_and_the_other_one_not() -> None:
    scene = Scene()
    scene.network.weather.slow_up = True
    scene.network.send(scene.link, b"up")
    scene.network.reply(scene.link, b"down")
    scene.run(5)
    assert [frame for _, frame in scene.client.heard] == [b"down"]
    assert not scene.broker.heard
    scene.run(100)
    assert [frame for _, frame in scene.broker.heard] == [b"up"]


def test_a_silent_direction_takes_everything_after_it_too() -> None:
    scene = Scene()
    scene.link.up_is_lost = True
    scene.network.send(scene.link, b"lost")
    scene.network.reply(scene.link, b"found")
    scene.run(10)
    assert not scene.broker.heard
    assert scene.client.heard
    scene.network.heal()
    scene.run(10)
    assert scene.broker.ended
    assert scene.client.ended
    scene.network.send(scene.link, b"late")
    scene.run(10)
    assert not scene.broker.heard


def test_what_a_cut_client_sends_is_lost_for_good() -> None:
    scene = Scene()
    scene.network.cut["client"] = None
    assert scene.network.connect(scene.client, "second") is None
    scene.network.send(scene.link, b"one")
    del scene.network.cut["client"]
    scene.network.send(scene.link, b"two")
    scene.run(50)
    assert not scene.broker.heard
    assert scene.network.connect(scene.client, "second") is not None


def test_a_client_that_is_cut_off_while_a_frame_is_on_its_way_does_not_get_it() -> None:
    scene = Scene()
    scene.network.reply(scene.link, b"answer")
    scene.network.send(scene.link, b"question")
    scene.network.cut["client"] = None
    scene.run(50)
    assert not scene.client.heard
    assert not scene.broker.heard


def test_a_stalled_connection_releases_everything_at_once_and_in_order() -> None:
    scene = Scene()
    scene.network.stall(scene.link, 1_000)
    for n in range(3):
        scene.network.send(scene.link, b"%d" % n)
    scene.run(999)
    assert not scene.broker.heard
    scene.run(20)
    assert [frame for _, frame in scene.broker.heard] == [b"0", b"1", b"2"]


def test_the_broker_closes_and_the_client_hears_of_it_later() -> None:
    scene = Scene()
    scene.network.reply(scene.link, b"before")
    scene.network.close_by_broker(scene.link)
    assert scene.broker.ended == [0]
    assert not scene.client.ended
    scene.run(20)
    assert [frame for _, frame in scene.client.heard] == [b"before"]
    assert scene.client.ended
    assert not scene.network.links


def test_a_client_that_goes_quietly_leaves_a_half_open_connection() -> None:
    scene = Scene()
    scene.network.close_by_client(scene.link, quietly=True)
    scene.run(1_000)
    assert not scene.broker.ended
    assert scene.network.links == [scene.link]
    scene.network.reply(scene.link, b"into nothing")
    scene.run(50)
    assert not scene.client.heard


def test_a_client_that_closes_is_heard_behind_what_it_sent() -> None:
    scene = Scene()
    scene.network.send(scene.link, b"last words")
    scene.network.close_by_client(scene.link)
    scene.run(50)
    assert scene.broker.heard
    assert scene.broker.ended
    assert not scene.client.ended


def test_nobody_connects_to_a_broker_that_is_down() -> None:
    scene = Scene()
    scene.broker.is_up = False
    assert scene.network.connect(scene.client, "second") is None
