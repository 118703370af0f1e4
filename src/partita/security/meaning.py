"""Joint meaning of a client's security options: one frozen `Security`, made once and checked when it is made.

Nothing below it sees option names. The settings of TLS and SASL are loaded by the first client that needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partita.client_options import CLIENT_OPTIONS, SECURITY_OPTIONS
from partita.lazy import later
from partita.options import ConfigError, check_options
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.security import settings
else:
    settings = later("partita.security.settings")

_OPTIONS = tuple(o for o in CLIENT_OPTIONS if o in SECURITY_OPTIONS or o.name == "security_protocol")


@dataclass(frozen=True, slots=True)
class Security:
    """A client's way to brokers: in plain text or by TLS, anonymous or logged in."""

    protocol: str = "PLAINTEXT"
    tls: settings.TlsSettings | None = None
    sasl: settings.SaslSettings | None = None

    @property
    def user(self) -> str | None:
        """The user that logs in by name and password; None for other logins, whose name only the broker knows."""
        return self.sasl.user or None if self.sasl is not None else None

    def set_login(self, user: str, password: str | Secret) -> None:
        """Log in with these from now on; connections that are logged in stay so. May be called from any thread.

        Raises ConfigError unless the client logs in with a password.
        """
        if self.sasl is None or not self.sasl.user:
            how = self.protocol if self.sasl is None else self.sasl.mechanism
            raise ConfigError(f"credentials can be changed of a client that logs in by PLAIN or SCRAM, not by {how}")
        if not user or not password:
            raise ConfigError("set_sasl_credentials takes a user and a password, and neither may be empty")
        self.sasl.login = (user, password if isinstance(password, Secret) else Secret(password))


PLAIN_TEXT = Security()
"""No TLS, no login: Kafka's default."""


def security_of(values: Mapping[str, Any]) -> Security:
    """Put checked option values together. Raises ConfigError, naming the option to change."""
    protocol = values["security_protocol"]
    encrypts, logs_in = protocol in ("SSL", "SASL_SSL"), protocol.startswith("SASL")
    if not encrypts and values.get("ssl_context") is not None:
        raise ConfigError(f"ssl_context is given, but security_protocol is {protocol}: set SSL or SASL_SSL")
    if not (encrypts or logs_in):
        return Security(protocol)
    tls = settings.tls_settings(values) if encrypts else None
    return Security(protocol, tls, settings.sasl_settings(values) if logs_in else None)


def security_of_options(given: Mapping[str, str]) -> Security:
    """The same from text options with dots, passing over names that are not about security. Raises ConfigError."""
    names = {name for option in _OPTIONS for name in (option.name, *option.aliases)}
    known = {name: value for name, value in given.items() if name.replace(".", "_") in names}
    return security_of(check_options(_OPTIONS, {}, known))


def is_security_option(dotted: str) -> bool:
    """True for every option of this module, in Kafka's spelling with dots or an alias of it."""
    name = dotted.replace(".", "_")
    return any(name == option.name or name in option.aliases for option in _OPTIONS)
