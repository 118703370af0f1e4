"""UpdateFeatures (API 57). Generated from schema/update_features.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class FeatureUpdateKey(Structure):
    """One element of feature_updates in UpdateFeaturesRequest."""

    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

    def __init__(
        self, *, feature: str = "", max_version_level: int = 0, allow_downgrade: bool = False, upgrade_type: int = 1
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.allow_downgrade: bool = allow_downgrade
        self.upgrade_type: int = upgrade_type


def _read_FeatureUpdateKey(r: Reader, v: int) -> FeatureUpdateKey:
    m = FeatureUpdateKey.__new__(FeatureUpdateKey)
    m.feature = r.compact_string()
    m.max_version_level = r.int16()
    m.allow_downgrade = r.boolean() if v == 0 else False
    m.upgrade_type = r.int8() if v >= 1 else 1
    r.skip_tags()
    return m


def _write_FeatureUpdateKey(w: Writer, m: FeatureUpdateKey, v: int) -> None:
    w.compact_string(m.feature)
    w.int16(m.max_version_level)
    if v == 0:
        w.boolean(m.allow_downgrade)
    if v >= 1:
        w.int8(m.upgrade_type)
    w.uvarint(0)


class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    """UpdateFeaturesRequest, a request: versions 0 to 2, flexible from 0."""

    __slots__ = ("timeout_ms", "feature_updates", "validate_only")
    API_KEY: ClassVar[int] = 57
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self, *, timeout_ms: int = 60000, feature_updates: list[FeatureUpdateKey] = EMPTY, validate_only: bool = False
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is EMPTY else feature_updates
        self.validate_only: bool = validate_only

    def write(self, w: Writer, version: int) -> None:
        _write_UpdateFeaturesRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> UpdateFeaturesRequest:
        return _read_UpdateFeaturesRequest(r, version)


def _read_UpdateFeaturesRequest(r: Reader, v: int) -> UpdateFeaturesRequest:
    m = UpdateFeaturesRequest.__new__(UpdateFeaturesRequest)
    m.timeout_ms = r.int32()
    m.feature_updates = [_read_FeatureUpdateKey(r, v) for _ in r.each(r.compact_count(4))]
    m.validate_only = r.boolean() if v >= 1 else False
    r.skip_tags()
    return m


def _write_UpdateFeaturesRequest(w: Writer, m: UpdateFeaturesRequest, v: int) -> None:
    w.int32(m.timeout_ms)
    w.compact_count(len(m.feature_updates))
    for feature_update in w.each(m.feature_updates):
        _write_FeatureUpdateKey(w, feature_update, v)
    if v >= 1:
        w.boolean(m.validate_only)
    w.uvarint(0)


class UpdatableFeatureResult(Structure):
    """One element of results in UpdateFeaturesResponse."""

    __slots__ = ("feature", "error_code", "error_message")

    def __init__(self, *, feature: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_UpdatableFeatureResult(r: Reader, v: int) -> UpdatableFeatureResult:
    m = UpdatableFeatureResult.__new__(UpdatableFeatureResult)
    m.feature = r.compact_string()
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_UpdatableFeatureResult(w: Writer, m: UpdatableFeatureResult, v: int) -> None:
    w.compact_string(m.feature)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class UpdateFeaturesResponse(Message):
    """UpdateFeaturesResponse, a response: versions 0 to 2, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY: ClassVar[int] = 57
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdatableFeatureResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_UpdateFeaturesResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> UpdateFeaturesResponse:
        return _read_UpdateFeaturesResponse(r, version)


def _read_UpdateFeaturesResponse(r: Reader, v: int) -> UpdateFeaturesResponse:
    m = UpdateFeaturesResponse.__new__(UpdateFeaturesResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.results = [_read_UpdatableFeatureResult(r, v) for _ in r.each(r.compact_count(5))] if v <= 1 else []
    r.skip_tags()
    return m


def _write_UpdateFeaturesResponse(w: Writer, m: UpdateFeaturesResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    if v <= 1:
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_UpdatableFeatureResult(w, result, v)
    w.uvarint(0)
