"""Calls that a user of another admin client would miss, on our broker; tests/conformance has them on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Admin, Broker
from support.clients import admin_calls


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_dir=str(tmp_path_factory.mktemp("broker") / "data")) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as client:
        yield client


def test_what_is_behind_a_cluster_is_described(admin: Admin, broker: Broker) -> None:
    admin_calls.log_dirs_have_the_size_of_each_replica(admin, broker.bootstrap)
    admin_calls.features_are_described(admin)
    admin_calls.the_quorum_is_described(admin)
    admin_calls.resources_with_options_are_listed(admin)
    admin_calls.the_calls_are_coroutines_too(broker.bootstrap)


def test_topics_are_waited_for(admin: Admin) -> None:
    admin_calls.topics_are_waited_for(admin)


def test_several_groups_in_one_call(admin: Admin) -> None:
    admin_calls.several_groups_in_one_call(admin)


def test_members_are_removed(admin: Admin, broker: Broker) -> None:
    admin_calls.members_are_removed(admin, broker.bootstrap)


def test_a_transaction_is_terminated_by_force(admin: Admin, broker: Broker) -> None:
    admin_calls.a_transaction_is_terminated_by_force(admin, broker.bootstrap)


def test_feature_levels_are_checked_and_set(admin: Admin) -> None:
    admin_calls.feature_levels_are_checked_and_set(admin)
    with pytest.raises(ValueError, match="how must be one of upgrade, safe_downgrade, unsafe_downgrade"):
        admin.update_features({"group.version": 1}, how="sideways")  # type: ignore[arg-type]  # that is the mistake
