"""OpenTelemetry spans for producers and consumers, with the trace carried in record headers. Needs the extra.

    producer = Producer(..., interceptor_classes=[TracingProducerInterceptor()])
    for record in consumer:
        with processing(record):
            ...

Names and attributes follow the semantic conventions for messaging; the trace travels in W3C's traceparent header.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from partita.lazy import advised

try:
    from opentelemetry import propagate, trace
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
except ModuleNotFoundError as error:
    raise advised(error) from None

from partita.consumer.records import ConsumerRecord
from partita.producer.batch import NewRecord, RecordMetadata

SCOPE = "partita"


class TracingProducerInterceptor:
    """Gives every record a span `send <topic>`, a child of the span that is current in `send`.

    The span stands for handing the record over, and ends at once; the producer's log and metrics report deliveries.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=provider)

    def on_send(self, record: NewRecord) -> NewRecord:
        """The record with the headers that carry its trace."""
        attributes = _attributes("send", record.topic, record.partition, record.key)
        with self._tracer.start_as_current_span(f"send {record.topic}", kind=SpanKind.PRODUCER, attributes=attributes):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
        carried = {name.lower() for name in carrier}
        kept = [header for header in record.headers if header[0].lower() not in carried]
        return record._replace(headers=(*kept, *((name, text.encode()) for name, text in carrier.items())))

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """Nothing: the record's span has ended."""


@contextmanager
def processing(record: ConsumerRecord[Any, Any], provider: TracerProvider | None = None) -> Iterator[Span]:
    """A span `process <topic>` around the work on one record, linked to the span that sent it.

    What the work raises is recorded in the span and goes on.
    """
    tracer = trace.get_tracer(SCOPE, tracer_provider=provider)
    sent = trace.get_current_span(propagate.extract(_carrier(record))).get_span_context()
    attributes = _attributes("process", record.topic, record.partition, record.key)
    attributes["messaging.kafka.offset"] = record.offset
    if record.value is None:
        attributes["messaging.kafka.message.tombstone"] = True
    links = [Link(sent)] if sent.is_valid else []
    name = f"process {record.topic}"
    with tracer.start_as_current_span(name, kind=SpanKind.CONSUMER, attributes=attributes, links=links) as span:
        yield span
        span.set_status(Status(StatusCode.OK))


def _attributes(operation: str, topic: str, partition: int | None, key: object) -> dict[str, str | int | bool]:
    found: dict[str, str | int | bool] = {
        "messaging.system": "kafka",
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": topic,
    }
    if partition is not None:
        found["messaging.destination.partition.id"] = str(partition)
    if key is not None:
        found["messaging.kafka.message.key"] = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
    return found


def _carrier(record: ConsumerRecord[Any, Any]) -> dict[str, str]:
    return {name.lower(): value.decode("latin-1") for name, value in record.headers if value is not None}
