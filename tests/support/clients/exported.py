"""The lag that `partita exporter` serves of some groups, and that one of Kafka's tools prints of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from partita.cli.address import Address
from partita.cli.service.exporter import Exporter

Lags = dict[tuple[str, ...], float]
"""Records behind, by (group, topic, partition) or (group, member)."""


def exported(bootstrap: str, groups: Iterable[str]) -> tuple[Lags, Lags]:
    """Look once: the lag of partitions, and that of members."""
    exporter = Exporter(Address(bootstrap), re.compile("|".join(map(re.escape, groups))))

    async def look() -> None:
        assert await exporter.look(), exporter.observed.trouble
        await exporter.poller.close()

    asyncio.run(look())
    samples = [one for family in text_string_to_metric_families(exporter.metrics_text()) for one in family.samples]
    assert all(one.value >= 0 for one in samples)
    assert [one.labels["group"] for one in samples if one.name == "partita_group_up" and not one.value] == []

    def by(metric: str, *labels: str) -> Lags:
        found = [one for one in samples if one.name == f"partita_group_{metric}_lag_records"]
        return {tuple(one.labels[label] for label in labels): one.value for one in found}

    return by("partition", "group", "topic", "partition"), by("member", "group", "member")


def printed(lines: Iterable[str]) -> Lags:
    """The lag of partitions in a table that `--describe` printed, without those whose lag is `-`.

    Of a commit beyond the end `kafka-streams-groups` prints a negative one; it counts as 0.
    """
    rows = [line.split() for line in lines]
    (names,) = (row for row in rows if row[:1] == ["GROUP"])
    lag = next(number for number, name in enumerate(names) if name in ("LAG", "OFFSET-LAG"))
    found = [row for row in rows if len(row) > lag and row is not names and row[lag] != "-"]
    return {tuple(row[:3]): max(0, int(row[lag])) for row in found}
