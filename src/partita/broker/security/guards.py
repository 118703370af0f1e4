"""The guards of a listener: its TLS context and its SASL gate, made from its options when the broker starts.

Any error in the options is a ConfigError that names the listener or the option, before anything listens.
(security.md 2 and 6.)
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping

from partita.broker.config import LISTENER_PREFIX, BrokerConfig, ConfigError, ListenerConfig
from partita.broker.options import Value
from partita.broker.security.delegation_tokens import DelegationTokens
from partita.broker.security.tokens import SignedTokens, UnsecuredTokens
from partita.broker.security.users import Users
from partita.broker.wire.listeners import Listener
from partita.lazy import later
from partita.secret import Secret
from partita.security.jaas import JaasError, LoginModule, parse_jaas
from partita.security.sasl_server import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    BearerServer,
    Mechanism,
    PlainServer,
    ScramServer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from partita.broker.security import server_tls
else:
    server_tls = later("partita.broker.security.server_tls")

log = logging.getLogger("partita.security")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_MODULES = {PLAIN: "PlainLoginModule", OAUTHBEARER: "OAuthBearerLoginModule"}
_SCRAM_MODULE = "ScramLoginModule"
_HANDLERS = frozenset(
    {
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
        "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler",
        "org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler",
    }
)
"""Java's classes that only name built-in handlers."""
SERVER_NONCE_BYTES = 13


class SaslListener:
    """Logins on one listener: the offered mechanisms and their settings."""

    def __init__(
        self, listener: Listener, config: BrokerConfig, users: Users, lent: DelegationTokens | None = None
    ) -> None:
        """Raises ConfigError."""
        self.listener = listener
        self._lent = lent if lent is not None and lent.is_enabled else None
        self._config = config
        self._users = users
        settings = ListenerConfig(config, listener.name)
        self.mechanisms = settings.list("sasl.enabled.mechanisms")
        self.receive_bytes_max = settings.int("sasl.server.max.receive.size")
        self._refuse_what_is_not_served()
        self._plain = self._plain_users() if PLAIN in self.mechanisms else {}
        self.tokens = self._tokens() if OAUTHBEARER in self.mechanisms else None
        self.longest_ms = {name: self._of(name).int("connections.max.reauth.ms") for name in self.mechanisms}

    def mechanism(self, name: str) -> Mechanism:
        """A login by the mechanism of this name, which is one of `mechanisms`."""
        if name == PLAIN:
            return PlainServer(self._plain)
        if name == OAUTHBEARER:
            assert self.tokens is not None, "made with the mechanism"
            return BearerServer(self.tokens.check)
        find_token = None if self._lent is None else self._lent.of(name)
        return ScramServer(name, self._users.of(name), secrets.token_hex(SERVER_NONCE_BYTES), find_token)

    def _of(self, mechanism: str) -> ListenerConfig:
        return ListenerConfig(self._config, self.listener.name, mechanism)

    def _refuse_what_is_not_served(self) -> None:
        name = self.listener.name
        strange = [mechanism for mechanism in self.mechanisms if mechanism not in MECHANISMS]
        if strange or not self.mechanisms:
            raise ConfigError(
                f"listener {name} offers {', '.join(strange) or 'no SASL mechanism'}: set sasl.enabled.mechanisms to "
                f"some of {', '.join(MECHANISMS)}"
            )
        if self._config.get("sasl.jaas.config") is not None:
            raise ConfigError(
                f"sasl.jaas.config needs the prefix of listener and mechanism, as "
                f"{LISTENER_PREFIX}{name.lower()}.{self.mechanisms[0].lower()}.sasl.jaas.config"
            )
        is_exposed = self.listener.bound.host not in LOOPBACK and not self.listener.has_tls
        if PLAIN in self.mechanisms and is_exposed and not self._config.bool("partita.allow.plain.without.tls"):
            raise ConfigError(
                f"listener {name} would let passwords travel unencrypted: use SASL_SSL, another mechanism than "
                "PLAIN, a loopback address, or partita.allow.plain.without.tls=true"
            )
        for mechanism in self.mechanisms:
            handler = self._of(mechanism).maybe("sasl.server.callback.handler.class")
            if handler is not None and handler not in _HANDLERS:
                raise ConfigError(
                    f"sasl.server.callback.handler.class {handler} cannot be loaded: classes of your own are Java's; "
                    f"known are {', '.join(sorted(_HANDLERS))}"
                )

    def _login_module(self, mechanism: str) -> LoginModule | None:
        line = self._of(mechanism).secret("sasl.jaas.config")
        if line is None:
            return None
        try:
            module = parse_jaas(line.reveal())
        except JaasError as error:
            raise ConfigError(f"sasl.jaas.config of listener {self.listener.name}, {mechanism}: {error}") from None
        expected = _MODULES.get(mechanism, _SCRAM_MODULE)
        if module.name.rpartition(".")[2] != expected:
            raise ConfigError(
                f"sasl.jaas.config of listener {self.listener.name}, {mechanism}, names {module.name}, not {expected}"
            )
        return module

    def _plain_users(self) -> Mapping[str, Secret]:
        module = self._login_module(PLAIN)
        named = {} if module is None else module.options
        own = {key.removeprefix("user_"): value for key, value in named.items() if key.startswith("user_")}
        if own:
            return own
        if not self._users.plain:
            raise ConfigError(
                f"listener {self.listener.name} offers PLAIN and knows no user: set {LISTENER_PREFIX}"
                f"{self.listener.name.lower()}.plain.sasl.jaas.config, or users"
            )
        return self._users.plain

    def _tokens(self) -> UnsecuredTokens | SignedTokens:
        settings = self._of(OAUTHBEARER)
        self._login_module(OAUTHBEARER)
        if settings.maybe("sasl.oauthbearer.jwks.endpoint.url"):
            return SignedTokens(settings)
        if self.listener.bound.host not in LOOPBACK:
            raise ConfigError(
                f"listener {self.listener.name} would believe unsigned tokens of everybody: set "
                "sasl.oauthbearer.jwks.endpoint.url, or a loopback address"
            )
        return UnsecuredTokens(settings)


