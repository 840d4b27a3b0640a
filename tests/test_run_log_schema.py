"""Everything that prism writes to a log is what the page of events says."""

import asyncio
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.llm import Model, OllamaChatClient
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import Router
from prism.reasoner._spending import COST_KEYS
from prism.runlog import (
    PromptLog,
    RunLog,
    SimulatedClock,
    configure,
)
from prism.social import Feed
from prism.statechart import (
    AgentState,
    Cost,
    Question,
    Reasoner,
    Statechart,
    TextCall,
    Transition,
    Writer,
    Written,
)
from prism.telemetry import events
from prism.telemetry.events import DECISION
from prism.testing import FakeOllama, FakeOpenAI, Fault, ScriptedWriter
from prism.worlds import treatment
from tests.kit.cognition import all_that_happens, interrupted_run
from tests.kit.event_schema import faults_of, keys_by_event
from tests.kit.pictured import WORLDS
from tests.kit.social import run_of_feed
from tests.kit.worlds import run_logged

S = AgentState
Lines = list[dict[str, Any]]


class Befriending(Feed):
    """A feed in which a treatment has agents do all that there is about others."""

    @treatment
    def befriend(self) -> None:
        """Follow somebody, take it back, and let somebody leave."""
        for act in (self.follow, self.unfollow):
            act(*self.agents[:2])
        self.agents[-1].leave()


SHOWN = {"logs_follows": True, "shows_scores": True, "dislike_chance": 0.5, "up_treated": 0.5}


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
    - {name: never, type: llm, prompt: "?", run_if: "missing"}
    - {name: see, type: llm, in_state: a, prompt: "{where}?", output: text, transition_to: b}
    - {name: go, type: transition, in_state: b, prompt: "?", transition_map: {"on": c, back: a}}
    - {name: last, type: llm, in_state: c, prompt: "?"}
