"""Write options.md, broker-options.md and api.md in docs from the code. `--check` only compares."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from partita import Admin, AsyncAdmin, AsyncConsumer, AsyncShareConsumer, Broker, Consumer, Producer, ShareConsumer
from partita.admin.config import OPTIONS as ADMIN_OPTIONS
from partita.broker import options as broker_options
from partita.broker.config import PARTITA_DEFAULTS, as_text
from partita.broker.control.verbs import Control
from partita.consumer import errors as consumer_errors
from partita.consumer.config import OPTIONS as CONSUMER_OPTIONS
from partita.consumer.sharing.settings import OWN as SHARE_OPTIONS
from partita.consumer.sharing.settings import REFUSED
from partita.errors import KafkaError
from partita.group.config import GroupConfig
from partita.options import REQUIRED, Option
from partita.producer import errors as producer_errors
from partita.producer.config import OPTIONS as PRODUCER_OPTIONS
from partita.producer.delivery import Delivery
from partita.producer.shell.client import AsyncProducer, DeliveryFuture
from partita.producer.shell.outcomes import Outcome, SentRecords
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import Record

sys.path.insert(0, str(Path(__file__).resolve().parent))
from option_readers import broker_options_read, client_options_read  # beside this file

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTE = "Printed from the code by `tools/reference.py`; do not edit."

# --- options ----------------------------------------------------------------------------------------------------------


def options_page() -> str:
    """The options of the clients; those that all three have alike come first."""
    kinds = {"Consumer": CONSUMER_OPTIONS, "Producer": PRODUCER_OPTIONS, "Admin": ADMIN_OPTIONS}
    security = {option.name for option in CONSUMER_OPTIONS if option.name.startswith(("sasl_", "ssl_"))}
    security.add("security_providers")
    read = {title: client_options_read(title.lower()) for title in kinds}
    rows = {
        title: {_client_row(option): option.name in read[title] for option in options if option.name not in security}
        for title, options in kinds.items()
    }
    alike = rows["Consumer"].items() & rows["Producer"].items() & rows["Admin"].items()
    parts = [
        "# Options of the clients",
        f"{NOTE} In brackets stands the default. Names are Kafka's with underscores; a dict in Kafka's own spelling is "
        "accepted too. A wrong name or "
        "value is refused when the object is created, with the closest right one. Defaults are Kafka's unless said "
        "otherwise; lower bounds of -1, 0 and 1 are not listed. *Without effect* are options that are known and "
        "checked and change nothing.",
        "[All clients](#all-clients) · [Consumer](#consumer) · [Share consumer](#share-consumer) · "
        "[Producer](#producer) · [Admin](#admin) · "
        "[Security](#security) · [Broker and topics](broker-options.md) · [Spark](spark.md)",
        "## All clients",
        *_effects(row for row in rows["Consumer"].items() if row in alike),
    ]
    for title, found in rows.items():
        parts += [f"## {title}", *_effects(row for row in found.items() if row not in alike)]
    parts += [
        "## Share consumer",
        "Takes the options of a consumer, but for these, and has some of its own.",
        "\n".join(
            f"- {', '.join(f'`{name}`' for name, reason in REFUSED.items() if reason == why)}: {why}"
            for why in dict.fromkeys(REFUSED.values())
        ),
        *_effects((_client_row(option), True) for option in SHARE_OPTIONS),
    ]
    secure = read["Consumer"]
    return _text(
        *parts,
        "## Security",
        "Accepted by all three clients; [security.md](security.md) is the guide.",
        "Honoured: " + ", ".join(f"`{name}`" for name in sorted(security & secure)) + ".",
        "*Without effect*: " + ", ".join(f"`{name}`" for name in sorted(security - secure)) + ".",
    )


def broker_options_page() -> str:
    """The options of the broker and of topics; what a topic or a group may set is described in one row."""
    of_topics = {option.synonym for option in broker_options.TOPIC if option.name in OBEYED}
    described = [option for option in broker_options.BROKER if option.name not in of_topics | BOUNDS]
    broker = {_broker_row(option, PARTITA_DEFAULTS): option.name in OBEYED for option in described}
    topic = {_broker_row(option, {}): option.name in OBEYED for option in broker_options.TOPIC}
    defaults = [f"`{option.name}`" for option in broker_options.BROKER if option.name in of_topics]
    return _text(
        "# Options of the broker and of topics",
        f"{NOTE} `Broker(num_partitions=3)`, `partita broker --set num.partitions=3`, or a "
        "[file](operating.md#the-configuration-file). In brackets stands the default. "
        "Defaults are Kafka's unless said otherwise; lower bounds of -1, "
        "0 and 1 are not listed. *Dynamic* options can be changed while the broker runs. Options *without effect* are "
        "known, checked and shown to clients: their subject is not part of Partita, or needs no choice here.",
        "[Broker](#broker) · [Topics](#topics) · [Fixed limits](#fixed-limits) · [Clients](options.md)",
        "## Broker",
        "Names that begin with `group.consumer.` are about KIP-848 groups. *Of a group* are the bounds within which a "
        "group can have a value of its own, such as `consumer.session.timeout.ms`.",
        *_effects(broker.items()),
        f"{DEFAULTS_OF_TOPICS} {', '.join(defaults)}; all are dynamic.",
        "Options that Kafka has removed are accepted with any value and named in one line at the start. "
        + " ".join(_removed(version) for version in sorted(set(broker_options.REMOVED.values()))),
        "## Topics",
        'Set at creation, `NewTopic("orders", 6, configs={"retention.ms": 60000})`, or later with `alter_configs` or '
        "`partita topics alter`. Without a value of its own, a topic takes that of the broker's option of the same "
        "name, or of the one behind *else*.",
        *_effects(topic.items()),
        "## Fixed limits",
        "Partita's own bounds, which protect the broker from a single faulty client.",
        _limits(),
    )


DEFAULTS_OF_TOPICS = "Defaults of topics, described [below](#topics):"
OBEYED = broker_options_read()
MIN_MAX = ("min", "max")
BROKER = {option.name: option for option in broker_options.BROKER}
BOUNDS = {
    name
    for name in OBEYED & BROKER.keys()
    for m in MIN_MAX
    if name.startswith("group.") and f".{m}." in name and name.replace(f".{m}.", ".", 1) in BROKER
}
"""Options of the broker that bound what a group may set."""
Row = tuple[str, str, str]


def _effects(rows: Iterable[tuple[Row, bool]]) -> list[str]:
    """A list of the options that some code reads, and the names of the others."""
    found = list(rows)
    idle = [name for (name, _, _), is_read in found if not is_read]
    listed = _list(row for row, is_read in found if is_read)
    return [listed, *([f"*Without effect*: {', '.join(idle)}."] if idle else [])]


def _text(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


def _removed(version: str) -> str:
    names = sorted(name for name, since in broker_options.REMOVED.items() if since == version)
    return f"Removed in Kafka {version}: {', '.join(f'`{name}`' for name in names)}."


def _client_row(option: Option) -> Row:
    default = "*required*" if option.default is REQUIRED else _shown(option.default)
    return f"`{option.name}`", default, _sentence(option.help, _bounds(option.minimum, option.maximum, option.choices))


def _broker_row(option: broker_options.Option, ours: dict[str, Any]) -> Row:
    more = _group_bounds(option.name) or _bounds(option.low, option.high, option.choices)
    if option.name in ours:
        more += f"; Kafka's default is {as_text(option.default)}"
    if option.changeable and option in broker_options.BROKER:
        more += "; dynamic"
    if option.synonym and option.synonym != option.name:
        more += f"; else `{option.synonym}`"
    meaning = re.sub("^(KIP-848|share|streams) groups: ", "", option.meaning or "")
    return f"`{option.name}`", _shown(ours.get(option.name, option.default)), _sentence(meaning, more)


def _group_bounds(name: str) -> str:
    """The options that bound what a group may set in place of this one."""
    bounds = [
        each for each in sorted(BOUNDS, reverse=True) if name in (each.replace(f".{m}.", ".", 1) for m in MIN_MAX)
    ]
    limits = [f"{'from' if '.min.' in each else 'to'} `{each}` ({_shown(BROKER[each].default)})" for each in bounds]
    return f"; of a group {' '.join(limits)}" if limits else ""


def _bounds(low: float | None, high: float | None, choices: Sequence[str]) -> str:
    if choices:
        return "; one of " + ", ".join(choices)
    if low is not None and high is not None:
        return f"; {low:,g} to {high:,g}" if high < 1e6 else _at_least(low)
    return _at_least(low) if low is not None else f"; at most {high:,g}" if high is not None else ""


def _at_least(low: float) -> str:
    return f"; at least {low:,.0f}" if low > 1 else ""


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "empty"
    return as_text(value) or '""'


def _sentence(text: str, more: str) -> str:
    return (text + more).strip("; ")


def _list(rows: Iterable[Row]) -> str:
    return "\n".join(f"- {name} ({default}): {meaning}" for name, default, meaning in rows)


def _limits() -> str:
    meanings = {
        "partita_pending_members_max": "members of a shard that were given an id and have not joined with it yet",
        "partita_member_metadata_max_bytes": "bytes of what a member says for one protocol: its subscription",
        "partita_protocols_max": "protocol names one member may offer",
    }
    defaults = {field.name: field.default for field in fields(GroupConfig)}
    return _list((f"`{name}`", f"{defaults[name]:,}", text) for name, text in meanings.items())


# --- classes ----------------------------------------------------------------------------------------------------------

CLASSES: dict[type, str] = {
    Broker: "",
    Control: "`broker.control`",
    Consumer: "",
    AsyncConsumer: "",
    ShareConsumer: "",
    AsyncShareConsumer: "",
    Producer: "",
    AsyncProducer: "",
    DeliveryFuture: "",
    SentRecords: "",
    Admin: "",
    AsyncAdmin: "",
}
"""Classes with the way to an instance, where that is not an import from `partita` or the result of a call."""
SHARED = {AsyncConsumer: Consumer, AsyncShareConsumer: ShareConsumer, AsyncProducer: Producer, Admin: AsyncAdmin}
"""Faces whose calls are described once, at the other face."""
SELF = ("self", "cls")
INTERNAL = (object, Delivery, Outcome)
"""Bases whose names are for the package alone."""
VALUES = (
    "partita.offsets.topic_partition:TopicPartition",
    "partita.offsets.topic_partition:OffsetAndMetadata",
    "partita.consumer.subscription:SubscriptionPattern",
    "partita.offsets.topic_partition:OffsetAndTimestamp",
    "partita.offsets.topic_partition:GroupMetadata",
    "partita.consumer.records:ConsumerRecord",
    "partita.consumer.records:ConsumerRecords",
    "partita.consumer.shell.sharing.records:ShareRecord",
    "partita.consumer.listener:RebalanceListener",
    "partita.consumer.listener:Interceptor",
    "partita.consumer.shell.records_in_hand:Hold",
    "partita.consumer.request:Note",
    "partita.producer.shell.client:RecordMetadata",
    "partita.admin:NewTopic",
    "partita.admin:Target",
    "partita.admin:SomeFailed",
    "partita.http.exporter:MetricsServer",
)

RECORD_FIELDS = [
    *("topic", "partition", "offset", "timestamp", "timestamp_type"),
    *("key", "value", "headers", "leader_epoch"),
]


def api_page() -> str:
    names = [kind.__name__ for kind in CLASSES] + ["Values", "Errors"]
    parts = [
        "# API reference",
        f"{NOTE} Timeouts are in seconds, names that end in `_ms` in milliseconds. A partition "
        "is `(topic, number)` or the equal `TopicPartition(topic, number)`. Broker and clients come from `partita`. "
        "Calls and values have their summaries here; `help(Consumer.poll)` shows types, bounds and errors too.",
        " · ".join(f"[{name}](#{name.lower()})" for name in names),
    ]
    for kind, origin in CLASSES.items():
        parts += _class(kind, origin)
    parts += ["## Values", "Each with its module and its fields."]
    for spelled in VALUES:
        module, _, name = spelled.partition(":")
        parts.append(_value(module, name, getattr(import_module(module), name)))
    return _text(*parts, *_errors())


def _class(kind: type, origin: str) -> list[str]:
    parts = [f"## {kind.__name__}", *([origin] if origin else []), _doc(kind)]
    twin = SHARED.get(kind)
    if twin is not None:
        own = [name for name in _public(kind) if not hasattr(twin, name)]
        awaited = [f"`{name}`" for name in _public(kind) if inspect.iscoroutinefunction(getattr(kind, name))]
        calls = f"alls of [{twin.__name__}](#{twin.__name__.lower()})"
        parts.append(f"C{calls} that are awaited: {', '.join(awaited)}." if awaited else f"Has the c{calls}.")
        return [*parts, *_members(kind, own)]
    return [*parts, *_members(kind, _public(kind))]


def _public(kind: type) -> list[str]:
    """Public names in the order of the source, inherited ones last."""
    names: dict[str, None] = {}
    for each in (base for base in kind.__mro__ if base not in INTERNAL):
        names |= dict.fromkeys(name for name in vars(each) if not name.startswith("_") and _is_call(kind, name))
    return list(names)


def _members(kind: type, names: Iterable[str]) -> list[str]:
    """The list of the calls; those that an earlier class has alike are only named."""
    own: list[str] = []
    alike: dict[str, list[str]] = {}
    for name in names:
        line = _line(kind, name)
        first = PRINTED.setdefault(line, kind.__name__)
        if first == kind.__name__:
            own.append(line)
        else:
            alike.setdefault(first, []).append(f"`{name}`")
    own += [f"- as in [{first}](#{first.lower()}): {', '.join(calls)}" for first, calls in alike.items()]
    return ["\n".join(own)] if own else []


PRINTED: dict[str, str] = {}
"""Each line that describes a call, with the class under which it stands."""


def _is_call(kind: type, name: str) -> bool:
    value = inspect.getattr_static(kind, name)
    return isinstance(value, property | classmethod) or inspect.isfunction(value)


def _signature(call: Any) -> str:
    """Parameters with their defaults, and what comes back. Types of parameters are left to `help()`."""
    signature = inspect.signature(call)
    found = [each.replace(annotation=each.empty) for name, each in signature.parameters.items() if name not in SELF]
    result = signature.return_annotation
    call_shown = str(signature.replace(parameters=found, return_annotation=signature.empty))
    return call_shown if result == "None" else f"{call_shown} -> {result}"


def _doc(thing: Any) -> str:
    text = inspect.getdoc(thing)
    assert text, f"{thing!r} has no docstring"
    return text


def _promise(thing: Any) -> str:
    """The docstring's first paragraph; `help()` shows the rest."""
    return _doc(thing).split("\n\n")[0]


