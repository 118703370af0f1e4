"""Share sessions: what a member fetches from a node, counted request by request."""

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.share.sessions import EPOCH_MAX, Key, Plan, ShareSessions

M, N = ("g", "m"), ("g", "n")
P0, P1, P2 = ((b"t" * 16, index) for index in range(3))


def sessions(partitions_max: int = 100) -> ShareSessions[str]:
    return ShareSessions(partitions_max)


def fetch(
    of: ShareSessions[str],
    epoch: int,
    *listed: Key,
    member: tuple[str, str] = M,
    forgotten: tuple[Key, ...] = (),
    sessions_max: int = 10,
    acknowledges: bool = False,
) -> Plan[str] | ErrorCode:
    return of.fetch(
        member,
        epoch,
        listed,
        forgotten,
        owner="connection",
        sessions_max=sessions_max,
        has_acknowledgements=acknowledges,
    )


def planned(outcome: Plan[str] | ErrorCode) -> Plan[str]:
    assert isinstance(outcome, Plan)
    return outcome


@pytest.mark.case("SG-D02", "SG-D03")
def test_each_request_names_the_epoch_that_the_last_one_left() -> None:
    one = sessions()
    assert fetch(one, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert planned(fetch(one, 0, P0)).fetched == [P0]
    assert fetch(one, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert planned(fetch(one, 1)).added == frozenset()
    assert planned(one.acknowledge(M, 2)).fetched == ()
    assert one.acknowledge(M, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert one.acknowledge(N, 2) is ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.case("SG-D04", "SG-D05", "SG-D08")
def test_a_session_begins_with_a_fetch_and_without_acknowledgements() -> None:
    one = sessions()
    assert fetch(one, 0, P0, acknowledges=True) is ErrorCode.INVALID_REQUEST
    assert one.acknowledge(M, 0) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    fetch(one, 0, P0, P1)
    assert planned(fetch(one, 0, P2)).fetched == [P2]
    assert one.partition_count == 1


@pytest.mark.case("SG-D06")
def test_partitions_are_added_and_forgotten() -> None:
    one = sessions()
    fetch(one, 0, P0)
    plan = planned(fetch(one, 1, P1, P2, forgotten=(P0,)))
    assert set(plan.fetched) == set(plan.added) == {P1, P2}
    assert one.partition_count == 2


@pytest.mark.case("SG-D07")
def test_the_last_request_ends_the_session() -> None:
    one = sessions()
    fetch(one, 0, P0)
    plan = planned(fetch(one, -1))
    assert plan.is_final
    assert list(plan.session.partitions) == [P0]
    assert fetch(one, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert fetch(one, -1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (one.partition_count, one.has_group("g")) == (0, False)


@pytest.mark.case("SG-D09")
def test_there_is_room_for_so_many_sessions_and_partitions() -> None:
    one = sessions(partitions_max=3)
    fetch(one, 0, P0, sessions_max=1)
    assert fetch(one, 0, P0, member=N, sessions_max=1) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert fetch(one, 0, P0, P1, P2, member=N) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    fetch(one, 0, P0, member=N)
    assert fetch(one, 1, P1, P2) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    one.remove(M)
    assert one.has_group("g")
    assert planned(fetch(one, 1, P1, P2, member=N))


@pytest.mark.case("SG-D16")
def test_each_partition_is_served_first_in_its_turn() -> None:
    one = sessions()
    first = [planned(fetch(one, epoch, *((P0, P1, P2) if not epoch else ()))).fetched[0] for epoch in range(4)]
    assert first == [P0, P1, P2, P0]


@pytest.mark.case("SG-D19")
def test_epochs_begin_again_at_one() -> None:
    one = sessions()
    fetch(one, 0, P0)
    one.sessions[M].epoch = EPOCH_MAX
    fetch(one, EPOCH_MAX)
    assert planned(fetch(one, 1))
