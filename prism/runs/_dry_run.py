"""Estimating a run's cost: a few rounds by the policy, with prompts but without requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from prism.errors import InputError
from prism.llm import Model
from prism.llm._settings import OF_SPENDING
from prism.reasoner._requests import ChatReply, Request
from prism.reasoner._slots import Pool, Server
from prism.reasoner._words import count_tokens
from prism.runs._documents import documents
from prism.runs._options import models_of
from prism.statechart import (
    BaseReasoner,
    Budget,
    Cost,
    Decision,
    PolicyReasoner,
    Question,
    Reasoner,
)
from prism.telemetry.loggers import EventLogger

ROUNDS = 3
"""Most rounds to try."""

ROUNDS_ALONE = 5
"""Most turns or cycles to try for a single agent."""

AGENTS = 200
"""Most agents to try if the run creates its own."""

SECONDS_FOR_AN_ANSWER = 1.0
"""The assumed seconds per answer, since no server is asked."""

_COUNTED: ContextVar[list[Counted] | None] = ContextVar("_COUNTED", default=None)
"""The counts while a run is tried."""

_LENGTH_SHARE = 2 / 3
"""The assumed length of a text, as a share of the maximum length."""

_BOUNDS = OF_SPENDING
"""Settings on spending and keeping, which do not apply while a run is tried."""

_USUAL_LENGTH = 200
_OWN_HOSTS = 1
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """The estimated use of one model of a run.

    Args:
        model: Its name.
        decisions: Decisions that it makes.
        texts: Texts that it writes.
        calls: Requests, without repeated ones.
        input_tokens: Tokens that it reads.
        output_tokens: Tokens that it writes, without thoughts.
        money: The cost of the tokens; None if the prices are unknown.
        at_once: Simultaneous questions on all its hosts.
    """

    model: str
    decisions: int
    texts: int
    calls: int
    input_tokens: int
    output_tokens: int
    money: float | None
    at_once: int

    @property
    def seconds(self) -> float:
        """The total time if each answer takes a second."""
        return ceil(self.calls / self.at_once) * SECONDS_FOR_AN_ANSWER


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost of a run.

    Args:
        rounds: Rounds that were tried.
        of_rounds: Rounds of the run.
        agents: Agents that were tried.
        of_agents: Agents of the run.
        models: The estimated use of each model in the whole run.
        runs: Number of runs of a batch that it covers; rounds and agents are totals over these.
    """

    rounds: int
    of_rounds: int
    agents: int
    of_agents: int
    models: tuple[ModelEstimate, ...]
    runs: int = 1

    @property
    def money(self) -> float | None:
        """The cost of all models together; None unless all prices are known."""
        each = [model.money for model in self.models]
        known = [money for money in each if money is not None]
        return sum(known) if each and len(known) == len(each) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data."""
        names = ("decisions", "texts", "calls", "input_tokens", "output_tokens", "money")
        told = {
            each.model: {name: getattr(each, name) for name in names} | {"seconds": each.seconds}
            for each in self.models
        }
        tried = {"rounds": self.rounds, "agents": self.agents}
        return {
            "tried": tried,
            "rounds": self.of_rounds,
            "agents": self.of_agents,
            "money": self.money,
            "models": told,
            **({} if self.runs == 1 else {"runs": self.runs}),
        }


def estimate(options: Any) -> Estimate:
    """Estimate how often a run will ask its models, and what that costs.

    The policy runs a few rounds. A single agent takes a few turns or cycles, with replies that
    their schemas allow. The prompts are those that a model would get, but nothing is sent. The
    counts are scaled to all rounds and agents.

    Args:
        options: The run.

    Raises:
        InputError: If it asks no model, or is impossible.
        PrismError: If it turns out to be impossible.
    """
    if not _asks(options):
        problem = "needs a model: a run without one costs nothing"
        raise InputError(problem, field="dry_run")
    if hasattr(options, "number_of_rounds"):
        return _estimate_alone(options)

    run, counted = _tried(_shortened(options))
    tried, of_agents = len(run.world.agents), options.made_up or len(run.world.agents)
    scale = (options.rounds / run.rounds) * (of_agents / tried)
    models = tuple(each.estimate(scale) for each in _by_name(counted))

    return Estimate(run.rounds, options.rounds, tried, of_agents, models)


def _asks(options: Any) -> bool:
    """Return whether a run may ask a model."""
    return next(models_of(options), None) is not None


def _tried(options: Any) -> tuple[Any, list[Counted]]:
    """Carry out a run without asking any model; return the run and the counts."""
    counted: list[Counted] = []
    token = _COUNTED.set(counted)
    try:
        with documents():
            run = options.prepare(_Nobody())
            run.run(lambda _summary: None)
    finally:
        _COUNTED.reset(token)

    return run, counted


def _shortened(options: Any) -> Any:
    """Return the same run with fewer rounds and agents; treatments of later rounds are left out."""
    rounds = min(options.rounds, ROUNDS)
    changes: dict[str, Any] = {
        "rounds": rounds,
        "treatments": tuple(each for each in options.treatments if _round_of(each) <= rounds),
    }
    if options.made_up is not None:
        changes["agents"] = min(options.made_up, AGENTS)
    asked, writer = options.reasoner, options.writer
    if isinstance(asked, Model):
        changes["reasoner"] = _unbounded(asked)
    if writer is not None and isinstance(writer.model, Model):
        changes["writer"] = replace(writer, model=_unbounded(writer.model))

    return options.replace(**changes)


def _unbounded(model: Model) -> Model:
    """Return a model without limits, whose run keeps nothing."""
    nothing: dict[str, Any] = dict.fromkeys((*_BOUNDS, "stop_at_fallbacks"))
    return replace(model, **nothing)


def _round_of(treatment: Any) -> int:
    if isinstance(treatment, str):
        _, _, number = treatment.rpartition("@")
        return int(number) if number.isdecimal() else 0

    return int(treatment.round)


class Counted:
    """Counts what one group of agents asks its model.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.counts: Counter[str] = Counter()

    def estimate(self, scale: float) -> ModelEstimate:
        """Return the estimate for the whole run.

        Args:
            scale: The factor from the tried part to the whole run.
        """
        counts = {name: round(count * scale) for name, count in self.counts.items()}
        read, written = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
        hosts = len(self.model.hosts or ()) or _OWN_HOSTS
        names = ("decisions", "texts", "calls", "input_tokens", "output_tokens")

        return ModelEstimate(
            self.model.model,
            **{name: counts.get(name, 0) for name in names},
            money=self.model.price_of(read, written),
            at_once=hosts * (self.model.concurrency or _at_once(self.model)),
        )


