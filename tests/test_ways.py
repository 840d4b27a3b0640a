"""How many files of prism a call enters: few, so that its way can be read."""

import asyncio
import gc
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import (
    SeedPost,
    SocialAgent,
    StatechartMixin,
)
from prism.cli import main
from prism.examples import Rumour
from prism.llm import OllamaChatClient
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import (
    AgentState,
    Question,
    Reasoner,
    Statechart,
    Transition,
    social_media_chart,
)
from prism.testing import FakeOllama, ReadingModel
from prism.worlds._loop import Loop
from tests.kit.ways import Way, table_of_ways

Light = StrEnum("Light", ["OFF", "ON"])

TICKS_UNTIL_THE_SECOND_DECISION = 10


class Lamp(StatechartMixin):
    """An agent as most applications write one."""

    state_type = Light
    agent_id = "lamp"


def a_fire() -> Way:
    """Follow a fire without guard, action, logger or context."""
    chart, agent = social_media_chart(), SocialAgent("ada")
    chart.fire(agent, "feed_ready")
    chart.fire(agent, "round_ends")

    way = Way()
    way.take(lambda: chart.fire(agent, "feed_ready"))
    assert agent.state is AgentState.SCROLLING
    return way


def a_logged_fire(folder: Path) -> Way:
    """Follow a fire with guard, action, context and a log."""
    with RunLog(folder / "events.jsonl", SimulatedClock()) as log:
        chart = Statechart(
            Light,
            [
                Transition(
                    "turns", Light.OFF, Light.ON, lambda lamp, by: True, lambda lamp, by: None
                ),
                Transition("turns", Light.ON, Light.OFF),
            ],
            Light.OFF,
            logger=log.logger,
        )
        lamp = Lamp()
        for _ in range(2):
            chart.fire(lamp, "turns", {"by": "ada"})

        way = Way()
        way.take(lambda: chart.fire(lamp, "turns", {"by": "ada"}))
    assert (folder / "events.jsonl").read_text(encoding="utf-8").count("\n") == 3
    return way


def an_answer() -> Way:
    """Follow a reasoner's second answer, from the question to the server and back."""
    ada = SocialAgent("ada", interests=["trains"])
    options = (AgentState.SCROLLING, AgentState.COMPOSING)
    asked = [
        Question(ada, AgentState.EVALUATING, "decides", options, post) for post in ("Dawn", "Dusk")
    ]

    way = Way()
    server = FakeOllama(models=["tiny"], reader=ReadingModel())
    with server, asyncio.Runner() as runner:
        reasoner = Reasoner(OllamaChatClient(server.host, "tiny"))
        answers = runner.run(reasoner.answer(asked[:1]))
        way.take(lambda: answers.extend(runner.run(reasoner.answer(asked[1:]))))
        runner.run(reasoner.close())

    assert [answer.source for answer in answers] == ["model", "model"]
    return way


def a_decision(folder: Path, *, committed: bool) -> Way:
    """Follow the second decision of a run: from the question until the simulation has the answer.

    Bo alone has something to decide, so that nobody else's steps come in between.

    Args:
        folder: Where the run's log goes.
        committed: Follow it on, until the transition is made, its guard evaluated again, and
            written to the log.
    """
    ada, bo = SocialAgent("ada", interests=["trains"]), SocialAgent("bo", interests=["music"])
    bo.engagement_threshold = 0.0
    songs = [SeedPost("ada", f"A song called {name}.", ("music",)) for name in ("Dawn", "Dusk")]
    clock = SimulatedClock()

    # a server that tells its window, as real ones do
    reader = ReadingModel()
    with (
        FakeOllama(models=["tiny"], reader=reader) as server,
        RunLog(folder / "log.jsonl", clock) as log,
    ):
        reasoner = Reasoner(OllamaChatClient(server.host, "tiny"))
        simulation = Run(
            Feed(first_posts=songs),
            [ada, bo],
            rounds=1,
            ticks=TICKS_UNTIL_THE_SECOND_DECISION,
            # of those seeds with which the other agent has no turn in between
            seed=1,
            reasoner=reasoner,
            logger=log.logger,
            clock=clock,
        )
        way = Way(
            "statechart/reasoner/_questions.py:made_of",
            "worlds/_overlap.py:OpenTicks._answered",
            returned=committed,
            after=1,
        )
        way.take(simulation.run)

    decisions = (folder / "log.jsonl").read_text(encoding="utf-8").count("reasoner.decision")
    assert decisions == 2
    return way


