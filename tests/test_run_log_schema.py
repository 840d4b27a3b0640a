"""Everything that prism writes to a log is what the published schema says."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.llm import Model, OllamaChatClient
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import Router
from prism.reasoner._spending import COST_KEYS
from prism.runlog import (
    RunLog,
    SimulatedClock,
    configure,
)
from prism.runlog._events import COMMON, EVENTS, Key, json_schema
from prism.runs import WriterOptions
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
from prism.telemetry.events import DECISION
from prism.testing import FakeOllama, FakeOpenAI, Fault, ScriptedWriter
from prism.worlds import treatment
from tests.kit.cognition import all_that_happens, interrupted_run
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
            fallback=S.SCROLLING,
            seed=5,
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
    await Reasoner(Answers()).decide_many([question])
    with FakeOpenAI() as server:
        server.fail_always(Fault.weighs({"A": 0.6, "B": 0.3, "Sure": 0.1}))
        async with Model("llama3.2", [server.host], server="openai").as_client() as pool:
            wide = replace(question, options=(S.SCROLLING, S.IDLE))
            await Reasoner(pool, mode="auto").decide_many([wide])
    await Writer(Answers()).write(TextCall("bo", "k", "Hi?"))


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
                writer = Writer(client, logger=log.logger)
                for each in (call, safe, call, call):
                    await writer.write(each)
                server.fail(Fault.says("no number"))
                await writer.write(TextCall("ada", "n", "How many?", read=int, tries=2))

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


def run_with_a_model(folder: Path) -> Lines:
    """Run a world whose decisions and texts a model makes, as a run that is kept."""
    with FakeOllama(models=["tiny"]) as server:
        model = Model("tiny", [server.host])
        run = Run(Feed, 6, rounds=2, model=model, writer=WriterOptions())
        run.keep(folder / "kept")
    return read(folder / "kept" / "events.jsonl")


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
    router = Router({"all": Reasoner(Answers(), model="any")})
    simulations = [
        simulate(folder / "policy.jsonl"),
        *with_a_model(folder, "chat"),
        *with_a_model(folder, "auto"),
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
        "turns": [run_turns(folder), run_with_a_model(folder)],
        "cycles": [read(interrupted_run(folder) / "events.jsonl")],
        "worlds": [run_logged(folder, *of).events() for of in WORLDS],
        "texts": [asyncio.run(of_texts(folder))],
        "own": [read(folder / "own.jsonl"), read(folder / "failed.jsonl")],
    }


@pytest.fixture
def seen(logs: dict[str, list[Lines]]) -> Lines:
    """Return all lines of all logs."""
    return [*chain.from_iterable(chain.from_iterable(logs.values()))]


@pytest.fixture(scope="module")
def strict() -> Validator:
    """Return a validator that refuses unknown events and keys."""
    return Draft202012Validator(json_schema(strict=True))


def for_event(event: str, *, is_strict: bool) -> Validator:
    """Return a validator without what the schema says of other events, which takes most time."""
    schema = json_schema(strict=is_strict)
    alone: Any = {"properties": {"event": {"const": event}}}
    schema["allOf"] = [each for each in schema["allOf"] if each.get("if", alone) == alone]
    return Draft202012Validator(schema)


def kind_of(value: Any) -> Any:
    """Return what makes lines alike to a schema: keys, words, and kinds of all other values."""
    if isinstance(value, dict):
        return {name: kind_of(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return sorted({repr(kind_of(each)) for each in value})
    if isinstance(value, str):
        return value if value.replace(".", "_").isidentifier() and "_0" not in value else str
    return type(value) if value is None or isinstance(value, bool) else (type(value), value < 0)


@pytest.mark.parametrize("is_strict", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_the_schema_is_a_schema(is_strict: bool) -> None:
    """The published schema is valid JSON Schema, draft 2020-12."""
    Draft202012Validator.check_schema(json_schema(strict=is_strict))


def test_every_line_is_valid(seen: Lines, strict: Validator) -> None:
    """Every line has all required keys, no unknown ones, and valid values."""
    events = {line["event"]: line for line in seen}
    alone = {event: for_event(event, is_strict=True) for event in events}
    for line in {repr(kind_of(line)): line for line in seen}.values():
        alone[line["event"]].validate(line)
    for line in events.values():
        strict.validate(line)


def test_everything_in_the_schema_is_written(seen: Lines) -> None:
    """Every event, key, allowed null and enumerated text occurs in some log."""
    values: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for line in seen:
        for name, value in line.items():
            values[line["event"], name].append(value)
    for event in EVENTS:
        for key in event.keys:
            found = values[event.name, key.name]
            assert found, f"{event.name} never had {key.name}"
            assert allowed_only(key) <= {repr(value) for value in found}, (
                f"{event.name}: {key.name}"
            )


def allowed_only(key: Key) -> set[str]:
    """Return the values that must occur for the definition to be no wider than needed."""
    texts = {repr(text) for text in key.schema.get("enum", ())}
    return texts | ({"None"} if "null" in key.schema.get("type", ()) else set())


def test_optional_keys_are_sometimes_missing(seen: Lines) -> None:
    """Every optional key is missing in some line."""
    for event in EVENTS:
        lines = [line for line in seen if line["event"] == event.name]
        for key in event.keys:
            assert key.required or any(key.name not in line for line in lines), (
                f"{event.name}: {key.name}"
            )


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
    keys = {key.name for event in EVENTS for key in event.keys} | {key.name for key in COMMON}
    assert not keys & record


def test_a_decision_has_all_keys_of_a_call_or_none(seen: Lines) -> None:
    """A decision has all keys of a model's call or none."""
    calls = {frozenset(line.keys() & set(COST_KEYS)) for line in seen if line["event"] == DECISION}
    assert calls == {frozenset(), frozenset(COST_KEYS)}


def test_the_published_schema_accepts_new_keys(seen: Lines, strict: Validator) -> None:
    """The published schema accepts new keys and events, the strict one does not."""
    published = Draft202012Validator(json_schema())
    for line in (
        *({**line, "new": [1]} for line in seen[:50]),
        {"event": "mine", "timestamp": seen[0]["timestamp"]},
    ):
        published.validate(line)
        with pytest.raises(ValidationError):
            strict.validate(line)


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_wrong_line_is_refused(seen: Lines, is_strict: bool) -> None:
    """Both schemas refuse a missing key and a value of the wrong type."""
    examples = {line["event"]: line for line in seen}
    for event in EVENTS:
        validator = for_event(event.name, is_strict=is_strict)
        for key in (*COMMON, *event.keys):
            line = examples[event.name]
            wrong = [{**line, key.name: object}] if key.name in line and key.name != "event" else []
            if key.required:
                wrong.append({name: value for name, value in line.items() if name != key.name})
            assert not any(map(validator.is_valid, wrong)), f"{event.name}: {key.name}"
