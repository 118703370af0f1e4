"""Checking of configuration options, one way for every client and for the broker.

An `Option` says name, type, default and bounds; `check_options` takes keyword arguments in Kafka's names with
underscores and, if wanted, a dict in Kafka's dotted spelling, and returns every value converted and checked.
A wrong name is answered with the nearest right one, a wrong value with its bound.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from partita.lazy import later
from partita.secret import Secret

if TYPE_CHECKING:
    import difflib
else:
    difflib = later("difflib")

Value: TypeAlias = Any
"""An option's value: of the type its kind says, or an object of the user's own. Checked at run time, by this module."""
Kind = Literal["int", "float", "bool", "str", "list", "secret", "any"]
REQUIRED: Value = object()
"""Default of an option that the user has to give."""

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")
_TRUE_OR_FALSE = {"true": True, "false": False}


class ConfigError(ValueError):
    """An option is unknown, missing, or has a value it must not have."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. Bounds are inclusive; `choices` are compared without case when `ignore_case`.

    `aliases` are names that other clients use for the same setting. A value of kind "secret" becomes a `Secret`.
    """

    name: str
    kind: Kind
    default: Value
    help: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    ignore_case: bool = False
    nullable: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """The name as Kafka spells it."""
        return self.name.replace("_", ".")


def check_options(
    options: Iterable[Option], given: Mapping[str, Value], dotted: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """Every option's value: what was given, converted and checked, or the default.

    `given` holds keyword arguments; `dotted` a dict with Kafka's own names. Both spellings are accepted in both.
    Raises ConfigError for unknown names (all of them at once), a value out of bounds, a missing required option, a name
    given twice.
    """
    if dotted is not None and not isinstance(dotted, Mapping):
        raise ConfigError(
            f"a client takes a dict of options or keyword arguments, not {dotted!r}; "
            "give servers as bootstrap_servers=..., topics to subscribe()"
        )
    known = {option.name: option for option in options}
    spellings = {alias: option.name for option in known.values() for alias in option.aliases}
    values: dict[str, Value] = {}
    came_as: dict[str, str] = {}
    names = known.keys() | spellings
    if unknown := [spelled for spelled in (*(dotted or {}), *given) if spelled.replace(".", "_") not in names]:
        raise ConfigError("; ".join(unknown_option(spelled, known) for spelled in unknown))
    for source in (dotted or {}, given):
        for spelled, value in source.items():
            name = spelled.replace(".", "_")
            name = spellings.get(name, name)
            if name in came_as:
                raise ConfigError(f"{name} is given twice: as {came_as[name]} and as {spelled}; give it once")
            came_as[name] = spelled
            values[name] = check_value(known[name], value)
    for name, option in known.items():
        if name not in values:
            if option.default is REQUIRED:
                raise ConfigError(f"{name} is required: {option.help or 'it has no default'}")
            values[name] = list(option.default) if isinstance(option.default, list) else option.default
    return values


_ANSWERS = {
    "both families of addresses are tried; leave it out": "broker_address_family",
    "names are looked up for each connection; leave it out": "broker_address_ttl",
    "versions are agreed with each broker; leave it out": (
        "api_version api_version_auto_timeout_ms api_version_fallback_ms api_version_request"
        " api_version_request_timeout_ms broker_version_fallback"
    ),
    "topics are given to subscribe() or send()": "topic topics",
    "did you mean 'bootstrap_servers'?": "broker brokers servers hosts metadata_broker_list",
    "give poll() a timeout instead": "consumer_timeout_ms",
    "set the level of the logger 'partita' instead": "debug log_level",
    "add a handler to the logger 'partita' instead": "log_cb log_connection_close log_queue log_thread_name",
    "commit_done_only with done(record) does this": "enable_auto_offset_store",
    "on_note(call) hears of events, metrics() gives numbers": (
        "background_event_cb enabled_events error_cb stats_cb throttle_cb"
    ),
    "call metrics() when you want numbers": (
        "metric_group_prefix metrics_enabled metrics_replace_on_conflict statistics_interval_ms"
    ),
    "the running loop is used; leave it out": "loop",
    "poll() returns the records; loop over them": "consume_callback_max_messages consume_cb",
    "give subscribe() a listener instead": "rebalance_cb",
    "commit() answers for itself, commit_async() takes a callback": "default_offset_commit_callback offset_commit_cb",
    "send() returns a future, with the record's place or its error": (
        "delivery_report_only_error dr_cb dr_msg_cb produce_offset_report"
    ),
    "offsets are committed to the group; leave it out": (
        "offset_store_method offset_store_path offset_store_sync_interval_ms"
    ),
    "the coordinator is asked for when it is needed; leave it out": "coordinator_query_interval_ms",
    "did you mean 'enable_auto_commit'?": "auto_commit_enable",
    "did you mean 'max_partition_fetch_bytes'?": "fetch_message_max_bytes",
    "did you mean 'fetch_max_wait_ms'?": "fetch_wait_max_ms",
    "did you mean 'retry_backoff_ms'?": "fetch_error_backoff_ms",
    "did you mean 'max_poll_interval_ms'? Members rejoin within it": "rebalance_timeout_ms",
    "members are of the type 'consumer', as Kafka's; leave it out": "group_protocol_type",
    "fetch_buffer_max_bytes bounds what is fetched ahead": (
        "fetch_queue_backoff_ms queued_max_messages_kbytes queued_min_messages"
    ),
    "fetch sessions are used where the broker has them; leave it out": "enable_incremental_fetch_sessions",
    "share groups are not there yet": "share_acknowledgement_mode",
    "only a producer takes it, and a consumer has one fetch under way to each node": (
        "max_in_flight max_in_flight_requests_per_connection"
    ),
    "only a consumer has it; a broker creates a topic that is sent to if auto.create.topics.enable says so": (
        "allow_auto_create_topics"
    ),
    "only a consumer has it": "client_rack",
    "did you mean 'batch_size', in bytes?": "batch_num_messages max_batch_size",
    "did you mean 'buffer_memory', in bytes?": "queue_buffering_max_kbytes",
    "buffer_memory bounds the bytes that wait": (
        "queue_buffering_backpressure_threshold queue_buffering_max_messages queuing_strategy"
    ),
    "did you mean 'linger_ms'?": "queue_buffering_max_ms sticky_partitioning_linger_ms",
    "did you mean 'retries'?": "message_send_max_retries",
    "did you mean 'delivery_timeout_ms'?": "message_timeout_ms",
    "did you mean 'acks'?": "request_required_acks",
    "did you mean 'compression_type'?": "compression_codec",
    "did you mean 'compression_gzip_level', 'compression_lz4_level' or 'compression_zstd_level'?": "compression_level",
    "did you mean 'max_request_size' of a producer?": "message_max_bytes",
    "bytes are never copied by size; leave it out": "message_copy_max_bytes",
    "a failed delivery stops the producer if it is transactional; leave it out": "enable_gapless_guarantee",
    "did you mean 'partitioner_class'? It takes librdkafka's names, such as 'consistent_random'": "partitioner",
    "did you mean 'partitioner_class'? It takes a function too": "msg_order_cmp partitioner_cb",
    "did you mean 'request_timeout_ms'?": "socket_timeout_ms",
    "did you mean 'receive_buffer_bytes'?": "socket_receive_buffer_bytes",
    "did you mean 'send_buffer_bytes'?": "socket_send_buffer_bytes",
    "did you mean 'socket_connection_setup_timeout_max_ms'?": "bootstrap_timeout_ms",
    "fetch_max_bytes bounds what a broker sends; leave it out": "receive_message_max_bytes",
    "reconnects are spread by 20 %, as Kafka's; leave it out": "reconnect_backoff_jitter_ms",
    "sockets are set as Kafka's clients set them; leave it out": (
        "socket_blocking_max_ms socket_keepalive_enable socket_max_fails socket_nagle_disable socket_options"
    ),
    "Partita opens its own sockets; leave it out": (
        "closesocket_cb connect_cb kafka_client open_cb resolve_cb selector socket_cb"
    ),
    "proxies are not supported; connect to the brokers' own addresses": "proxy_url socks5_proxy",
    "did you mean 'metadata_max_age_ms'?": (
        "topic_metadata_propagation_max_ms topic_metadata_refresh_fast_cnt topic_metadata_refresh_fast_interval_ms"
        " topic_metadata_refresh_interval_ms topic_metadata_refresh_sparse"
    ),
    "name the topics that you want, or a pattern, in subscribe()": "topic_blacklist",
    "options of topics are options of the client here": "default_topic_conf",
    "did you mean 'interceptor_classes'?": "interceptors plugin_library_paths",
    "Partita has no such switch; leave it out": (
        "builtin_features enable_random_seed internal_termination_signal opaque"
    ),
    "did you mean 'ssl_ca_pem'?": "ssl_ca",
    "did you mean 'ssl_certificate_pem'?": "ssl_certificate",
    "did you mean 'ssl_key_pem'?": "ssl_key",
    "give an ssl_context with it instead": (
        "https_ca_location https_ca_pem ssl_ca_certificate_stores ssl_certificate_verify_cb ssl_crl_location"
        " ssl_crlfile ssl_curves_list ssl_engine_callback_data ssl_engine_id ssl_engine_location ssl_providers"
        " ssl_sigalgs_list"
    ),
    "the ticket cache or the keytab of the environment is used (KRB5CCNAME, KRB5_CLIENT_KTNAME); leave it out": (
        "sasl_kerberos_keytab sasl_kerberos_principal"
    ),
    "did you mean 'sasl_kerberos_service_name'? The host is the broker's": (
        "sasl_kerberos_domain_name sasl_kerberos_name"
    ),
    "did you mean 'sasl_oauth_token_provider'?": (
        "enable_sasl_oauthbearer_unsecure_jwt oauthbearer_token_refresh_cb sasl_oauthbearer_config"
        " sasl_oauthbearer_metadata_authentication_type"
    ),
    "did you mean 'sasl_oauthbearer_jwt_retriever_class'? It chooses the grant": "sasl_oauthbearer_grant_type",
    "did you mean 'sasl_oauthbearer_assertion_private_key_file'?": "sasl_oauthbearer_assertion_private_key_pem",
    "did you mean 'sasl_oauthbearer_assertion_template_file'?": "sasl_oauthbearer_assertion_jwt_template_file",
}

ELSEWHERE = {name: answer for answer, names in _ANSWERS.items() for name in names.split()}
"""Options of librdkafka, aiokafka and kafka-python that no client here has, with their replacements."""
_LIKE = 0.75


def nearest(name: str, known: Iterable[str], cutoff: float) -> list[str]:
    """Return the known name that is most like this one, or nothing if none comes near."""
    return difflib.get_close_matches(name, known, n=1, cutoff=cutoff)


def unknown_option(spelled: str, known: Iterable[str]) -> str:
    """The message for an unknown name: what to do instead, or the nearest name that exists."""
    names, name = list(known), spelled.replace(".", "_")
    if answer := ELSEWHERE.get(name):
        return f"unknown option {spelled!r}; {answer}"
    longer = [one for one in names if one.startswith(f"{name}_")]
    near = longer if len(longer) == 1 else nearest(name, names, _LIKE)
    if not near:
        return f"unknown option {spelled!r}"
    suggestion = near[0].replace("_", ".") if "." in spelled else near[0]
    return f"unknown option {spelled!r}; did you mean {suggestion!r}?"


def check_value(option: Option, value: object) -> Value:
    """The value in the option's type, within its bounds. Text is converted as Kafka does."""
    if value is None:
        if option.nullable or option.default is None:
            return None
        raise ConfigError(f"{option.name} must not be None")
    converted = _convert(option, value)
    if option.kind in ("int", "float"):
        _check_bounds(option, converted)
    if option.choices:
        return _check_choice(option, converted)
    return converted


