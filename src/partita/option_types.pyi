# Written by tools/option_types.py; do not edit.
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from partita.assignors.interface import Assignor
from partita.producer.serializing import Serializer

class ClientOptions(TypedDict, total=False):
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

class ConsumerOptions(ClientOptions, total=False):
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    client_rack: str
    interceptor_classes: str | Iterable[Any]
    partition_assignment_strategy: str | Iterable[Any]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    isolation_level: str
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    internal_throw_on_fetch_stable_offset_unsupported: bool
    default_api_timeout_ms: int
    connections_max_idle_ms: int
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool
    fetch_buffer_max_bytes: int
    enable_partition_eof: bool
    commit_done_only: bool
    progress_timeout_ms: int
    poison_policy: str
    dead_letter_topic: str | None
    dead_letter_exactly_once: bool

class ShareOptions(ClientOptions, total=False):
    client_rack: str
    max_poll_interval_ms: int
    max_poll_records: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    check_crcs: bool
    allow_auto_create_topics: bool
    default_api_timeout_ms: int
    connections_max_idle_ms: int
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool
    group_id: str
    share_acknowledgement_mode: str
    share_acquire_mode: str
    poison_policy: str
    dead_letter_topic: str | None
    dead_letter_deliveries: int

class ProducerOptions(ClientOptions, total=False):
    key_serializer: Serializer | str | None
    value_serializer: Serializer | str | None
    acks: str | int
    enable_idempotence: bool
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    batch_size: int
    linger_ms: int
    buffer_memory: int
    buffer_memory_allocation_strategy: str
    max_block_ms: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    retries: int
    partitioner_class: Any
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    partitioner_rack_aware: bool
    client_rack: str
    partitioner_availability_timeout_ms: int
    connections_max_idle_ms: int
    metadata_max_idle_ms: int
    interceptor_classes: str | Iterable[Any]
    transactional_id: str | None
    transaction_timeout_ms: int
    transaction_two_phase_commit_enable: bool
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool

class AdminOptions(ClientOptions, total=False):
    bootstrap_controllers: str | Iterable[Any]
    default_api_timeout_ms: int
    retries: int
    connections_max_idle_ms: int
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool

