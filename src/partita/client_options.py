"""The options that the consumer, the producer and the admin client share: finding brokers, connections, security.

By Kafka's names with underscores, with Kafka's defaults and bounds (CommonClientConfigs); the security options also by
the names that other clients have for them. `Secret` values print as `***`. Their joint meaning: `security.meaning`.
"""

from __future__ import annotations

from dataclasses import replace

from partita.options import REQUIRED, Kind, Option

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ALIASES = {
    "sasl_mechanism": ("sasl_mechanisms",),
    "sasl_username": ("sasl_plain_username",),
    "sasl_password": ("sasl_plain_password",),
    "sasl_oauth_token_provider": ("oauth_cb",),
    "sasl_oauthbearer_client_credentials_client_id": ("sasl_oauthbearer_client_id",),
    "sasl_oauthbearer_client_credentials_client_secret": ("sasl_oauthbearer_client_secret",),
    "ssl_ca_location": ("ssl_cafile",),
    "ssl_certificate_location": ("ssl_certfile",),
    "ssl_key_location": ("ssl_keyfile",),
    "ssl_key_password": ("ssl_password",),
    "ssl_cipher_suites": ("ssl_ciphers",),
}
"""Our name of an option -> the names that confluent-kafka, aiokafka and kafka-python have for it."""

PARTITA_SECURITY_OPTIONS: tuple[Option, ...] = (
    Option("sasl_username", "str", None, "user for PLAIN and SCRAM", nullable=True),
    Option("sasl_password", "secret", None, "password for PLAIN and SCRAM", nullable=True),
    Option("sasl_scram_tokenauth", "bool", False,
           "user and password of SCRAM are the id and the HMAC (base64) of a delegation token"),
    Option("sasl_oauth_token_provider", "any", None, "callable, plain or async, that returns a token for OAUTHBEARER",
           nullable=True),
    Option("sasl_oauthbearer_method", "str", "default", "the token endpoint decides",
           choices=("default", "oidc"), ignore_case=True),
    Option("sasl_oauthbearer_extensions", "str", None, "SASL extensions for OAUTHBEARER: key=value,key=value",
           nullable=True),
    Option("ssl_context", "any", None, "a ready ssl.SSLContext; then no other ssl option may be given", nullable=True),
    Option("ssl_ca_location", "str", None, "PEM file with the trusted authorities; without it the system's",
           nullable=True),
    Option("ssl_ca_pem", "str", None, "the trusted authorities as PEM text", nullable=True),
    Option("ssl_certificate_location", "str", None, "PEM file with our certificate and its chain", nullable=True),
    Option("ssl_certificate_pem", "str", None, "our certificate and its chain as PEM text", nullable=True),
    Option("ssl_key_location", "str", None, "PEM file with our private key", nullable=True),
    Option("ssl_key_pem", "secret", None, "our private key as PEM text", nullable=True),
    Option("ssl_check_hostname", "bool", True, "the broker's certificate must be for the name we connect to"),
    Option("enable_ssl_certificate_verification", "bool", True,
           "false trusts any certificate: for experiments only, warned about each time"),
)  # fmt: skip
"""Options that Java's clients do not have: user and password without a JAAS line, PEM files by librdkafka's names."""

