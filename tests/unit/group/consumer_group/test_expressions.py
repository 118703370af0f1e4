"""Subscriptions by regular expressions (specification section 20.7)."""

import sys

import pytest

from partita.group.consumer_group.subscriptions import compile_expression
from partita.protocol.error_codes import ErrorCode
from support.group.consumers import World, error, told, topic_id


@pytest.mark.case("GC-T43")
def test_a_member_with_an_expression_has_nothing_before_it_is_matched_and_everything_after() -> None:
    world = World({"order-1": 2, "order-2": 1, "reorder-1": 1})
    world.holds_jobs = True
    answer = world.join("a", None, regex="order-.*")
    assert (answer.member_epoch, told(answer), world.kinds(world.log)) == (1, {}, "5 8")
    world.release_jobs()
    assert world.kinds(world.log[2:]) == "16 3"
    assert world.group.epoch == 2
    answer = world.go_on("a", {})
    assert (answer.member_epoch, told(answer)) == (2, {topic_id("order-1"): [0, 1], topic_id("order-2"): [0]})


def test_names_and_an_expression_add_up() -> None:
    world = World({"x": 1, "order-1": 1})
    world.join("a", ["x"], regex="order.*")
    world.go_on("a", {"x": [0]})
    assert world.has("a") == {"order-1": [0], "x": [0]}
    world.go_on("a", world.has("a"), regex="")
    world.settle()
    assert world.has("a") == {"x": [0]}
    assert not world.group.regexes


@pytest.mark.case("GC-T44")
@pytest.mark.parametrize("regex", ["(a", "(?=a)", r"(a)\1"])
def test_what_re2_does_not_take_is_refused(regex: str) -> None:
    world = World({"a": 1})
    answer = world.join("a", None, regex=regex)
    assert error(answer) == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert regex in (answer.error_message or "")
    assert not world.log


def test_without_the_package_the_answer_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    answer = World({"a": 1}).join("a", None, regex="a")
    assert error(answer) == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "pip install 'partita[regex]'" in (answer.error_message or "")


def test_a_whole_name_has_to_match() -> None:
    matches = compile_expression("a|b.")
    assert [name for name in ("a", "b", "bc", "xa", "ab") if matches(name)] == ["a", "bc"]


@pytest.mark.case("GC-T45")
def test_a_new_topic_that_matches_is_found_ten_seconds_after_the_last_look() -> None:
    world = World({"order-1": 1})
    world.join("a", None, regex="order-.*")
    world.go_on("a", {})
    world.put("order-2", 1)
    world.go_on("a", world.has("a"))
    assert world.group.epoch == 2
    world.wait(10_000)
    world.go_on("a", world.has("a"))
    world.go_on("a", world.has("a"))
    assert (world.group.epoch, world.has("a")) == (3, {"order-1": [0], "order-2": [0]})


def test_expressions_are_matched_again_after_the_refresh_interval_only() -> None:
    world = World({"order-1": 1})
    world.join("a", None, regex="order-.*")
    looked_ms = world.group.regexes["order-.*"].resolved_ms
    for _ in range(19):
        world.wait(30_000)
        world.go_on("a", {})
    assert world.group.regexes["order-.*"].resolved_ms == looked_ms
    world.wait(30_000)
    world.go_on("a", {})
    assert world.group.regexes["order-.*"].resolved_ms == looked_ms + 600_000


def test_a_wall_clock_that_is_set_back_holds_up_no_expression() -> None:
    world = World({"order-1": 1, "other": 1})
    world.join("a", None, regex="order-.*")
    world.clock.set_wall_back(3_600_000)
    world.join("b", None, regex="oth.*")
    world.settle()
    assert world.has("b") == {"other": [0]}


@pytest.mark.case("GC-T46")
@pytest.mark.parametrize("how", ["leaves", "is silent", "takes another"])
def test_the_last_subscriber_takes_its_expression_along(how: str) -> None:
    world = World({"order-1": 1})
    for name in "ab":
        world.join(name, None, regex="order-.*")
    world.beat("b", -1)
    written = len(world.log)
    assert "order-.*" in world.group.regexes
    if how == "leaves":
        world.beat("a", -1)
    elif how == "is silent":
        world.wait(45_000)
    else:
        world.go_on("a", {}, regex="other")
    assert "-16" in world.kinds(world.log[written:])
    assert "order-.*" not in world.group.regexes


def test_a_second_subscriber_of_a_matched_expression_starts_a_new_epoch_at_once() -> None:
    world = World({"order-1": 2})
    world.join("a", None, regex="order-.*")
    world.go_on("a", {})
    assert world.join("b", None, regex="order-.*").member_epoch == 3


def test_topics_that_the_member_may_not_see_do_not_match() -> None:
    world = World({"order-1": 1, "order-secret": 1})
    world.may_see = lambda name: "secret" not in name
    world.join("a", None, regex="order-.*")
    assert world.group.regexes["order-.*"].topics == ("order-1",)
