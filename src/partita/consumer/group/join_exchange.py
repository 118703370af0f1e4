"""The exchange with the coordinator that makes a generation: JoinGroup, the leader's assignment, SyncGroup.

One exchange at a time; an answer to an exchange given up meanwhile is ignored. Repeated refusals back off, so no error
spins (faults.md L17). (Kafka: AbstractCoordinator's response handlers; consumer.md 5.3, 5.4, 15.3.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.assignors.interface import Assignor, RebalanceProtocol
from partita.assignors.interface import Subscription as Claim
from partita.assignors.payloads import encode_assignment, encode_subscription
from partita.consumer.coordinator import Coordinator
from partita.consumer.errors import IllegalStateError
from partita.consumer.group.assigning import (
    Successor,
    assign,
    assignor_failed,
    read_subscriptions,
    topic_metadata,
    with_counts,
)
from partita.consumer.group.member import REASON_LENGTH_MAX, Generation, Member, MemberState
from partita.consumer.metadata import Metadata
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Failed, Poll, Request
from partita.errors import InconsistentGroupProtocolError, error_for
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from partita.wording import Note

PROTOCOL_TYPE = "consumer"
JOIN_TIMEOUT_EXTRA_MS = 5_000


class JoinExchange:
    """`start` joins; `assignment` holds the bytes of a finished exchange until they are taken."""

    def __init__(
        self,
        member: Member,
        metadata: Metadata,
        coordinator: Coordinator,
        uniform: Callable[[float, float], float],
        on_generation: Callable[[Now], None],
    ) -> None:
        config = member.config
        self.assignment: bytes | None = None
        self._member = member
        self._metadata = metadata
        self._coordinator = coordinator
        self._on_generation = on_generation
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._pending: Request | None = None
        self._to_lead: JoinGroupResponse | None = None
        self._failures = 0
        self._not_before_ms = 0

    @property
    def is_pending(self) -> bool:
        """Is an exchange under way, or its result not yet taken?"""
        return self._pending is not None or self._to_lead is not None or self.assignment is not None

    def give_up(self) -> None:
        """Whatever is under way no longer counts."""
        self._pending = self._to_lead = self.assignment = None

    def wait_ms(self, now: Now) -> int:
        """Back-off of the next JoinGroup after earlier refusals."""
        return max(0, self._not_before_ms - now.mono_ms)

    def assignor(self, name: str) -> Assignor:
        """The configured assignor of this name. Raises IllegalStateError when there is none."""
        found = next((a for a in self._member.config.assignors if a.name == name), None)
        if found is None:
            raise IllegalStateError(f"the group agreed on assignor {name!r}, which is not configured here")
        return found

    def start(self, part: Any, poll: Poll) -> None:
        """Send the JoinGroup."""
        member, config = self._member, self._member.config
        member.move(MemberState.PREPARING_REBALANCE)
        member.joined_topics = member.subscription.topics
        message = JoinGroupRequest(
            group_id=config.group_id or "",
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=member.generation.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=a.name, metadata=encode_subscription(self._claim(a)))
                for a in config.assignors
            ],
            reason=member.rejoin_reason,
        )
        timeout = max(config.request_timeout_ms, config.max_poll_interval_ms + JOIN_TIMEOUT_EXTRA_MS)
        self._pending = poll.ask(self._to_coordinator(part, message, timeout))

    def poll(self, part: Any, poll: Poll) -> None:
        """Continue as leader once the metadata of all topics of the group is there."""
        if self._to_lead is not None and self._metadata.covers(self._member.subscription.group_topics):
            poll.requests += self._lead(part, self._to_lead)
            self._to_lead = None

    def on_response(self, request: Request, response: Any, now: Now) -> list[Request]:
        """Take in an answer; return the next requests."""
        if request is not self._pending:
            return []
        self._pending = None
        code = ErrorCode(response.error_code)
        if isinstance(response, JoinGroupResponse):
            if code is ErrorCode.NONE:
                return self._joined(request.part, response, now)
            self._join_refused(code, response, request, now)
        elif isinstance(response, SyncGroupResponse):
            if code is ErrorCode.NONE:
                self._synced(response)
            else:
                self._sync_refused(response.error_code, request, now)
        return []

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: the exchange starts again after the back-off."""
        if request is not self._pending:
            return
        self._pending = None
        self._coordinator.mark_unknown(was_disconnect=True)
        self._failed(now, "the connection to the coordinator failed", at_once=False)

    # JoinGroup

    def _claim(self, assignor: Assignor) -> Claim:
        member = self._member
        topics = sorted(member.subscription.topics)
        eager = member.config.protocol is not RebalanceProtocol.COOPERATIVE
        user_data = None
        try:
            user_data = assignor.subscription_user_data(topics)
        except BaseException as error:
            member.events.append(Failed(assignor_failed(assignor, error)))
        return Claim(
            topics=topics,
            user_data=user_data,
            owned_partitions=() if eager else tuple(member.subscription.assignment),
            generation_id=member.generation.id,
            rack_id=member.config.client_rack or None,
        )

    def _joined(self, part: Any, response: JoinGroupResponse, now: Now) -> list[Request]:
        member = self._member
        if response.protocol_type not in (None, PROTOCOL_TYPE):
            told = f"the group speaks protocol type {response.protocol_type!r}, this consumer {PROTOCOL_TYPE!r}"
            self._fail(InconsistentGroupProtocolError(told), now)
            return []
        self._coordinator.reached()
        if member.state is not MemberState.PREPARING_REBALANCE:
            self._failed(now, "the membership ended while the group was joined", at_once=True)
            return []
        member.enter(Generation(response.generation_id, response.member_id, response.protocol_name or ""))
        self._on_generation(now)
        member.is_leader = response.leader == response.member_id
        if not member.is_leader:
            return [self._sync(part, [])]
        claims = read_subscriptions(response.members)
        member.subscription.group_topics = frozenset(t for claim in claims.values() for t in claim.topics)
        self._metadata.want_topics(None if self._metadata.all_topics else member.subscription.metadata_topics)
        if self._metadata.covers(member.subscription.group_topics):
            return self._lead(part, response)
        self._to_lead = response
        return []

    def _lead(self, part: Any, response: JoinGroupResponse) -> list[Request]:
        member = self._member
        if member.state is not MemberState.COMPLETING_REBALANCE:
            return []
        if response.skip_assignment:
            member.assignment_snapshot = member.metadata_snapshot()
            return [self._sync(part, [])]
        claims = read_subscriptions(response.members)
        topics = topic_metadata(self._metadata.view, member.subscription.group_topics)
        protocol = member.config.protocol or RebalanceProtocol.EAGER
        assignor = None
        try:
            assignor = self.assignor(response.protocol_name or "")
            shares = assign(assignor, topics, claims, protocol)
        except BaseException as error:
            self._fail_now(assignor_failed(assignor, error))
            return []
        given = frozenset(tp[0] for share in shares.values() for tp in share)
        member.subscription.group_topics |= given
        member.assignment_snapshot = member.metadata_snapshot()
        shares_text = {m: len(p) for m, p in shares.items()}
        member.events.append(Note("assigned_by_leader", f"leader of {len(shares)} members", {"shares": shares_text}))
        return [self._sync(part, [(m, self._encoded(m, claims[m], share)) for m, share in sorted(shares.items())])]

    def _encoded(self, member_id: str, claim: Claim, share: list[tuple[str, int]]) -> bytes:
        """A member's share, with a word for the process that may come after a static member's (decision 0120)."""
        if claim.group_instance_id is None:
            return encode_assignment(share)
        member = self._member
        snapshot = member.assignment_snapshot if member_id == member.generation.member_id else None
        counts = None if snapshot is None else {topic: count for topic, (count, _) in snapshot.items()}
        must_rejoin = not set(claim.owned_partitions) <= set(share)
        return encode_assignment(share, Successor(counts, must_rejoin).encode())

    def _join_refused(self, code: ErrorCode, response: JoinGroupResponse, request: Request, now: Now) -> None:
        member = self._member
        match reaction("JoinGroup", response.error_code):
            case Reaction.ADOPT_ID:
                member.adopt_member_id(response.member_id)
                counts = bool(request.message.member_id)
                told = f"need to re-join with the given member-id: {response.member_id}"
                self._failed(now, told, at_once=True, counts=counts)
            case Reaction.FORGET_MEMBER:
                if request.message.member_id == member.generation.member_id:
                    member.reset("the coordinator does not know the member id")
                self._failed(now, "unknown member id", at_once=True)
            case Reaction.REJOIN:
                self._failed(now, "the coordinator could not store the group", at_once=True)
            case Reaction.LOOK_UP:
                self._coordinator.mark_unknown()
                self._failed(now, "the coordinator moved", at_once=False)
            case Reaction.RETRY:
                self._failed(now, "the coordinator is loading", at_once=False)
            case _:
                hint = "this broker knows no static members; unset group_instance_id"
                told = hint if code is ErrorCode.UNSUPPORTED_VERSION else f"group {member.config.group_id!r}"
                group = member.config.group_id or ""
                self._fail(error_for(response.error_code, told, operation="READ", names=[group]), now)

    # SyncGroup

    def _sync(self, part: Any, shares: list[tuple[str, bytes]]) -> Request:
        member, generation = self._member, self._member.generation
        message = SyncGroupRequest(
            group_id=member.config.group_id or "",
            generation_id=generation.id,
            member_id=generation.member_id,
            group_instance_id=member.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol,
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in shares],
        )
        timeout = member.config.max_poll_interval_ms + JOIN_TIMEOUT_EXTRA_MS
        self._pending = self._to_coordinator(part, message, timeout)
        return self._pending

    def _synced(self, response: SyncGroupResponse) -> None:
        member = self._member
        named = (response.protocol_type, response.protocol_name)
        expected = (PROTOCOL_TYPE, member.generation.protocol)
        if any(told is not None and told != want for told, want in zip(named, expected, strict=True)):
            self._fail_now(InconsistentGroupProtocolError(f"joined with {expected}, synced with {named}"))
            return
        if member.state is not MemberState.COMPLETING_REBALANCE:
            return
        self._failures = 0
        member.move(MemberState.STABLE)
        member.rejoin_needed = False
        member.rejoin_reason = ""
        self.assignment = bytes(response.assignment)
        if member.is_static:
            self._succeed(Successor.of(self.assignment))

    def _succeed(self, told: Successor) -> None:
        """Continue with the assignment of the previous process, which the coordinator has kept (decision 0120).

        A group leader watches the topics from the assignment on, not from its return. Before version 9 of JoinGroup a
        returning leader gets a follower's answer; the counts in its own share show that it leads.
        """
        member = self._member
        topics = member.subscription.metadata_topics
        if told.counts is not None and self._metadata.covers(topics):
            counts = {topic: count for topic, count in told.counts.items() if member.is_leader or topic in topics}
            member.assignment_snapshot = with_counts(member.metadata_snapshot(), counts)
            member.is_leader = True
        if told.must_rejoin:
            member.request_rejoin("need to revoke partitions and re-join")

    def _sync_refused(self, code: int, request: Request, now: Now) -> None:
        member = self._member
        same = request.message.generation_id == member.generation.id
        match reaction("SyncGroup", code):
            case Reaction.REJOIN:
                self._failed(now, "the group is rebalancing again", at_once=True)
            case Reaction.FORGET_MEMBER:
                if same:
                    member.reset("SyncGroup: unknown member id")
                self._failed(now, "unknown member id", at_once=True)
            case Reaction.FORGET_GENERATION:
                if same:
                    member.reset("SyncGroup: illegal generation", keep_member_id=True)
                self._failed(now, "illegal generation", at_once=True)
            case Reaction.LOOK_UP:
                self._coordinator.mark_unknown()
                self._failed(now, "the coordinator moved", at_once=False)
            case _:
                self._fail(error_for(code, f"SyncGroup of group {member.config.group_id!r}"), now)

    # Failing

    def _failed(self, now: Now, reason: str, *, at_once: bool, counts: bool = True) -> None:
        """The whole exchange starts over, at once the first time, with back-off when refusals repeat."""
        member = self._member
        if member.state is not MemberState.UNJOINED:
            member.move(MemberState.PREPARING_REBALANCE)
        member.request_rejoin(reason)
        member.rejoin_reason = reason[:REASON_LENGTH_MAX]
        if not counts:
            return
        if at_once and self._failures == 0:
            self._not_before_ms = now.mono_ms
        else:
            self._not_before_ms = now.mono_ms + self._backoff.after(max(0, self._failures - 1))
        self._failures += 1

    def _fail(self, error: BaseException, now: Now) -> None:
        self._failed(now, str(error), at_once=True)
        self._fail_now(error)

    def _fail_now(self, error: BaseException) -> None:
        self._member.request_rejoin(str(error))
        self._member.events.append(Failed(error))

    def _to_coordinator(self, part: Any, message: Any, timeout_ms: int) -> Request:
        node = self._coordinator.node
        return Request(part, message, node, to_coordinator=True, timeout_ms=timeout_ms)
