"""How much of a peer's first record has to be there before OpenSSL begins."""

from __future__ import annotations

import pytest

from partita.broker.wire.tls_transport import first_record_bytes


@pytest.mark.case("SE-P08")
@pytest.mark.parametrize(
    ("begun", "needed"),
    [
        pytest.param(b"", 5, id="nothing yet"),
        pytest.param(b"\x16", 5, id="the type alone"),
        pytest.param(b"\x16\x03\x01\x02", 5, id="all but one byte of the header"),
        pytest.param(b"\x16\x03\x01\x02\x00", 517, id="the header"),
        pytest.param(b"\x16\x03\x01\x02\x00" + b"x" * 600, 517, id="more than the record"),
        pytest.param(b"\x16\x03\x01\xff\xff", 5 + 16384, id="a length that no record has"),
        pytest.param(b"G", 0, id="no handshake"),
        pytest.param(b"\x15\x03\x01\x00\x02", 0, id="an alert"),
    ],
)
def test_the_first_record_is_waited_for_as_a_whole(begun: bytes, needed: int) -> None:
    assert first_record_bytes(begun) == needed