def _at_once(model: Model) -> int:
    return 4 if model.client is None else 16


def _by_name(counted: Sequence[Counted]) -> Iterator[Counted]:
    """Yield the counts by model, adding up groups that share one."""
    found: dict[tuple[Any, ...], Counted] = {}
    for each in counted:
        model = each.model
        key = model.model, model.hosts, model.price_in, model.price_out
        if key in found:
            found[key].counts.update(each.counts)
        else:
            found[key] = each

    return iter(found.values())


class CountingClient(Pool):
    """Counts requests, and answers at once with anything that their schema allows.

    Args:
        counted: Collects the counts.
        writes: Whether it is asked for texts.

    Attributes:
        temperature: That of the model, since sampled questions are asked separately for each agent;
            None for texts, which repeat prompts more often than a model's would.
    """

    def __init__(self, counted: Counted, *, writes: bool) -> None:
        model = counted.model
        super().__init__([_CountingServer("", model.model, _AT_ONCE)], model.model)
        self.temperature: float | None = None
        if not writes:
            asked = model.client
            known = getattr(asked, "temperature", None)
            self.temperature = known if asked is not None else model.temperature or 0.0
        self.counted = counted
        self._writes = writes

    async def ask(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Count a request, and answer it."""
        reply = await super().ask(request, cost)
        self.counted.counts.update(
            calls=1,
            texts=self._writes,
            input_tokens=count_tokens(request.text),
            output_tokens=count_tokens(reply.text),
        )
        return reply


class _CountingServer(Server):
    """Answers with anything that a schema allows; all letters have the same probability."""

    async def chat(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Answer a request."""
        cost.ended(cost.began(self.model, None))
        schema = request.schema
        said = "x " * (_USUAL_LENGTH // 2) if schema is None else _such_as(schema)
        text = said if isinstance(said, str) else json.dumps(said)
        letters = (schema or {}).get("properties", {}).get("letter", {}).get("enum", ())
        even = {each: 1 / len(letters) for each in letters}
        return ChatReply(text, tokens=[(letters[0], even)] if even else ())


def _such_as(schema: Mapping[str, Any]) -> Any:
    """Return data that a schema allows, with texts of a usual length."""
    if "enum" in schema:
        return schema["enum"][0]

    kind = schema.get("type")
    if kind == "object":
        return {name: _such_as(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_such_as(schema.get("items", {}))]
    if kind in ("number", "integer"):
        return schema.get("minimum", schema.get("maximum", 0))
    if kind == "boolean":
        return True

    length = int(schema.get("maxLength", _USUAL_LENGTH) * _LENGTH_SHARE)
    return ("words " * (length // 6 + 1))[:length].strip() or "x"


def estimate_all(runs: Iterable[tuple[Any, int]]) -> Estimate:
    """Estimate the use of models by several runs together; runs without a model are left out.

    Args:
        runs: The runs, each with the number of runs that differ from it only in their seeds.

    Raises:
        InputError: If none asks a model, or one is impossible.
    """
    asking = [(options, times) for options, times in runs if _asks(options)]
    if not asking:
        problem = "needs at least one run that asks a model"
        raise InputError(problem, field="dry_run")

    found = [(estimate(options), times) for options, times in asking]

    return Estimate(
        sum(each.rounds for each, _ in found),
        sum(each.of_rounds * times for each, times in found),
        sum(each.agents for each, _ in found),
        sum(each.of_agents * times for each, times in found),
        _models_of_all(found),
        sum(times for _, times in found),
    )


def _models_of_all(found: Iterable[tuple[Estimate, int]]) -> tuple[ModelEstimate, ...]:
    """Return the use of each model in several runs, each multiplied by its number."""
    by_model: dict[tuple[str, bool], ModelEstimate] = {}
    for each, times in found:
        for model in each.models:
            # one name may refer to a model with prices and to one without
            key = (model.model, model.money is None)
            by_model[key] = _together(by_model.get(key), model, times)

    return tuple(by_model.values())


def _together(before: ModelEstimate | None, more: ModelEstimate, times: int) -> ModelEstimate:
    """Add the use of a model, multiplied by a number of runs, to an earlier one."""
    names = ("decisions", "texts", "calls", "input_tokens", "output_tokens", "money")
    summed: dict[str, Any] = {
        name: None if (each := getattr(more, name)) is None else each * times for name in names
    }
    if before is not None:
        summed = {
            name: None if each is None else each + getattr(before, name)
            for name, each in summed.items()
        }

    return replace(more, **summed)


def _estimate_alone(options: Any) -> Estimate:
    """Estimate the use of its model by a run of a single agent."""
    of_all = options.number_of_rounds
    few = {"rounds": min(of_all, ROUNDS_ALONE), "reasoner": _unbounded(options.reasoner)}
    run, counted = _tried(options.replace(**few))
    rounds = len(run.finished)
    # an agent in a final state takes no more turns
    of_rounds = rounds if getattr(run.world.agent, "has_finished", False) else of_all
    # it asks one question at a time
    found = (each.estimate(of_rounds / rounds) for each in _by_name(counted))
    models = tuple(replace(each, at_once=1) for each in found)

    return Estimate(rounds, of_rounds, 1, 1, models)


def is_dry_run() -> bool:
    """Return whether a run is being tried and must not change anything."""
    return _COUNTED.get() is not None


def asked_in_a_dry_run(model: Model, *, writes: bool) -> dict[str, Any] | None:
    """Return the client to ask instead of a model while a run is tried, or None.

    Args:
        model: The model.
        writes: Whether it writes.
    """
    counted = _COUNTED.get()
    if counted is None:
        return None

    counted.append(Counted(model))
    return {"client": CountingClient(counted[-1], writes=writes)}


def in_a_dry_run(reasoner: Reasoner, seed: int) -> BaseReasoner:
    """Return the reasoner while a run is tried: the policy, once the prompts are built.

    Args:
        reasoner: The reasoner otherwise.
        seed: Seed of the run.
    """
    client = reasoner.client
    return ByPolicy(reasoner, client, seed) if isinstance(client, CountingClient) else reasoner


class ByPolicy(BaseReasoner):
    """Makes a reasoner build its prompts, and decides by the policy.

    Args:
        asking: The reasoner.
        client: The client that it asks.
        seed: Seed of the policy.
    """

    def __init__(self, asking: Reasoner, client: CountingClient, seed: int) -> None:
        super().__init__()
        self.concurrency: int = asking.concurrency
        self.memory: int = asking.memory
        # for a writer that shares the client of the reasoner
        self.client: Any = CountingClient(client.counted, writes=True)
        self.named: str | None = None
        self.budget: Budget = asking.budget
        self._asking, self._counts = asking, client.counted.counts
        self._policy = PolicyReasoner(seed)

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed choose among all acts, as with the model."""
        return self._asking.chooses_acts

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Count the questions, and decide by the policy."""
        self._counts["decisions"] += len(questions)
        await self._asking.answer(questions)
        return await self._policy.answer(questions)


class _Nobody(EventLogger):
    """Ignores events."""

    def info(self, event: str, **keys: Any) -> None:
        """Ignore the event."""

    warning = error = info
