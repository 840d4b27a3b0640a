"""How the engine speaks, and who observes it: loggers, instruments, spans of OpenTelemetry."""

import asyncio
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import LogCapture, ReturnLoggerFactory
from transitions import Transition as Arc

import prism
from prism import Model, Reasoner, Run
from prism.errors import DefinitionError
from prism.reasoner import BaseWriter, PolicyReasoner, Router, Writer
from prism.statechart import AgentState, Statechart, Transition
from prism.telemetry import Instrument, ModelSpans, instrumented
from prism.telemetry.events import TRANSITION
from prism.telemetry.loggers import LateLogger, somebody_listens
from prism.testing import FakeOllama, Fault, ScriptedReasoner

BUSY_CHART = """
from types import SimpleNamespace
from prism.statechart import AgentState as S, Statechart, Transition
{setup}
def broken(agent, context):
    raise LookupError("no such post")
chart = Statechart(S, [
    Transition("go", S.IDLE, S.SCROLLING, {guard}, lambda agent, post: chart.fire(agent, "on")),
    Transition("on", S.SCROLLING, S.RESTING),
    Transition("timeout", S.RESTING, S.IDLE),
], S.IDLE)
agent = chart.adopt(SimpleNamespace(timeout_threshold=1))
for _ in range(3):
    chart.fire(agent, "go", {{"post_id": "p1"}})
    chart.fire(agent, "on")
    chart.tick(agent)
    chart.tick(agent)
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, where nobody has configured anything."""
    environment = {**os.environ, "PYTHONPATH": str(Path(prism.__file__).parents[1])}
    line = [sys.executable, "-P", "-c", code]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True)


MOVE = """
Statechart(S, [Transition("go", "*", S.RESTING)], S.IDLE).fire(SimpleNamespace(state="idle"), "go")
"""
CAPTURED = f"""
from structlog.testing import capture_logs
with capture_logs() as events:
    {MOVE.strip()}
assert [each["event"] for each in events] == ["statechart.transition"]
"""


@pytest.mark.parametrize(
    "setup", [CAPTURED, "import structlog", f"import structlog{MOVE}{CAPTURED}", ""]
)
@pytest.mark.sampled(2)
def test_moves_are_silent_until_structlog_is_configured(setup: str) -> None:
    """Nothing is printed to stdout or stderr unless the application configures structlog."""
    code = BUSY_CHART.format(setup=setup, guard="None")
    done = run_python(code + "assert len(agent.state_history) == 9")
    assert (done.stdout, done.stderr) == ("", "")


def test_faults_are_never_silent() -> None:
    """A guard that raised is shown with its traceback on stderr even if nothing was configured.

    Nothing imports structlog for it.
    """
    code = BUSY_CHART.format(setup="import sys", guard="broken")
    done = run_python(code + "assert 'structlog' not in sys.modules")
    assert done.stdout == ""
    assert done.stderr.count("LookupError: no such post") == 3
    assert "in broken" in done.stderr


S = AgentState


def chart_of(*moves: Transition[S], **options: Any) -> Statechart[S]:
    return Statechart(S, moves or [Transition("go", S.IDLE, S.RESTING)], S.IDLE, **options)


def resting(chart: Statechart[S] | None = None) -> None:
    """Let an agent make one move, on a chart without a logger of its own."""
    agent = SimpleNamespace(state=S.IDLE, agent_id="a1", name="Ann")
    (chart or chart_of()).fire(agent, "go", {"name": "x"})


