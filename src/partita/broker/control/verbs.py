"""The events that a test can cause at once, which users' code must survive. `broker.control` and the admin endpoint.

Every call acts on the broker's loop, waits for it, and leaves a note. Examples are in each method's docstring. The
coordinator's own verbs act as real events would, so no rule of the protocol stands here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from partita.broker.api.apis import SERVED
from partita.broker.control import kcl
from partita.broker.control.fault import WAIT_SECONDS, Asked, Fault, Only, facts, match_of
from partita.broker.groups.runner import ShardRunner
from partita.broker.requests.fault_rules import Rule, answering_late, dropping, failing, throttling, truncating
from partita.broker.shard_life import State
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.broker.api.asked_about import Match
    from partita.broker.api.context import Answer
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.running import RunningBroker
    from partita.broker.security.users import Users
    from partita.broker.topics.catalogue import Partition
    from partita.group.contract import Step
    from partita.group.coordinator import GroupCoordinator

T = TypeVar("T")
Act = Callable[[], None]
CLOCK_AHEAD_MS_MAX = 100 * 365 * 86_400_000
"""A hundred years: the clock must stay within the range of a timestamp."""
_EVER_MS = 1 << 62
_KEYS = {row.name.lower(): row.key for row in SERVED.values()}


class ControlError(LookupError):
    """The thing to change does not exist; the message lists those that do."""


class Control:
    """Causes events in a running broker. Methods block and may be called from any thread but the broker's own."""

    def __init__(self, running: RunningBroker) -> None:
        self._running = running
        self._cluster = running.cluster

    # -- members ---------------------------------------------------------------------------------------------------

    def evict_member(self, group_id: str, member: str) -> None:
        """Remove a member as an administrator would. Name it by member id, group instance id or client id.

        `broker.control.evict_member("orders", member_id)`: its next heartbeat says UNKNOWN_MEMBER_ID.
        """
        self._member_verb("member evicted", group_id, member, lambda c: c.evict_member)

    def expire_session(self, group_id: str, member: str | None = None) -> None:
        """Treat a member as silent for its whole session, right now. Without `member`, the group's only one.

        Name the member by member id, group instance id or client id.
        `broker.control.expire_session("orders", "instance-1")`: the others rebalance as after a crash.
        """
        self._member_verb("session expired", group_id, member, lambda c: c.expire_session)

    def fence_instance(self, group_id: str, group_instance_id: str) -> None:
        """Let a static member's identity be taken over, as by a second process with the same instance id.

        `broker.control.fence_instance("orders", "instance-1")`: the old process gets FENCED_INSTANCE_ID.
        """
        self._member_verb("instance fenced", group_id, group_instance_id, lambda c: c.fence_instance)

    def expire_locks(self, group_id: str, topic: str | None = None) -> None:
        """End every lock on records of a share group, or of one topic of it, as though its members were too slow.

        `broker.control.expire_locks("jobs")`: the records are delivered again, and one more delivery counts; those that
        have reached the group's delivery limit are archived.
        """

        def prepare() -> Act:
            nodes = list(self._running.services.share_nodes.values())
            led = [one for node in nodes for one in node.led.get(group_id, {}).values()]
            chosen = [one for one in led if topic in (None, one.partition.topic.name)]
            if not chosen:
                known = sorted({group for node in nodes for group in node.led})
                raise ControlError(
                    f"share group {group_id} holds no records of {topic or 'any topic'}; groups with records in work: "
                    f"{', '.join(known) or 'none'}"
                )

            def act() -> None:
                for one in chosen:
                    one.end_locks(_EVER_MS)

            return act

        self._noted("locks expired", prepare, group=group_id)

    # -- logins ----------------------------------------------------------------------------------------------------

    def set_password(self, user: str, password: str) -> None:
        """Let a user log in with this password only, by PLAIN and SCRAM; open connections stay.

        `broker.control.set_password("alice", "new")`: the next login with the old one fails.
        """
        self._login_verb("password set", user, lambda users: users.set_password(user, Secret(password)))

    def remove_user(self, user: str) -> None:
        """Refuse further logins of a user; open connections stay. `broker.control.remove_user("alice")`."""
        self._login_verb("user removed", user, lambda users: users.remove(user))

    def expire_certificate(self) -> None:
        """Show new connections a certificate that has ended; open ones stay. Needs a broker with `tls=True`.

        `broker.control.expire_certificate()`: clients refuse the broker. `renew_certificate` ends that.
        """
        self._show_certificate(ended=True)

    def renew_certificate(self) -> None:
        """Show new connections a new, valid certificate of the same authority."""
        self._show_certificate(ended=False)

    def _login_verb(self, what: str, user: str, act: Callable[[Users], None]) -> None:
        def on_loop() -> None:
            users = self._running.services.users()
            act(users)
            if self._running.ready_made is not None:
                self._running.ready_made.users = dict(users.plain)
            self._cluster.notes.control(what, user=user)

        self._on_loop(on_loop)

    def _show_certificate(self, *, ended: bool) -> None:
        ready_made, guards = self._running.ready_made, self._running.services.guards
        if ready_made is None or ready_made.certificates is None or guards is None:
            raise ControlError("there are no throw-away certificates: start the broker with tls=True")
        certificates, reload = ready_made.certificates, guards.reload

        def on_loop() -> None:
            certificates.issue_server(ended=ended)
            reload()
            self._cluster.notes.control("certificate expired" if ended else "certificate renewed")

        self._on_loop(on_loop)

    def members(self, group_id: str) -> dict[str, str | None]:
        """Member id to group instance id, of the group's members now."""

        def act() -> dict[str, str | None]:
            known = self._runner(group_id).coordinator.members_of(group_id)
            return {member.member_id: member.instance_id for member in known}

        return self._on_loop(act)

    def timers(self, group_id: str) -> list[dict[str, Any]]:
        """Return what a group waits for: what, for which member, and the milliseconds left; None: without a limit.

        `broker.control.timers("orders")`: the ends of sessions and phases, pending ids, requests that wait.
        """

        def act() -> list[dict[str, Any]]:
            found = self._runner(group_id).coordinator.timers_of(group_id, self._cluster.clock.now())
            return [timer._asdict() for timer in found]

        return self._on_loop(act)

    # -- requests --------------------------------------------------------------------------------------------------

    # Each of these verbs takes the filters of `partita.broker.control.fault.Only`, and returns a Fault.

    def fail(
        self, api: str, error: str | int, times: int | None = 1, *, executed: bool = False, **only: Unpack[Only]
    ) -> Fault:
        """Answer the next `times` requests of an API with an error; None: until the fault is cleared.

        `broker.control.fail("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", 3)`. With `executed=True` the request takes
        effect and only its answer is replaced. Filters (group_id, topic, partition, client_id, node, every) limit it:
        `fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0)` fails this partition of the requests
        that name it; the others are served. APIs without an error for each partition fail as a whole.
        """
        match, every = self._match(api, only)
        code = _code(error)
        told = {"error": str(error), "executed": executed}
        return self._inject(Rule("fail", match, failing(match, code, executed=executed), times, every, told=told), api)

    def delay(self, api: str, ms: int, times: int | None = 1, *, executed: bool = False, **only: Unpack[Only]) -> Fault:
        """Delay the next `times` requests of an API, and all that follow on their connections.

        `broker.control.delay("Fetch", 500)`. With `executed=True` the request takes effect at once and its answer is
        late. Filters as for `fail`.
        """
        _check_ms(ms)
        match, every = self._match(api, only)
        told = {"delay_ms": ms, "executed": executed}
        if executed:
            return self._inject(Rule("delay", match, answering_late(ms), times, every, told=told), api)
        return self._inject(Rule("delay", match, None, times, every, delay_ms=ms, told=told), api)

    def hold(self, api: str, times: int | None = None, **only: Unpack[Only]) -> Fault:
        """Withhold requests of an API, and all that follow on their connections, until the fault is cleared.

        `held = broker.control.hold("Fetch", topic="orders")`, then `held.wait(1)` for the first one. Filters as for
        `fail`.
        """
        match, every = self._match(api, only)
        return self._inject(Rule("hold", match, None, times, every), api, holds=True)

    def drop(self, api: str, times: int | None = 1, *, executed: bool = False, **only: Unpack[Only]) -> Fault:
        """Close the connection in place of an answer: the client does not know whether its request took effect.

        `broker.control.drop("Produce", executed=True, topic="orders")`: it did. Filters as for `fail`.
        """
        match, every = self._match(api, only)
        told = {"executed": executed}
        return self._inject(Rule("drop", match, dropping(executed=executed), times, every, told=told), api)

    def truncate(self, api: str, times: int | None = 1, *, size: int | None = None, **only: Unpack[Only]) -> Fault:
        """Send only the first `size` bytes of an answer, or half of it, then close the connection.

        `broker.control.truncate("Fetch")`: half a frame, as from a broker that dies while it writes. The request takes
        effect. Filters as for `fail`.
        """
        if size is not None:
            _at_least(0, size=size)
        match, every = self._match(api, only)
        return self._inject(Rule("truncate", match, truncating(size), times, every), api)

    def throttle(self, api: str, ms: int, times: int | None = 1, **only: Unpack[Only]) -> Fault:
        """Answer the next `times` requests of an API with a time to wait, as a quota does.

        `broker.control.throttle("Produce", 2000, client_id="orders")`: the request takes effect, its answer has
        `throttle_time_ms`, and nothing more is read from its connection until the time is over. APIs without that field
        only wait. Filters as for `fail`.
        """
        _check_ms(ms)
        match, every = self._match(api, only)
        return self._inject(Rule("throttle", match, throttling(ms), times, every, told={"throttle_ms": ms}), api)

    def observe(self, api: str, **only: Unpack[Only]) -> Fault:
        """Count requests of an API and leave them alone: `seen = broker.control.observe("OffsetCommit")`.

        `seen.wait(3)` waits for the third. Filters as for `fail`.
        """
        match, every = self._match(api, only)
        return self._inject(Rule("observe", match, None, None, every), api)

    def intercept(
        self,
        api: str,
        function: Callable[[Asked], str | int | Message | None],
        times: int | None = None,
        **only: Unpack[Only],
    ) -> Fault:
        """Ask `function` about each request: it returns an error's name or number, a response, or None to go on.

        `broker.control.intercept("Produce", lambda asked: "NOT_ENOUGH_REPLICAS" if asked.version > 9 else None)`. It is
        called on the broker's loop and must not wait; what it raises is logged and answered as a failure of the broker.
        Filters as for `fail`. In Python only.
        """
        if not callable(function):
            raise ControlError(f"function must be a callable, not {function!r}")
        match, every = self._match(api, only)

        def act(exchange: Exchange) -> Answer:
            ctx = exchange.ctx
            asked = Asked(exchange.api.name, ctx.version, ctx.client_id, ctx.client_host, ctx.node_id, exchange.request)
            try:
                said = function(asked)
                if said is None:
                    return exchange.call()
                if isinstance(said, Message):
                    return said
                return failing(match, _code(said), executed=False)(exchange)
            except Exception as error:
                return exchange.failed(error)

        return self._inject(Rule("intercept", match, act, times, every), api)

    def kcl_faults(self, rules: kcl.Given) -> list[Fault]:
        """Inject the fault rules of `kcl fake control`: an object, a list of them, JSON, or kcl's name=value pairs.

        `broker.control.kcl_faults("keys=produce,topic=orders,error=NOT_LEADER_OR_FOLLOWER,count=3")`. Nodes are counted
        from 1 here. Raises ControlError that names the rule, and injects none then.
        """
        try:
            calls = kcl.calls_of(rules)
        except ValueError as error:
            raise ControlError(str(error)) from None
        return [
            self.observe(api, **only) if error is None else self.fail(api, error, times, **only)
            for api, error, times, only in calls
        ]

    def faults(self) -> list[dict[str, Any]]:
        """The active faults: number, effect, API, filters and hits."""

        def act() -> list[dict[str, Any]]:
            return [
                {"fault": rule.number, "what": rule.what, **dict(facts(rule)), "hits": rule.hits}
                for rule in self._running.faults.in_force
            ]

        return self._on_loop(act)

    def wait_fault(self, fault: int, hits: int = 1, timeout: float = WAIT_SECONDS) -> int:
        """Wait until a fault, named by its number, was applied so often; return its hits.

        `broker.control.wait_fault(fault.number)` is `fault.wait()`, for tests in other languages; over HTTP it waits
        for at most 30 s. Raises TimeoutError.
        """
        return self._fault(fault).wait(hits, timeout)

    def clear_fault(self, fault: int) -> None:
        """Clear one fault by its number and release the requests that it holds: `broker.control.clear_fault(1)`."""
        self._fault(fault).clear()

    def hold_joins(self, group_id: str) -> None:
        """Keep every JoinGroup of a group from the coordinator until `release_joins`.

        `broker.control.hold_joins("orders")`: the group stays in its rebalance.
        """
        self._noted("joins held", lambda: partial(self._running.faults.hold_joins, group_id), group_id=group_id)

    def release_joins(self, group_id: str) -> None:
        """Release held joins in their order: `broker.control.release_joins("orders")`."""
        self._noted("joins released", lambda: partial(self._running.faults.release_joins, group_id), group_id=group_id)

    def hold_load(self, group_id: str) -> None:
        """Let the group's coordinator be loading until `release_load`, as after a move: COORDINATOR_LOAD_IN_PROGRESS.

        `broker.control.hold_load("orders")`: heartbeats succeed meanwhile, members that wait look for the coordinator
        again. The same happens to every other group of its shard.
        """

        def prepare() -> Act:
            return partial(self._running.services.groups().hold_load, self._runner(group_id).partition.index)

        self._noted("load held", prepare, group_id=group_id)

    def release_load(self, group_id: str) -> None:
        """Let the group's coordinator load and serve: `broker.control.release_load("orders")`."""

        def prepare() -> Act:
            return partial(self._running.services.groups().release_load, self._runner(group_id).partition.index)

        self._noted("load released", prepare, group_id=group_id)

    def clear_faults(self) -> None:
        """Clear every active fault and `hold_load`; held requests are released."""

        def clear() -> None:
            self._running.faults.clear()
            self._running.services.groups().release_loads()

        self._noted("faults cleared", lambda: clear)

    def fail_next_append(self, group_id: str) -> None:
        """Let the next write of the group's coordinator fail.

        `broker.control.fail_next_append("orders")`: the shard is dropped and replayed; clients see NOT_COORDINATOR.
        """

        def prepare() -> Act:
            runner = self._runner(group_id)
            return lambda: setattr(runner, "fail_next_append", True)

        self._noted("next append fails", prepare, group_id=group_id)

    def trace_group(self, group_id: str) -> None:
        """Note every request of a group and its answer, as GroupRequest and GroupAnswer, until `untrace_group`.

        `broker.control.trace_group("orders")`; `partita groups trace orders` shows them as lines and as a chart.
        """
        self._noted("group traced", lambda: partial(self._running.trace.start, group_id), group_id=group_id)

    def untrace_group(self, group_id: str) -> None:
        """Stop noting a group's requests: `broker.control.untrace_group("orders")`."""
        self._noted("group no longer traced", lambda: partial(self._running.trace.stop, group_id), group_id=group_id)

    # -- nodes and leaders -----------------------------------------------------------------------------------------

    def coordinator(self, group_id: str) -> int:
        """The id of the node that coordinates a group."""
        return self._on_loop(lambda: self._runner(group_id).node_id)

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of the node that leads a partition; -1 without a leader."""
        return self._on_loop(lambda: self._partition(topic, partition).leader)

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Elect another node as a partition's leader.

        `broker.control.move_leader("orders", 0, 2)`: the old one answers NOT_LEADER_OR_FOLLOWER.
        """

        def prepare() -> Act:
            self._check_node(node)
            return partial(self._cluster.elect, self._partition(topic, partition), node)

        self._noted("leader moved", prepare, topic=topic, partition=partition, node=node)

    def move_coordinator(self, group_id: str, node: int) -> None:
        """Elect another node as a group's coordinator (it moves with all groups of its shard).

        `broker.control.move_coordinator("orders", 2)`: the old one answers NOT_COORDINATOR.
        """

        def prepare() -> Act:
            self._check_node(node)
            return partial(self._cluster.elect, self._runner(group_id).partition, node)

        self._noted("coordinator moved", prepare, group_id=group_id, node=node)

    def stop_node(self, node: int) -> None:
        """Stop one node; its partitions move to the others: `broker.control.stop_node(2)`."""
        self._check_node(node)
        self._wait(self._running.stop_node(node))

    def start_node(self, node: int) -> None:
        """Start a stopped node again on its old port: `broker.control.start_node(2)`."""
        self._check_node(node, alive=False)
        self._wait(self._running.start_node(node))

    def restart_node(self, node: int) -> None:
        """Stop and start one node: `broker.control.restart_node(1)`. Its connections break."""
        self._check_node(node)

        async def act() -> None:
            await self._running.stop_node(node)
            await self._running.start_node(node)

        self._wait(act())

    # -- time ------------------------------------------------------------------------------------------------------

    def advance_clock(self, ms: int) -> None:
        """Let the broker's clock jump forward; due work is done before this returns.

        `broker.control.advance_clock(45_000)`: sessions of 45 s expire now.
        """
        if isinstance(ms, bool) or not isinstance(ms, int) or ms > CLOCK_AHEAD_MS_MAX:
            raise ControlError(f"ms must be a whole number up to {CLOCK_AHEAD_MS_MAX}, not {ms!r}")
        _at_least(0, ms=ms)
        self._noted("clock advanced", lambda: partial(self._running.advance_clock, ms), ms=ms)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _member_verb(
        self, what: str, group_id: str, member: str | None, verb: Callable[[GroupCoordinator], Callable[..., Step]]
    ) -> None:
        def prepare() -> Act:
            runner = self._runner(group_id)
            if runner.state is not State.ACTIVE:
                raise ControlError(f"the shard of group {group_id} is {runner.state.value}")
            chosen = _identity(group_id, runner.coordinator, member)
            return lambda: runner.take(verb(runner.coordinator)(group_id, chosen, self._cluster.clock.now()))

        self._noted(what, prepare, group_id=group_id, member=member)

    def _match(self, api: str, only: Only) -> tuple[Match, int]:
        return match_of(_key(api), only, ControlError)

    def _inject(self, rule: Rule, api: str, *, holds: bool = False) -> Fault:
        if rule.times is not None:
            _at_least(1, times=rule.times)
        rule.told = {"api": api, **rule.told}

        def act() -> Fault:
            faults = self._running.faults
            added = faults.hold(rule) if holds else faults.add(rule)
            details = {"fault": added.number, "does": rule.what, "times": rule.times, **dict(facts(rule)), **rule.told}
            self._cluster.notes.control("fault injected", **details)
            return Fault(self._running, added)

        return self._on_loop(act)

    def _fault(self, number: int) -> Fault:
        rule = self._on_loop(lambda: self._running.faults.rule(number))
        if rule is None:
            raise ControlError(f"there is no fault {number!r}; `faults` lists those in force")
        return Fault(self._running, rule)

    def _noted(self, what: str, prepare: Callable[[], Act], **details: Any) -> None:
        """Carry out a verb: `prepare` refuses or returns the act; its note precedes those of the consequences."""

        def on_loop() -> None:
            act = prepare()
            self._cluster.notes.control(what, **details)
            act()

        self._on_loop(on_loop)

    def _runner(self, group_id: str) -> ShardRunner:
        if self._cluster.ensure_state_topic(OFFSETS_TOPIC) is None:
            raise ControlError(
                f"nobody coordinates group {group_id}: {self._cluster.missing_nodes(len(self._cluster.alive))}"
            )
        runner = self._running.services.groups().runner_of(group_id)
        if runner is None:
            raise ControlError(f"nobody coordinates group {group_id}: the partition has no leader")
        return runner

    def _partition(self, topic: str, index: int) -> Partition:
        partition = self._cluster.catalogue.partition(topic, index)
        if partition is None:
            raise ControlError(f"there is no partition {topic}-{index}")
        return partition

    def _check_node(self, node: int, *, alive: bool = True) -> None:
        known = {n.node_id: n.is_alive for n in self._cluster.nodes.values()}
        if known.get(node) is not alive:
            state = "running" if alive else "stopped"
            fitting = [str(i) for i, is_alive in known.items() if is_alive is alive]
            raise ControlError(f"node {node} is not {state}; {state} are {', '.join(fitting) or 'none'}")

    def _on_loop(self, act: Callable[[], T]) -> T:
        async def call() -> T:
            return act()

        return self._wait(call())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._cluster.loop).result()


