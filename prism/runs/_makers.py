"""Making whoever decides or writes in a run from its options."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from prism.errors import InputError, TooManyFallbacksError
from prism.llm import DEFAULT_HOST, AnswerCache, ModelPool, OllamaPool, OpenAIPool, Slots
from prism.runlog import ReplayReasoner, ReplayWriter
from prism.runlog._replay import Parting
from prism.runs._assigned import ALL_OTHERS, NO_LATER, Assigned, Later, ModelAssignment, ModelSwitch
from prism.runs._credentials import full_address
from prism.runs._ledger import budget_for
from prism.runs._options import (
    ONLY_DECIDES,
    DeciderOptions,
    ModelOptions,
    PolicyOptions,
    ReplayOptions,
    WriterOptions,
    files_of,
    options_of,
)
from prism.runs._policy_file import Policy
from prism.runs._settings import given_settings
from prism.statechart import (
    BaseReasoner,
    BaseWriter,
    Budget,
    Decision,
    PolicyReasoner,
    Question,
    Reasoner,
    Recollection,
    Writer,
)
from prism.statechart.reasoner._by_agent import ReasonerByAgent, WriterByAgent
from prism.statechart.reasoner._recollection import DEFAULT_TOKENS
from prism.telemetry._loggers import EventLogger

LOGGER: logging.Logger = logging.getLogger("prism.runs.models")
"""Where it is told that a model is for nobody."""


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


WINDOW = 200
"""How many decisions, the latest ones, are looked at."""


class _Stopping(BaseReasoner):
    """Ends the run when too many decisions of a reasoner fell back.

    Args:
        given: What the reasoner takes.
        stop_at: The share of the last 200 decisions, above 0 and up to 1.
        settings: Everything else that it takes.
    """

    def __init__(self, *given: Any, stop_at: float, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._stop_at = stop_at
        self._fell_back: deque[bool] = deque(maxlen=WINDOW)

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions.

        Raises:
            TooManyFallbacksError: If with them so many of the last decisions fell back.
        """
        decisions = await super().decide_many(questions, logger=logger)
        for decision in decisions:
            self._count(decision)

        return decisions

    def _count(self, decision: Decision) -> None:
        self._fell_back.append(decision.source == "fallback")
        count = sum(self._fell_back)
        if len(self._fell_back) < WINDOW or count < self._stop_at * WINDOW:
            return

        why = f"; the last one: {decision.reason}" if decision.reason else ""
        raise TooManyFallbacksError(
            f"stopped, as {count} of the last {WINDOW} decisions fell back, and "
            f"{self._stop_at:.4g} of them is the limit{why}"
        )


class StoppingReasoner(_Stopping, Reasoner):
    """A `Reasoner` that ends the run when too many decisions fell back."""


class StoppingByAgent(_Stopping, ReasonerByAgent):
    """A `ReasonerByAgent` that ends the run when too many of all its decisions fell back."""


def make_askers(
    reasoner: DeciderOptions,
    writer: WriterOptions | None,
    seed: int,
    fallback: Any,
    *,
    chart: str | None = None,
    later: Later = NO_LATER,
) -> tuple[BaseReasoner | None, BaseWriter | None]:
    """Make who decides and who writes in a run; a model that does both is one client.

    Args:
        reasoner: Who decides; None for whoever the kind of run says.
        writer: Who writes.
        seed: Seed of the run.
        fallback: The state to take when a model gives no valid answer.
        chart: Name of the chart of agents that do not say it themselves.
        later: Models that decide in the course of the run, by what the log calls them; where one
            model decides and writes, they write, too.

    Returns:
        The two; None for who was not named.

    Raises:
        FieldValueError: If an option lies outside its range.
        InputError: If the log of the earlier run, or the file of answers, cannot be used.
    """
    if isinstance(reasoner, ReplayOptions) and reasoner.then is not None:
        return _until_they_part(reasoner, writer, seed, fallback, chart, later)

    shared = Shared.of(reasoner) if isinstance(reasoner, ModelOptions) else None
    decides = _decider(reasoner, seed, fallback, chart, shared, later)
    if writer is None:
        return decides, None
    if isinstance(reasoner, ReplayOptions):
        return decides, ReplayWriter(reasoner.run, verbatim=True)
    if not isinstance(reasoner, ModelOptions):
        assert isinstance(writer.model, ModelOptions)
        return decides, make_writer(writer.model, seed, chart=chart)
    if writer.model is not None:
        options = _own_model(reasoner, writer.model)
        return decides, make_writer(options, seed, chart=chart, shared=shared)

    return decides, _written_by(decides, seed)


def _until_they_part(
    replayed: ReplayOptions,
    writer: WriterOptions | None,
    seed: int,
    fallback: Any,
    chart: str | None,
    later: Later,
) -> tuple[BaseReasoner, BaseWriter | None]:
    """Make who answers from the log of an earlier run, and from where they part by themselves."""
    asked, writes = make_askers(replayed.model, writer, seed, fallback, chart=chart, later=later)
    parting = Parting()
    decides = asked if asked is not None and replayed.then == "model" else PolicyReasoner(seed)
    log = replayed.run
    reasoner = ReplayReasoner(log, verbatim=True, otherwise=decides, told=asked, parting=parting)
    if writes is None:
        return reasoner, None

    return reasoner, ReplayWriter(log, verbatim=True, otherwise=writes, parting=parting)


def _decider(
    reasoner: DeciderOptions,
    seed: int,
    fallback: Any,
    chart: str | None,
    shared: Shared | None,
    later: Later,
) -> BaseReasoner | None:
    if reasoner is None:
        return policy_until(later, seed, fallback) if later else None

    made = make_reasoner(reasoner, seed, fallback, chart=chart, shared=shared, later=later)
    is_policy = isinstance(reasoner, PolicyOptions)
    return policy_until(later, seed, fallback, made) if is_policy and later else made


def _written_by(decides: Any, seed: int) -> BaseWriter:
    """Return a writer that asks the very clients of who decides."""

    def writer(part: Reasoner) -> Writer:
        return Writer(part.client, seed=seed, budget=part.budget, cache=part.cache)

    if not isinstance(decides, ReasonerByAgent):
        return writer(decides)

    parts = {name: writer(cast(Reasoner, part)) for name, part in decides.parts.items()}
    # what is wrong with the assignment is said of who decides
    return WriterByAgent(parts, decides.choose)


def _own_model(reasoner: ModelOptions, model: str | ModelOptions) -> ModelOptions:
    """Return the options of another model, which is named or has its own."""
    if isinstance(model, ModelOptions):
        return model

    unwanted: dict[str, Any] = dict.fromkeys((*ONLY_DECIDES, "models_file"))
    return replace(reasoner, model=model, assigned=(), **unwanted)
