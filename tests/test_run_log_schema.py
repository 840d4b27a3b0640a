"""Everything that prism writes to a log is what the published schema says."""

import asyncio
import json
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run, resume
from prism.agents import synthetic_population
from prism.llm import Model, OllamaChatClient
from prism.programs.thinking import CognitiveAgent, Config, Cycle, Memory
from prism.programs.thinking import action as own_action
from prism.programs.thinking._replies import read_reply
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import Cost, Reasoner, Written
from prism.reasoner.requests import COST_KEYS
from prism.runlog import RunLog, SimulatedClock, configure
from prism.social import Feed
from prism.statechart import AgentState, Statechart, Transition
from prism.telemetry import events
from prism.telemetry.events import DECISION
from prism.testing import FakeOllama, Fault, ScriptedWriter
from tests.kit.cognition import (
    FIXED,
    LARGEST,
    action,
    add,
    letters,
    limited,
    thinker,
    thought,
    working,
)
from tests.kit.event_schema import faults_of, keys_by_event
from tests.kit.pictured import WORLDS
from tests.kit.worlds import run_logged
from tests.kit.writers import writer_of

S = AgentState
Lines = list[dict[str, Any]]

WORKFLOW = """
name: small
workflow:
  state_machine:
    states: [a, b, c]
    transitions:
      - a->b
      - {from: b, to: c, condition: ready}
      - b->a
  steps:
    - {name: count, type: code, code: "seen = context.get('seen', 0) + 1; ready = seen > 5"}
    - {name: fail, type: code, in_state: b, code: "1 / 0", on_failure: skip}
    - {name: see, type: llm, in_state: a, prompt: "{where}?", output: text, transition_to: b}
    - {name: go, type: transition, in_state: b, prompt: "?", transition_map: {"on": c, back: a}}
    - {name: last, type: llm, in_state: c, prompt: "?"}
"""


