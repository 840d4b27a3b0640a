"""Decisions and texts as spans of OpenTelemetry, held against the SDK's in-memory exporter."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from prism.agents import SocialAgent
from prism.errors import MissingExtraError
from prism.llm import Model, OllamaChatClient
from prism.statechart import PolicyReasoner, Reasoner, TextCall, Writer, social_media_chart
from prism.telemetry import ModelSpans, instrumented
from prism.testing import FakeOllama, FakeOpenAI, Fault

CHART = social_media_chart()


class Exported:
    """A tracer provider whose spans can be looked at."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended."""
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def exported() -> Iterator[Exported]:
    """A provider of its own, so that nothing is set for the process."""
    exported = Exported()
    with ModelSpans(exported.provider) as spans, instrumented(spans):
        yield exported
    exported.provider.shutdown()


def evaluating() -> SocialAgent:
    """Return an agent that is about to decide."""
    ada = SocialAgent("ada", interests=["travel"])
    CHART.fire(ada, "feed_ready")
    CHART.fire(ada, "sees_post")
    return ada


async def test_a_decision_is_a_span_with_its_transition(
    exported: Exported, server: FakeOllama
) -> None:
    """A model's decision is a client span with model, server, tokens and the transition made."""
    ada = evaluating()
    async with OllamaChatClient(server.host, "tiny") as client:
        reasoner = Reasoner(client, mode="chat")
        await CHART.afire(ada, "decides", {"topics": ["travel"]}, reasoner=reasoner)

    (span,) = exported.spans
    attributes = dict(span.attributes or {})
    assert (span.name, span.kind) == ("chat tiny", SpanKind.CLIENT)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "ollama"
    assert attributes["gen_ai.agent.id"] == "ada"
    assert attributes["gen_ai.request.model"] == "tiny"
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert attributes["gen_ai.usage.output_tokens"] == 2
    assert f"http://{attributes['server.address']}:{attributes['server.port']}" == server.host
    assert attributes["prism.state"] == "evaluating"
    assert attributes["prism.chosen"] == str(ada.state.value)
    assert attributes["prism.attempts"] == 1

    (event,) = span.events
    assert (event.name, dict(event.attributes or {})) == (
        "statechart.transition",
        {
            "chart": "social_media",
            "from_state": "evaluating",
            "to_state": ada.state.value,
            "trigger": "decides",
        },
    )
    assert span.start_time is not None
    assert span.end_time is not None
    assert 0 < span.end_time - span.start_time < 60e9


async def test_a_fallback_has_the_status_of_an_error(
    exported: Exported, server: FakeOllama
) -> None:
    """A decision that no model made says why, and the agent's transition is in it all the same."""
    server.fail_always(Fault.status(500))
    async with OllamaChatClient(server.host, "tiny", attempts=1) as client:
        reasoner = Reasoner(client, mode="chat")
        await CHART.afire(evaluating(), "decides", 0.9, reasoner=reasoner)

    (span,) = exported.spans
    assert span.status.status_code is StatusCode.ERROR
    assert "500" in (span.status.description or "")
    assert (span.attributes or {})["error.type"] == "500"
    assert span.kind is SpanKind.CLIENT
    assert [event.name for event in span.events] == ["statechart.transition"]


async def test_the_type_of_an_error_is_its_class_where_no_server_answered(
    exported: Exported, server: FakeOllama
) -> None:
    """A connection that breaks has no status, so the exception's class stands for it."""
    server.fail_always(Fault.drop())
    async with OllamaChatClient(server.host, "tiny", attempts=1) as client:
        await Writer(client).write(TextCall("ada", "post", "Write a post."))

    (span,) = exported.spans
    assert (span.attributes or {})["error.type"] == "UnreachableError"


async def test_a_server_of_openais_kind_is_named_as_its_api(exported: Exported) -> None:
    """Without Ollama's durations, the provider is the one whose API a server speaks."""
    with FakeOpenAI() as server:
        async with Model("llama3.2", server.url, server="openai") as model:
            await Writer(model).write(TextCall("ada", "post", "Write a post."))

    (span,) = exported.spans
    assert (span.attributes or {})["gen_ai.provider.name"] == "openai"


async def test_a_policys_decision_is_no_call_of_a_model(exported: Exported) -> None:
    """Where nobody asks a model, the span is internal and names none."""
    await CHART.afire(evaluating(), "decides", 0.9, reasoner=PolicyReasoner(seed=1))

    (span,) = exported.spans
    assert (span.name, span.kind) == ("decide", SpanKind.INTERNAL)
    assert "gen_ai.request.model" not in (span.attributes or {})


async def test_a_text_is_a_span(exported: Exported, server: FakeOllama) -> None:
    """A text that a model writes is a span of its own, named by its call."""
    async with OllamaChatClient(server.host, "tiny") as client:
        await Writer(client).write(TextCall("ada", "post", "Write a post."))

    (span,) = exported.spans
    assert span.name == "chat tiny"
    assert (
        dict(span.attributes or {}).items()
        >= {
            "prism.kind": "write",
            "prism.key": "post",
            "gen_ai.agent.id": "ada",
        }.items()
    )


async def test_a_decision_without_a_transition_is_sent_when_the_instrument_is_closed() -> None:
    """An agent that never moves after a decision loses no span."""
    exported = Exported()
    spans = ModelSpans(exported.provider)
    with instrumented(spans):
        ada = evaluating()
        options = CHART.valid_targets(ada.state, "decides")
        await PolicyReasoner(seed=1).decide(ada, ada.state, "decides", options, 0.9)
        assert exported.spans == []
        spans.close()
    (span,) = exported.spans
    assert span.events == ()


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OpenTelemetry the instrument says which extra brings it."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"prism-statecharts\[otel\]"):
        ModelSpans()


def test_nothing_is_imported_where_it_is_not_used() -> None:
    """Neither telemetry nor the engine imports OpenTelemetry."""
    code = "import sys, prism.telemetry, prism.statechart; print('opentelemetry' in sys.modules)"
    # its imports are the point, so no fork of a process that has imported more
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
