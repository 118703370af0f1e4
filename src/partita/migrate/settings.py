"""A consumer's settings under another group protocol. Pure: clients and brokers are asked by functions.

(Kafka 4.4: ConsumerConfig and ShareConsumerConfig refuse options when a consumer is created; KIP-1274.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from partita.assignors.registry import BUILT_IN, create_assignor
from partita.consumer.config import OF_CLASSIC, OPTIONS
from partita.consumer.sharing.settings import REFUSED
from partita.options import unknown_option

PROTOCOLS = ("classic", "consumer", "share")
CLIENTS = ("java", "confluent", "partita")
OF_GROUPS: Mapping[str, Mapping[str, str]] = {
    "consumer": {
        "session.timeout.ms": "consumer.session.timeout.ms",
        "heartbeat.interval.ms": "consumer.heartbeat.interval.ms",
    },
    "share": {
        "auto.offset.reset": "share.auto.offset.reset",
        "isolation.level": "share.isolation.level",
        "session.timeout.ms": "share.session.timeout.ms",
        "heartbeat.interval.ms": "share.heartbeat.interval.ms",
    },
}
"""Options of a consumer that become settings of its group, by protocol."""
JAVA_SHARE_REFUSES = frozenset(
    {
        "auto.offset.reset", "enable.auto.commit", "group.instance.id", "isolation.level",
        "partition.assignment.strategy", "interceptor.classes", "session.timeout.ms", "heartbeat.interval.ms",
        "group.protocol", "group.remote.assignor",
    }
)  # fmt: skip
"""The options with which Java's share consumer is not created; others of REFUSED it takes without effect."""
REFUSAL = "refused"
"""The verdict on an option with which a consumer does not start any more."""
STRATEGY, INSTANCE = "partition.assignment.strategy", "group.instance.id"
_MAPPED = {"range": "range", "roundrobin": "uniform", "sticky": "uniform", "cooperative-sticky": "uniform"}
_NO_COUNTERPART = "the broker has no such assignor: write a server-side one, or take uniform"

AskClient = Callable[[str, Mapping[str, str]], str | None]
"""Asks for (protocol, options together) and returns why the client refuses them, or None."""
AskBroker = Callable[[str, str], str | None]
"""Asks for (setting of a group, value) and returns why the broker refuses it, or None."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An option that will not be what it was: `verdict` is refused, unknown, without effect or changed.

    An unknown one has no value here, since it may be a password whose name is mistyped.
    """

    protocol: str
    option: str
    value: str
    verdict: str
    instead: str

    def as_json(self) -> dict[str, Any]:
        """The fields."""
        return asdict(self)


def findings(
    settings: Mapping[str, str], protocol: str, ask_client: AskClient, ask_broker: AskBroker
) -> Iterator[Finding]:
    """Each setting that a protocol changes; those that stay as they are are left out."""
    unknown, refused = (_refusals(settings, each, ask_client) for each in ("classic", protocol))
    for option, value in settings.items():
        if option in unknown:
            yield Finding(protocol, option, "", "unknown", unknown[option])
        elif (why := refused.get(option)) is not None:
            yield Finding(protocol, option, value, REFUSAL, _instead(protocol, option, value, ask_broker) or why)
        elif protocol == "share" and option.replace(".", "_") in REFUSED:
            yield Finding(protocol, option, value, "without effect", REFUSED[option.replace(".", "_")])
        elif protocol == "consumer" and option == INSTANCE:
            instead = "a second process with it is refused while the first lives; it no longer throws the first out"
            yield Finding(protocol, option, value, "changed", instead)
    if STRATEGY not in settings and protocol == "consumer":
        instead = "the broker's uniform, unless group.remote.assignor=range"
        yield Finding(protocol, STRATEGY, "the client's default", "changed", instead)


def _refusals(settings: Mapping[str, str], protocol: str, ask: AskClient) -> dict[str, str]:
    """The options that a client takes neither alone nor beside those that it takes alone, as some need others."""
    alone = {name: ask(protocol, {name: value}) for name, value in settings.items()}
    taken = {name: settings[name] for name, why in alone.items() if why is None and name != "group.protocol"}
    return {
        name: why
        for name, why in alone.items()
        if why is not None and ask(protocol, {**taken, name: settings[name]}) is not None
    }


def _instead(protocol: str, option: str, value: str, ask_broker: AskBroker) -> str:
    if (name := OF_GROUPS[protocol].get(option)) is not None:
        why = ask_broker(name, value)
        return f"set {name}={value} of the group" + (f"; this broker refuses it: {why}" if why else "")
    if protocol == "consumer" and option == STRATEGY:
        named = {each.strip(): remote_assignor(each.strip()) for each in value.split(",")}
        mapped = (f"{name} becomes {to or 'nothing'}" for name, to in named.items())
        return ", ".join(mapped) + (f"; {_NO_COUNTERPART}" if None in named.values() else "")
    return "" if protocol == "consumer" else REFUSED.get(option.replace(".", "_"), "")


def remote_assignor(strategy: str) -> str | None:
    """The broker's assignor in place of one of a client; None for one that only the client has."""
    try:
        return _MAPPED[create_assignor(strategy).name]
    except ValueError:
        return None


def moved(settings: Mapping[str, str], found: list[Finding], protocol: str) -> tuple[dict[str, str], dict[str, str]]:
    """The client's settings under a protocol, and those its group takes over.

    Options that are refused are left out; an assignor and settings of the group take their places.
    """
    refused = {each.option for each in found if each.protocol == protocol and each.verdict in (REFUSAL, "unknown")}
    kept = {name: value for name, value in settings.items() if name not in refused}
    if protocol != "share":
        kept["group.protocol"] = protocol
    if protocol == "consumer" and STRATEGY in refused:
        kept["group.remote.assignor"] = remote_assignor(settings[STRATEGY].split(",")[0].strip()) or "uniform"
    of_group = {OF_GROUPS[protocol][name]: settings[name] for name in refused if name in OF_GROUPS.get(protocol, {})}
    return kept, of_group


def ask_java(protocol: str, options: Mapping[str, str]) -> str | None:
    """Java's clients of Kafka 4.4, as a table: why they refuse options."""
    return next((why for option in options if (why := _java_refuses(protocol, option))), None)


def _java_refuses(protocol: str, option: str) -> str | None:
    name = option.replace(".", "_")
    if protocol == "classic":
        known = [each.name for each in OPTIONS]
        return None if name in known else f"{unknown_option(option, known)}; Java's clients log it and go on"
    if protocol == "consumer":
        return OF_CLASSIC.get(name)
    return REFUSED.get(name) if option in JAVA_SHARE_REFUSES else None


assert set(_MAPPED) == set(BUILT_IN), "each assignor of a client has a counterpart"
