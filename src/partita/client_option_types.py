"""Keyword arguments: what every client takes. Written by tools/option_types.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict


class ClientOptions(TypedDict, total=False):
    """Every option by its name, in Kafka's spelling with underscores: what every client takes."""

    bootstrap_servers: str | Iterable[Any]
    bootstrap_resolve_timeout_ms: int
    client_id: str
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    metadata_cluster_check_enable: bool
    client_dns_lookup: str
    send_buffer_bytes: int
    receive_buffer_bytes: int
    config_providers: str | Iterable[Any]
    security_protocol: str
    sasl_username: str | None
    sasl_plain_username: str | None
    sasl_password: str | None
    sasl_plain_password: str | None
    sasl_scram_tokenauth: bool
    sasl_oauth_token_provider: Any
    oauth_cb: Any
    sasl_oauthbearer_method: str
    sasl_oauthbearer_extensions: str | None
    ssl_context: Any
    ssl_ca_location: str | None
    ssl_cafile: str | None
    ssl_ca_pem: str | None
    ssl_certificate_location: str | None
    ssl_certfile: str | None
    ssl_certificate_pem: str | None
    ssl_key_location: str | None
    ssl_keyfile: str | None
    ssl_key_pem: str | None
    ssl_check_hostname: bool
    enable_ssl_certificate_verification: bool
    security_providers: str | None
    sasl_mechanism: str | None
    sasl_mechanisms: str | None
    sasl_jaas_config: str | None
    sasl_client_callback_handler_class: Any
    sasl_login_callback_handler_class: Any
    sasl_login_class: Any
    sasl_kerberos_service_name: str | None
    sasl_kerberos_kinit_cmd: str
    sasl_kerberos_ticket_renew_window_factor: float
    sasl_kerberos_ticket_renew_jitter: float
    sasl_kerberos_min_time_before_relogin: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    sasl_login_connect_timeout_ms: int | None
    sasl_login_read_timeout_ms: int | None
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_expected_audience: str | Iterable[Any]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_allow_unverified_audience: bool
    sasl_oauthbearer_allow_unverified_issuer: bool
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_client_secret: str | None
    sasl_oauthbearer_assertion_algorithm: str
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_jti_include: bool
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | None
    sasl_oauthbearer_assertion_template_file: str | None
    sasl_oauthbearer_jwt_retriever_class: Any
    sasl_oauthbearer_jwt_validator_class: Any
    ssl_protocol: str
    ssl_enabled_protocols: str | Iterable[Any]
    ssl_endpoint_identification_algorithm: str
    ssl_cipher_suites: str | Iterable[Any]
    ssl_ciphers: str | Iterable[Any]
    ssl_provider: str | None
    ssl_engine_factory_class: Any
    ssl_secure_random_implementation: str | None
    ssl_keymanager_algorithm: str
    ssl_trustmanager_algorithm: str
    ssl_keystore_type: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_key: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_key_password: str | None
    ssl_password: str | None
    ssl_truststore_type: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_certificates: str | None
