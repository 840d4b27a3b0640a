"""Hearing what charts and reasoners say, whatever the application does with its log."""

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

import prism.runlog
from prism.agents import SocialAgent
from prism.errors import InputError
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.testing import ScriptedReasoner
from prism.testing.transition_log import transition_log

LOGGER = logging.getLogger("prism.statechart")


@pytest.fixture(autouse=True)
def _structlog_as_imported() -> Iterator[None]:
    """Start and leave every test with a structlog that nobody configured."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def raises(agent: Any, context: Any) -> bool:
    """Guard: fail."""
    raise LookupError("no such post")


FAULTY = Statechart(
    AgentState,
    [Transition("go", AgentState.IDLE, AgentState.RESTING, raises)],
    AgentState.IDLE,
)


async def live(name: str = "ada") -> SocialAgent:
    """Let an agent move twice and then decide."""
    chart, agent = social_media_chart(), SocialAgent(name, interests=["music"])
    chart.fire(agent, "feed_ready")
    chart.fire(agent, "sees_post", {"post_id": "p1"})
    await chart.afire(agent, "decides", 0.9, reasoner=ScriptedReasoner(["engaging_like"]))
    return agent


MOVES = [
    ("idle", "feed_ready", "scrolling"),
    ("scrolling", "sees_post", "evaluating"),
    ("evaluating", "decides", "engaging_like"),
]


async def test_everything_is_heard_without_structlog(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nobody has configured structlog, moves and decisions are heard, and nothing is printed."""
    with transition_log() as log:
        agent = await live()
        await live("bo")
    assert log.moves(agent) == log.moves("ada") == log.moves("bo") == MOVES
    (decision,) = [event for event in log.of(agent) if event["event"] == "reasoner.decision"]
    assert decision["chosen"] == "engaging_like"
    assert len(log.named("reasoner.decision")) == 2
    assert log.named("statechart.transition")[1]["context"] == {"post_id": "p1"}
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [list, tuple])
async def test_everything_is_heard_with_structlog(kind: type) -> None:
    """Where it is configured, they are heard before any processor, and the application's own gets them all the same."""
    got: list[str] = []

    def keep(logger: Any, method: str, event: Any) -> Any:
        got.append(event.pop("event"))
        raise structlog.DropEvent

    processors = kind([keep])
    structlog.configure(processors=processors)
    with transition_log() as log:
        structlog.get_logger().info("mine")
        agent = await live()
    assert log.moves(agent) == MOVES
    assert {event["event"] for event in log.events} == {"statechart.transition", "reasoner.decision"}
    assert got == [
        "mine",
        "statechart.transition",
        "statechart.transition",
        "reasoner.decision",
        "statechart.transition",
    ]
    assert structlog.get_config()["processors"] is processors
    assert list(processors) == [keep]


@pytest.mark.parametrize("is_configured", [False, True])
def test_faults_are_heard_with_their_exception(is_configured: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A guard that raises is heard with its exception, and goes on to whoever listens."""
    if is_configured:
        structlog.configure(processors=[lambda logger, method, event: ((event["event"],), {})])
    with transition_log() as log:
        FAULTY.fire(SocialAgent("ada"), "go")
    (fault,) = log.named("statechart.guard_failed")
    assert (fault["agent_id"], str(fault["exc_info"])) == ("ada", "no such post")
    assert len(caplog.records) == (not is_configured)


async def test_standard_logging_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """Moves that the standard library would keep to itself stay unheard there, and its logger is left as it was."""
    before = (LOGGER.level, list(LOGGER.filters))
    with transition_log():
        await live()
    assert caplog.records == []
    assert (LOGGER.level, LOGGER.filters) == before


@pytest.mark.parametrize("name", ["prism.statechart", "prism", None])
async def test_levels_set_during_the_test_count(name: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """A test that turns the standard logger up, or one above it, gets the moves there, too."""
    with transition_log() as log:
        with caplog.at_level(logging.INFO, logger=name):
            agent = await live()
        await live("bo")
    assert len(caplog.records) == len(log.of(agent)) == 4
    assert len(log.of("bo")) == 4


async def test_level_turned_up_before_stays() -> None:
    """A logger that lets moves through already is left alone."""
    LOGGER.setLevel(logging.DEBUG)
    try:
        with transition_log() as log:
            await live()
        assert LOGGER.level == logging.DEBUG
        assert len(log.events) == 4
    finally:
        LOGGER.setLevel(logging.NOTSET)


async def test_run_log_beside_it_is_whole(tmp_path: Any) -> None:
    """A log that prism.runlog.configure writes meanwhile has every event, and its own configuration is cleaned up."""
    structlog.configure(processors=[lambda logger, method, event: ((event["event"],), {})])
    with transition_log() as log, prism.runlog.configure(tmp_path / "events.jsonl"):
        await live()
    assert len(log.named("statechart.transition")) == 3
    assert (tmp_path / "events.jsonl").read_text().count("statechart.transition") == 3


def test_configuration_that_drops_moves_is_refused() -> None:
    """A wrapper class that lets no info event through is refused with the mend, and nothing is left behind."""
    processors: list[Any] = []
    structlog.configure(processors=processors, wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with pytest.raises(InputError, match="wrapper_class that drops info"), transition_log():
        pass
    assert processors == []


async def test_structlog_configured_meanwhile_is_told() -> None:
    """Where structlog is configured during the test, so that events go elsewhere, a warning says so."""
    with warnings.catch_warnings(action="always", record=True) as told, transition_log() as log:
        await live()
        structlog.configure(processors=[lambda logger, method, event: ((event["event"],), {})])
        await live("bo")
    assert [str(warning.message).partition(":")[0] for warning in told] == [
        "transition_log lacks what was said since structlog was configured during the test"
    ]
    assert (len(log.of("ada")), len(log.of("bo"))) == (4, 0)


async def test_cleared_log_begins_anew() -> None:
    """What was said before can be forgotten; a log that ended hears no more."""
    with transition_log() as log:
        await live()
        log.clear()
        agent = await live("bo")
    await live("cy")
    assert log.events == log.of(agent) != []
