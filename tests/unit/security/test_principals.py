"""Who a peer is, as it is printed and compared."""

from __future__ import annotations

import asyncio

import pytest

from partita.broker.api.context import RequestContext
from partita.security.principals import ANONYMOUS, KafkaPrincipal
from support.broker.data_plane import DataPlane, data_plane


def test_a_principal_is_printed_as_rules_name_it() -> None:
    assert str(KafkaPrincipal("User", "alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert KafkaPrincipal("User", "Alice") != KafkaPrincipal("User", "alice")


@pytest.mark.case("SE-P14")
def test_a_request_says_who_asks_and_from_where() -> None:
    with data_plane() as plane:
        alice = KafkaPrincipal("User", "alice")
        before = plane.connection.recall
        plane.connection.identify(alice)
        assert plane.connection.recall is not before
        ctx = asked(plane)
        assert (ctx.principal, ctx.host, ctx.listener) == (alice, "127.0.0.1", "PLAINTEXT")


def asked(plane: DataPlane) -> RequestContext:
    async def make() -> RequestContext:
        return RequestContext(plane.services, plane.node, 0, 0, client_id="", connection=plane.connection)

    return asyncio.run(make())
