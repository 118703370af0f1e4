"""Calls to choose partitions: a subscription shared with the group, or partitions of one's own (4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from partita.consumer.errors import IllegalStateError
from partita.consumer.group.commits import Kind
from partita.consumer.listener import AnyListener
from partita.consumer.shell import arguments
from partita.consumer.shell.arguments import Partitions
from partita.consumer.shell.closing import leave_group
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import AsyncWaiter, run_blocking
from partita.consumer.subscription import SubscriptionPattern

UNSUBSCRIBED = "the consumer unsubscribed from all topics"


def subscribe(
    driver: ConsumerDriver,
    topics: Iterable[str] | str | None,
    pattern: str | re.Pattern[str] | SubscriptionPattern | None,
    listener: AnyListener | None,
) -> None:
    """Replace the subscription by these topics or this pattern; no topics at all unsubscribes.

    Raises ValueError unless there is just one of the two, IllegalStateError without an assignor.
    """
    if (topics is None) == (pattern is None):
        raise ValueError("subscribe takes either topics or a pattern")
    names = arguments.topic_names(topics)
    if pattern is not None:
        arguments.check_pattern(pattern)
    with driver.owned():
        driver.need_group("subscribe")
        if pattern is None and not names:
            _unsubscribe_now(driver, "subscribe([])")
            return
        by_epochs = driver.core.member.by_epochs
        if isinstance(pattern, SubscriptionPattern) and not by_epochs:
            raise IllegalStateError(
                "a SubscriptionPattern is matched by the broker, which needs group_protocol='consumer'; "
                "with the classic protocol give the pattern as text"
            )
        if not by_epochs and not driver.config.assignors:
            raise IllegalStateError("partition_assignment_strategy is empty; subscribe needs an assignor")
        with driver.io.lock:
            subscription = driver.core.subscription
            if isinstance(pattern, SubscriptionPattern):
                subscription.subscribe_server_pattern(pattern.pattern)
                driver.core.metadata.want_topics(None)
            elif pattern is not None:
                subscription.subscribe_pattern(re.compile(pattern))
                driver.core.metadata.want_topics(None)
            else:
                subscription.subscribe_topics(names)
                driver.core.buffer.drop_topics_but(set(names))
            driver.listener = listener
            driver.mark_stale()


def assign(driver: ConsumerDriver, partitions: Partitions) -> None:
    """Replace the assignment by these partitions; none at all unsubscribes."""
    wanted = arguments.partitions(partitions, "assign")
    core = driver.core
    with driver.owned():
        if not wanted:
            _unsubscribe_now(driver, "assign([])")
            return
        with driver.io.lock:
            if core.subscription.assignment and driver.config.enable_auto_commit:
                core.commits.commit(Kind.AUTO, None)
            core.subscription.assign_by_user(wanted)
            core.positions.is_started = False


def change(driver: ConsumerDriver, partitions: Partitions, call: str) -> None:
    """Add these partitions to those of `assign`, or take them away. Raises IllegalStateError."""
    given = arguments.partitions(partitions, call)
    subscription = driver.core.subscription
    with driver.owned(), driver.io.lock:
        if subscription.is_group:
            raise IllegalStateError(f"{call} changes what assign() said; the partitions here come from subscribe()")
        held = list(subscription.assignment)
        if call == "incremental_unassign":
            for tp in given:
                subscription.state(tp)
            held = [tp for tp in held if tp not in given]
        else:
            held += [tp for tp in given if tp not in held]
    assign(driver, held)


def _unsubscribe_now(driver: ConsumerDriver, call: str) -> None:
    listener = driver.listener
    if listener is not None and listener.is_async and isinstance(driver.waiter, AsyncWaiter):
        raise IllegalStateError(f"{call} cannot wait for an async rebalance callback; use await unsubscribe()")
    run_blocking(leave_group(driver, UNSUBSCRIBED, shield=False))
