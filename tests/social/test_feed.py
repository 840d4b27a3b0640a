"""The feed as a world: parameters, treatments, measures and events of one's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import runs
from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError, SimulationError
from prism.runlog import RunLog, SimulatedClock
from prism.social import Draft, Feed, Post, Simulation, SocialRun
from prism.statechart import AgentState, PolicyReasoner, RandomStream
from prism.testing import LateReasoner
from prism.worlds import Run, WorldRun, measure, state, treatment
from tests.kit.worlds import run_in

AGENTS, ROUNDS = 40, 4


class Warned(Feed):
    """A feed whose readers are warned, and which counts what was published by warned ones."""

    rounds = ROUNDS
    threshold: float = 0.3
    warned: int = state(0)

    def should_engage(self, agent: SocialAgent, post: Post) -> bool:
        """Engage from the feed's threshold on."""
        return agent.relevance(post) > self.threshold

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Say one thing only, and tell of it."""
        self.log("composed", agent=agent, about=post.post_id)
        return Draft("reply", "Is that so?", post.topics)

    @treatment
    def warning(self) -> None:
        """Warn everybody, in the name of the first agent."""
        self.threshold = 0.9
        self.warned += len(self.agents)
        self.publish(self.agents[0], "Think before you share.", ["trust"])

    @measure
    def replies(self) -> int:
        """Return the number of replies so far."""
        return sum(post.kind == "reply" for post in self.posts)

    @measure
    def idle(self) -> float:
        """Return the share of agents that do nothing."""
        return self.share(AgentState.IDLE)

    @measure
    def warned_so_far(self) -> int:
        """Return how many have been warned."""
        return self.warned


class Loud(Feed):
    """A feed that does what it must not."""

    mode: str = "measure"

    def setup(self) -> None:
        if self.mode == "setup":
            self.publish(self.agents[0], "Too early.")

    def round_begins(self) -> None:
        if self.mode == "stranger":
            self.publish("nobody", "By nobody.")

    @measure
    def noise(self) -> int:
        """Publish instead of measuring."""
        if self.mode == "measure":
            self.publish(self.agents[0], "Too late.")
        return 0


def logged(path: Path, world: Feed | None, **options: Any) -> list[dict[str, Any]]:
    """Return the events of a run."""
    population, clock = synthetic_population(AGENTS), SimulatedClock()
    with RunLog(path, clock) as log:
        given = {"rounds": ROUNDS, "logger": log.logger, "clock": clock, **options}
        Simulation(population.agents, population.posts, world=world, **given).run()
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_a_feed_of_ones_own_is_a_world(tmp_path: Path) -> None:
    """Parameters, treatments, measures and events of a feed stand in the log as any world's do."""
    events = logged(tmp_path / "log", Warned(threshold=0.1), treatments=["warning@3"])
    assert events[0].items() >= {"world": "Warned", "parameters": {"threshold": 0.1}}.items()
    ended = [event for event in events if event["event"] == "round.ended"]
    rounds = [event["measures"] for event in ended]
    assert [each["warned_so_far"] for each in rounds] == [0, 0, AGENTS, AGENTS]
    assert rounds[2]["replies"] > rounds[1]["replies"] > 0
    assert [each["idle"] * AGENTS for each in rounds] == [
        event["states"]["idle"] for event in ended
    ]

    (treated,) = [event for event in events if event["event"] == "treatment.applied"]
    assert (treated["round"], treated["parameters"]) == (3, {"threshold": 0.9})
    posts = [event for event in events if event["event"] == "post.published"]
    (warning,) = [post for post in posts if post["text"] == "Think before you share."]
    assert (warning["agent_id"], warning["round"], warning["tick"]) == ("agent_0001", 3, 0)
    composed = [event for event in events if event["event"] == "world.composed"]
    assert len(composed) == sum(post["kind"] == "reply" for post in posts)


