"""Agents that are objects of other classes: how they take part, and what is kept of them."""

import asyncio
import json
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run, replay
from prism.agents import SocialAgent
from prism.errors import AgentError, SimulationError
from prism.examples import Council
from prism.llm import Model
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.runs import WriterOptions
from prism.statechart import (
    AgentState,
    Statechart,
    TextCall,
    Transition,
    social_media_chart,
)
from prism.testing import FakeOllama, ScriptedWriter
from prism.worlds import Guest, World, measure, ring
from tests.kit.cognition import add, thought
from tests.kit.lamps import Lamp
from tests.kit.worlds import run_in, run_logged

Mood = StrEnum("Mood", ["CALM", "KEEN"])


class Plain:
    """An object of a class that knows nothing of prism."""

    def __init__(self) -> None:
        self.steps = 0

    def act(self, world: "Mixed") -> None:
        """Make a few steps."""
        self.steps += world.acting.random.index(3)


class Walker:
    """An object whose class has a chart."""

    chart = Statechart(
        Mood,
        [
            Transition("stirs", Mood.CALM, Mood.KEEN),
            Transition("stirs", Mood.CALM, Mood.CALM),
            Transition("rests", Mood.KEEN, Mood.CALM),
        ],
        Mood.CALM,
        name="walker",
        decision_states=[Mood.CALM],
    )

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.state = Mood.CALM
        self.answers: list[str] = []

    async def act(self, world: "Mixed") -> None:
        """Decide, and tell a neighbour."""
        me = world.acting
        if self.state is Mood.CALM:
            self.answers.append(str(await me.decide("stirs", prompt="Will you?")))
        else:
            me.fire("rests")
        me.send(me.random.choice(me.neighbours), len(self.answers))

    def persona(self) -> str:
        """Say who it is."""
        return f"You walk as {self.agent_id}."


class Reader(SocialAgent):
    """A user of a social network in a world of another kind."""

    chart = social_media_chart()

    async def act(self, world: "Mixed") -> None:
        """Look at a post of some relevance."""
        me = world.acting
        if self.state is AgentState.IDLE:
            me.fire("feed_ready")
        elif self.state is AgentState.SCROLLING:
            me.fire("sees_post", {"relevance": 0.9})
        else:
            await me.decide("decides", {"relevance": 0.9})


