"""Decisions and texts as spans of OpenTelemetry."""

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from prism import Run
from prism.telemetry import ModelSpans, instrumented
from prism.testing import FakeOllama, Fault


def spans_of(host: str) -> list[ReadableSpan]:
    """Run a small world with a model, and return the spans that an application would export."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with instrumented(ModelSpans(provider)):
        Run("rumour", 20, rounds=8, seed=1, model=f"ollama:llama3.2@{host}").run()
    return [*exporter.get_finished_spans()]


def test_a_decision_is_a_span_and_a_fallback_is_an_error() -> None:
    """A span has the conventions' names for model and tokens, and the status of its answer."""
    with FakeOllama(latency=0.02) as server:
        server.fail(*[Fault.says("nonsense")] * 3)
        spans = spans_of(server.host)

    failed = [span for span in spans if not span.status.is_ok]
    answered = [span for span in spans if span.attributes["prism.source"] == "model"]
    assert len(spans) > 1
    assert [span.attributes["prism.source"] for span in failed] == ["fallback"]
    assert len(answered) == len(spans) - 1
    for span in answered:
        assert span.name == "decide"
        assert span.attributes["gen_ai.request.model"] == "llama3.2"
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
        assert span.end_time - span.start_time >= 0.02e9
