"""UpdateFeatures and the features of ApiVersions, over a socket; the answers are those of Apache Kafka 4.4.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita import Broker
from partita.broker.api.features import set_levels
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from partita.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from partita.protocol.messages.share_fetch import ShareFetchRequest
from partita.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from support.broker.consumer_groups import beat
from support.broker.raw import Raw
from support.broker.transactions import transaction_plane
from support.share.beats import share_beat

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ELR, GROUP, SHARE, TRANSACTION = (
    "eligible.leader.replicas.version", "group.version", "share.version", "transaction.version",
)  # fmt: skip
DOWN = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
REFUSED = [
    (TRANSACTION, -1, UPGRADE, "A feature version cannot be less than 0."),
    (TRANSACTION, 1, UPGRADE, DOWN),
    (TRANSACTION, 3, UPGRADE, "Local controller 1 only supports versions 0-2"),
    (GROUP, 0, 0, "The controller does not support the given upgrade type."),
    (GROUP, 0, 7, "The controller does not support the given upgrade type."),
    (GROUP, 2, SAFE, "Local controller 1 only supports versions 0-1"),
    ("metadata.version", 6, SAFE, "Local controller 1 only supports versions 7-33"),
    ("metadata.version", 34, UPGRADE, "Local controller 1 only supports versions 7-33"),
    ("metadata.version", 32, UPGRADE, DOWN),
    ("streams.version", 2, UPGRADE, "Local controller 1 only supports versions 0-1"),
    ("nope", 0, UPGRADE, "Feature nope not found."),
    ("nope", 1, UPGRADE, "Local controller 1 does not support this feature."),
]
KEPT = {
    SAFE: "Refusing to perform the requested downgrade because it might delete metadata information.",
    UNSAFE: "Unsafe metadata downgrade is not supported in this version.",
}
FAILED = "The update failed for all features since the following feature had an error: "


def update(
    raw: Raw, *levels: tuple[str, int], kind: int = UPGRADE, version: int = 2, validate_only: bool = False
) -> UpdateFeaturesResponse:
    updates = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level in levels]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
    answer: UpdateFeaturesResponse = raw.ask(request, version)
    return answer


def told(raw: Raw, version: int = 4) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer: ApiVersionsResponse = raw.ask(request, version)
    return answer


def in_force(raw: Raw) -> dict[str, int]:
    return {feature.name: feature.max_version_level for feature in told(raw).finalized_features}


@pytest.mark.case("SG-A02")
def test_the_features_are_those_of_kafka_4_4_as_far_as_they_are_served() -> None:
    with Broker() as broker, Raw(broker.port) as raw:
        supported = {f.name: (f.min_version, f.max_version) for f in told(raw).supported_features}
        assert supported == {
            ELR: (0, 1), GROUP: (0, 1), "kraft.version": (0, 0), "metadata.version": (7, 33), SHARE: (0, 2),
            "streams.version": (0, 1), TRANSACTION: (0, 2),
        }  # fmt: skip
        assert in_force(raw) == {
            ELR: 1,
            GROUP: 1,
            "metadata.version": 33,
            SHARE: 2,
            "streams.version": 1,
            TRANSACTION: 2,
        }
        before = told(raw, 3)
        assert [f.name for f in before.supported_features] == ["metadata.version"], "it knows no lowest level of 0"
        assert len(before.finalized_features) == 6


def test_what_cannot_be_in_force_is_refused_in_kafkas_words_and_changes_nothing() -> None:
    with Broker() as broker, Raw(broker.port) as raw:
        before = told(raw)
        for name, level, kind, why in REFUSED:
            good = [(SHARE, 1)] if kind == SAFE else []
            answer = update(raw, *good, (name, level), kind=kind)
            said = f"{FAILED}Invalid update version {level} for feature {name}. {why}"
            assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_UPDATE_VERSION, said)
        for kind, why in KEPT.items():
            answer = update(raw, ("metadata.version", 29), kind=kind)
            assert answer.error_message == f"{FAILED}Unsupported metadata.version downgrade from 33 to 29. {why}"
        assert update(raw, (GROUP, 0), kind=UPGRADE, version=0).results == []
        assert told(raw) == before


def test_levels_change_together_and_survive_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        first = told(raw).finalized_features_epoch
        assert update(raw, (GROUP, 0), kind=SAFE, validate_only=True).error_code == ErrorCode.NONE
        assert update(raw, (TRANSACTION, 2)).error_code == ErrorCode.NONE, "the level in force is no change"
        assert told(raw).finalized_features_epoch == first
        old = update(raw, (TRANSACTION, 1), (GROUP, 0), (ELR, 0), kind=SAFE, version=1)
        assert [(r.feature, r.error_code, r.error_message) for r in old.results] == [
            (name, 0, "NONE") for name in (TRANSACTION, GROUP, ELR)
        ]
        assert update(raw, (TRANSACTION, 2), kind=SAFE).error_message == (
            f"{FAILED}Invalid update version 2 for feature transaction.version. Can't downgrade to a newer version."
        )
        assert update(raw, (SHARE, 0), (SHARE, 1), kind=UNSAFE).error_message is None, "the last level counts"
        assert told(raw).finalized_features_epoch == first + 2
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        assert in_force(raw) == {"metadata.version": 33, SHARE: 1, "streams.version": 1, TRANSACTION: 1}
        assert told(raw).finalized_features_epoch == first + 2
        forget = AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=4, resource_name="")])
        assert raw.ask(forget, 2).responses[0].error_code == ErrorCode.NONE
        assert in_force(raw)[TRANSACTION] == 1, "a level is no option that can be taken back"
        assert update(raw, (TRANSACTION, 2), (GROUP, 1), (ELR, 1), (SHARE, 2)).error_code == ErrorCode.NONE
        assert len(in_force(raw)) == 6


@pytest.mark.case("GC-T39", "SG-A08")
def test_groups_of_a_feature_at_level_0_are_refused_and_go_on_when_it_is_back() -> None:
    with Broker() as broker, Raw(broker.port) as raw:
        raw.find("g")
        epoch = raw.ask(beat("a"), 1).member_epoch
        shared = share_beat(raw, "s", 0, ["t"], group="shared").member_epoch
        fetch = ShareFetchRequest(group_id="shared", member_id="s", share_session_epoch=0)
        assert raw.ask(fetch, 1).error_code == ErrorCode.NONE
        assert update(raw, (GROUP, 0), (SHARE, 0), kind=SAFE).error_code == ErrorCode.NONE
        assert raw.ask(beat("a", epoch, None), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert share_beat(raw, "s", shared, group="shared").error_code == ErrorCode.UNSUPPORTED_VERSION
        assert raw.ask(fetch, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert update(raw, (GROUP, 1), (SHARE, 1)).error_code == ErrorCode.NONE
        assert raw.ask(beat("a", epoch, None), 1).member_epoch == epoch
        assert share_beat(raw, "s", shared, group="shared").member_epoch == shared
        assert raw.ask(fetch, 1).error_code == ErrorCode.NONE


def test_the_coordinator_of_transactions_follows_the_level() -> None:
    with transaction_plane() as plane:
        coordinators = plane.services.transactions()
        levels = [coordinators.settings.level]
        for level in (0, 1, 2):
            set_levels(plane.cluster.catalogue, {TRANSACTION: level})
            levels.append(coordinators.settings.level)
        assert levels == [2, 0, 1, 2]
