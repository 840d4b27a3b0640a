"""Agents that are objects of other classes: how they take part, and what is kept of them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run, replay
from prism.agents import SocialAgent
from prism.errors import AgentError
from prism.llm import Model
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.runs import WriterOptions
from prism.statechart import AgentState, social_media_chart
from prism.testing import FakeOllama
from prism.worlds import Guest, World, small_world
from tests.kit.lamps import Lamp
from tests.kit.worlds import Mood, Teller, run_in, run_logged


class Plain:
    """An object of a class that knows nothing of prism."""

    def __init__(self) -> None:
        self.steps = 0

    def act(self, world: "Mixed") -> None:
        self.steps += world.acting.random.index(3)


class Walker:
    """An object whose class has a chart."""

    chart = Teller.chart

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.state = Mood.CALM
        self.answers: list[str] = []

    async def act(self, world: "Mixed") -> None:
        me = world.acting
        await asyncio.sleep(0)
        if self.state is Mood.CALM:
            self.answers.append(str(await me.decide("hears", prompt="Will you?")))
        else:
            me.fire("rests")
        me.send(me.random.choice(me.neighbours), len(self.answers))

    def persona(self) -> str:
        return f"You walk as {self.agent_id}."


class Reader(SocialAgent):
    """A user of a social network in a world of another kind."""

    chart = social_media_chart()

    async def act(self, world: "Mixed") -> None:
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
        made = [
            [Plain(), Guest(object=Walker(f"w{place}")), Reader(f"r{place}", interests=["tea"])]
            for place in range(agents // 4)
        ]
        return [each for some in made for each in some] + [Lamp() for _ in made]

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)


def test_objects_take_their_turns_in_the_order_of_the_population(tmp_path: Path) -> None:
    """Objects and agents are one population with one log; states are counted by their charts."""
    done = run_logged(tmp_path, Mixed(), 8, seed=1)
    joined = done.events("agent.joined")
    assert [each["agent_id"] for each in joined[:4]] == ["plain_1", "w0", "r0", "plain_2"]
    assert [each["chart"] for each in joined[:3]] == ["present", "teller", "social_media"]
    ended = done.run.finished[-1]
    assert ended.states["present"] == 2
    assert done.run.agents[0].steps > 0
    assert {each["agent_id"] for each in done.events("statechart.transition")} >= {"w0", "r0"}
    assert {each["agent_id"] for each in done.events("reasoner.decision")} >= {"w0", "r0"}


def test_the_guest_has_what_its_object_has() -> None:
    """Attributes are looked up in the object, and the persona is the object's."""
    agents = Run(Mixed(), 4).agents
    assert agents[0].steps == 0
    assert agents[1].persona() == "You walk as w0."
    assert agents[2].persona() == "You are r0."
    with pytest.raises(AttributeError, match="'Plain' object has no attribute 'stops'"):
        _ = agents[0].stops


def test_who_cannot_take_part_is_refused_at_once() -> None:
    """An object is refused before the first round, with what its class lacks."""
    with pytest.raises(AgentError, match="'ada' is no agent, and has no act"):
        _ = Run(Mixed(), ["ada"]).agents


class Waiter:
    """An object that waits for something in its turn, and notes the beginning and the end."""

    def __init__(self, agent_id: str, waits: Callable[[], Awaitable[Any]], told: list[str]) -> None:
        self.agent_id, self.waits, self.told = agent_id, waits, told

    async def act(self, world: World[Any]) -> None:
        self.told.append(f"{self.agent_id} begins")
        try:
            await self.waits()
        finally:
            self.told.append(f"{self.agent_id} ends")


class Hall(World[Any]):
    """A world of those who wait."""

    rounds = 2

    async def tick(self) -> None:
        await self.activate(self.agents)


async def long() -> None:
    """Wait for some turns of the loop, run out of time, and wait for somebody else's task."""
    for _ in range(5):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    await asyncio.ensure_future(asyncio.sleep(0))


def short() -> Awaitable[None]:
    """Wait for one turn of the loop."""
    return asyncio.sleep(0)


async def broken() -> None:
    """Fail after a while."""
    await asyncio.sleep(0)
    raise ValueError("no tea")


def test_turns_follow_each_other_however_long_they_wait() -> None:
    """Nobody begins before the one before has ended, whoever waits longer."""
    told: list[str] = []
    Run(Hall(), [Waiter("a", long, told), Waiter("b", short, told)]).run()
    assert told == ["a begins", "a ends", "b begins", "b ends"] * 2


def test_a_failure_names_whose_turn_it_was() -> None:
    """An exception is raised as it is, with a note of agent, round and tick."""
    told: list[str] = []
    with pytest.raises(ValueError, match="no tea") as caught:
        Run(Hall(), [Waiter("a", broken, told)]).run()
    assert "in the step of <Waiter a in present>, round 1, tick 1" in caught.value.__notes__
    assert told == ["a begins", "a ends"]


async def test_a_run_that_is_cancelled_leaves_no_turn_behind() -> None:
    """A turn that waits when its run is cancelled is cancelled, too."""
    told: list[str] = []
    endless = Waiter("a", lambda: asyncio.Event().wait(), told)
    run = asyncio.ensure_future(Run(Hall(), [endless]).arun())
    for _ in range(5):
        await asyncio.sleep(0)

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert told == ["a begins", "a ends"]


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


class Table(World[Guest[WorkflowAgent]]):
    """Diners at a table."""

    rounds = 5

    def populate(self, agents: int) -> list[Guest[WorkflowAgent]]:
        workflow = Workflow.from_text(YAML)
        return [
            Guest(object=WorkflowAgent(workflow, agent_id=f"diner_{number}"))
            for number in range(agents)
        ]


def say(prompt: str, *_more: Any) -> Any:
    """Answer by the prompt alone."""
    if "Respond with" in prompt:
        return {"decision": ("stay", "go")[sum(map(ord, prompt)) % 2], "reasoning": "so be it"}

    return "Good evening."


def test_a_run_with_a_model_is_killed_resumed_and_replayed(tmp_path: Path) -> None:
    """Each call is sent once and paid from the run's budget, and a replay writes the same bytes.

    What a clock on the wall says is not in the log, which would differ otherwise.
    """
    with FakeOllama(models=["tiny"], write=say) as server:
        model = Model("tiny", hosts=(server.host,), mode="chat")
        options = Run(Table, 3, seed=5, rounds=5, reasoner=model, writer=WriterOptions())
        run_in(tmp_path / "first", options, stops=(2, 3))
        asked = server.asked

    log = (tmp_path / "first" / "events.jsonl").read_bytes()
    events = [orjson.loads(line) for line in log.splitlines()]
    texts = [each for each in events if each["event"] == "text.written"]
    # equal texts are written once
    assert {"model"} <= {each["source"] for each in texts} <= {"model", "cache"}
    assert len(texts) == 15
    spent = json.loads((tmp_path / "first" / "run.json").read_text())["spent"]
    assert sum(each.get("attempts") or 0 for each in texts) == spent["calls"] == asked
    steps = [each for each in events if each["event"] == "workflow.step"]
    assert {each["seconds"] for each in steps if each["type"] == "code"} == {0.0}
    assert {each["timestamp"][:10] for each in steps} == {"2026-01-01"}

    replay(tmp_path / "first", tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log
    run_in(tmp_path / "stopped", options.repeating(tmp_path / "first"), stops=(1, 4))
    assert (tmp_path / "stopped" / "events.jsonl").read_bytes() == log
