"""Apache Kafka's `kafka-streams-groups` on Partita and on Apache Kafka: it ends and prints alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from partita import Broker
from support.broker.streams_application import AT_ONCE, StreamsApplication
from support.clients.broker import fresh
from support.clients.exported import exported, printed
from support.kafka.node import KafkaNode, KafkaUnavailable
from support.kafka.tools import Twins

pytestmark = pytest.mark.conformance

STREAMS_GROUPS = "streams.StreamsGroupCommand"
VIEWS = (
    (),
    ("--verbose",),
    ("--offsets", "--verbose"),
    ("--members",),
    ("--members", "--verbose"),
    ("--state",),
    ("--state", "--verbose"),
)


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(KafkaNode(None, **AT_ONCE))
        except KafkaUnavailable as reason:
            pytest.skip(f"no Apache Kafka to compare with: {reason}")
        broker = stack.enter_context(Broker({**AT_ONCE, "auto.create.topics.enable": False}))
        yield Twins(kafka.bootstrap, broker.bootstrap)


@pytest.fixture
def applications(twins: Twins) -> list[StreamsApplication]:
    """The same group on both, with a member; its topic has three records in two partitions."""
    topic, group = fresh("words"), fresh("app")
    twins.same("TopicCommand", "--create", "--topic", topic, "--partitions", "2")
    by_key = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    assert twins.same("ConsoleProducer", "--topic", topic, *by_key, stdin="a:1\nb:2\nc:3\n").code == 0
    made = [StreamsApplication(bootstrap, group, topic) for bootstrap in twins.bootstraps]
    for application in made:
        application.join()
    return made


def described(twins: Twins, group: str) -> list[bool]:
    """Compare every view of the group; returns which of them show it."""
    outputs = [twins.same(STREAMS_GROUPS, "--describe", "--group", group, *view) for view in VIEWS]
    return [any(line.startswith(f"{group} ") for line in output.lines) for output in outputs]


def test_a_running_application_is_shown_and_protected(twins: Twins, applications: list[StreamsApplication]) -> None:
    group, topic = applications[0].group, applications[0].topic
    assert all(described(twins, group))
    lags = printed(twins.same(STREAMS_GROUPS, "--describe", "--group", group, "--offsets").lines)
    assert sum(lags.values()) > 0
    assert [exported(bootstrap, [group])[0] for bootstrap in twins.bootstraps] == [lags, lags]
    assert group in twins.same(STREAMS_GROUPS, "--list").lines
    assert f"{group} Stable" in twins.same(STREAMS_GROUPS, "--list", "--state").lines
    assert any(line.startswith(f"{group} ") for line in twins.same("GroupsCommand", "--list").lines)
    for change in (
        ("--delete", "--group", group),
        ("--delete-offsets", "--group", group, "--input-topic", topic),
        ("--reset-offsets", "--group", group, "--input-topic", topic, "--to-earliest", "--execute"),
    ):
        assert any("Error" in line for line in twins.same(STREAMS_GROUPS, *change).lines), change
    for application in applications:
        application.leave()
    assert f"{group} Empty" in twins.same(STREAMS_GROUPS, "--list", "--state", "empty").lines


def test_offsets_of_a_stopped_application_are_reset_and_deleted(
    twins: Twins, applications: list[StreamsApplication]
) -> None:
    group, topic = applications[0].group, applications[0].topic
    for application in applications:
        application.leave()
    assert any(described(twins, group))
    reset = ("--reset-offsets", "--group", group)
    for where in (
        ("--input-topic", topic, "--to-latest", "--dry-run"),
        ("--all-input-topics", "--to-latest", "--execute"),
        ("--input-topic", f"{topic}:0", "--shift-by", "-1", "--execute"),
        ("--input-topic", topic, "--to-datetime", "2020-01-01T00:00:00.000", "--execute"),
        ("--input-topic", topic, "--to-offset", "1", "--execute", "--delete-all-internal-topics"),
    ):
        assert any(line.startswith(f"{group} {topic} ") for line in twins.same(STREAMS_GROUPS, *reset, *where).lines)
    assert twins.same("TopicCommand", "--list", "--exclude-internal").code == 0
    for name in (f"{topic}:0", "nowhere", topic):
        twins.same(STREAMS_GROUPS, "--delete-offsets", "--group", group, "--input-topic", name)
    described(twins, group)
    assert [twins.same(STREAMS_GROUPS, "--delete", "--group", group).code for _ in range(2)] == [0, 0]
    assert group not in twins.same(STREAMS_GROUPS, "--list").lines