def _identity(group_id: str, coordinator: GroupCoordinator, member: str | None) -> str:
    """The member id or instance id that `member` stands for: itself, or the only member with that client id.

    None stands for the only member of the group. Raises ControlError that names the members.
    """
    members = coordinator.members_of(group_id)
    known = {*coordinator.pending_ids_of(group_id)}
    known.update(name for one in members for name in (one.member_id, one.instance_id) if name is not None)
    if member is not None and member in known:
        return member
    clients = {one.member_id: one.client_id for one in members}
    named = [member_id for member_id, client in clients.items() if member in (None, client)]
    if len(named) == 1:
        return named[0]
    shown = ", ".join(f"{member_id} (client {client})" for member_id, client in clients.items())
    if len(named) > 1:
        which = "a member must be named" if member is None else f"client id {member} is not unique"
        raise ControlError(f"group {group_id} has several members and {which}; they are {shown}")
    raise ControlError(
        f"group {group_id} has no member{f' {member}' if member else ''}{f'; it has {shown}' if shown else ''}"
    )


def _check_ms(ms: object) -> None:
    """Raises ControlError unless this is a time to wait."""
    if isinstance(ms, bool) or not isinstance(ms, int) or ms > CLOCK_AHEAD_MS_MAX:
        raise ControlError(f"ms must be a whole number up to {CLOCK_AHEAD_MS_MAX}, not {ms!r}")
    _at_least(0, ms=ms)


def _at_least(minimum: int, **given: int) -> None:
    for name, value in given.items():
        if value < minimum:
            raise ControlError(f"{name} must be at least {minimum}, not {value}")


def _key(api: str) -> int | None:
    """The number of an API by its name; None for "*", which is any."""
    if api == "*":
        return None
    key = _KEYS.get(api.replace("_", "").lower())
    if key is None:
        raise ControlError(f"no API {api}; served are {', '.join(row.name for row in SERVED.values())}")
    return key


def _code(error: str | int) -> int:
    if isinstance(error, int):
        return error
    try:
        return int(ErrorCode[error.upper()])
    except KeyError:
        raise ControlError(f"no error {error}; use a name of Kafka's, such as COORDINATOR_NOT_AVAILABLE") from None