def read(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def simulate(folder: Path, reasoner: Any = None) -> Lines:
    """Run a small feed and return its log."""
    population = synthetic_population(12, seed=5)
    feed = Feed(first_posts=population.posts, preset="classic")
    options = {"rounds": 2, "seed": 5, "treatments": ["dislike_chance=0.4@1"]}
    return run_logged(folder, feed, population.agents, reasoner=reasoner, **options).events()


def with_a_model(folder: Path) -> Lines:
    """Run with a model that sometimes fails."""
    with FakeOllama(choose=lambda asked: asked.options[-1]) as server:
        client = OllamaChatClient(server.host, "llama3.2", attempts=1)
        server.fail(Fault.status(400, "no"), Fault.drop(), *[Fault.says("nonsense")] * 2)
        return simulate(folder, Reasoner(client, fallback=S.SCROLLING, seed=5))


def broken(agent: Any, context: Any) -> bool:
    raise LookupError("no such post")


def own_loop() -> None:
    """Cause faults in the functions of a chart, and events that do nothing."""
    moves = [
        Transition("look", S.IDLE, S.SCROLLING, guard=broken),
        Transition("look", S.IDLE, S.EVALUATING, action=broken),
        Transition("refused", S.IDLE, S.RESTING, guard=lambda _agent, _context: False),
    ]
    chart = Statechart(S, moves, S.IDLE)
    agent = SimpleNamespace(state=S.IDLE, agent_id="ada")
    for trigger in ("rest", "refused", "look", "look"):
        chart.fire(agent, trigger, {"post_id": "p1"})


class Waver(CognitiveAgent):
    """An agent with an action of its own."""

    @own_action
    def wave(self, times: int) -> str:
        """Wave."""
        return f"{self.agent_id} waves {times} times"


class Windowed(ScriptedWriter):
    """A writer of prepared texts whose model sees little."""

    async def window(self) -> int:
        """Return how many tokens it sees."""
        return 2 * LARGEST + 1_400


async def all_that_happens(logger: Any) -> None:
    """Run cycles in which all happens that can happen in a cycle."""
    usage = Cost(0.1, None, None, 1, 5, 7)
    told = thought("m9", "executing")
    writer = ScriptedWriter(
        [
            Written(told, "model", read_reply(told), cost=usage),
            add("a", "1"),
            add("b", "2"),
            "nothing of use",
            Written(None, "failed", reason="down"),
            thought("on", "executing"),
            action("storage_load", "nobody"),
            thought("on", "executing"),
            "nothing of use",
            thought("make room", "paging"),
        ]
    )
    data = {**working(10), "state": "dreaming", "storage": {"m0": "older"}}
    agent = thinker(writer, data, limited(FIXED + 800), count=letters, logger=logger)
    for _ in range(12):
        await agent.cycle()

    seeing = Windowed([thought("on")])
    await thinker(seeing, {}, count=letters, logger=logger).cycle()

    waves = "<agent><action><type>wave</type><times>3</times></action></agent>"
    for reply in (waves, action("storage_search", "older")):
        data = {"state": "executing", "storage": {"m0": "older"}}
        memory = Memory.in_memory(data)
        await Waver(Config(), memory, writer_of([reply]), logger=logger).cycle()


def interrupted_run(folder: Path) -> Path:
    """Run cycles that are stopped, and go on until nothing comes of them."""
    written = iter([thought("on")])
    config, memory = folder / "config.json", folder / "memory.json"
    config.write_text(Config().to_json())
    with FakeOllama(write=lambda *_: next(written, "nothing of use")) as server:
        model = Model("llama3.2", hosts=(server.url,))
        options = Run(config, memory=memory, rounds=9, reasoner=model)
        with suppress(InterruptedError):
            options.keep(folder / "thinking", on_round=_interrupt)
        resume(folder / "thinking")

    return folder / "thinking"


def _interrupt(_cycle: Cycle) -> None:
    raise InterruptedError


async def of_programs(path: Path) -> Lines:
    """Carry out a workflow, and all that a thinking agent does."""
    script = {"see": ["there", "here"], "go": ["on", "sideways", "sideways", "back", "on", "on"]}
    acting = {"reasoning": "it is time", "action": {"type": "wait"}}
    with RunLog(path, SimulatedClock()) as log:
        agent = WorkflowAgent(
            Workflow.from_text(WORKFLOW),
            ScriptedWriter({**script, "last": acting}),
            agent_id="ada",
            on_action=lambda _action: None,
            logger=log.logger,
        )
        for _ in range(6):
            await agent.turn()
        await all_that_happens(log.logger)

    return read(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Lines]]:
    """Return the logs of runs, programs and an application's own loop."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "turns.yaml").write_text("steps: [{name: count, code: 'seen = 1'}]\n")
    Run(folder / "turns.yaml", rounds=2).keep(folder / "turns")
    with configure(folder / "own.jsonl", details=True):
        own_loop()
    return {
        "simulations": [simulate(folder), with_a_model(folder)],
        "turns": [read(folder / "turns" / "events.jsonl")],
        "worlds": [run_logged(folder, *of).events() for of in WORLDS],
        "cycles": [read(interrupted_run(folder) / "events.jsonl")],
        "programs": [asyncio.run(of_programs(folder / "texts.jsonl"))],
        "own": [read(folder / "own.jsonl")],
    }


@pytest.fixture
def lines(logs: dict[str, list[Lines]]) -> Lines:
    """Return all lines of all logs."""
    return [*chain.from_iterable(chain.from_iterable(logs.values()))]


def test_every_line_is_as_the_reference_says(lines: Lines) -> None:
    """Every line has all required keys, no unknown ones, and values of their kinds."""
    assert faults_of(lines) == []
    assert len(faults_of([{**lines[0], "new": 1}, {**lines[0], "schema": "x"}])) == 2


def test_nearly_every_event_of_the_reference_occurs(lines: Lines) -> None:
    """The reference lists the events of the code; these logs hold most of them, and no others."""
    named = {value for name, value in vars(events).items() if name.isupper()}
    documented = keys_by_event().keys() - {""}
    assert documented == {name for name in named if isinstance(name, str)}
    written = {line["event"] for line in lines}
    assert {name for name in written if not name.startswith("world.")} <= documented
    assert len(written & documented) > 0.7 * len(documented)


def test_lines_of_a_run_have_round_and_tick(logs: dict[str, list[Lines]]) -> None:
    """Lines of a run begin with event, time, round and tick; logs with a start event."""
    for lines in (*logs["simulations"], *logs["turns"], *logs["worlds"]):
        assert all([*line][:4] == ["event", "timestamp", "round", "tick"] for line in lines)
        assert (lines[0]["event"], lines[-1]["event"]) == ("run.started", "run.ended")


def test_a_decision_has_all_keys_of_a_call_or_none(lines: Lines) -> None:
    """A decision has all keys of a model's call or none."""
    calls = {frozenset(line.keys() & set(COST_KEYS)) for line in lines if line["event"] == DECISION}
    assert calls == {frozenset(), frozenset(COST_KEYS)}