def _convert(option: Option, value: object) -> Value:
    match option.kind:
        case "any":
            return value
        case "bool":
            return _to_bool(option, value)
        case "int" | "float":
            return _to_number(option, value)
        case "list":
            return _to_list(option, value)
        case "str":
            if option.choices and type(value) is int:
                value = str(value)
            if not isinstance(value, str):
                raise ConfigError(f"{option.name} must be a string, not {value!r}")
            return value.strip()
        case "secret":
            if isinstance(value, Secret):
                return value
            if not isinstance(value, str):
                raise ConfigError(f"{option.name} must be a string, not a value of type {type(value).__name__}")
            return Secret(value)


def _to_bool(option: Option, value: object) -> bool:
    if isinstance(value, str):
        value = _TRUE_OR_FALSE.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise ConfigError(f"{option.name} must be true or false, not {value!r}")
    return value


def _to_number(option: Option, value: Value) -> int | float:
    wanted = int if option.kind == "int" else float
    try:
        if isinstance(value, bool):
            raise ValueError
        number = wanted(value)
        if wanted is int and number != (float(value) if isinstance(value, float) else number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        word = "a whole number" if wanted is int else "a number"
        raise ConfigError(f"{option.name} must be {word}, not {value!r}") from None
    return number


def _to_list(option: Option, value: object) -> list[Value]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        return list(value)
    raise ConfigError(f"{option.name} must be a list or comma-separated text, not {value!r}")


def _check_bounds(option: Option, value: float) -> None:
    if option.minimum is not None and value < option.minimum:
        raise ConfigError(f"{option.name} must be at least {option.minimum}, not {value}")
    if option.maximum is not None and value > option.maximum:
        raise ConfigError(f"{option.name} must be at most {option.maximum}, not {value}")


def _check_choice(option: Option, value: object) -> str:
    text = str(value)
    for choice in option.choices:
        if text == choice or (option.ignore_case and text.lower() == choice.lower()):
            return choice
    near = nearest(text, option.choices, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"{option.name} must be one of {', '.join(option.choices)}, not {text!r}{hint}")


def check_arguments(function: Callable[..., Any], names: Sequence[str], what: str) -> None:
    """Raise ConfigError if a user's function cannot be called with these arguments; one without a signature passes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind(*names)
    except TypeError:
        raise ConfigError(f"{what} is called with ({', '.join(names)}), and yours takes {signature}") from None


def parse_duration_ms(text: str) -> int:
    """Milliseconds of an ISO duration of days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no duration; expected such as P7D or PT1H30M")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