def a_simulation(monkeypatch: pytest.MonkeyPatch) -> Way:
    """Follow the second ``prism simulate`` of this process until its `Loop` is made."""
    for way in (Way(), Way()):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["prism", "simulate", "--agents", "5", "--rounds", "1"])
            patched.setattr(Loop, "__init__", _stop_counting(Loop.__init__))
            with pytest.raises(SystemExit):
                way.take(main)

    return way


def a_world(monkeypatch: pytest.MonkeyPatch) -> Way:
    """Follow the second ``prism run`` of this process to an agent's first step."""
    line = ["prism", "run", "rumour", "--set", "friends=8", "--agents", "20"]
    for way in [Way("", "examples/rumour.py:Rumour.talk") for _ in range(2)]:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", [*line, "--rounds", "1"])
            with pytest.raises(SystemExit):
                way.take(main)

    assert "worlds/_ticks.py" in way.files
    return way


def a_tick() -> Way:
    """Follow a tick of a rumour whose agents move and decide, and nobody logs it."""
    way = Way("worlds/_ticks.py:Ticks.run", "worlds/_ticks.py:Ticks.run", returned=True, after=12)
    run = Run(Rumour(), 200, rounds=30, seed=1)
    run.prepare(None)
    way.take(run.run)

    assert "examples/rumour.py" in way.files
    return way


def _stop_counting(make: Any) -> Any:
    def made(*arguments: Any, **options: Any) -> None:
        sys.setprofile(None)
        make(*arguments, **options)

    return made


def test_a_fire_enters_few_files() -> None:
    """A plain fire enters at most 4 files."""
    assert len(a_fire().files) <= 4


def test_a_logged_fire_enters_few_files(tmp_path: Path) -> None:
    """A fire with guard, action, context and a log enters at most 7 files."""
    assert len(a_logged_fire(tmp_path).files) <= 7


def test_a_decision_enters_few_files(tmp_path: Path) -> None:
    """A decision enters at most 15 files from the question to the server and back."""
    assert len(a_decision(tmp_path, committed=False).files) <= 15


def test_an_answer_enters_few_files() -> None:
    """A reasoner's answer enters at most 12 files on the way to the server and back."""
    way = an_answer()
    assert len(way.files) <= 12
    assert {"llm/_wire.py", "llm/_ollama.py"} <= {*way.files}


def test_a_simulation_is_reached_through_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """``prism simulate`` reaches its simulation through at most 11 files."""
    assert len(a_simulation(monkeypatch).files) <= 11


def test_a_step_of_a_world_is_reached_through_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """``prism run rumour`` reaches its first step through at most 34 files."""
    assert len(a_world(monkeypatch).files) <= 34


def test_a_tick_of_a_world_is_read_in_few_files() -> None:
    """A tick of a world enters at most 5 files of the kernel of worlds."""
    of_worlds = [each for each in a_tick().files if each.startswith("worlds/_")]
    assert len(of_worlds) <= 5, of_worlds


def test_the_architecture_page_has_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table on the architecture page says what is counted here."""
    ways = {
        "a plain fire": a_fire(),
        "a fire with guard, action and log": a_logged_fire(tmp_path),
        "a question to a reasoner, until it has the answer": an_answer(),
        "a decision, until the simulation has the answer": a_decision(tmp_path, committed=False),
        "`prism simulate`, until its simulation is made": a_simulation(monkeypatch),
        "`prism run`, until an agent's first step": a_world(monkeypatch),
    }
    for name, way in ways.items():
        assert way.row(name) in table_of_ways(), (name, way.files, way.changes)


def test_what_others_have_left_is_not_on_the_way() -> None:
    """A generator of prism's that is garbage is closed before a call is followed."""
    clock = SimulatedClock()
    left: list[Any] = [clock.at(clock.moment)]
    left[0].__enter__()
    left.append(left)
    del left

    way = Way()
    way.take(gc.collect)
    assert way.files == []