class Guards:
    """The guards of all listeners. The nodes of a process share them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listeners: Iterable[Listener],
        config: BrokerConfig,
        users: Users,
        lent: DelegationTokens,
    ) -> None:
        """Raises ConfigError."""
        self._loop = loop
        self._config = config
        self._is_reloading = False
        self.users = users
        self.tls: dict[str, server_tls.ServerTls] = {}
        self.sasl: dict[str, SaslListener] = {}
        for listener in listeners:
            if listener.has_tls:
                self.tls[listener.name] = server_tls.ServerTls(ListenerConfig(config, listener.name), listener.name)
            if listener.has_sasl:
                self.sasl[listener.name] = SaslListener(listener, config, users, lent)
        users.prepare(with_scram=any(_has_scram(each.mechanisms) for each in self.sasl.values()))
        config.on_change(self._changed)

    def described(self) -> Iterator[str]:
        """For the start banner, one line per guarded listener."""
        for name in dict.fromkeys([*self.tls, *self.sasl]):
            tls, sasl = self.tls.get(name), self.sasl.get(name)
            parts = []
            if tls is not None:
                parts.append(f"TLS for {', '.join(tls.notes.hosts) or tls.notes.name} until {tls.notes.ends:%Y-%m-%d}")
            if sasl is not None:
                parts.append(f"login by {', '.join(sasl.mechanisms)}")
            yield f"guard      {name}: {'; '.join(parts)}"

    def check(self, changes: Mapping[str, Value]) -> None:
        """Whether these changes of options leave every listener with a certificate. Raises ConfigError."""
        for name, tls in self.tls.items():
            if any(_is_of(option, name) for option in changes):
                tls.check(ListenerConfig(self._config.changed(changes), name))

    def reload(self) -> None:
        """Read all certificates again; those that cannot be loaded stay as they are. Raises ConfigError then."""
        errors = []
        for tls in self.tls.values():
            try:
                tls.reload()
            except ConfigError as error:
                errors.append(f"listener {tls.listener}: {error}")
        if errors:
            raise ConfigError("; ".join(errors))

    def _changed(self, option: str) -> None:
        """Several options change together: the files are read again once the last one has."""
        touched = any(_is_of(option, name) for name in self.tls)
        if touched and not self._is_reloading:
            self._is_reloading = True
            self._loop.call_soon(self._reload_changed)

    def _reload_changed(self) -> None:
        self._is_reloading = False
        try:
            self.reload()
        except ConfigError as error:
            log.error("certificates stay as they are: %s", error)


def _has_scram(mechanisms: Iterable[str]) -> bool:
    return any(name.startswith("SCRAM") for name in mechanisms)


def _is_of(option: str, listener: str) -> bool:
    return option.startswith(f"{LISTENER_PREFIX}{listener.lower()}.ssl.")
