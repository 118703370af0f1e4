"""Clients do anything in any order: the laws of the coordinator hold after every step.

Replaying the log gives the same hard state, every token is answered once, no partition has two owners in a generation;
and the invariants `partita.group.state.model.check` asserts of each group.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from partita.group.config import GroupConfig
from partita.group.records.hard_state import HardState
from support.group.clients import LISTS, Clients
from support.group.compaction import compacted
from support.group.shell import GroupShell, replayed

WHO = st.integers(0, 13)
CONFIG = GroupConfig(
    group_initial_rebalance_delay_ms=3000,
    group_max_size=5,
    offsets_retention_minutes=1,
    offsets_retention_check_interval_ms=20_000,
)


class GroupMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.clients = Clients(GroupShell(config=CONFIG))

    @rule(who=WHO, protocols=st.sampled_from(LISTS), version=st.sampled_from([0, 3, 4, 5, 8, 9]))
    def join(self, who: int, protocols: str, version: int) -> None:
        self.clients.join(self.clients.clients[who], protocols, version)

    @rule(who=WHO)
    def sync(self, who: int) -> None:
        self.clients.sync(self.clients.clients[who])

    @rule(who=WHO)
    def heartbeat(self, who: int) -> None:
        self.clients.heartbeat(self.clients.clients[who])

    @rule(who=WHO, by_instance=st.booleans())
    def leave(self, who: int, by_instance: bool) -> None:
        self.clients.leave(self.clients.clients[who], by_instance=by_instance)

    @rule(who=WHO)
    def restart(self, who: int) -> None:
        self.clients.restart(self.clients.clients[who])

    @rule(who=WHO, offset=st.integers(0, 100), as_member=st.booleans())
    def commit(self, who: int, offset: int, as_member: bool) -> None:
        self.clients.commit(self.clients.clients[who], offset, as_member=as_member)

    @rule(who=WHO, producer_id=st.integers(1, 3), offset=st.integers(0, 100))
    def txn_commit(self, who: int, producer_id: int, offset: int) -> None:
        self.clients.txn_commit(self.clients.clients[who], producer_id, offset)

    @rule(who=WHO, producer_id=st.integers(1, 3), committed=st.booleans())
    def end(self, who: int, producer_id: int, committed: bool) -> None:
        self.clients.end(self.clients.clients[who], producer_id, committed=committed)

    @rule(who=WHO)
    def fetch(self, who: int) -> None:
        self.clients.fetch(self.clients.clients[who])

    @rule(who=WHO)
    def delete(self, who: int) -> None:
        self.clients.delete(self.clients.clients[who])

    @rule(ms=st.sampled_from([0, 1, 500, 3000, 9999, 20_000, 100_000]))
    def advance(self, ms: int) -> None:
        self.clients.advance(ms)

    @rule(tell=st.booleans())
    def reload(self, tell: bool) -> None:
        self.clients.reload(tell=tell)

    @rule()
    def fail_next_append(self) -> None:
        self.clients.shell.failing_appends = 1

    @rule(verb=st.sampled_from(["evict_member", "expire_session", "fence_instance"]), who=WHO)
    def control(self, verb: str, who: int) -> None:
        self.clients.control(verb, self.clients.clients[who])

    @rule(topic=st.sampled_from("tu"))
    def delete_topic(self, topic: str) -> None:
        shell = self.clients.shell
        shell.take(shell.shard.on_topics_deleted([topic], shell.clock.now()))
        self.clients.advance(0)

    @invariant()
    def a_compacted_log_loads_to_the_same(self) -> None:
        """S29, for logs without open transactions, whose earlier offsets a cleaner may take away."""
        if hasattr(self, "clients"):
            log = self.clients.shell.log
            if not any(entry.producer for entry in log):
                assert replayed(compacted(log, upto=len(log) // 2)) == replayed(log)

    def teardown(self) -> None:
        """In the end everybody is answered."""
        if hasattr(self, "clients"):
            shell = self.clients.shell
            shell.failing_appends = 0
            shell.release(shell.shard.unload())
            assert not shell.open


TestGroupMachine = pytest.mark.case("GC-V02", "GC-V03", "GC-V05", "BM-076", "BM-058", "BM-069")(GroupMachine.TestCase)
TestGroupMachine.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)

WEIGHTS = {
    "join": 30,
    "sync": 20,
    "heartbeat": 20,
    "commit": 8,
    "leave": 3,
    "restart": 3,
    "advance": 12,
    "txn": 2,
    "control": 1,
}


@pytest.mark.case("GC-V02", "GC-V05")
@pytest.mark.parametrize("seed", [1, 2])
def test_five_thousand_random_steps_each(seed: int) -> None:
    """No faults: long lives of groups, in which generations never go back."""
    rng = random.Random(seed)
    clients = Clients(GroupShell(config=CONFIG))
    generations: dict[str, int] = {}
    for _ in range(5000):
        step(clients, rng)
        for group in clients.shell.shard.groups.values():
            assert group.generation >= generations.get(group.group_id, 0)
            generations[group.group_id] = group.generation
        generations = {g: n for g, n in generations.items() if g in clients.shell.shard.groups}
    assert max(generations.values(), default=0) > 20
    clients.advance(1_000_000)
    assert not clients.shell.open


@pytest.mark.case("GC-V03")
def test_a_thousand_random_steps_with_a_failover_now_and_then() -> None:
    rng = random.Random(3)
    clients = Clients(GroupShell(config=CONFIG))
    for _ in range(1000):
        step(clients, rng)
        if rng.random() < 0.1:
            clients.reload(tell=rng.random() < 0.5)
            assert clients.shell.shard.hard_state == replayed(clients.shell.log)
    assert clients.shell.shard.hard_state != HardState()


def step(clients: Clients, rng: random.Random) -> None:
    client = rng.choice(clients.clients)
    match rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]:
        case "join":
            clients.join(client, rng.choice(LISTS), rng.choice([0, 3, 4, 5, 8, 9]))
        case "sync":
            clients.sync(client)
        case "heartbeat":
            clients.heartbeat(client)
        case "commit":
            clients.commit(client, rng.randrange(100), as_member=rng.random() < 0.7)
        case "leave":
            clients.leave(client, by_instance=rng.random() < 0.3)
        case "restart":
            clients.restart(client)
        case "advance":
            clients.advance(rng.choice([1, 500, 3000, 9999]))
        case "txn":
            clients.txn_commit(client, rng.randrange(3), rng.randrange(100))
            clients.end(client, rng.randrange(3), committed=rng.random() < 0.5)
        case "control":
            clients.control(rng.choice(["evict_member", "expire_session", "fence_instance"]), client)
