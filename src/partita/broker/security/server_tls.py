"""The TLS context of a listener, from its options, and whether another one may take its place. (security.md 3.3, 4.)

A context is replaced whole: connections that are open keep the one they began with.
"""

from __future__ import annotations

import logging
import re
import ssl
from typing import NamedTuple

from partita.broker.config import BROKER_OPTIONS, ConfigError, ListenerConfig
from partita.broker.security.certificates import CertificateNotes, distinguished_name, notes_of_pem
from partita.net.secured import tls as net_tls
from partita.options import ConfigError as OptionError
from partita.secret import Secret
from partita.security.errors import NoMatchingRule
from partita.security.principal_rules import PrincipalRules, PrincipalRulesError
from partita.security.principals import ANONYMOUS, USER, KafkaPrincipal
from partita.security.settings import Store

log = logging.getLogger("partita.security")
ENDS_SOON_DAYS = 30
NEEDS_CRYPTOGRAPHY = "listener {listener} speaks TLS, which needs: pip install 'partita[security]'"
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_UNDERSCORED = re.compile(r"\bssl_[a-z_]+\b")


class Loaded(NamedTuple):
    """A context and the notes of its certificate."""

    context: ssl.SSLContext
    notes: CertificateNotes


class ServerTls:
    """The TLS side of one listener. Raises ConfigError, naming option and file, when the files are of no use."""

    def __init__(self, config: ListenerConfig, listener: str) -> None:
        try:
            import cryptography  # noqa: F401 - asked for here, so that a start without it is refused in one line
        except ImportError:
            raise ConfigError(NEEDS_CRYPTOGRAPHY.format(listener=listener)) from None
        self.listener = listener
        self._config = config
        try:
            self._rules = PrincipalRules(config.text("ssl.principal.mapping.rules"))
        except PrincipalRulesError as error:
            raise ConfigError(str(error)) from None
        self.asks_for_certificate = config.text("ssl.client.auth") != "none"
        self._loaded = load(config, listener)
        self.warn_of_end()

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._loaded.context

    @property
    def notes(self) -> CertificateNotes:
        """The notes of the certificate that new connections get."""
        return self._loaded.notes

    def check(self, config: ListenerConfig) -> None:
        """Whether these settings could take the place of the present ones. Raises ConfigError when not."""
        loaded = load(config, self.listener)
        if loaded.notes.name != self.notes.name and not config.bool("ssl.allow.dn.changes"):
            raise ConfigError(
                f"Keystore DistinguishedName does not match: it was {self.notes.name}, the new one is "
                f"{loaded.notes.name}; ssl.allow.dn.changes=true allows it"
            )

    def reload(self) -> None:
        """Read the files again for new connections. Raises ConfigError; then nothing changes."""
        self.check(self._config)
        self._loaded = load(self._config, self.listener)
        self.warn_of_end()

    def principal(self, endpoint: ssl.SSLSocket | ssl.SSLObject) -> KafkaPrincipal:
        """Return the peer's principal by its certificate. Raises NoMatchingRule."""
        der = endpoint.getpeercert(binary_form=True) if self.asks_for_certificate else None
        if der is None:
            return ANONYMOUS
        try:
            return KafkaPrincipal(USER, self._rules.principal_name(distinguished_name(der)))
        except ValueError as error:
            raise NoMatchingRule(f"the client's certificate cannot be read: {error}") from None

    def warn_of_end(self) -> None:
        """Say so when the certificate has ended or is about to."""
        days = self.notes.days_left()
        if days < ENDS_SOON_DAYS:
            when = "has ended" if days < 0 else f"ends in {days:.0f} days"
            log.warning(
                "listener %s: the certificate of %s %s (%s)", self.listener, ascii(self.notes.name), when,
                f"{self.notes.ends:%Y-%m-%d %H:%M} UTC",
            )  # fmt: skip


def load(config: ListenerConfig, listener: str) -> Loaded:
    """A context as the settings say. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    certificate, key = _key_store(config)
    if certificate is None:
        raise ConfigError(
            f"listener {listener} speaks TLS and has no certificate: set listener.name.{listener.lower()}."
            "ssl.keystore.location (PEM or PKCS12), or ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    try:
        net_tls.set_versions(context, config.list("ssl.enabled.protocols"))
        if config.list("ssl.cipher.suites"):
            net_tls.set_ciphers(context, config.list("ssl.cipher.suites"))
        net_tls.show(context, certificate, key, config.secret("ssl.key.password"))
        trusted = _trust_store(config)
        context.verify_mode = _CLIENT_AUTH[config.text("ssl.client.auth")]
        if trusted is not None:
            net_tls.trust(context, trusted)
        elif context.verify_mode != ssl.CERT_NONE:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        notes = notes_of_pem(net_tls.certificates_of(certificate))
    except OptionError as error:
        raise ConfigError(_as_kafka_spells(str(error))) from None
    except ValueError as error:
        raise ConfigError(f"listener {listener}: the certificate cannot be read: {error}") from None
    return Loaded(context, notes)


def _as_kafka_spells(text: str) -> str:
    """The text with the names of options as brokers have them: with dots."""

    def dotted(match: re.Match[str]) -> str:
        name = match[0].replace("_", ".")
        return name if name in BROKER_OPTIONS else match[0]

    return _UNDERSCORED.sub(dotted, text)


def _key_store(config: ListenerConfig) -> tuple[Store | None, Store | None]:
    """(Certificate, key where it is given apart)."""
    chain, key = config.secret("ssl.keystore.certificate.chain"), config.secret("ssl.keystore.key")
    if chain is not None or key is not None:
        if chain is None or key is None:
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain belong together; set both")
        return Store("ssl.keystore.certificate.chain", pem=chain), Store("ssl.keystore.key", pem=key)
    location = config.maybe("ssl.keystore.location")
    if location is None:
        return None, None
    return Store("ssl.keystore.location", location, password=config.secret("ssl.keystore.password")), None


def _trust_store(config: ListenerConfig) -> Store | None:
    text: Secret | None = config.secret("ssl.truststore.certificates")
    if text is not None:
        return Store("ssl.truststore.certificates", pem=text)
    location = config.maybe("ssl.truststore.location")
    if location is None:
        return None
    return Store("ssl.truststore.location", location, password=config.secret("ssl.truststore.password"))