class Mixed(World[Any]):
    """Objects of three classes, and an agent of the world's own."""

    rounds = 6

    def populate(self, agents: int) -> list[Any]:
        """Make some of each."""
        made = [
            [Plain(), Guest(object=Walker(f"w{place}")), Reader(f"r{place}", interests=["tea"])]
            for place in range(agents // 4)
        ]
        return [each for some in made for each in some] + [Lamp() for _ in made]

    def setup(self) -> None:
        """Connect everybody."""
        self.network = ring(self, 2)

    @measure
    def steps(self) -> int:
        """Return the steps of those who count them."""
        return sum(
            each.steps for each in self.agents.where(kind=Guest) if isinstance(each.object, Plain)
        )


def test_objects_take_their_turns_in_the_order_of_the_population(tmp_path: Path) -> None:
    """Objects and agents are one population with one log; states are counted by their charts."""
    done = run_logged(tmp_path, Mixed(), 8, seed=1)
    joined = done.events("agent.joined")
    assert [each["agent_id"] for each in joined[:4]] == ["plain_1", "w0", "r0", "plain_2"]
    assert [each["chart"] for each in joined[:3]] == ["present", "walker", "social_media"]
    ended = done.run.finished[-1]
    assert ended.states["present"] == 2
    assert ended.measures["steps"] > 0
    assert {each["agent_id"] for each in done.events("statechart.transition")} >= {"w0", "r0"}


def test_the_guest_has_what_its_object_has() -> None:
    """Attributes are looked up in the object, and the persona is the object's."""
    agents = Run(Mixed(), 4).agents
    assert agents[0].steps == 0
    assert agents[1].persona() == "You walk as w0."
    assert agents[2].persona() == "You are r0."
    with pytest.raises(AttributeError, match="'Plain' object has no attribute 'stops'"):
        _ = agents[0].stops


class Other(World[Any]):
    """A world of whoever is given."""


def test_who_cannot_take_part_is_refused_at_once() -> None:
    """An object is refused before the first round, with what its class lacks."""
    with pytest.raises(AgentError, match="must return agents, or objects with act"):
        _ = Run(Other(), ["ada"]).agents


class Waiter:
    """An object that awaits a plan of things, each of which takes some turns of the loop."""

    def __init__(self, agent_id: str, turns: int, told: list[str]) -> None:
        self.agent_id = agent_id
        self.turns = turns
        self.told = told

    async def act(self, world: World[Any]) -> None:
        """Wait for a while, run out of time, and wait for somebody else's task."""
        self.told.append(f"{self.agent_id} begins")
        for _ in range(self.turns):
            await asyncio.sleep(0)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()

        await asyncio.ensure_future(asyncio.sleep(0))
        self.told.append(f"{self.agent_id} ends")


class Hall(World[Any]):
    """A world of those who wait."""

    rounds = 2

    async def tick(self) -> None:
        """Give turns in the order of the list."""
        await self.activate(self.agents)


def test_turns_follow_each_other_however_long_they_wait() -> None:
    """Nobody begins before the one before has ended, whoever waits longer."""
    told: list[str] = []
    Run(Hall(), [Waiter("a", 5, told), Waiter("b", 1, told)]).run()
    assert told == ["a begins", "a ends", "b begins", "b ends"] * 2


class Broken(Waiter):
    """An object whose turn fails while it waits."""

    async def act(self, world: World[Any]) -> None:
        """Fail after a while."""
        try:
            await asyncio.sleep(0)
            raise ValueError("no tea")
        finally:
            self.told.append("closed")


class Endless(Waiter):
    """An object whose turn never ends."""

    async def act(self, world: World[Any]) -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            self.told.append("closed")


def test_a_failure_names_whose_turn_it_was() -> None:
    """An exception is raised as it is, with a note of agent, round and tick."""
    told: list[str] = []
    with pytest.raises(ValueError, match="no tea") as caught:
        Run(Hall(), [Broken("a", 0, told)]).run()
    assert "in the step of <Broken a in present>, round 1, tick 1" in caught.value.__notes__
    assert told == ["closed"]


async def test_a_run_that_is_cancelled_leaves_no_turn_behind() -> None:
    """A turn that waits when its run is cancelled is cancelled, too."""
    told: list[str] = []
    run = asyncio.ensure_future(Run(Hall(), [Endless("a", 0, told)]).arun())
    for _ in range(5):
        await asyncio.sleep(0)

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert told == ["closed"]


YAML = """
name: diner
state_machine:
  states: [waiting, choosing]
steps:
  - name: count
    in_state: waiting
    code: |
      import random
      visits = context.get('visits', 0) + 1
      luck = random.random()
  - name: greet
    type: llm
    in_state: waiting
    prompt: "You are {agent_id}, here for the {visits}. time. What do you say?"
    output: text
    transition_to: choosing
  - name: choose
    type: transition
    in_state: choosing
    prompt: "You said {greet}. Respond with: stay or go"
    transition_map: {stay: choosing, go: waiting}
"""


def by_prompt(call: TextCall) -> Any:
    """Answer a call by its prompt alone."""
    return say(call.prompt)


class Table(World[Guest[WorkflowAgent]]):
    """Diners at a table."""

    rounds = 5

    def populate(self, agents: int) -> list[Guest[WorkflowAgent]]:
        """Give everybody the same workflow."""
        workflow = Workflow.from_text(YAML)
        return [
            Guest(object=WorkflowAgent(workflow, agent_id=f"diner_{number}"))
            for number in range(agents)
        ]


def say(prompt: str, *_more: Any) -> Any:
    """Answer by the prompt alone."""
    if "You are in the state thinking" in prompt:
        return thought("I should say so.", "executing")
    if "You are in the state executing" in prompt:
        return add("note", f"no. {sum(map(ord, prompt)) % 97}")
    if "Respond with" in prompt:
        return {"decision": ("stay", "go")[sum(map(ord, prompt)) % 2], "reasoning": "so be it"}

    return "Good evening."


def texts_of(log: bytes) -> list[dict[str, Any]]:
    """Return the texts of a log."""
    return [orjson.loads(line) for line in log.splitlines() if b'"text.written"' in line]


@pytest.mark.parametrize("world", [Table, Council])
@pytest.mark.sampled(2)
def test_a_run_with_a_model_is_killed_resumed_and_replayed(
    world: type[World[Any]], tmp_path: Path
) -> None:
    """Each call is sent once and paid from the run's budget, and a replay writes the same bytes."""
    with FakeOllama(models=["tiny"], write=say) as server:
        model = Model("tiny", hosts=(server.host,), mode="chat")
        options = Run(world, 3, seed=5, rounds=5, reasoner=model, writer=WriterOptions())
        run_in(tmp_path / "first", options, stops=(2, 3))
        asked = server.asked

    log = (tmp_path / "first" / "events.jsonl").read_bytes()
    texts = texts_of(log)
    # equal texts are written once
    assert {"model"} <= {each["source"] for each in texts} <= {"model", "cache"}
    # a member of the council thinks and acts in one round
    assert len(texts) == (30 if world is Council else 15)
    spent = json.loads((tmp_path / "first" / "run.json").read_text())["spent"]
    assert sum(each.get("attempts") or 0 for each in texts) == spent["calls"] == asked

    replay(tmp_path / "first", tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log
    run_in(tmp_path / "stopped", options.repeating(tmp_path / "first"), stops=(1, 4))
    assert (tmp_path / "stopped" / "events.jsonl").read_bytes() == log


def test_code_steps_take_no_time_in_a_world(tmp_path: Path) -> None:
    """What a clock on the wall says is not in the log, which would differ otherwise."""
    done = run_logged(tmp_path, Table(), 2, writer=ScriptedWriter(by_prompt), rounds=1)
    steps = done.events("workflow.step")
    assert [each["seconds"] for each in steps if each["type"] == "code"] == [0.0, 0.0]
    assert {each["timestamp"][:10] for each in steps} == {"2026-01-01"}


def test_without_a_writer_a_step_that_asks_is_an_error(tmp_path: Path) -> None:
    """The run ends, and the message says what to give it."""
    with pytest.raises(
        SimulationError, match=r"no writer: pass .* --writer ollama:MODEL on the command line"
    ):
        run_logged(tmp_path, Table(), 2, rounds=3)