class BrokerOptions(TypedDict, total=False):
    host: str
    port: int
    data_dir: str | None
    durability: str | None
    nodes: int
    kafka_defaults: bool
    notes_file: str | None
    admin_port: int | None
    admin_token: str | None
    tls: bool
    mtls: bool
    users: Mapping[str, str]
    acls: Sequence[str]
    assignors: Sequence[Assignor | str]
    add_partitions_to_txn_retry_backoff_max_ms: int
    add_partitions_to_txn_retry_backoff_ms: int
    advertised_listeners: str | Iterable[str] | None
    allow_everyone_if_no_acl_found: bool
    authorizer_class_name: str
    auto_create_topics_enable: bool
    broker_rack: str | None
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    connection_failed_authentication_delay_ms: int
    connections_max_idle_ms: int
    connections_max_reauth_ms: int
    default_replication_factor: int
    delegation_token_expiry_check_interval_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_max_lifetime_ms: int
    delegation_token_secret_key: str | None
    delete_topic_enable: bool
    errors_deadletterqueue_auto_create_topics_enable: bool
    errors_deadletterqueue_topic_name_prefix: str
    fetch_max_bytes: int
    group_consumer_assignment_interval_ms: int
    group_consumer_assignor_offload_enable: bool
    group_consumer_assignors: str | Iterable[str]
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_min_assignment_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_regex_refresh_interval_ms: int
    group_consumer_session_timeout_ms: int
    group_coordinator_append_linger_ms: int
    group_coordinator_background_threads: int
    group_coordinator_cached_buffer_max_bytes: int
    group_coordinator_rebalance_protocols: str | Iterable[str]
    group_coordinator_threads: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    group_share_assignor_offload_enable: bool
    group_share_assignment_interval_ms: int
    group_share_delivery_count_limit: int
    group_share_heartbeat_interval_ms: int
    group_share_initialize_retry_interval_ms: int
    group_share_max_assignment_interval_ms: int
    group_share_max_delivery_count_limit: int
    group_share_max_heartbeat_interval_ms: int
    group_share_max_partition_max_record_locks: int
    group_share_max_record_lock_duration_ms: int
    group_share_max_session_timeout_ms: int
    group_share_max_share_sessions: int
    group_share_max_size: int
    group_share_min_assignment_interval_ms: int
    group_share_min_delivery_count_limit: int
    group_share_min_heartbeat_interval_ms: int
    group_share_min_partition_max_record_locks: int
    group_share_min_record_lock_duration_ms: int
    group_share_min_session_timeout_ms: int
    group_share_partition_max_record_locks: int
    group_share_record_lock_duration_ms: int
    group_share_session_timeout_ms: int
    group_streams_acceptable_recovery_lag: int
    group_streams_assignment_interval_ms: int
    group_streams_heartbeat_interval_ms: int
    group_streams_initial_rebalance_delay_ms: int
    group_streams_max_assignment_interval_ms: int
    group_streams_max_heartbeat_interval_ms: int
    group_streams_max_session_timeout_ms: int
    group_streams_max_size: int
    group_streams_max_standby_replicas: int
    group_streams_min_assignment_interval_ms: int
    group_streams_min_heartbeat_interval_ms: int
    group_streams_min_session_timeout_ms: int
    group_streams_min_task_offset_interval_ms: int
    group_streams_num_standby_replicas: int
    group_streams_rack_aware_assignment_tags: str | Iterable[str]
    group_streams_session_timeout_ms: int
    group_streams_task_offset_interval_ms: int
    inter_broker_listener_name: str | None
    listener_security_protocol_map: str
    listeners: str | Iterable[str]
    log_cleaner_backoff_ms: int
    log_cleaner_delete_retention_ms: int
    log_cleaner_enable: bool
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    log_cleanup_policy: str | Iterable[str]
    log_flush_interval_messages: int
    log_flush_interval_ms: int | None
    log_index_interval_bytes: int
    log_index_size_max_bytes: int
    log_message_timestamp_after_max_ms: int
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_type: str
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_retention_hours: int
    log_retention_minutes: int | None
    log_retention_ms: int | None
    log_roll_hours: int
    log_roll_ms: int | None
    log_segment_bytes: int
    log_segment_delete_delay_ms: int
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_decompressed_message_bytes: int
    max_incremental_fetch_session_cache_slots: int
    message_max_bytes: int
    min_insync_replicas: int
    node_id: int
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    partita_allow_plain_without_tls: bool
    partita_group_version: int
    partita_groups_max: int
    partita_log_failure: str
    partita_login_bytes_per_ip: int
    partita_rebalance_on_static_change: bool
    partita_share_version: int
    partita_transaction_version: int
    partita_transactional_ids_max: int
    partita_validate_records: str
    producer_id_expiration_check_interval_ms: int
    producer_id_expiration_ms: int
    sasl_enabled_mechanisms: str | Iterable[str]
    sasl_jaas_config: str | None
    sasl_oauthbearer_allow_unverified_audience: bool
    sasl_oauthbearer_allow_unverified_issuer: bool
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_expected_audience: str | Iterable[str]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_sub_claim_name: str
    sasl_server_callback_handler_class: str | None
    sasl_server_max_receive_size: int
    security_inter_broker_protocol: str
    share_coordinator_append_linger_ms: int
    share_coordinator_cached_buffer_max_bytes: int
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_load_buffer_size: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_state_topic_compression_codec: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_segment_bytes: int
    share_coordinator_threads: int
    share_coordinator_write_timeout_ms: int
    socket_request_max_bytes: int
    ssl_allow_dn_changes: bool
    ssl_cipher_suites: str | Iterable[str]
    ssl_client_auth: str
    ssl_enabled_protocols: str | Iterable[str]
    ssl_key_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_principal_mapping_rules: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str
    super_users: str
    telemetry_max_bytes: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_load_buffer_size: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int
