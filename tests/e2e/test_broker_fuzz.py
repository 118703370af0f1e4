"""Nearly right requests of every API and version: each is answered or its connection is closed. (Faults 6.4)

`python tools/fuzz.py --seconds 600` does the same for longer, against a broker process.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from partita import Broker
from partita.broker.api.apis import SERVED
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.primitives import Message
from support.broker.fuzzing import Fuzzer
from support.broker.raw import Raw

REQUESTS = 1_500


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_broker_answers_or_closes(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """C5, H4 to H8: no silence, no answer of another request, no failure in the log, and others are served."""
    with caplog.at_level(logging.ERROR), Broker(connection_failed_authentication_delay_ms=0) as broker:
        broker.create_topics({"t": 3, "canary": 1})
        with Raw(broker.port) as canary:
            joined = canary.stable("canary")
            found = Fuzzer(broker.port, seed).run(requests=REQUESTS)
            member: dict[str, Any] = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
            assert canary.commit("canary", 7, topic="canary", **member) == 0
    assert not found.wrong
    assert not caplog.records, caplog.text
    assert found.answered > REQUESTS // 3, "most of what is sent is not so damaged that nothing is asked"
    assert found.closed > REQUESTS // 10


def test_the_fuzzer_notices_silence_and_answers_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that never complains would be none."""
    from partita.broker.requests.dispatch import Exchange
    from support.broker import fuzzing

    monkeypatch.setattr(fuzzing, "PATIENCE_SECONDS", 0.5)
    kept = Exchange._encode

    def wrong_number(self: Exchange, message: Message) -> object:
        self.correlation_id += 1
        return kept(self, message)

    monkeypatch.setattr(Exchange, "_encode", wrong_number)
    with Broker() as broker:
        found = Fuzzer(broker.port, 1).run(requests=40)
    assert any("the answer says" in wrong for wrong in found.wrong)
    monkeypatch.setattr(Exchange, "encoded", lambda self, answer: None)
    monkeypatch.setattr(fuzzing, "SERVED", {18: SERVED[18]})
    with Broker() as broker:
        found = Fuzzer(broker.port, 1).run(requests=3)
    assert any("neither answered nor closed" in wrong for wrong in found.wrong)


def test_an_error_that_repeats_a_very_long_name_is_shortened() -> None:
    """Found by fuzzing: the message with the name in it did not fit into an answer."""
    with Broker() as broker, Raw(broker.port) as raw:
        name = "x" * 32_767
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        (answer,) = raw.ask(CreateTopicsRequest(topics=[topic]), 5).topics
        assert (answer.name, answer.error_code) == (name, 17)
        assert answer.error_message.startswith("Topic name is invalid: the length of 'xxx")
        assert answer.error_message.endswith("...")


def test_text_that_no_answer_could_repeat_closes_the_connection() -> None:
    """Found by fuzzing: each byte that is not UTF-8 becomes three, so the name is longer than any text may be."""
    with Broker() as broker, Raw(broker.port) as raw:
        raw.find("g")
        assert raw.ask(DescribeGroupsRequest(groups=["x" * 32_767]), 4).groups[0].group_id == "x" * 32_767
        frame = raw.frame(DescribeGroupsRequest(groups=["x" * 20_000]), 4)
        raw.socket.sendall(frame.replace(b"x" * 20_000, b"\xff" * 20_000))
        assert raw.is_closed()