_TABLE: tuple[tuple[str, Kind, object, float | None, float | None], ...] = (
    ("security_providers", "str", None, None, None),
    ("sasl_mechanism", "str", None, None, None),
    ("sasl_jaas_config", "secret", None, None, None),
    ("sasl_client_callback_handler_class", "any", None, None, None),
    ("sasl_login_callback_handler_class", "any", None, None, None),
    ("sasl_login_class", "any", None, None, None),
    ("sasl_kerberos_service_name", "str", None, None, None),
    ("sasl_kerberos_kinit_cmd", "str", "/usr/bin/kinit", None, None),
    ("sasl_kerberos_ticket_renew_window_factor", "float", 0.8, None, None),
    ("sasl_kerberos_ticket_renew_jitter", "float", 0.05, None, None),
    ("sasl_kerberos_min_time_before_relogin", "int", 60_000, None, None),
    ("sasl_login_refresh_window_factor", "float", 0.8, 0.5, 1.0),
    ("sasl_login_refresh_window_jitter", "float", 0.05, 0.0, 0.25),
    ("sasl_login_refresh_min_period_seconds", "int", 60, 0, 900),
    ("sasl_login_refresh_buffer_seconds", "int", 300, 0, 3_600),
    ("sasl_login_connect_timeout_ms", "int", None, None, None),
    ("sasl_login_read_timeout_ms", "int", None, None, None),
    ("sasl_login_retry_backoff_ms", "int", 100, None, None),
    ("sasl_login_retry_backoff_max_ms", "int", 10_000, None, None),
    ("sasl_oauthbearer_scope", "str", None, None, None),
    ("sasl_oauthbearer_scope_claim_name", "str", "scope", None, None),
    ("sasl_oauthbearer_sub_claim_name", "str", "sub", None, None),
    ("sasl_oauthbearer_token_endpoint_url", "str", None, None, None),
    ("sasl_oauthbearer_jwks_endpoint_url", "str", None, None, None),
    ("sasl_oauthbearer_jwks_endpoint_refresh_ms", "int", 3_600_000, None, None),
    ("sasl_oauthbearer_jwks_endpoint_retry_backoff_ms", "int", 100, None, None),
    ("sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms", "int", 10_000, None, None),
    ("sasl_oauthbearer_clock_skew_seconds", "int", 30, None, None),
    ("sasl_oauthbearer_expected_audience", "list", [], None, None),
    ("sasl_oauthbearer_expected_issuer", "str", None, None, None),
    ("sasl_oauthbearer_allow_unverified_audience", "bool", False, None, None),
    ("sasl_oauthbearer_allow_unverified_issuer", "bool", False, None, None),
    ("sasl_oauthbearer_header_urlencode", "bool", False, None, None),
    ("sasl_oauthbearer_client_credentials_client_id", "str", None, None, None),
    ("sasl_oauthbearer_client_credentials_client_secret", "secret", None, None, None),
    ("sasl_oauthbearer_assertion_algorithm", "str", "RS256", None, None),
    ("sasl_oauthbearer_assertion_claim_aud", "str", None, None, None),
    ("sasl_oauthbearer_assertion_claim_exp_seconds", "int", 300, 0, 86_400),
    ("sasl_oauthbearer_assertion_claim_iss", "str", None, None, None),
    ("sasl_oauthbearer_assertion_claim_jti_include", "bool", False, None, None),
    ("sasl_oauthbearer_assertion_claim_nbf_seconds", "int", 60, 0, 3_600),
    ("sasl_oauthbearer_assertion_claim_sub", "str", None, None, None),
    ("sasl_oauthbearer_assertion_file", "str", None, None, None),
    ("sasl_oauthbearer_assertion_private_key_file", "str", None, None, None),
    ("sasl_oauthbearer_assertion_private_key_passphrase", "secret", None, None, None),
    ("sasl_oauthbearer_assertion_template_file", "str", None, None, None),
    ("sasl_oauthbearer_jwt_retriever_class", "any", None, None, None),
    ("sasl_oauthbearer_jwt_validator_class", "any", None, None, None),
    ("ssl_protocol", "str", "TLSv1.3", None, None),
    ("ssl_enabled_protocols", "list", ["TLSv1.2", "TLSv1.3"], None, None),
    ("ssl_endpoint_identification_algorithm", "str", "https", None, None),
    ("ssl_cipher_suites", "list", [], None, None),
    ("ssl_provider", "str", None, None, None),
    ("ssl_engine_factory_class", "any", None, None, None),
    ("ssl_secure_random_implementation", "str", None, None, None),
    ("ssl_keymanager_algorithm", "str", "SunX509", None, None),
    ("ssl_trustmanager_algorithm", "str", "PKIX", None, None),
    ("ssl_keystore_type", "str", None, None, None),
    ("ssl_keystore_location", "str", None, None, None),
    ("ssl_keystore_password", "secret", None, None, None),
    ("ssl_keystore_key", "secret", None, None, None),
    ("ssl_keystore_certificate_chain", "str", None, None, None),
    ("ssl_key_password", "secret", None, None, None),
    ("ssl_truststore_type", "str", None, None, None),
    ("ssl_truststore_location", "str", None, None, None),
    ("ssl_truststore_password", "secret", None, None, None),
    ("ssl_truststore_certificates", "str", None, None, None),
)

SECURITY_OPTIONS: tuple[Option, ...] = tuple(
    replace(option, aliases=_ALIASES.get(option.name, ()))
    for option in (
        *PARTITA_SECURITY_OPTIONS,
        *(
            Option(name, kind, default, minimum=low, maximum=high, nullable=default is None)
            for name, kind, default, low, high in _TABLE
        ),
    )
)

CLIENT_OPTIONS: tuple[Option, ...] = (
    Option("bootstrap_servers", "list", REQUIRED, "host:port list to find the cluster by"),
    Option("bootstrap_resolve_timeout_ms", "int", 0, "time to look servers up; here, each connection does", minimum=0),
    Option("client_id", "str", "", "name of this client in the brokers' logs"),
    Option("request_timeout_ms", "int", 30_000, "time for one answer", minimum=0),
    Option("retry_backoff_ms", "int", 100, "first wait before a request is repeated", minimum=0),
    Option("retry_backoff_max_ms", "int", 1_000, "longest such wait", minimum=0),
    Option("reconnect_backoff_ms", "int", 50, "first wait before connecting again", minimum=0),
    Option("reconnect_backoff_max_ms", "int", 1_000, "longest such wait", minimum=0),
    Option("socket_connection_setup_timeout_ms", "int", 10_000, "time to connect", minimum=1),
    Option("socket_connection_setup_timeout_max_ms", "int", 30_000, "longest such time", minimum=1),
    Option("metadata_max_age_ms", "int", 300_000, "metadata older than this is asked for again", minimum=0),
    Option("metadata_recovery_strategy", "str", "rebootstrap", "when to use bootstrap servers again; here: always",
           choices=("rebootstrap", "none"), ignore_case=True),
    Option("metadata_recovery_rebootstrap_trigger_ms", "int", 300_000, "when they are tried again", minimum=0),
    Option("metadata_cluster_check_enable", "bool", True, "ask brokers whether they are the cluster and node meant"),
    Option("client_dns_lookup", "str", "use_all_dns_ips", "how host names are looked up",
           choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
    Option("send_buffer_bytes", "int", -1, "socket buffer; -1 lets the system choose", minimum=-1),
    Option("receive_buffer_bytes", "int", -1, "socket buffer; -1 lets the system choose", minimum=-1),
    Option("config_providers", "list", [], "where values of options are fetched from"),
    Option("security_protocol", "str", "PLAINTEXT", "how brokers are reached: plain text or TLS, with or without SASL",
           choices=SECURITY_PROTOCOLS, ignore_case=True),
    *SECURITY_OPTIONS,
)  # fmt: skip
