"""Observing charts and reasoners with instruments, and decisions as spans of OpenTelemetry."""

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from prism import Run
from prism.statechart import AgentState, Statechart, Transition
from prism.telemetry import (
    ChartBuilt,
    GuardEvaluated,
    Instrument,
    LogEvent,
    ModelSpans,
    TransitionDetails,
    instrumented,
)
from prism.testing import FakeOllama, Fault, ScriptedReasoner

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING


def says(agent: Any, context: Any) -> object:
    """Guard: what the event says; raises where it is an exception."""
    if isinstance(context, Exception):
        raise context
    return context


def make_chart(**settings: Any) -> Statechart[AgentState]:
    """Make a chart with a guarded and an unguarded transition for one event."""
    moves = [
        Transition("stop", "*", RESTING),
        Transition("go", IDLE, SCROLLING, says),
        Transition("go", IDLE, RESTING),
        Transition("again", IDLE, IDLE),
    ]
    return Statechart([IDLE, SCROLLING, RESTING], moves, IDLE, name="small", **settings)


class Everything(Instrument):
    """An instrument with all hooks, which notes its calls."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def chart_built(self, details: ChartBuilt, /) -> None:
        """Note the chart's name."""
        self.seen.append(("built", details.chart.name))

    def guard(self, details: GuardEvaluated, /) -> None:
        """Note the guarded transition, the outcome and the error."""
        transition = details.chart.transitions[details.number]
        self.seen.append(("guard", str(transition), details.outcome, details.error))

    def transition(self, details: TransitionDetails, /) -> None:
        """Note which transition was made, and for whom."""
        self.seen.append(("made", details.number, details.agent.state, details.context))

    def event(self, details: LogEvent, /) -> None:
        """Note the event's name."""
        self.seen.append(("event", details.name))


@pytest.fixture
def everything() -> Iterator[Everything]:
    """Install an instrument with all hooks for one test."""
    instrument = Everything()
    with instrumented(instrument):
        yield instrument


def test_a_fire_is_observed_from_guard_to_transition(everything: Everything) -> None:
    """A chart, its guards' outcomes and its transitions are observed as they happen."""
    chart = make_chart()
    assert chart.fire(SimpleNamespace(state=IDLE), "go", True) is SCROLLING
    assert everything.seen == [
        ("built", "small"),
        ("guard", "idle --go--> scrolling", "passed", None),
        ("event", "statechart.transition"),
        ("made", 3, SCROLLING, True),
    ]


def test_a_guard_that_raises_is_observed_with_its_error(everything: Everything) -> None:
    """A guard's error is in the guard's outcome, and the log's error event is a fault."""
    error = LookupError("no such post")
    chart = make_chart(logger=SimpleNamespace(error=lambda *_, **__: None))
    assert chart.enabled_targets(SimpleNamespace(state=IDLE), "go", error) == [RESTING]
    assert everything.seen[1:] == [
        ("guard", "idle --go--> scrolling", "raised", error),
        ("event", "statechart.guard_failed"),
    ]


async def test_decisions_are_observed(everything: Everything) -> None:
    """A reasoner's decision is shown, and then the transition that it leads to."""
    chart = make_chart(decision_states=[IDLE])
    chosen = await chart.afire(
        SimpleNamespace(state=IDLE), "go", True, reasoner=ScriptedReasoner(["resting"])
    )
    assert chosen is RESTING
    assert [seen[:2] for seen in everything.seen][-3:] == [
        ("event", "reasoner.decision"),
        ("event", "statechart.transition"),
        ("made", 4),
    ]


def test_a_run_shows_each_transition_once(everything: Everything) -> None:
    """As it is made, and as it is logged, also where the log is that of some agents."""
    Run("feed", 6, rounds=1, seed=1, log_agents=6).run()
    kinds = Counter(seen[1] if seen[0] == "event" else seen[0] for seen in everything.seen)
    assert kinds["statechart.transition"] == kinds["made"] > 0


def test_a_hook_that_raises_is_heard() -> None:
    """What a hook raises reaches the caller of fire, and the instrument is removed all the same."""

    class Broken(Instrument):
        def guard(self, details: GuardEvaluated, /) -> None:
            raise LookupError("a bug in the instrument")

    chart, agent = make_chart(), SimpleNamespace(state=IDLE)
    with pytest.raises(LookupError), instrumented(Broken()):
        chart.fire(agent, "go", True)
    assert chart.fire(agent, "go", True) is SCROLLING


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
