import pytest

from partita.assignors.cooperative_sticky import CooperativeStickyAssignor
from partita.assignors.interface import Assignor, Subscription, TopicMetadata
from partita.assignors.payloads import decode_subscription, encode_subscription
from partita.assignors.sticky import StickyAssignor
from partita.assignors.user_data import encode_user_data

METADATA = TopicMetadata({"t1": 4})


def keeps(user_data: bytes | None, *, against: bytes | None = None) -> list[int]:
    """The partitions a member with this user data keeps beside a newcomer, or beside another claimant."""
    other = Subscription(["t1"], against)
    return sorted(
        p for _, p in StickyAssignor().assign(METADATA, {"x": Subscription(["t1"], user_data), "y": other})["x"]
    )


def test_the_layout_of_user_data() -> None:
    data = encode_user_data([("t1", 0), ("t1", 2)], 4)
    assert data == bytes.fromhex("00000001 00027431 00000002 00000000 00000002 00000004")
    assert keeps(data) == [0, 2]


@pytest.mark.case("CC-101")
def test_version_0_is_read_with_the_generation_absent() -> None:
    version_0 = encode_user_data([("t1", 1), ("t1", 3)], 7)[:-4]
    assert keeps(version_0) == [1, 3]
    assert keeps(version_0, against=encode_user_data([("t1", 1), ("t1", 3)], 0)) == [0, 2]


@pytest.mark.case("CC-101", "BM-099")
@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\x00",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        bytes.fromhex("00000001 7fff 7431"),
        bytes.fromhex("00000002 fffc 00000000 00000000 00000000"),
        bytes.fromhex("00000001 00027431 7fffffff 00000000"),
        bytes.fromhex("00000001 00027431 80000000 00000000"),
        bytes.fromhex("00000001 00027431 00000002 00000000"),
    ],
)
def test_unreadable_user_data_claims_nothing(garbage: bytes) -> None:
    owner = encode_user_data([("t1", 2), ("t1", 3)], 1)
    assert keeps(garbage, against=owner) == [0, 1]


@pytest.mark.case("BM-099")
@pytest.mark.parametrize("number", [-1, 4, 2**31 - 1])
def test_claims_on_partitions_that_do_not_exist_are_dropped(number: int) -> None:
    assert keeps(encode_user_data([("t1", number), ("gone", 0), ("t1", 3)], 1)) == [0, 3]


@pytest.mark.case("CC-103")
@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
def test_two_instances_in_one_process_keep_their_own_state(assignor: type[Assignor]) -> None:
    one, two = assignor(), assignor()
    one.on_assignment([("t1", 0)], 5)
    two.on_assignment([("t1", 1)], 6)
    assert one.subscription_user_data(["t1"]) != two.subscription_user_data(["t1"])
    if assignor is StickyAssignor:
        assert one.subscription_user_data(["t1"]) == encode_user_data([("t1", 0)], 5)


def test_before_the_first_assignment_sticky_sends_nothing_and_cooperative_minus_one() -> None:
    assert StickyAssignor().subscription_user_data(["t1"]) is None
    assert CooperativeStickyAssignor().subscription_user_data(["t1"]) == b"\xff\xff\xff\xff"


@pytest.mark.case("CC-102")
@pytest.mark.parametrize("version", [1, 2])
def test_without_a_generation_field_cooperative_takes_it_from_the_user_data(version: int) -> None:
    def member(generation: int) -> Subscription:
        data = generation.to_bytes(4, "big")
        sent = Subscription(["t1"], data, [("t1", 0), ("t1", 1)], generation if version == 2 else -1)
        return decode_subscription(encode_subscription(sent, version))

    got = CooperativeStickyAssignor().assign(METADATA, {"old": member(3), "new": member(4)})
    assert [p for _, p in got["new"]] == [0, 1]
    assert [p for _, p in got["old"]] == [2, 3]


@pytest.mark.parametrize("data", [None, b"", b"\x00\x01"])
def test_cooperative_survives_missing_user_data(data: bytes | None) -> None:
    got = CooperativeStickyAssignor().assign(METADATA, {"a": Subscription(["t1"], data, [("t1", 3)])})
    assert [p for _, p in got["a"]] == [3, 0, 1, 2]
