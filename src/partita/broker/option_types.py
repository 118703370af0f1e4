"""Keyword arguments: what an embedded broker takes. Written by tools/option_types.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from partita.assignors.interface import Assignor


class BrokerOptions(TypedDict, total=False):
    """Every option by its name, in Kafka's spelling with underscores: what an embedded broker takes."""

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
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_load_buffer_size: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_state_topic_compression_codec: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_segment_bytes: int
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
