"""Files of logs that somebody else has cut under a running broker: one damaged log, and not the end of the process."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from partita import Broker
from partita.broker.options import Value
from partita.broker.storage.disk_storage import DiskStorage
from partita.log.partition_log import PartitionLog
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from support.broker.raw import Raw
from support.log.logs import at, pairs

BYTES = 300_000
MOST = 1 << 20


@pytest.mark.parametrize("is_mapped", [True, False])
def test_what_is_gone_is_not_read(tmp_path: Path, is_mapped: bool) -> None:
    """To touch a mapped page that is gone ends the process with SIGBUS."""
    file = DiskStorage(str(tmp_path)).open("0.log", create=True)
    file.append([b"x" * BYTES])
    before = file.read_at(0, BYTES) if is_mapped else memoryview(b"")
    os.truncate(tmp_path / "0.log", 100_000)
    assert bytes(file.read_at(0, BYTES)) == b"x" * 100_000
    assert [len(file.read_at(position, 10)) for position in (0, 99_995, 100_000, 299_000)] == [10, 5, 0, 0]
    os.truncate(tmp_path / "0.log", 0)
    assert len(file.read_at(0, BYTES)) == 0
    assert len(before) == (BYTES if is_mapped else 0)
    file.close()


def fetched(raw: Raw, topic: str, offset: int) -> PartitionData:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MOST)
    request = FetchRequest(max_wait_ms=0, max_bytes=MOST, topics=[FetchTopic(topic=topic, partitions=[partition])])
    answer: PartitionData = raw.ask(request, 11).responses[0].partitions[0]
    return answer


@pytest.mark.parametrize("left", [0, 150_000])
@pytest.mark.parametrize("was_read", [True, False])
def test_one_log_that_was_cut_is_told_and_the_others_are_served(
    tmp_path: Path, left: int, was_read: bool, caplog: pytest.LogCaptureFixture
) -> None:
    settings: dict[str, Value] = {"internal.segment.bytes": BYTES}
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        logs: dict[str, PartitionLog] = {}
        for name in ("cut", "whole"):
            topic = broker.run(partial(broker.cluster.create_topic, name, 1, 1, settings))
            logs[name] = topic.partitions[0].log
            for number in range(6):
                broker.run(partial(logs[name].append, pairs(("k", os.urandom(45_000).hex())), 0, at(number)))
        if was_read:
            assert [fetched(raw, "cut", offset).error_code for offset in range(6)] == [0] * 6
        first = min((tmp_path / logs["cut"].directory).glob("*.log"))
        os.truncate(first, left)
        lost = [offset for offset in range(3) if fetched(raw, "cut", offset).error_code]
        assert lost == ([0, 1, 2] if left == 0 else [1, 2])
        assert {fetched(raw, "cut", offset).error_code for offset in lost} == {ErrorCode.CORRUPT_MESSAGE}
        assert [fetched(raw, "cut", offset).error_code for offset in (3, 5)] == [0, 0]
        assert [fetched(raw, "whole", offset).error_code for offset in range(6)] == [0] * 6
        assert "a batch on the disk cannot be read" in caplog.text
