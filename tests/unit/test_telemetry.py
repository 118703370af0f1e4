"""A trace goes from `send` through the record's headers into the work on the record."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from partita import Broker, Consumer, Producer
from partita.consumer.records import ConsumerRecord
from partita.telemetry import TracingProducerInterceptor, processing


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_trace_goes_from_send_to_the_work_on_the_record() -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with Broker() as broker:
        tracing = TracingProducerInterceptor(provider)
        with (
            Producer(bootstrap_servers=broker.bootstrap, interceptor_classes=[tracing]) as producer,
            provider.get_tracer("test").start_as_current_span("request"),
        ):
            producer.send("traced", b"v", key=b"k", headers={"other": "1", "traceparent": "of an earlier hop"})
        with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([("traced", 0)])
            (record,) = consumer.poll(10)
    with processing(record, provider) as span:
        assert trace.get_current_span() is span
    sent, request, processed = spans.get_finished_spans()
    assert (sent.name, sent.kind, sent.parent) == ("send traced", SpanKind.PRODUCER, request.get_span_context())
    assert told(sent) == {
        "messaging.system": "kafka",
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": "traced",
        "messaging.kafka.message.key": "k",
    }
    assert (processed.name, processed.kind) == ("process traced", SpanKind.CONSUMER)
    origin = sent.get_span_context()
    assert origin is not None
    assert [(link.context.trace_id, link.context.span_id) for link in processed.links] == [
        (origin.trace_id, origin.span_id)
    ]
    assert told(processed)["messaging.kafka.offset"] == 0
    assert processed.status.status_code == StatusCode.OK
    assert [name for name, _ in record.headers] == ["other", "traceparent"]


def test_what_the_work_raises_is_in_the_span_and_goes_on() -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    record: ConsumerRecord[Any, Any] = ConsumerRecord("t", 1, 7, 0, 0, None, None)

    def work() -> None:
        with processing(record, provider):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    (span,) = spans.get_finished_spans()
    assert span.status.status_code == StatusCode.ERROR
    assert span.links == ()
    assert told(span)["messaging.kafka.message.tombstone"] is True
    assert told(span)["messaging.destination.partition.id"] == "1"
