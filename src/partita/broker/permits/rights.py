"""The rights of a cluster: its authorizer, whose ACLs are kept in the catalogue, and the principal that asks.

Without `authorizer.class.name` there is none of this: no request is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from partita.broker.config import BrokerConfig, ConfigError
from partita.broker.permits.audit import Audit
from partita.broker.topics.catalogue import TopicCatalogue
from partita.protocol.api_table import APIS
from partita.security.rights.acls import CLUSTER_NAME, AclBinding, AclFilter, ResourceType, key_of, restored, stored
from partita.security.rights.authorizer import Authorizer, super_users

T = TypeVar("T")
KIND = "acl"
"""The kind of ACLs in the catalogue."""
STANDARD = frozenset({"standard", "StandardAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})
"""The names of the one authorizer there is; no name makes us import anything."""


def authorizer_of(config: BrokerConfig) -> Authorizer:
    """The authorizer that the settings ask for, without any ACL. Raises ConfigError."""
    name = config.text("authorizer.class.name")
    if name not in STANDARD:
        known = ", ".join(sorted(STANDARD))
        raise ConfigError(f"Invalid value {name} for configuration authorizer.class.name: must be one of {known}")
    try:
        users = super_users(config.text("super.users"))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return Authorizer(users, allow_everyone=config.bool("allow.everyone.if.no.acl.found"))


class Rights:
    """The ACLs and the decisions made from them. A change is durable as every change of the catalogue is."""

    def __init__(
        self,
        authorizer: Authorizer,
        catalogue: TopicCatalogue,
        config: BrokerConfig,
        seconds: Callable[[], float],
        note: Callable[..., None],
    ) -> None:
        self.authorizer = authorizer
        self.catalogue = catalogue
        self.config = config
        self.audit = Audit(seconds, note)
        self._on_change: list[Callable[[], None]] = []
        authorizer.change(added=map(restored, catalogue.kept.get(KIND, {}).values()))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of the ACLs: whatever was answered before may be wrong now."""
        self._on_change.append(listener)

    def change(self, *, added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()) -> None:
        """Add and remove ACLs, with one write. Raises StorageError; then the rights are as they were."""
        new = [acl for acl in dict.fromkeys(added) if acl not in self.authorizer]
        gone = [acl for acl in dict.fromkeys(removed) if acl in self.authorizer]
        if not new and not gone:
            return
        self.catalogue.keep(KIND, {key_of(acl): None for acl in gone} | {key_of(acl): stored(acl) for acl in new})
        self.authorizer.change(added=new, removed=gone)
        for listener in self._on_change:
            listener()

    def asked_by(self, principal: object, host: str, api_key: int, version: int) -> Asking:
        """A request of this API on behalf of a principal, whose text is what ACLs name."""
        return Asking(self, str(principal), host, api_key=api_key, api=APIS[api_key].name, version=version)

    def found(self, wanted: AclFilter) -> list[AclBinding]:
        """The ACLs that the filter selects, in the order in which they were added."""
        return list(wanted.select(self.authorizer))


def _go_on() -> None:
    pass


class Asking:
    """One request on behalf of one principal. `version` is that of the request's API.

    `pause` is called at each decision; where there are very many, it lets others have their turn.
    """

    __slots__ = ("_rights", "api", "api_key", "host", "pause", "principal", "version")

    def __init__(self, rights: Rights, principal: str, host: str, *, api_key: int, api: str, version: int) -> None:
        self._rights = rights
        self.principal = principal
        self.host = host
        self.api_key = api_key
        self.api = api
        self.version = version
        self.pause: Callable[[], None] = _go_on

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items, with a pause at each."""
        for item in items:
            self.pause()
            yield item

    @property
    def catalogue(self) -> TopicCatalogue:
        """The topics, for requests that name them by id."""
        return self._rights.catalogue

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings."""
        return self._rights.config

    def may(
        self, operation: int, kind: int, name: str = CLUSTER_NAME, *, is_logged: bool = True, count: int = 1
    ) -> bool:
        """Whether the principal may do this. Not logged is what only shortens a list."""
        self.pause()
        decision = self._rights.authorizer.decide(self.principal, self.host, operation, kind, name)
        if is_logged:
            self._rights.audit.record(decision, self.principal, self.host, operation, kind, name, self.api, count)
        return decision.allowed

    def may_all(self, operation: int, kind: int, names: Sequence[str]) -> set[str]:
        """Those of the names for which the principal may do this."""
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        return {name for name, count in counts.items() if self.may(operation, kind, name, count=count)}

    def may_some(self, operation: int, kind: int) -> bool:
        """Whether the principal may do this to at least one resource of the type."""
        return self._rights.authorizer.allows_some(self.principal, self.host, operation, kind)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the operations that the principal may do on the resource, as bits: 1 << the operation's code."""
        return self._rights.authorizer.operations(self.principal, self.host, kind, name)
