"""A secured listener without any settings: throw-away certificates, users and rights for tests.

`partita.Broker(tls=True, users={"alice": "secret"}, acls=[...])` and `partita broker --tls` become ordinary options.
`client_options` returns the options a client needs. The broker's own calls are made by a user of their own.
"""

from __future__ import annotations

import secrets
import shutil
import ssl
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from partita.broker.config import ConfigError
from partita.broker.security.tokens import UnsignedTokens
from partita.broker.wire.listeners import PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL, Endpoint
from partita.secret import Secret
from partita.security.sasl_server import MECHANISMS, OAUTHBEARER

OWN_USER = "partita-control"
"""The user of the broker's own calls; a super user where there are ACLs."""
NAMES = ("localhost", "127.0.0.1", "::1")
CA_FILE, SERVER_FILE = "ca.pem", "server.pem"
STYLES = ("partita", "confluent", "aiokafka", "kafka-python", "java")
NEEDS_TRUSTME = "throw-away certificates need: pip install 'partita[testing-tls]'"
_ENDED = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)


class ThrowAwayCertificates:
    """An authority of this broker alone, and its certificates, as PEM files in a private folder."""

    def __init__(self, names: Sequence[str] = NAMES, folder: Path | None = None) -> None:
        """Writes into `folder`, which has to exist, or into one that goes with this object. Raises ConfigError."""
        try:
            import trustme
        except ImportError:
            raise ConfigError(NEEDS_TRUSTME) from None
        self._names = tuple(names)
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="partita-tls-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.folder = folder
        self._authority = trustme.CA(organization_name="Partita throw-away certificates")
        self.server_file = self.issue_server()
        self.ca_file = self._written(CA_FILE, self._authority.cert_pem.bytes())

    def issue_server(self, *, ended: bool = False) -> str:
        """A new key and certificate of the broker in its file; `ended`: one that is not valid any more."""
        return self._issue(SERVER_FILE, self._names, self._names[0], ended=ended)

    def client(self, name: str, *, ended: bool = False) -> str:
        """The file with a client's key and certificate, whose common name is `name`."""
        return self._issue(client_file(name), [name], name, ended=ended)

    def _issue(self, file: str, names: Sequence[str], common_name: str, *, ended: bool) -> str:
        begins, ends = _ENDED if ended else (None, None)
        identities = names if names is self._names else ["client.invalid"]
        try:
            issued = self._authority.issue_cert(*identities, common_name=common_name, not_before=begins, not_after=ends)
        except ValueError as error:
            raise ConfigError(f"no certificate can be made for {', '.join(names)!r}: {error}") from None
        return self._written(file, issued.private_key_and_cert_chain_pem.bytes())

    def _written(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return str(path)


class CertificatesIn:
    """Certificates that `partita certs make` wrote into a folder, or another tool by the same names of files."""

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError when the folder lacks `ca.pem` or `server.pem`."""
        self.folder = folder
        self.ca_file, self.server_file = str(folder / CA_FILE), str(folder / SERVER_FILE)
        for file in (self.ca_file, self.server_file):
            if not Path(file).is_file():
                raise ConfigError(f"there is no {file}; `partita certs make {folder}` makes one")

    def issue_server(self, *, ended: bool = False) -> str:
        """Raises ConfigError: the key of the authority was not kept."""
        raise ConfigError(
            f"the certificates in {self.folder} are not the broker's to replace; make new ones, then SIGHUP"
        )

    def client(self, name: str, *, ended: bool = False) -> str:
        """The file with a client's key and certificate. Raises ConfigError when there is none."""
        path = self.folder / client_file(name)
        if not path.is_file():
            raise ConfigError(f"there is no {path}; `partita certs make` makes it with --client {name}")
        return str(path)


def client_file(name: str) -> str:
    """Return the name of the file of a client's key and certificate."""
    safe = "".join(character if character.isalnum() or character in "-_" else "_" for character in name)
    return f"client-{safe}.pem"


class ReadyMade:
    """The settings of `tls`, `mtls`, `users` and `acls`: options for the broker, and options for its clients."""

    def __init__(
        self,
        *,
        tls: bool,
        mtls: bool,
        users: Mapping[str, str],
        has_acls: bool,
        given: Mapping[str, object],
        address: Endpoint,
        folder: str | None = None,
    ) -> None:
        """The certificates are in `folder`, or made up. Raises ConfigError for options that exclude one another."""
        if "listeners" in given:
            raise ConfigError("tls, users and acls make a listener of their own; give them or listeners, not both")
        if has_acls and not (users or mtls):
            raise ConfigError("acls need users, or mtls=True: otherwise everybody is User:ANONYMOUS")
        if OWN_USER in users:
            raise ConfigError(f"the user {OWN_USER} is the broker's own")
        self._own_password = secrets.token_urlsafe(18)
        self.users = {user: Secret(password) for user, password in users.items()}
        if users:
            self.users[OWN_USER] = Secret(self._own_password)
        self.certificates: ThrowAwayCertificates | CertificatesIn | None = None
        if folder is not None:
            self.certificates = CertificatesIn(Path(folder))
        elif tls or mtls:
            self.certificates = ThrowAwayCertificates()
        self._is_mutual = mtls
        self.protocol = (SASL_SSL if users else SSL) if self.certificates else SASL_PLAINTEXT if users else PLAINTEXT
        self.options: dict[str, object] = {"listeners": f"{self.protocol}://{address}"}
        if users:
            self.options["sasl.enabled.mechanisms"] = ",".join(self._mechanisms(address))
        if self.certificates is not None:
            self.options["ssl.keystore.location"] = self.certificates.server_file
            self.options["ssl.truststore.location"] = self.certificates.ca_file
            self.options["ssl.allow.dn.changes"] = True
            self.options["ssl.client.auth"] = "required" if mtls else "requested" if not users else "none"
        if has_acls:
            self.options["authorizer.class.name"] = "standard"
            self.options["super.users"] = f"User:{OWN_USER};{given.get('super.users') or ''}"
        if mtls:
            self.options["ssl.principal.mapping.rules"] = "RULE:^CN=([^,]+),.*$/$1/,DEFAULT"
        enabled = str(given.get("sasl.enabled.mechanisms") or self.options.get("sasl.enabled.mechanisms", ""))
        self._enabled = [name.strip() for name in enabled.split(",")]
        self._takes_signed_tokens = bool(given.get("sasl.oauthbearer.jwks.endpoint.url"))
        self._user_claim = str(given.get("sasl.oauthbearer.sub.claim.name") or "sub")

    def client_options(
        self, bootstrap: str, user: str | None, style: str, mechanism: str | None = None
    ) -> dict[str, Any]:
        """Return the options of a client for being `user`.

        Raises KeyError for an unknown user, ValueError for an unknown style or mechanism.
        """
        if style not in STYLES:
            raise ValueError(f"style must be one of {', '.join(STYLES)}, not {style!r}")
        password = None
        if self.protocol in (SASL_SSL, SASL_PLAINTEXT):
            if user not in self.users:
                raise KeyError(f"no user {user!r}; there are {', '.join(sorted(self.users.keys() - {OWN_USER}))}")
            password = self.users[user].reveal()
        certificate = None
        if self.certificates is not None and user is not None and (self._is_mutual or password is None):
            certificate = self.certificates.client(user)
        chosen = self._mechanism(mechanism) if password is not None else None
        given = _Given(
            bootstrap,
            self.protocol,
            chosen,
            user or "",
            password or "",
            self.certificates.ca_file if self.certificates else None,
            certificate,
            UnsignedTokens(user or "", self._user_claim) if chosen == OAUTHBEARER else None,
        )
        return _IN_STYLE[style](given)

    def _mechanism(self, wanted: str | None) -> str:
        """The mechanism to log in by. Raises ValueError for OAUTHBEARER where no unsigned token is accepted."""
        mechanism = wanted or self._enabled[0]
        if mechanism != OAUTHBEARER:
            return mechanism
        if self._takes_signed_tokens:
            raise ValueError(
                "the broker takes signed tokens only (sasl.oauthbearer.jwks.endpoint.url) and has no key to sign one "
                "with; give the client a token provider of your own"
            )
        if mechanism not in self._enabled:
            raise ValueError(
                f"the broker does not offer OAUTHBEARER, only {', '.join(self._enabled)}: it takes unsigned tokens on "
                "loopback addresses, or where sasl_enabled_mechanisms names OAUTHBEARER"
            )
        return mechanism

    def own_options(self, bootstrap: str) -> dict[str, Any]:
        """Options of the broker's own clients."""
        is_somebody = self.users or self._is_mutual
        return self.client_options(bootstrap, OWN_USER if is_somebody else None, "partita")

    def _mechanisms(self, address: Endpoint) -> Sequence[str]:
        """Return all mechanisms; unsigned tokens only where no other machine can reach the listener."""
        is_alone = address.host in ("127.0.0.1", "localhost", "::1")
        return MECHANISMS if is_alone else [name for name in MECHANISMS if name != OAUTHBEARER]


class _Given:
    """The facts that every style spells in its own way."""

    def __init__(
        self, bootstrap: str, protocol: str, mechanism: str | None, user: str, password: str,
        ca_file: str | None, certificate: str | None, tokens: UnsignedTokens | None,
    ) -> None:  # fmt: skip
        self.bootstrap = bootstrap
        self.protocol = protocol
        self.mechanism = mechanism
        self.user = user
        self.password = password
        self.ca_file = ca_file
        self.certificate = certificate
        self.tokens = tokens

    def context(self) -> ssl.SSLContext | None:
        """For clients that take one."""
        if self.ca_file is None:
            return None
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        return context


def _partita(given: _Given) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap_servers": given.bootstrap, "security_protocol": given.protocol}
    if given.tokens is not None:
        options |= {"sasl_mechanism": given.mechanism, "sasl_oauth_token_provider": given.tokens}
    elif given.mechanism is not None:
        options |= {
            "sasl_mechanism": given.mechanism, "sasl_username": given.user, "sasl_password": given.password
        }  # fmt: skip
    if given.ca_file is not None:
        options["ssl_ca_location"] = given.ca_file
    if given.certificate is not None:
        options |= {"ssl_certificate_location": given.certificate, "ssl_key_location": given.certificate}
    return options


def _confluent(given: _Given) -> dict[str, Any]:
    options = {name.replace("_", "."): value for name, value in _partita(given).items()}
    if given.tokens is not None:
        options["oauth_cb"] = options.pop("sasl.oauth.token.provider")
    return options


def _aiokafka(given: _Given) -> dict[str, Any]:
    provider = given.tokens.for_aiokafka() if given.tokens is not None else None
    return _with_context(given, provider)


def _kafka_python(given: _Given) -> dict[str, Any]:
    provider = given.tokens.for_kafka_python() if given.tokens is not None else None
    return _with_context(given, provider)


def _with_context(given: _Given, provider: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap_servers": given.bootstrap, "security_protocol": given.protocol}
    if provider is not None:
        options |= {"sasl_mechanism": given.mechanism, "sasl_oauth_token_provider": provider}
    elif given.mechanism is not None:
        options |= {
            "sasl_mechanism": given.mechanism,
            "sasl_plain_username": given.user,
            "sasl_plain_password": given.password,
        }
    context = given.context()
    return options if context is None else {**options, "ssl_context": context}


def _java(given: _Given) -> dict[str, Any]:
    options = {"bootstrap.servers": given.bootstrap, "security.protocol": given.protocol}
    if given.mechanism is not None:
        options |= {"sasl.mechanism": given.mechanism, "sasl.jaas.config": _jaas(given)}
    if given.ca_file is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given.ca_file}
    if given.certificate is not None:
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": given.certificate}
    return options


def _jaas(given: _Given) -> str:
    """Java's login line. Java makes an unsigned token by itself."""
    user, password = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (given.user, given.password))
    package = "org.apache.kafka.common.security"
    if given.tokens is not None:
        claims = " ".join(f'unsecuredLoginStringClaim_{claim}="{user}"' for claim in given.tokens.claims)
        return f"{package}.oauthbearer.OAuthBearerLoginModule required {claims};"
    kind = "scram.Scram" if str(given.mechanism).startswith("SCRAM") else "plain.Plain"
    return f'{package}.{kind}LoginModule required username="{user}" password="{password}";'


_IN_STYLE = {
    "partita": _partita, "confluent": _confluent, "aiokafka": _aiokafka, "kafka-python": _kafka_python, "java": _java,
}  # fmt: skip
