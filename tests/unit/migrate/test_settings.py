"""What becomes of a consumer's settings under another protocol, by client; confluent's and our own are asked."""

from __future__ import annotations

import pytest

from partita.broker.config import ConfigError
from partita.consumer.config import OF_CLASSIC
from partita.migrate import asking
from partita.migrate.settings import CLIENTS, JAVA_SHARE_REFUSES, findings, moved, remote_assignor


def found(
    client: str, protocol: str, broker: dict[str, str] | None = None, **settings: str
) -> dict[str, tuple[str, str]]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    each = findings(given, protocol, *asking.of(client, broker or {}))
    return {one.option: (one.verdict, one.instead) for one in each}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_options_of_the_classic_protocol_are_refused_with_what_takes_their_place(client: str) -> None:
    verdicts = found(
        client, "consumer",
        session_timeout_ms="50000", heartbeat_interval_ms="6000", partition_assignment_strategy="range,roundrobin",
    )  # fmt: skip
    assert verdicts == {
        "session.timeout.ms": ("refused", "set consumer.session.timeout.ms=50000 of the group"),
        "heartbeat.interval.ms": ("refused", "set consumer.heartbeat.interval.ms=6000 of the group"),
        "partition.assignment.strategy": ("refused", "range becomes range, roundrobin becomes uniform"),
    }
    assert {name.replace(".", "_") for name in verdicts} == set(OF_CLASSIC)


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_share_group_decides_is_refused_with_its_setting(client: str) -> None:
    verdicts = found(
        client, "share",
        auto_offset_reset="earliest", isolation_level="read_committed", group_instance_id="a", fetch_min_bytes="1",
        enable_auto_commit="true",
    )  # fmt: skip
    assert verdicts["auto.offset.reset"] == ("refused", "set share.auto.offset.reset=earliest of the group")
    assert verdicts["isolation.level"] == ("refused", "set share.isolation.level=read_committed of the group")
    assert verdicts["group.instance.id"] == ("refused", "a share group has no static members")
    assert verdicts["enable.auto.commit"][0] == "refused"
    assert "fetch.min.bytes" not in verdicts


@pytest.mark.parametrize("client", ["confluent", "java"])
def test_what_another_client_takes_and_a_share_group_does_not_heed_is_without_effect(client: str) -> None:
    assert found(client, "share", auto_commit_interval_ms="100")["auto.commit.interval.ms"][0] == "without effect"
    assert found("partita", "share", auto_commit_interval_ms="100")["auto.commit.interval.ms"][0] == "refused"


def test_confluents_own_options_are_asked_of_confluents_client() -> None:
    verdicts = found("confluent", "share", queued_min_messages="10")
    assert "not applicable for share consumer" in verdicts["queued.min.messages"][1]
    assert found("confluent", "consumer", group_protocol_type="consumer")["group.protocol.type"][0] == "refused"
    assert "queued.min.messages" not in found("confluent", "consumer", queued_min_messages="10")


@pytest.mark.parametrize("client", CLIENTS)
def test_an_option_that_the_client_does_not_know_is_named(client: str) -> None:
    verdict, instead = found(client, "consumer", sesion_timeout_ms="50000")["sesion.timeout.ms"]
    assert verdict == "unknown"
    assert "session.timeout.ms" in instead or client == "confluent"


@pytest.mark.parametrize("client", CLIENTS)
def test_the_value_of_an_option_that_is_not_known_is_not_shown(client: str) -> None:
    (one, _) = findings({"sasl.pasword": "hunter2"}, "consumer", *asking.of(client, {}))
    assert (one.option, one.verdict, "hunter2" in str(one)) == ("sasl.pasword", "unknown", False)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_option_that_needs_another_one_is_asked_beside_it(client: str) -> None:
    verdicts = found(
        client, "consumer",
        max_poll_interval_ms="10000", session_timeout_ms="6000", security_protocol="SASL_SSL", sasl_mechanism="PLAIN",
        sasl_username="u", sasl_password="p",
    )  # fmt: skip
    assert set(verdicts) == {"session.timeout.ms", "partition.assignment.strategy"}


def test_java_refuses_in_share_groups_what_its_class_lists_and_no_more() -> None:
    names = [*JAVA_SHARE_REFUSES, "max.poll.records", "max.partition.fetch.bytes"]
    ask, _ = asking.of("java", {})
    assert {name for name in names if ask("share", {name: "1"})} == JAVA_SHARE_REFUSES


def test_a_value_out_of_the_brokers_bounds_is_said_to_be_refused_by_it() -> None:
    name, bounds = "session.timeout.ms", {"group.consumer.min.session.timeout.ms": "6000"}
    refused = "; this broker refuses it: consumer.session.timeout.ms must be greater than or equal to"
    assert refused in found("java", "consumer", session_timeout_ms="10000")[name][1]
    assert refused not in found("java", "consumer", bounds, session_timeout_ms="10000")[name][1]
    with pytest.raises(ConfigError, match=r"group\.consumer\.mix"):
        asking.of("java", {"group.consumer.mix": "1"})


def test_a_static_member_and_a_default_assignor_change_what_they_do() -> None:
    verdicts = found("java", "consumer", group_instance_id="a")
    assert verdicts["group.instance.id"][0] == verdicts["partition.assignment.strategy"][0] == "changed"


@pytest.mark.parametrize(
    ("strategy", "becomes"),
    [
        ("range", "range"),
        ("org.apache.kafka.clients.consumer.RangeAssignor", "range"),
        ("roundrobin", "uniform"),
        ("org.apache.kafka.clients.consumer.StickyAssignor", "uniform"),
        ("cooperative-sticky", "uniform"),
        ("com.example.OwnAssignor", None),
    ],
)
def test_each_assignor_has_its_counterpart_on_the_broker(strategy: str, becomes: str | None) -> None:
    assert remote_assignor(strategy) == becomes
    said = found("java", "consumer", partition_assignment_strategy=strategy)["partition.assignment.strategy"][1]
    assert f"{strategy} becomes {becomes or 'nothing'}" in said
    assert ("write a server-side one" in said) == (becomes is None)


def test_settings_move_to_the_group_and_the_assignor_to_the_broker() -> None:
    given = {
        "group.id": "g", "session.timeout.ms": "50000", "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "range", "group.protocol": "classic",
    }  # fmt: skip
    each = {protocol: list(findings(given, protocol, *asking.of("java", {}))) for protocol in ("consumer", "share")}
    assert moved(given, [], "classic") == (given, {})
    assert moved(given, each["consumer"], "consumer") == (
        {
            "group.id": "g", "auto.offset.reset": "earliest", "group.protocol": "consumer",
            "group.remote.assignor": "range",
        },
        {"consumer.session.timeout.ms": "50000"},
    )  # fmt: skip
    assert moved(given, each["share"], "share") == (
        {"group.id": "g"},
        {"share.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"},
    )