def _value(module: str, name: str, kind: type) -> str:
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else []
    if issubclass(kind, Record):
        names = [*RECORD_FIELDS, *(["delivery_count"] if name == "ShareRecord" else [])]
    names = names or list(getattr(kind, "_fields", []))
    listed_names = f": {', '.join(f'`{each}`' for each in names)}" if names else ""
    calls = [
        _line(kind, each) for each in _public(kind) if each not in names and module != "partita.producer.shell.client"
    ]
    listed = "\n\n" + "\n".join(calls) if calls and name != "ConsumerRecord" else ""
    return f"### {name}\n\n`{module}`{listed_names}\n\n{_summary(kind)}{listed}"


def _line(kind: type, name: str) -> str:
    """One method or property, as a bullet."""
    value = inspect.getattr_static(kind, name)
    call = value.__func__ if isinstance(value, classmethod) else value
    spelled = name if isinstance(value, property) else f"{name}{_signature(call)}"
    text = inspect.getdoc(value)
    return f"- `{spelled}`" + (f": {_summary(value)}" if text else "")


def _errors() -> list[str]:
    client = [
        f"`{kind.__name__}`"
        for module in (consumer_errors, producer_errors)
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, KafkaError) and kind.__module__ == module.__name__
    ]
    explained = (DOCS / "errors.md").read_text()
    assert not (unknown := [name for name in client if name not in explained]), f"errors.md lacks {unknown}"
    of_code = {kind.code: kind for kind in KafkaError.__subclasses__() if kind.__module__ == "partita.errors"}
    rows = {
        f"`{of_code[code].__name__}`{_other_name(code, of_code[code])}": code.retriable
        for code in ErrorCode
        if code in of_code
    }
    return [
        "## Errors",
        "Every error is a `partita.errors.KafkaError` with `.code` (an `ErrorCode`, which is an int), `.retriable` and "
        "a message that says what to do. A wrong option raises `partita.options.ConfigError`, a wrong argument "
        "`ValueError`. [errors.md](errors.md) says what those of the clients mean, from `partita.consumer.errors` and "
        "`partita.producer.errors`.",
        "Of a broker, from `partita.errors`, each named after its code, which stands in brackets where it has another "
        "name; `ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.meaning` says what the broker means by it, `ErrorCode(3)` which "
        "one has a number. Those that may pass, with `.retriable` True:",
        ", ".join(row for row, retriable in rows.items() if retriable) + ".",
        "Those that stay:",
        ", ".join(row for row, retriable in rows.items() if not retriable) + ".",
    ]


def _other_name(code: ErrorCode, kind: type) -> str:
    """The name of a code in brackets, if that of the class does not say it."""
    alike = code.name.replace("_", "").lower() == kind.__name__.removesuffix("Error").lower()
    return "" if alike else f" ({code.name})"


def _summary(thing: Any) -> str:
    return " ".join(_promise(thing).split())


def main() -> int:
    pages = {"options.md": options_page(), "broker-options.md": broker_options_page(), "api.md": api_page()}
    if "--check" in sys.argv:
        stale = [name for name, text in pages.items() if (DOCS / name).read_text() != text]
        print("\n".join(f"docs/{name} is stale" for name in stale))
        return int(bool(stale))
    for name, text in pages.items():
        (DOCS / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