def test_standard_logging_carries_the_keys(caplog: pytest.LogCaptureFixture) -> None:
    """A transition is an INFO record of logger prism.statechart, with its keys as one attribute."""
    with caplog.at_level(logging.INFO, "prism.statechart"):
        assert somebody_listens()
        resting()
    (entry,) = caplog.records
    keys = {
        **{"chart": "statechart", "agent_id": "a1", "from_state": "idle", "to_state": "resting"},
        **{"trigger": "go", "ticks_in_state": None, "context": {"name": "x"}},
    }
    assert (entry.name, entry.levelno) == ("prism.statechart", logging.INFO)
    assert entry.prism == {"event": TRANSITION, **keys}
    assert entry.getMessage() == f"{TRANSITION} {keys}"


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_a_late_logger_passes_events_on_when_it_is_open(
    level: str, heard: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Until then they go where those without a logger go; what follows it is opened with it."""
    late, follower, capture = LateLogger(), LateLogger(), LogCapture()
    follower.opened = late
    getattr(follower, level)("early")
    late.opened = structlog.wrap_logger(None, processors=[capture])
    for logger in (late, follower):
        getattr(logger, level)("now")
    assert [each["event"] for each in heard] == ["early"]
    assert [each["event"] for each in capture.entries] == ["now", "now"]

    structlog.reset_defaults()
    getattr(LateLogger(), level)("silent")
    assert [each.levelname.lower() for each in caplog.records] == [level] * (level != "info")


async def test_an_asynchronous_logger_loses_nothing() -> None:
    """Its events are logged at once, since nobody would await them; a program may have no loop."""
    heard = LogCapture()
    structlog.configure(processors=[heard], wrapper_class=structlog.stdlib.AsyncBoundLogger)
    resting()
    await asyncio.to_thread(resting)
    assert [each["event"] for each in heard.entries] == [TRANSITION] * 2


async def test_a_logger_of_coroutines_is_refused() -> None:
    """A chart, a reasoner, a writer or a run with it would log nothing."""

    class Slow:
        async def info(self, event: str, **keys: Any) -> None:
            """Log an event when somebody awaits it."""

    slow: Any = Slow()
    model = Model("m", "http://127.0.0.1:1")
    for make in (
        *(chart_of, partial(Run, "rumour"), partial(Reasoner, model), partial(Writer, model)),
        *(PolicyReasoner, partial(Router, {}), type("Own", (BaseWriter,), {"answer": None})),
    ):
        with pytest.raises(DefinitionError, match=r"Slow.info is a coroutine, which nobody would"):
            make(logger=slow)
    structlog.configure(wrapper_class=structlog.stdlib.AsyncBoundLogger)
    for logger in (structlog.get_logger(), structlog.get_logger().bind(user="u1")):
        with pytest.raises(DefinitionError, match=r"AsyncBoundLogger.info is a coroutine"):
            chart_of(logger=logger)


@pytest.mark.parametrize("cached", [True, False])
def test_a_new_configuration_is_noticed(cached: bool) -> None:
    """A chart follows when structlog is configured anew, and is silent when it is reset."""
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()],
        logger_factory=ReturnLoggerFactory(),
        cache_logger_on_first_use=cached,
    )
    chart, heard = chart_of(), LogCapture()
    resting(chart)
    structlog.configure(processors=[heard])
    resting(chart)
    structlog.reset_defaults()
    resting(chart)
    assert [each["event"] for each in heard.entries] == [TRANSITION]


@pytest.mark.parametrize("error", [ValueError("no such key"), OSError(28, "No space left")])
def test_a_processor_that_raises_breaks_no_transition(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent moves, its action runs, and each event that was lost is named."""

    def broken(logger: Any, method: str, event: Any) -> Any:
        raise error

    def raises(agent: Any, context: Any) -> None:
        raise LookupError("no such post")

    back = Transition("on", S.SCROLLING, S.IDLE, None, raises)
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), back)
    agent = SimpleNamespace(state=S.IDLE, agent_id="ada")
    structlog.configure(processors=[broken])
    try:
        made = [chart.fire(agent, name) for name in ("go", "on", "go")]
    finally:
        structlog.reset_defaults()
    assert made == [S.SCROLLING, S.IDLE, S.SCROLLING]
    lost = f"structlog lost statechart.{{}}: {type(error).__name__}: {error}"
    names = ("transition", "action_failed", "transition", "transition")
    assert caplog.messages == [lost.format(name) for name in names]


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

    def chart_built(self, chart: Any, /) -> None:
        """Note the chart's name."""
        self.seen.append(("built", chart.name))

    def guard(self, chart: Any, number: Any, *more: Any) -> None:
        """Note the guarded transition, the outcome and the error."""
        self.seen.append(("guard", str(chart.transitions[number]), *more[2:]))

    def transition(self, _chart: Any, number: Any, agent: Any, context: Any, /) -> None:
        """Note which transition was made, and for whom."""
        self.seen.append(("made", number, agent.state, context))

    def event(self, name: str, *_: Any) -> None:
        """Note the event's name."""
        self.seen.append(("event", name))


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
        ("guard", "idle --go--> scrolling", "passed"),
        ("event", "statechart.transition"),
        ("made", 3, SCROLLING, True),
    ]


def test_a_guard_that_raises_is_observed_with_its_error(everything: Everything) -> None:
    """A guard's error is in the guard's outcome, and the log's error event is a fault."""
    error = LookupError("no such post")
    chart = make_chart(logger=SimpleNamespace(error=lambda *_, **__: None))
    assert chart.enabled_targets(SimpleNamespace(state=IDLE), "go", error) == [RESTING]
    assert everything.seen[1:] == [
        ("guard", "idle --go--> scrolling", error),
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


@pytest.mark.parametrize("hook", ["event", "chart_built", "transition", "guard"])
def test_only_who_observes_charts_slows_them(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are observed on the fast path, where the Machine executes no transition."""
    executed, seen = list[Any](), list[Any]()
    execute = Arc.execute
    monkeypatch.setattr(Arc, "execute", lambda *each: executed.append(each) or execute(*each))
    with instrumented(type("", (Instrument,), {hook: lambda *each: seen.append(each)})()):
        assert make_chart().fire(SimpleNamespace(state=IDLE), "go", True) is SCROLLING
    assert (len(executed), len(seen)) == (hook in ("transition", "guard"), 1)


def test_a_hook_that_raises_is_heard() -> None:
    """What a hook raises reaches the caller of fire, and the instrument is removed all the same."""

    class Broken(Instrument):
        def guard(self, *_: Any) -> None:
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
        server.fail(*[Fault.says("nonsense")] * 4)
        spans = spans_of(server.host)

    failed = [span for span in spans if not span.status.is_ok]
    answered = [span for span in spans if span.attributes["prism.source"] == "model"]
    assert len(spans) > 1
    assert [span.attributes["prism.source"] for span in failed] == ["fallback"]
    assert len(answered) == len(spans) - 1
    for span in answered:
        assert span.name == "decide"
        assert span.attributes["gen_ai.request.model"] == "llama3.2"
        assert span.attributes["url.full"] == server.host
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
        assert span.end_time - span.start_time >= 0.02e9
