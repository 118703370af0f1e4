"""Incidents of groups, each with its truth: what its story does to foreign members, and what must be said of it.

`said` holds the causes that must be in the accounts, each as a reason and a member ("" for none). Of `unsure` members
the log of Apache Kafka does not hold the reason: there it may be said not to be known. Any other cause that is claimed
is wrong, but for arrivals. `advice` must be in that of an account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partita.wording import What
from support.explain.staging import Group, SocksProxy

Said = tuple[tuple[What, str], ...]


@dataclass(frozen=True)
class Incident:
    """One incident. `also` are causes that may be claimed; `words` must be in the output of the command."""

    name: str
    stage: Callable[[Group], None]
    said: Said = ()
    unsure: tuple[str, ...] = ()
    also: tuple[What, ...] = ()
    advice: str = ""
    words: str = ""
    words_of_notes: str = ""
    """What must be in the output where the broker has notes."""
    is_last: bool = False
    """It ends the broker, so it is staged when all others are over."""


def three(group: Group, **options: Any) -> None:
    """Three members that share a topic of six partitions."""
    group.topic()
    group.start("w1", "w2", "w3", **options)
    group.settle()


# -- members that go ---------------------------------------------------------------------------------------------------


def killed(group: Group) -> None:
    three(group)
    group.kill("w2")
    group.settle()


def killed_with_default_time_outs(group: Group) -> None:
    group.options = {}
    three(group)
    group.settle(commits=12)
    group.kill("w2")
    group.settle(commits=1)


def frozen_and_back(group: Group) -> None:
    group.client = "kafka-python"
    three(group)
    group.freeze("w2")
    group.settle()
    group.thaw("w2")
    group.settle()


def late_poll_like_a_session(group: Group) -> None:
    three(group, max_poll_interval_ms=7_000)
    group.order("w1", "work 20")
    group.settle("w1")


def late_poll(group: Group) -> None:
    three(group, max_poll_interval_ms=20_000)
    group.order("w1", "work 40")
    group.settle("w1")


def late_poll_of_kafka_python(group: Group) -> None:
    group.client = "kafka-python"
    late_poll(group)


def late_poll_of_kip_848(group: Group) -> None:
    group.options["group.protocol"] = "consumer"
    three(group, max_poll_interval_ms=15_000)
    group.order("w1", "work 40")
    group.settle("w1")


def cut_off_and_healed(group: Group) -> None:
    group.client = "kafka-python"
    proxy = SocksProxy()
    group.topic()
    group.start("w1", "w2")
    group.start("w3", proxy_url=proxy.url, request_timeout_ms=20_000)
    group.settle()
    proxy.freeze()
    group.settle("w3")
    proxy.thaw()
    group.settle()
    proxy.close()


def crash_loop(group: Group) -> None:
    three(group)
    for _ in range(3):
        group.kill("w3")
        group.settle(commits=3)
        group.start("w3")
        group.settle()


def two_die_at_once(group: Group) -> None:
    three(group)
    group.kill("w2", "w3")
    group.settle()


def all_close(group: Group) -> None:
    three(group)
    group.close("w3", "w2", "w1")


def scaled_up_and_down(group: Group) -> None:
    three(group)
    group.start("w4")
    group.settle()
    group.close("w4", "w3")
    group.settle()


def paused_and_closed(group: Group) -> None:
    three(group)
    group.order("w2", "pause")
    group.pass_s(14)
    group.close("w2")
    group.settle()


def dies_while_it_assigns(group: Group) -> None:
    group.client = "kafka-python"
    group.topic()
    group.start("w1")
    group.settle()
    group.order("w1", "die")
    group.start("w2")
    group.wait(lambda: group.members["w1"].process.poll() is not None)
    group.kill("w1")
    group.settle()


# -- deploys -----------------------------------------------------------------------------------------------------------


def rolling_deploy(group: Group) -> None:
    three(group)
    for name in ("w1", "w2", "w3"):
        group.close(name)
        group.settle(commits=3)
        group.start(name)
        group.settle(commits=3)


def static_members(group: Group, *names: str) -> None:
    for name in names:
        group.start(name, group_instance_id=f"box-{name}")


def static_restart(group: Group) -> None:
    group.topic()
    static_members(group, "w1", "w2", "w3")
    group.settle()
    group.kill("w2")
    static_members(group, "w2")
    group.settle()


def rolling_deploy_of_static_members(group: Group) -> None:
    group.topic()
    static_members(group, "w1", "w2", "w3")
    group.settle()
    for name in ("w1", "w2", "w3"):
        group.kill(name)
        static_members(group, name)
        group.settle(commits=3)


def static_member_stays_away(group: Group) -> None:
    group.topic()
    static_members(group, "w1", "w2", "w3")
    group.settle()
    group.kill("w2")
    group.settle()


def twins(group: Group) -> None:
    group.topic()
    group.start("w1", group_instance_id="box-1")
    group.start("w2", group_instance_id="box-2")
    group.settle()
    group.start("w3", group_instance_id="box-2")
    group.settle("w2")


def change_of_assignor(group: Group) -> None:
    group.topic()
    group.start("w1", "w2", partition_assignment_strategy="range,roundrobin")
    group.settle()
    for name in ("w1", "w2"):
        group.close(name)
        group.settle(commits=3)
        group.start(name, partition_assignment_strategy="roundrobin,range")
        group.settle(commits=3)


def refused(group: Group) -> None:
    three(group)
    group.start("w4", partition_assignment_strategy="roundrobin")
    group.settle("w4", commits=16)


def up_and_down(group: Group) -> None:
    group.topic()
    group.start("w1", "w2")
    group.settle()
    for protocol in ("consumer", "classic"):
        for name in ("w1", "w2"):
            group.close(name)
            group.settle(commits=3)
            group.start(name, group_protocol=protocol)
            group.settle(commits=3)


# -- topics ------------------------------------------------------------------------------------------------------------


def more_partitions(group: Group) -> None:
    three(group)
    group.grow(f"{group.name}-t", 8)
    group.settle()


def topic_deleted(group: Group) -> None:
    gone = group.topic("gone", 3)
    three(group)
    group.delete(gone)
    group.settle()


def other_subscription(group: Group) -> None:
    topics, more = [group.topic()], group.topic("more", 1)
    group.start("w1", "w2", "w3", topics=topics)
    group.settle(topics=topics)
    group.order("w3", f"subscribe {group.name}-t {more}")
    group.settle()


def topic_of_a_pattern(group: Group) -> None:
    group.topic("1")
    group.start("w1", "w2", topics=[f"^{group.name}-.*"])
    group.settle()
    group.topic("2", 2)
    group.settle()


def pattern_of_kip_848(group: Group) -> None:
    group.options["group.protocol"] = "consumer"
    topic_of_a_pattern(group)


def killed_while_a_topic_grows(group: Group) -> None:
    three(group)
    group.kill("w2")
    group.grow(f"{group.name}-t", 8)
    group.settle()


# -- KIP-848 -----------------------------------------------------------------------------------------------------------


def killed_in_kip_848(group: Group) -> None:
    group.options["group.protocol"] = "consumer"
    killed(group)


def frozen_in_kip_848(group: Group) -> None:
    group.options["group.protocol"] = "consumer"
    three(group)
    group.freeze("w2")
    group.settle()
    group.thaw("w2")
    group.settle()


def scaled_in_kip_848(group: Group) -> None:
    group.options["group.protocol"] = "consumer"
    scaled_up_and_down(group)


# -- slow, away, gone --------------------------------------------------------------------------------------------------


def held_up(group: Group) -> None:
    group.topic()
    group.start("w1", "w2", max_poll_interval_ms=60_000)
    group.settle()
    group.order("w1", "work 9")
    group.start("w3")
    group.settle()


def held_up_by_kafka_python(group: Group) -> None:
    group.client = "kafka-python"
    held_up(group)


def away(group: Group) -> None:
    three(group)
    group.close("w3", "w2", "w1")


def records_lost_while_away(group: Group) -> None:
    away(group)
    first = (f"{group.name}-t", 0)
    group.until(
        lambda: any((row.topic, row.partition) == first and row.lag for row in group.admin.group_lag(group.name))
    )
    (ends,) = group.admin.list_offsets({first: "latest"}).values()
    group.admin.delete_records({first: ends.offset})


def offsets_reset_while_away(group: Group) -> None:
    away(group)
    group.admin.alter_group_offsets(group.name, {(f"{group.name}-t", 0): 0})
    group.start("w1", "w2", "w3")
    group.settle()


def deleted_while_away(group: Group) -> None:
    away(group)
    group.admin.delete_groups([group.name])
    group.start("w1", "w2")
    group.settle()


def broker_killed(group: Group) -> None:
    three(group, session_timeout_ms=10_000)
    group.node.kill()
    group.pass_s(11)
    group.node.start()
    group.settle()


DYING = "See whether the process"
POLLING = "Find the batch"
INCIDENTS = (
    Incident("killed", killed, ((What.EXPIRED, "w2"),), advice=DYING),
    Incident("killed_with_default_time_outs", killed_with_default_time_outs, ((What.EXPIRED, "w2"),), advice=DYING),
    Incident("frozen_and_back", frozen_and_back, ((What.EXPIRED, "w2"),), advice=DYING),
    Incident("late_poll_like_a_session", late_poll_like_a_session, ((What.POLLED_TOO_LATE, "w1"),), ("w1",)),
    Incident("late_poll", late_poll, ((What.POLLED_TOO_LATE, "w1"),), advice=POLLING),
    Incident("late_poll_of_kafka_python", late_poll_of_kafka_python, ((What.POLLED_TOO_LATE, "w1"),), advice=POLLING),
    Incident("late_poll_of_kip_848", late_poll_of_kip_848, ((What.POLLED_TOO_LATE, "w1"),), ("w1",)),
    Incident("rolling_deploy", rolling_deploy, tuple((What.LEFT, w) for w in ("w1", "w2", "w3")),
             words="looks like a deploy"),
    Incident("more_partitions", more_partitions, ((What.PARTITIONS_CHANGED, ""),)),
    Incident("topic_deleted", topic_deleted, ((What.TOPIC_DELETED, ""),)),
    Incident("other_subscription", other_subscription, ((What.SUBSCRIPTION_CHANGED, "w3"),)),
    Incident("topic_of_a_pattern", topic_of_a_pattern, ((What.TOPIC_CREATED, ""),)),
    Incident("static_restart", static_restart, ((What.STATIC_REPLACED, "box-w2"),)),
    Incident("twins", twins, (), also=(What.STATIC_REPLACED,),
             words_of_notes="Two processes use the instance id box-2"),
    Incident("change_of_assignor", change_of_assignor, ((What.PROTOCOLS_CHANGED, ""),), also=(What.LEFT,)),
    Incident("refused", refused, words_of_notes="w4 cannot join"),
    Incident("cut_off_and_healed", cut_off_and_healed, ((What.EXPIRED, "w3"),), advice=DYING),
    Incident("held_up", held_up, (), words_of_notes="until w1 had rejoined"),
    Incident("crash_loop", crash_loop, ((What.EXPIRED, "w3"),), words="w3 went 3 times"),
    Incident("two_die_at_once", two_die_at_once, ((What.EXPIRED, "w2"), (What.EXPIRED, "w3"))),
    Incident("killed_in_kip_848", killed_in_kip_848, ((What.EXPIRED, "w2"),), ("w2",)),
    Incident("frozen_in_kip_848", frozen_in_kip_848, ((What.EXPIRED, "w2"),), ("w2",)),
    Incident("up_and_down", up_and_down, ((What.CONVERTED, ""),), ("w1", "w2"), also=(What.LEFT,)),
    Incident("all_close", all_close, tuple((What.LEFT, w) for w in ("w1", "w2", "w3"))),
    Incident("scaled_up_and_down", scaled_up_and_down, ((What.LEFT, "w3"), (What.LEFT, "w4"))),
    Incident("records_lost_while_away", records_lost_while_away, (), also=(What.LEFT,), 
             words="that the group had not read are gone"),
    Incident("broker_killed", broker_killed, ((What.COORDINATOR_MOVED, ""),), is_last=True),
    # Ten more
    Incident("static_member_stays_away", static_member_stays_away, ((What.EXPIRED, "box-w2"),), advice=DYING),
    Incident("killed_while_a_topic_grows", killed_while_a_topic_grows,
             ((What.EXPIRED, "w2"), (What.PARTITIONS_CHANGED, "")), ("",)),
    Incident("rolling_deploy_of_static_members", rolling_deploy_of_static_members,
             tuple((What.STATIC_REPLACED, f"box-{w}") for w in ("w1", "w2", "w3"))),
    Incident("paused_and_closed", paused_and_closed, ((What.LEFT, "w2"),), ("w2",)),
    Incident("dies_while_it_assigns", dies_while_it_assigns, ((What.EXPIRED, "w1"),)),
    Incident("pattern_of_kip_848", pattern_of_kip_848, ((What.TOPIC_CREATED, ""),)),
    Incident("scaled_in_kip_848", scaled_in_kip_848, ((What.LEFT, "w3"), (What.LEFT, "w4")), ("w3", "w4")),
    Incident("offsets_reset_while_away", offsets_reset_while_away, (), also=(What.LEFT,),
             words="its committed offsets were set"),
    Incident("deleted_while_away", deleted_while_away, (), also=(What.LEFT,), words="joined: the group's first"),
    Incident("held_up_by_kafka_python", held_up_by_kafka_python, (), words_of_notes="until w1 had rejoined"),
)  # fmt: skip
