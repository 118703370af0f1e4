"""Raw clients that are somebody, without a login: their connections are given a principal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from partita import Broker
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.security.principals import KafkaPrincipal
from partita.security.rights.acls import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from support.broker.raw import Raw

if TYPE_CHECKING:
    from partita.option_types import BrokerOptions


def secured(**options: Unpack[BrokerOptions]) -> Broker:
    """A broker (not started) with an authorizer, where `admin` may do everything."""
    return Broker({"authorizer.class.name": "standard", "super.users": "User:admin"}, **options)


def raw_as(broker: Broker, user: str) -> Raw:
    """A connection whose peer is this user."""
    raw = Raw(broker.port, client_id=user)
    raw.ask(ApiVersionsRequest(), 0)
    port = raw.socket.getsockname()[1]

    def identify() -> None:
        for server in (server for servers in broker.running.servers.values() for server in servers):
            for connection in server.connections:
                transport = connection._transport
                if transport is not None and transport.get_extra_info("peername")[1] == port:
                    connection.identify(KafkaPrincipal("User", user))

    broker.run(identify)
    return raw


def acl(
    user: str,
    operation: Operation,
    name: str,
    kind: ResourceType = ResourceType.TOPIC,
    *,
    permission: Permission = Permission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
) -> AclBinding:
    """One ACL of a user."""
    return AclBinding(kind, name, f"User:{user}", operation, permission, pattern)


def allow(broker: Broker, *acls: AclBinding) -> None:
    """Add ACLs."""
    rights = broker.running.services.rights
    assert rights is not None, "the broker has an authorizer"
    broker.run(lambda: rights.change(added=acls))


def forbid_all(broker: Broker) -> None:
    """Remove every ACL."""
    rights = broker.running.services.rights
    assert rights is not None, "the broker has an authorizer"
    broker.run(lambda: rights.change(removed=rights.found(AclFilter())))