"""


class Answers:
    """A client whose replies have only an answer."""

    async def get_response(self, prompt: str, **settings: Any) -> str:
        return '{"next_state": "scrolling"}'


NEEDED_IN_A_RUN = (
    *("agent_id", "name", "archetype", "interests", "following", "state", "pending_action"),
    *("timeout_threshold", "ticks_in_state", "state_history"),
)


class Contrary(SocialAgent):
    """An agent that asks for no relevance."""

    def should_engage(self, context: Any) -> bool:
        return False


class MovesOn:
    """A reasoner whose answer comes too late."""

    def __init__(self, chart: Any) -> None:
        self._chart = chart

    async def decide(
        self, agent: Any, state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        self._chart.fire(agent, "rest")
        return options[-1]


def stranger(interests: Any) -> Any:
    """Return an agent of another engine, which has only what a run asks for."""
    like = SocialAgent("stranger", interests=interests)
    fields = {name: getattr(like, name) for name in NEEDED_IN_A_RUN}
    return SimpleNamespace(**fields, should_engage=lambda post: False)


def read(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def words_of_all() -> ScriptedWriter:
    """Return a writer whose texts have each origin in turn."""
    sources: Any = cycle(["model", "cache", "replay", "script", "fallback"])
    return ScriptedWriter(lambda call: Written(call.fallback, next(sources), call.fallback))


def simulate(
    path: Path,
    reasoner: Any = None,
    agents: int = 12,
    writer: Any = None,
    treatments: Sequence[str] = (),
    parameters: dict[str, Any] | None = None,
    world: Feed | None = None,
    **options: Any,
) -> Lines:
    """Run a small simulation and return its log."""
    population, clock = synthetic_population(agents, seed=5), SimulatedClock()
    plain = SocialAgent("plain", interests=["music"], attributes={"age": 40})
    with RunLog(path, clock) as log:
        run_of_feed(
            [
                *population.agents,
                plain,
                Contrary("contrary", interests=population.agents[0].interests),
            ],
            population.posts,
            parameters=parameters or {"preset": "classic"},
            world=world,
            rounds=2,
            ticks=9,
            seed=5,
            reasoner=reasoner,
            writer=writer,
            treatments=treatments,
            logger=log.logger,
            clock=clock,
            **options,
        ).run()
    return read(path)


def with_a_model(folder: Path, mode: Any) -> Iterator[Lines]:
    """Run with a model that sometimes fails; equal questions are asked once."""
    with FakeOllama(
        choose=lambda asked: asked.options[len(asked.prompt) % len(asked.options)]
    ) as server:
        reasoner = Reasoner(
            OllamaChatClient(server.host, "llama3.2", attempts=1, concurrency=8),
            mode=mode,
            asks_once=True,
            fallback=S.SCROLLING,
            seed=5,
            reasons=True,
            rotations="drawn",
        )
        for run in ("asked", "known"):
            server.fail(
                Fault.status(400, "no"),
                Fault.drop(),
                Fault.says("nonsense"),
                Fault.weighs({"idle": 1.0}),
            )
            yield simulate(folder / f"{mode}-{run}.jsonl", reasoner)


def broken(agent: Any, context: Any) -> bool:
    raise LookupError("no such post")


async def own_loop(folder: Path) -> None:
    """Cause every kind of fault."""
    moves = [
        Transition("look", S.IDLE, S.SCROLLING, guard=broken),
        Transition("look", S.IDLE, S.EVALUATING, action=broken),
        Transition("decide", S.EVALUATING, S.COMPOSING),
        Transition("decide", S.EVALUATING, S.SCROLLING),
        Transition("rest", S.EVALUATING, S.RESTING),
        Transition("refused", S.IDLE, S.RESTING, guard=lambda _agent, _context: False),
    ]
    chart = Statechart(S, moves, S.IDLE, decision_states=[S.EVALUATING])
    agent = SimpleNamespace(state=S.IDLE, agent_id="ada")
    chart.fire(agent, "rest")
    chart.fire(agent, "refused", {"post_id": "p1"})
    chart.fire(agent, "look", {"post_id": "p1"})
    await chart.afire(agent, "decide", reasoner=MovesOn(chart))
    chart.fire_to(agent, "decide", S.SCROLLING)
    question = Question(
        SocialAgent("bo", interests=["tea"]), S.EVALUATING, "decide", (S.SCROLLING,)
    )
    for reasoner in (
        Reasoner(Answers()),
        Reasoner(Answers()),
    ):
        await reasoner.decide_many([question])
    with FakeOpenAI() as server:
        server.fail_always(Fault.weighs({"A": 0.6, "B": 0.3, "Sure": 0.1}))
        async with Model("llama3.2", [server.host], server="openai").as_client() as pool:
            wide = replace(question, options=(S.SCROLLING, S.IDLE))
            await Reasoner(pool, mode="decision").decide_many([wide])
    with PromptLog(folder / "answers.jsonl") as record:
        await Reasoner(Answers(), record=record).decide_many([question])
        await Writer(Answers(), record=record).write(TextCall("bo", "k", "Hi?"))


async def of_texts(folder: Path) -> Lines:
    """Have texts written by each kind of writer, and a workflow carried out by one of them."""
    first, again = folder / "texts.jsonl", folder / "texts-again.jsonl"
    call, safe = (
        TextCall("ada", "k", "Hi?", cuts=lambda _text: True),
        TextCall("ada", "k", "Hi?", fallback="Hi."),
    )
    with FakeOllama(write=lambda prompt, schema: "Hello.") as server:
        server.fail(*[Fault.status(400, "content_filter")] * 2, Fault.status(400, "no"))
        async with OllamaChatClient(server.host, "llama3.2") as client:
            with RunLog(first, SimulatedClock()) as log:
                writer = Writer(client, asks_once=True, logger=log.logger)
                for each in (call, safe, call, call):
                    await writer.write(each)
                server.fail(Fault.says("no number"))
                await writer.write(TextCall("ada", "n", "How many?", read=int, most_requests=2))

    with RunLog(again, SimulatedClock()) as log:
        await carry_out(log.logger)
        await all_that_happens(log.logger)

    return [*read(first), *read(again)]


async def carry_out(logger: Any) -> None:
    """Carry out a workflow whose steps do all that a step may do."""
    usage = Written("here", "model", "here", cost=Cost(0.1, None, None, 1, 5, 7))
    script = {
        "see": ["there", usage],
        "go": ["on", "sideways", "sideways", "back", "on", "on", "on"],
    }
    acting = {"reasoning": "it is time", "action": {"type": "wait"}}
    agent = WorkflowAgent(
        Workflow.from_text(WORKFLOW),
        ScriptedWriter({**script, "last": [acting, Written(None, "failed", reason="gone")]}),
        agent_id="ada",
        on_action=lambda _action: None,
        logger=logger,
    )
    for _ in range(8):
        await agent.turn()

    assert agent.failure == "step 'last': gone"
    assert agent.state.value == "c"
    # the definition that it is restored by has no such state any more
    without_it = WORKFLOW.replace("b, c]", "b]").replace('"on": c, ', "")
    without_it = without_it.replace("      - {from: b, to: c, condition: ready}\n", "")
    without_it = without_it.replace('  - {name: last, type: llm, in_state: c, prompt: "?"}\n', "")
    earlier = Workflow.from_text(without_it)
    again = WorkflowAgent(earlier, ScriptedWriter({}), agent.to_dict(), logger=logger)
    assert again.state.value == "a"


def run_turns(folder: Path) -> Lines:
    """Run the turns of a workflow that asks nobody, as a run that is kept."""
    file = folder / "turns.yaml"
    file.write_text("steps: [{name: count, code: 'seen = 1'}]\n")
    Run(file, rounds=2).keep(folder / "turns")
    return read(folder / "turns" / "events.jsonl")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Lines]]:
    """Return the logs of simulations and of an application's own loop."""
    folder = tmp_path_factory.mktemp("logs")
    router = Router({"all": Reasoner(Answers(), model="any")}, lambda agent: "all")
    simulations = [
        simulate(folder / "policy.jsonl"),
        *with_a_model(folder, "chat"),
        *with_a_model(folder, "decision"),
        simulate(folder / "by-agent.jsonl", router),
        simulate(folder / "words.jsonl", agents=40, writer=words_of_all()),
        simulate(folder / "shown.jsonl", parameters=SHOWN, log_agents=12),
        simulate(folder / "friends.jsonl", world=Befriending(), treatments=["befriend@1"]),
        simulate(folder / "set.jsonl", treatments=["dislike_chance=0.4@1"]),
    ]
    structlog.reset_defaults()
    with configure(folder / "own.jsonl", details=True):
        asyncio.run(own_loop(folder))
    with pytest.raises(ValueError, match="ink"), configure(folder / "failed.jsonl"):
        raise ValueError("no ink")
    return {
        "simulations": simulations,
        "turns": [run_turns(folder)],
        "cycles": [read(interrupted_run(folder) / "events.jsonl")],
        "worlds": [run_logged(folder, *of).events() for of in WORLDS],
        "texts": [asyncio.run(of_texts(folder))],
        "own": [read(folder / "own.jsonl"), read(folder / "failed.jsonl")],
    }


