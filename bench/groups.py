"""500 members over own sockets: from the first JoinGroup to the last SyncGroup answer; then one leaves."""

from __future__ import annotations

import asyncio
import time

from harness import Server, apache_kafka, left_out, partita, report

from conformance.wire import RawClient
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MEMBERS = 500
GROUP = "bench"


class Member:
    """One member over its own connection: joins and syncs, nothing else."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.member_id = ""

    async def join(self) -> object:
        """Join until admitted; returns the answer."""
        while True:
            request = JoinGroupRequest(
                group_id=GROUP, session_timeout_ms=60_000, rebalance_timeout_ms=60_000, member_id=self.member_id,
                protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m" * 40)],
            )  # fmt: skip
            answer = await self.client.ask(request, 5)
            self.member_id = answer.member_id or self.member_id
            if answer.error_code != 79:
                assert answer.error_code in (0, 27), answer
                return answer

    async def rejoin_and_sync(self) -> None:
        while True:
            joined = await self.join()
            assignments = [
                SyncGroupRequestAssignment(member_id=m.member_id, assignment=b"a" * 40) for m in joined.members
            ]
            request = SyncGroupRequest(
                group_id=GROUP, generation_id=joined.generation_id, member_id=self.member_id, assignments=assignments
            )
            answer = await self.client.ask(request, 3)
            if answer.error_code == 0:
                return
            assert answer.error_code in (22, 27), answer


async def run(server: Server) -> None:
    first = await RawClient("bench").connect(server.bootstrap)
    for _ in range(400):
        await first.ask(FindCoordinatorRequest(key=GROUP), 1)
        probe = await first.ask(LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="nobody")]), 3)
        if probe.error_code == 0:
            break
        await asyncio.sleep(0.05)
    members = [Member(await RawClient(f"bench-{i}").connect(server.bootstrap)) for i in range(MEMBERS)]
    started = time.perf_counter()
    await asyncio.gather(*(m.rejoin_and_sync() for m in members))
    joined_ms = (time.perf_counter() - started) * 1000
    started = time.perf_counter()
    leaver = members.pop()
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=leaver.member_id)])
    await asyncio.gather(leaver.client.ask(leave, 3), *(m.rejoin_and_sync() for m in members))
    left_ms = (time.perf_counter() - started) * 1000
    report(
        "groups", server=server.name, members=MEMBERS, **{"join to synced ms": joined_ms, "leave to synced ms": left_ms}
    )
    for member in members:
        member.client.close()


def main() -> None:
    with partita() as ours:
        asyncio.run(run(ours))
    with apache_kafka("groups") as kafka:
        if kafka:
            asyncio.run(run(kafka))
    left_out("groups", "kfake", "not published as a package")


if __name__ == "__main__":
    main()
