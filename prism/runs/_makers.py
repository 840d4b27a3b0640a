"""Making whoever decides or writes in a run from its options."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

from prism.errors import InputError
from prism.llm import DEFAULT_HOST, AnswerCache, ModelPool, OllamaPool, OpenAIPool, Slots
from prism.runlog import ReplayReasoner
from prism.runs._assigned import ALL_OTHERS, Assigned, ModelAssignment
from prism.runs._credentials import full_address
from prism.runs._ledger import budget_for
from prism.runs._options import (
    ONLY_DECIDES,
    ModelOptions,
    PolicyOptions,
    ReplayOptions,
    files_of,
)
from prism.runs._policy_file import Policy
from prism.runs._settings import given_settings
from prism.runs._stopping import StoppingByAgent, StoppingReasoner
from prism.runs._switching import ModelSwitch
from prism.statechart import (
    BaseReasoner,
    BaseWriter,
    Budget,
    PolicyReasoner,
    Reasoner,
    Recollection,
    Writer,
)
from prism.statechart.reasoner._by_agent import ReasonerByAgent, WriterByAgent
from prism.statechart.reasoner._recollection import DEFAULT_TOKENS

LOGGER: logging.Logger = logging.getLogger("prism.runs.models")
"""Where it is told that a model is for nobody."""


Later = Mapping[str, ModelAssignment]
"""Models of the course of a run, by what the log calls them."""

NO_LATER: Later = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shared:
    """What all share that ask a model in one run.

    Args:
        slots: The slots on its servers.
        budget: What it may spend.
        cache: The answers that are kept, if any.
    """

    slots: Slots
    budget: Budget
    cache: AnswerCache | None

    @classmethod
    def of(cls, options: ModelOptions) -> Self:
        """Make them for a run.

        Raises:
            FieldValueError: If a limit is not above 0.
            InputError: If the file of answers cannot be used.
        """
        budget = budget_for(options.max_calls, options.max_tokens, options.deadline)
        return cls(Slots(), budget, None if options.cache is None else AnswerCache(options.cache))


def make_reasoner(
    options: ModelOptions | ReplayOptions | PolicyOptions,
    seed: int,
    fallback: Any,
    *,
    chart: str | None = None,
    shared: Shared | None = None,
    later: Later = NO_LATER,
) -> BaseReasoner:
    """Make the reasoner of a run.

    Args:
        options: Who decides.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        chart: Name of the chart of agents that do not say it themselves.
        shared: What it shares with a writer of the run.
        later: Models that decide in the course of the run, by what the log calls them.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If the log of the earlier run, the policy, or the file of answers cannot be
            used.
    """
    if isinstance(options, PolicyOptions):
        return Policy.from_file(options.policy).reasoner(seed)
    if isinstance(options, ReplayOptions):
        (log,) = files_of(options).values()
        return ReplayReasoner(log, verbatim=True)

    common = shared or Shared.of(options)

    def settings(each: ModelOptions) -> dict[str, Any]:
        return {
            "client": _make_pool(each, seed, common.slots),
            "mode": each.mode or "auto",
            "pick": each.pick or "draw",
            "fallback": fallback,
            "seed": seed,
            **_told(each),
            "budget": common.budget,
            "cache": common.cache,
        }

    stop_at = options.stop_at_fallbacks
    if options.assigned or later:
        reasoners = {title: Reasoner(**settings(each)) for title, each in _parts(options, later)}
        assigned = Assigned(options.assigned, chart, LOGGER.warning)
        choose = ModelSwitch(assigned, later, assigned.check)
        if stop_at is None:
            return ReasonerByAgent(reasoners, choose, on_start=choose.check)
        return StoppingByAgent(reasoners, choose, on_start=choose.check, stop_at=stop_at)

    if stop_at is None:
        return Reasoner(**settings(options))
    return StoppingReasoner(**settings(options), stop_at=stop_at)


def make_writer(
    options: ModelOptions, seed: int, *, chart: str | None = None, shared: Shared | None = None
) -> BaseWriter:
    """Make the writer of a run, which asks a model for texts.

    Args:
        options: The model.
        seed: Seed of the run.
        chart: Name of the chart of agents that do not say it themselves.
        shared: What it shares with a reasoner of the run.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If an option applies to decisions only, or the file of answers cannot be used.
    """
    for name in ONLY_DECIDES:
        given = [each for each in (options, *options.assigned) if getattr(each, name, None)]
        if given:
            problem = "applies to decisions, and this run has a model write"
            first = given[0]
            raise (
                first.error(problem, name)
                if isinstance(first, ModelAssignment)
                else InputError(problem, field=name)
            )

    common = shared or Shared.of(options)

    def writer(each: ModelOptions) -> Writer:
        pool = _make_pool(each, seed, common.slots)
        return Writer(pool, seed=seed, budget=common.budget, cache=common.cache)

    if not options.assigned:
        return writer(options)

    choose = Assigned(options.assigned, chart, LOGGER.warning)
    writers = {title: writer(each) for title, each in _parts(options)}
    return WriterByAgent(writers, choose, on_start=choose.check)


def _told(options: ModelOptions) -> dict[str, Any]:
    """Return the settings of what a model is told and asked for a decision."""
    memory = None
    if options.remember is not None:
        memory = Recollection(options.remember, options.remember_tokens or DEFAULT_TOKENS)

    return {
        "prompt": options.prompt,
        "attributes": options.attributes or (),
        "memory": memory,
        "reasons": bool(options.reasons),
    }


def policy_until(
    later: Later, seed: int, fallback: Any, first: BaseReasoner | None = None
) -> BaseReasoner:
    """Make the reasoner of a run in which a policy decides, and models later on.

    Args:
        later: The models by what the log calls them.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        first: The policy; None for the built-in one.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If an option cannot be used.
    """
    shared: Shared | None = None
    parts: dict[str, BaseReasoner] = {ALL_OTHERS: first or PolicyReasoner(seed)}
    for title, assignment in later.items():
        options = options_of(assignment)
        shared = shared or Shared.of(options)
        parts[title] = make_reasoner(options, seed, fallback, shared=shared)

    return ReasonerByAgent(parts, ModelSwitch(lambda _agent: ALL_OTHERS, later))


def stand_in(later: Later, seed: int) -> BaseReasoner | None:
    """Make who stands in for the later models of a run while its options are tried.

    Args:
        later: The models by what the log calls them.
        seed: Seed of the run.

    Returns:
        None if there are none.
    """
    if not later:
        return None

    names = (ALL_OTHERS, *later)
    policies: dict[str, BaseReasoner] = {name: PolicyReasoner(seed) for name in names}
    return ReasonerByAgent(policies, ModelSwitch(lambda _agent: ALL_OTHERS, later))


def options_of(assignment: ModelAssignment) -> ModelOptions:
    """Return the options of a model that a run does not begin with.

    Raises:
        InputError: If no model is named, or an option cannot be used.
    """
    settings = assignment.settings
    if "model" not in settings:
        raise assignment.error("is missing: the policy has decided so far", "model")

    return ModelOptions(**settings)


def _parts(options: ModelOptions, later: Later = NO_LATER) -> Iterator[tuple[str, ModelOptions]]:
    """Yield the options of each group of agents, with what the log calls the group."""
    yield ALL_OTHERS, replace(options, assigned=(), models_file=None)
    for each in options.assigned:
        yield each.title, options.for_those(each)
    for title, assignment in later.items():
        yield title, options.for_those(assignment)


def _make_pool(options: ModelOptions, seed: int, slots: Slots) -> ModelPool:
    settings = given_settings(options, "request")
    if options.think is not None:
        settings["think"] = {"false": False, "true": True}.get(options.think, options.think)

    hosts = tuple(map(full_address, options.host or (DEFAULT_HOST,)))
    kind = OpenAIPool if options.server == "openai" else OllamaPool

    return kind(hosts, options.model, seed=seed, slots=slots, **settings)