@pytest.fixture
def seen(logs: dict[str, list[Lines]]) -> Lines:
    """Return all lines of all logs."""
    return [*chain.from_iterable(chain.from_iterable(logs.values()))]


def test_every_line_is_as_the_page_says(seen: Lines) -> None:
    """Every line has all required keys, no unknown ones, and values of their kinds."""
    assert faults_of(seen) == []


def test_everything_on_the_page_is_written(seen: Lines) -> None:
    """Every event of the code is on the page; every key occurs, and every optional one is missing.

    So do every null and every text that the page allows.
    """
    named = {name for name in vars(events) if name.isupper() and name != "SCHEMA_VERSION"}
    assert {getattr(events, name) for name in named} == keys_by_event().keys() - {""}
    lines: dict[str, Lines] = defaultdict(list)
    for line in seen:
        lines[line["event"]].append(line)
    for event, keys in keys_by_event().items():
        for key, words in keys.items() if event else ():
            values = [line[key] for line in lines[event] if key in line]
            allowed = words.partition(", optional")[0]
            texts = re.findall("`([^`]+)`", allowed) if allowed.startswith("`") else ()
            assert values, f"{event} never had {key}"
            assert {*texts} <= {*map(str, values)}, f"{event}: {key}"
            assert " or null" not in allowed or None in values, f"{event}: {key}"
            is_missing = len(values) < len(lines[event])
            assert is_missing or ", optional" not in words, f"{event}: {key}"


def test_lines_of_a_simulation_have_round_and_tick(logs: dict[str, list[Lines]]) -> None:
    """Lines of a simulation begin with event, time, round and tick; logs with a start event."""
    for lines in (*logs["simulations"], *logs["turns"], *logs["worlds"]):
        assert all([*line][:4] == ["event", "timestamp", "round", "tick"] for line in lines)
    whole = [lines for name, found in logs.items() if name != "texts" for lines in found]
    for lines in whole:
        assert (lines[0]["event"], lines[-1]["event"]) == ("run.started", "run.ended")


def test_no_key_is_an_attribute_of_a_log_record() -> None:
    """No key is an attribute of the standard library's log records."""
    record = {*vars(logging.makeLogRecord({})), "message", "asctime"}
    assert not {key for keys in keys_by_event().values() for key in keys} & record


def test_a_decision_has_all_keys_of_a_call_or_none(seen: Lines) -> None:
    """A decision has all keys of a model's call or none."""
    calls = {frozenset(line.keys() & set(COST_KEYS)) for line in seen if line["event"] == DECISION}
    assert calls == {frozenset(), frozenset(COST_KEYS)}