def test_a_warning_is_heeded(tmp_path: Path) -> None:
    """What a treatment changes holds from its round on, and for nothing before it."""
    plain, treated = (
        logged(tmp_path / str(len(treatments)), Warned(), treatments=treatments)
        for treatments in ([], ["warning@3"])
    )

    def weighed(events: list[dict[str, Any]], *rounds: int) -> list[Any]:
        return [
            (event["agent_id"], event["chosen"])
            for event in events
            if event["event"] == "reasoner.decision" and event["round"] in rounds
        ]

    assert weighed(plain, 1, 2) == weighed(treated, 1, 2)
    assert len(weighed(treated, 3, 4)) < len(weighed(plain, 3, 4))


def test_a_plain_feed_writes_what_a_simulation_writes(tmp_path: Path) -> None:
    """`Run`, `Simulation`, ``SocialRun`` and ``WorldRun`` of the feed write the same bytes."""
    written = []
    for make in (Run, None):
        clock, population = SimulatedClock(), synthetic_population(AGENTS, seed=3)
        with RunLog(tmp_path / f"{make}", clock) as log:
            given: Any = {"seed": 3, "logger": log.logger, "clock": clock}
            run = (
                Simulation(population.agents, population.posts, **given)
                if make is None
                else make(Feed(), AGENTS, **given)
            )
            run.run()
        written.append(log.path.read_bytes())

    for options in (SocialRun(AGENTS, seed=3), WorldRun(Feed, AGENTS, seed=3)):
        folder = tmp_path / type(options).__name__
        runs.begin(options, folder)  # type: ignore[type-var]
        written.append((folder / "events.jsonl").read_bytes())

    assert len(set(written)) == 1


@pytest.mark.parametrize("stops", [[1], [2, 3]])
def test_a_feed_that_is_stopped_goes_on_to_the_same_bytes(stops: list[int], tmp_path: Path) -> None:
    """Stopped after any rounds and resumed, a feed of one's own ends with the same files."""
    options = WorldRun(Warned, AGENTS, treatments=("warning@2",), seed=1)
    assert run_in(tmp_path / "stopped", options, stops) == run_in(tmp_path / "whole", options)


def test_when_answers_come_changes_nothing(tmp_path: Path) -> None:
    """Events of the feed's own keep their place where agents go on while others wait."""
    late = LateReasoner(PolicyReasoner(), most_turns=59)
    logs = [
        logged(tmp_path / str(number), Warned(), reasoner=reasoner, treatments=["warning@2"])
        for number, reasoner in enumerate([late, PolicyReasoner()])
    ]
    assert late.overtaken > 0
    assert logs[0] == logs[1]


def test_any_process_writes_the_same_bytes(tmp_path: Path) -> None:
    """Another process with another hash seed writes the same log."""
    code = f"""
from pathlib import Path
from tests.social.test_feed import Warned, logged
logged(Path({str(tmp_path / "other")!r}), Warned(), treatments=["warning@3"])
"""
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    logged(tmp_path / "here", Warned(), treatments=["warning@3"])
    assert (tmp_path / "other").read_bytes() == (tmp_path / "here").read_bytes()


@pytest.mark.parametrize(
    ("mode", "error", "problem"),
    [
        ("measure", SimulationError, "Loud cannot publish: a measure only looks"),
        ("setup", SimulationError, "the first round has not begun; let opening return"),
        ("stranger", FieldValueError, "by agents of the population, got 'nobody'"),
    ],
)
def test_publishing_at_the_wrong_place_is_refused(
    mode: str, error: type[Exception], problem: str
) -> None:
    """Posts are published in rounds, by agents of the population, and not by a measure."""
    with pytest.raises(error, match=problem):
        Run(Loud(mode=mode), 5, rounds=1).run()


def test_two_who_say_what_is_relevant_are_refused() -> None:
    """A feed that says who engages, and a simulation that does, contradict each other."""
    agents = synthetic_population(3).agents
    with pytest.raises(FieldValueError, match="Warned has a should_engage of its own"):
        Simulation(agents, world=Warned(), should_engage=lambda agent, post: True)


def test_run_json_has_the_feeds_parameters(tmp_path: Path) -> None:
    """What a run of a feed was stands in run.json."""
    runs.begin(WorldRun(Warned, 5, parameters={"threshold": "0.2"}), tmp_path / "run")
    config = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["config"]
    assert config["parameters"] == {"threshold": 0.2}
    assert config["world"] == "tests.social.test_feed:Warned"
