"""The pytest plugin: fixtures for testing agents, and options for the coverage of charts.

pytest loads it wherever prism is installed; ``docs/testing.md`` shows it at work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

# pytest loads this module for every suite of the machine, most of which have no agents:
# a fixture imports what it needs when it is used
if TYPE_CHECKING:
    from prism import testing
    from prism.statechart import AgentState, Statechart
    from prism.testing.coverage import CoveragePlugin

__all__ = [
    "fake_ollama",
    "fake_openai",
    "frozen_clock",
    "make_agent",
    "scripted_reasoner",
    "scripted_writer",
    "social_chart",
    "transition_log",
]

MadeT = TypeVar("MadeT", "testing.ScriptedReasoner", "testing.ScriptedWriter")

_COVERAGE: pytest.StashKey[CoveragePlugin] = pytest.StashKey()
_ENDED_EARLY: pytest.StashKey[bool] = pytest.StashKey()


@pytest.fixture
def social_chart(request: pytest.FixtureRequest) -> Statechart[AgentState]:
    """The chart of a social media agent, on the time of ``frozen_clock`` if the test uses it.

    A fixture of the project's own with that name is not called: the time is the real one.
    """
    from prism.statechart import social_media_chart

    if "frozen_clock" not in request.fixturenames:
        return social_media_chart()

    from prism.testing import FrozenClock

    # the project may have a fixture of its own with this name
    clock = request.getfixturevalue("frozen_clock")
    return social_media_chart(clock=clock if isinstance(clock, FrozenClock) else time.time)


@pytest.fixture
def make_agent() -> testing.AgentMaker:
    """A function that makes social agents: ``make_agent("ada", interests=["travel"])``."""
    from prism.testing import AgentMaker

    return AgentMaker()


@pytest.fixture
def scripted_reasoner(request: pytest.FixtureRequest) -> Iterator[testing.ScriptMaker]:
    """A function that makes a reasoner from a script: ``scripted_reasoner(["scrolling"])``.

    An unexpected question fails the test and shows the prompt; so do answers left over at its end.
    """
    from prism.testing import ScriptedReasoner

    yield from _used_up(ScriptedReasoner, request)


@pytest.fixture
def scripted_writer(request: pytest.FixtureRequest) -> Iterator[testing.WriterMaker]:
    """A function that makes a writer from a script: ``scripted_writer(["a text"])``.

    An unexpected call fails the test and shows the prompt; so do texts left over at its end.
    """
    from prism.testing import ScriptedWriter

    yield from _used_up(ScriptedWriter, request)


def _used_up(kind: type[MadeT], request: pytest.FixtureRequest) -> Iterator[Callable[[Any], MadeT]]:
    made: list[MadeT] = []

    def make(script: Any) -> MadeT:
        made.append(kind(script))
        return made[-1]

    yield make
    if not request.node.stash.get(_ENDED_EARLY, False):
        for each in made:
            each.assert_used_up()


@pytest.fixture
def transition_log() -> Iterator[testing.TransitionLog]:
    """The events of charts and reasoners during the test, whichever logger they use."""
    from prism.telemetry import instrumented
    from prism.testing import TransitionLog

    with instrumented(log := TransitionLog()):
        yield log


@pytest.fixture
def fake_ollama() -> Iterator[testing.FakeOllama]:
    """A programmable model server on loopback; ``fake_ollama.url`` is its address."""
    from prism.testing import FakeOllama

    with FakeOllama() as server:
        yield server


@pytest.fixture
def fake_openai() -> Iterator[testing.FakeOpenAI]:
    """A programmable OpenAI-compatible server on loopback; ``fake_openai.url`` is its address."""
    from prism.testing import FakeOpenAI

    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def frozen_clock() -> testing.FrozenClock:
    """A clock that only the test moves, for ``Statechart(..., clock=frozen_clock)``."""
    from prism.testing import FrozenClock

    return FrozenClock()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the coverage of charts."""
    group = parser.getgroup("statecharts", "statechart coverage (prism)")
    group.addoption(
        "--statechart-coverage",
        action="store_true",
        help="report which states, transitions and guard outcomes of charts were never exercised",
    )
    group.addoption(
        "--statechart-fail-under",
        type=float,
        metavar="PERCENT",
        help="fail if less than this was exercised",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start recording before the first conftest builds a chart."""
    _record(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Start recording now if a conftest has named this plugin, too late for the hook above."""
    _record(config, config.option)


def _record(config: pytest.Config, options: argparse.Namespace) -> None:
    least = options.statechart_fail_under
    is_wanted = options.statechart_coverage or least is not None
    if _COVERAGE in config.stash or not is_wanted:
        return

    from prism.testing.coverage import CoveragePlugin

    plugin = config.stash[_COVERAGE] = CoveragePlugin(least)
    config.pluginmanager.register(plugin, "statechart_coverage")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop recording."""
    if _COVERAGE in config.stash:
        config.stash[_COVERAGE].stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Remember which tests failed or were skipped: their scripts need not be used up."""
    made = yield
    if not made.get_result().passed:
        item.stash[_ENDED_EARLY] = True
