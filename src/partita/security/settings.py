"""The settings of TLS and of SASL, each created from the options of a client and checked at once.

Loaded by clients that encrypt or log in. Files are named here and read by `net.secured.tls`. (security.md 4, 10, 18.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from partita.options import ConfigError
from partita.secret import Secret
from partita.security.jaas import JaasError, LoginModule, parse_jaas

if TYPE_CHECKING:
    from ssl import SSLContext

MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
}
"""The last part of a Java login module's name -> the mechanisms it serves."""
_IAM = (
    "sasl_mechanism AWS_MSK_IAM is a class of Java's; set sasl_mechanism=OAUTHBEARER and sasl_oauth_token_provider to "
    "a function that calls MSKAuthTokenProvider.generate_auth_token(region) of aws-msk-iam-sasl-signer-python"
)
_TLS_FILES = (
    "ssl_truststore_location", "ssl_truststore_certificates", "ssl_truststore_password", "ssl_truststore_type",
    "ssl_keystore_location", "ssl_keystore_password", "ssl_keystore_type", "ssl_keystore_key",
    "ssl_keystore_certificate_chain", "ssl_key_password", "ssl_ca_location", "ssl_ca_pem", "ssl_certificate_location",
    "ssl_certificate_pem", "ssl_key_location", "ssl_key_pem",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Store:
    """A PEM or PKCS12 file, whichever its content is, or PEM text."""

    option: str
    location: str | None = None
    pem: Secret | None = None
    password: Secret | None = None


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Trusted authorities, own certificate, and TLS versions. A ready `context` excludes all the rest."""

    trusted: Store | None = None
    certificate: Store | None = None
    key: Store | None = None
    key_password: Secret | None = None
    checks_host_name: bool = True
    verifies: bool = True
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: tuple[str, ...] = ()
    context: SSLContext | None = None


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Endpoint for OAUTHBEARER tokens by client credentials; `file:` reads the token from a file at each login."""

    url: str
    client_id: str = ""
    client_secret: Secret = field(default_factory=lambda: Secret(""))
    scope: str | None = None
    urlencodes_header: bool = False
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class TokenRefresh:
    """When a token is renewed: at `window_factor` of its life plus up to `window_jitter`, within the two bounds."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300


@dataclass(slots=True)
class SaslSettings:
    """One mechanism and its credentials. `login` alone may change while a client runs: `Security.set_login`."""

    mechanism: str
    login: tuple[str, Secret] = field(default_factory=lambda: ("", Secret("")))
    """User and password of PLAIN and SCRAM."""
    is_delegation_token: bool = False
    """They are the id and the HMAC of a delegation token."""
    token_provider: Any = None
    """A callable of the user's, in any of the forms that Kafka's Python clients know."""
    token_endpoint: TokenEndpoint | None = None
    token_refresh: TokenRefresh = field(default_factory=TokenRefresh)
    extensions: Mapping[str, str] = field(default_factory=dict)
    unsecured_claims: Mapping[str, str] = field(default_factory=dict)
    kerberos_service: str = "kafka"

    @property
    def user(self) -> str:
        """The user that logs in with a password; empty for other mechanisms."""
        return self.login[0]


# --- TLS --------------------------------------------------------------------------------------------------------------


def tls_settings(values: Mapping[str, Any]) -> TlsSettings:
    """Return how connections are encrypted. Raises ConfigError, naming the option to change."""
    context = values["ssl_context"]
    if context is not None:
        others = [name for name in _TLS_FILES if values[name] is not None]
        if others:
            raise ConfigError(f"ssl_context and {others[0]} are both given; the context already says it all")
        return TlsSettings(context=context)
    algorithm = (values["ssl_endpoint_identification_algorithm"] or "").lower()
    if algorithm not in ("https", "", "none"):
        raise ConfigError(
            f"ssl_endpoint_identification_algorithm must be https, or empty for no check, not {algorithm!r}"
        )
    return TlsSettings(
        trusted=_one_store("the trusted authorities", _trust_stores(values)),
        certificate=_one_store("the certificate", _certificates(values)),
        key=_one_store("the private key", _keys(values)),
        key_password=values["ssl_key_password"] or None,
        checks_host_name=algorithm == "https" and values["ssl_check_hostname"],
        verifies=values["enable_ssl_certificate_verification"],
        versions=tuple(values["ssl_enabled_protocols"]),
        ciphers=tuple(part for each in values["ssl_cipher_suites"] for part in each.split(":")),
    )


def _trust_stores(values: Mapping[str, Any]) -> list[Store]:
    password = values["ssl_truststore_password"] or None
    return [
        *_file(values, "ssl_truststore_location", password),
        *_pem(values, "ssl_truststore_certificates"),
        *_file(values, "ssl_ca_location"),
        *_pem(values, "ssl_ca_pem"),
    ]


def _certificates(values: Mapping[str, Any]) -> list[Store]:
    password = values["ssl_keystore_password"] or None
    return [
        *_file(values, "ssl_keystore_location", password),
        *_pem(values, "ssl_keystore_certificate_chain"),
        *_file(values, "ssl_certificate_location"),
        *_pem(values, "ssl_certificate_pem"),
    ]


def _keys(values: Mapping[str, Any]) -> list[Store]:
    return [
        *_pem(values, "ssl_keystore_key"),
        *_file(values, "ssl_key_location"),
        *_pem(values, "ssl_key_pem"),
    ]


def _file(values: Mapping[str, Any], option: str, password: Secret | None = None) -> list[Store]:
    location = values[option]
    return [Store(option, location=location, password=password)] if location else []


def _pem(values: Mapping[str, Any], option: str) -> list[Store]:
    text = values[option]
    if not text:
        return []
    return [Store(option, pem=text if isinstance(text, Secret) else Secret(text))]


def _one_store(what: str, stores: list[Store]) -> Store | None:
    if len(stores) > 1:
        raise ConfigError(f"{stores[0].option} and {stores[1].option} both give {what}; keep one")
    return stores[0] if stores else None


# --- SASL -------------------------------------------------------------------------------------------------------------


def sasl_settings(values: Mapping[str, Any]) -> SaslSettings:
    """Return how connections log in. Raises ConfigError, naming the option to change."""
    mechanism = values["sasl_mechanism"]
    protocol = values["security_protocol"]
    if mechanism is None:
        raise ConfigError(
            f"security_protocol is {protocol} and sasl_mechanism is not set (Kafka's default, GSSAPI, is Kerberos): "
            "set PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        )
    if mechanism == "AWS_MSK_IAM":
        raise ConfigError(_IAM)
    module = _login_module(values, mechanism)
    match mechanism:
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            return _password_login(values, mechanism, module)
        case "OAUTHBEARER":
            return _bearer_login(values, module)
        case "GSSAPI":
            return _kerberos_login(values, module)
    raise ConfigError(
        f"sasl_mechanism must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI, not {mechanism!r}"
    )


def _login_module(values: Mapping[str, Any], mechanism: str) -> LoginModule | None:
    line: Secret | None = values["sasl_jaas_config"]
    if line is None:
        return None
    try:
        module = parse_jaas(line.reveal())
    except JaasError as error:
        raise ConfigError(f"sasl_jaas_config: {error}") from None
    name = module.name.rpartition(".")[2]
    served = MODULES.get(name)
    if served is None:
        raise ConfigError(
            f"sasl_jaas_config names {module.name}, a class that only Java can load; expected {', '.join(MODULES)}"
        )
    if mechanism not in served:
        raise ConfigError(
            f"sasl_jaas_config names {name}, which is for {' and '.join(served)}, but sasl_mechanism is {mechanism}"
        )
    return module


def _password_login(values: Mapping[str, Any], mechanism: str, module: LoginModule | None) -> SaslSettings:
    user, password = values["sasl_username"], values["sasl_password"]
    if module is not None:
        line_user, line_password = module.plain("username"), module.options.get("password")
        if (user is not None and user != line_user) or (password is not None and password != line_password):
            raise ConfigError(
                "sasl_jaas_config and sasl_username / sasl_password are both given and differ; keep one of them"
            )
        user, password = line_user, line_password
    if not user or not password:
        missing = "sasl_username" if not user else "sasl_password"
        raise ConfigError(
            f"sasl_mechanism {mechanism} needs a user and a password: {missing} is not set "
            "(or give both in sasl_jaas_config)"
        )
    in_line = None if module is None else module.plain("tokenauth")
    is_token = values["sasl_scram_tokenauth"] or (in_line or "").lower() == "true"
    if is_token and mechanism == "PLAIN":
        raise ConfigError(
            "sasl_scram_tokenauth logs in with a delegation token, which PLAIN cannot: set sasl_mechanism to "
            "SCRAM-SHA-256 or SCRAM-SHA-512"
        )
    return SaslSettings(mechanism, (user, password), is_delegation_token=is_token)


def _kerberos_login(values: Mapping[str, Any], module: LoginModule | None) -> SaslSettings:
    named, in_line = values["sasl_kerberos_service_name"], None if module is None else module.plain("serviceName")
    if named and in_line and named != in_line:
        raise ConfigError("sasl_kerberos_service_name and serviceName in sasl_jaas_config differ; keep one of them")
    return SaslSettings("GSSAPI", kerberos_service=named or in_line or "kafka")


def _bearer_login(values: Mapping[str, Any], module: LoginModule | None) -> SaslSettings:
    options = {} if module is None else module.options
    extensions = {k.removeprefix("extension_"): v.reveal() for k, v in options.items() if k.startswith("extension_")}
    for pair in (values["sasl_oauthbearer_extensions"] or "").split(","):
        key, equals, value = pair.strip().partition("=")
        if equals:
            extensions[key] = value
        elif key:
            raise ConfigError(f"sasl_oauthbearer_extensions must be key=value pairs, not {key!r}")
    provider = values["sasl_oauth_token_provider"]
    endpoint = _endpoint(values, module)
    prefix = "unsecuredLoginStringClaim_"
    claims = {k.removeprefix(prefix): v.reveal() for k, v in options.items() if k.startswith(prefix)}
    if provider is None and endpoint is None and not claims:
        raise ConfigError(
            "sasl_mechanism OAUTHBEARER needs a source of tokens: set sasl_oauth_token_provider to a function, or "
            "sasl_oauthbearer_token_endpoint_url with client id and secret"
        )
    is_named = isinstance(provider, str) and ":" in provider
    if provider is not None and not (callable(provider) or is_named or hasattr(provider, "token")):
        raise ConfigError(f"sasl_oauth_token_provider must be callable, not {type(provider).__name__}")
    refresh = TokenRefresh(
        values["sasl_login_refresh_window_factor"],
        values["sasl_login_refresh_window_jitter"],
        values["sasl_login_refresh_min_period_seconds"],
        values["sasl_login_refresh_buffer_seconds"],
    )
    return SaslSettings(
        "OAUTHBEARER",
        token_provider=provider,
        token_endpoint=endpoint,
        token_refresh=refresh,
        extensions=extensions,
        unsecured_claims=claims,
    )


def _endpoint(values: Mapping[str, Any], module: LoginModule | None) -> TokenEndpoint | None:
    url = values["sasl_oauthbearer_token_endpoint_url"]
    if not url:
        return None
    client_id = values["sasl_oauthbearer_client_credentials_client_id"]
    secret = values["sasl_oauthbearer_client_credentials_client_secret"]
    scope = values["sasl_oauthbearer_scope"]
    if module is not None:
        client_id = client_id or module.plain("clientId")
        secret = secret or module.options.get("clientSecret")
        scope = scope or module.plain("scope")
    scheme, _, rest = url.partition(":")
    host = rest.removeprefix("//").split("/")[0].rpartition(":")[0] or rest.removeprefix("//").split("/")[0]
    if scheme not in ("https", "http", "file"):
        raise ConfigError(f"sasl_oauthbearer_token_endpoint_url must begin with https: or file:, not {url!r}")
    if scheme == "http" and host not in ("localhost", "127.0.0.1", "[::1]"):
        raise ConfigError(
            f"sasl_oauthbearer_token_endpoint_url {url} would send the client secret in plain text; use https:"
        )
    if scheme != "file" and (not client_id or not secret):
        raise ConfigError(
            "sasl_oauthbearer_token_endpoint_url needs sasl_oauthbearer_client_credentials_client_id and "
            "sasl_oauthbearer_client_credentials_client_secret"
        )
    return TokenEndpoint(
        url,
        client_id or "",
        secret or Secret(""),
        scope,
        values["sasl_oauthbearer_header_urlencode"],
        values["sasl_login_retry_backoff_ms"],
        values["sasl_login_retry_backoff_max_ms"],
        values["sasl_login_read_timeout_ms"] or 10_000,
    )
