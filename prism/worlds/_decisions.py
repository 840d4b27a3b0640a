"""Decisions: what leaves something to decide, what a reasoner is asked, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prism.errors import FieldValueError
from prism.reasoner._recollection import stay_in_words
from prism.statechart import Configuration, Question
from prism.statechart.states import state_text
from prism.telemetry.events import ANSWER_DISCARDED
from prism.telemetry.loggers import active_logger
from prism.worlds._agent import Agent, Asked
from prism.worlds._agent_set import leaves_in
from prism.worlds._kinds import Kind


def settle(turns: Any, asked: Asked) -> Any:
    """Carry out what leaves nothing to decide; return the new state, or the question itself."""
    agent = asked.agent
    kind = turns.population.kinds[type(agent)]
    asked.options = options = _options(kind, agent, asked.trigger, asked.context)
    if len(options) < 2:
        return turns.fire(agent, asked.trigger, asked.context)
    if asked.weights is not None:
        asked.weights = _weights_of(asked, options, kind)
    asked.state = agent.state
    history = agent.state_history
    asked.since = history[-1] if history else None
    return asked


def _options(kind: Kind, agent: Agent, trigger: str, context: Any) -> tuple[Any, ...]:
    """Return the targets among which an agent decides; none where the chart decides."""
    state = agent.state
    if agent.has_left:
        return ()
    if (known := kind.open.get((state, trigger))) is not None:
        return known
    chart = kind.chart
    is_open = state in chart.decision_states
    if is_open or (isinstance(state, Configuration) and chart.decides(state)):
        return tuple(chart.enabled_targets(agent, trigger, context))
    return ()


def question_of(turns: Any, asked: Asked, parameters: Mapping[str, Any]) -> Question:
    """Return a decision as a reasoner is asked."""
    agent = asked.agent
    return Question(
        agent,
        asked.state,
        asked.trigger,
        asked.options,
        asked.context,
        asked.weights,
        asked.prompt,
        turns.population.kinds[type(agent)].chart.definition,
        parameters,
        None if turns.answers.memory is None else agent.memories,
    )


def apply(turns: Any, asked: Asked) -> Any:
    """Make a decided transition, unless the agent has moved or left."""
    agent, chosen = asked.agent, asked.answer
    chart = turns.population.kinds[type(agent)].chart
    if agent.has_left or is_stale(chart, asked):
        discard(turns, asked)
        return None
    if turns.answers.memory is not None and chosen == asked.state:
        agent._note(stay_in_words(asked.state, asked.trigger, asked.context))
    return chart.fire_to(agent, asked.trigger, chosen, asked.context, asked_in=asked.state)


def is_stale(chart: Any, asked: Asked) -> bool:
    """Return whether an agent has moved since it was asked, even if it has returned."""
    history = asked.agent.state_history
    if (history[-1] if history else None) is asked.since:
        return False
    return bool(chart.has_moved(asked.agent, asked.state, asked.trigger, history, asked.since))


def discard(turns: Any, asked: Asked) -> None:
    """Log an answer that comes too late."""
    logger = active_logger(turns.logger)
    if logger is not None:
        agent = asked.agent
        logger.warning(
            ANSWER_DISCARDED,
            chart=turns.population.kinds[type(agent)].chart.name,
            agent_id=agent.agent_id,
            trigger=asked.trigger,
            asked_in=state_text(asked.state),
            now_in=state_text(agent.state),
            chosen=state_text(asked.answer),
            reason="left" if agent.has_left else "moved",
        )


def _weights_of(asked: Asked, options: Sequence[Any], kind: Kind) -> Mapping[Any, float]:
    """Return the weights of the targets. A configuration gets that of its distinctive leaves.

    Raises:
        FieldValueError: If a weight is invalid, names a state that the event never reaches, or all
            are 0.
    """
    weights, owner = asked.weights or {}, f"the weights of {asked.agent.agent_id!r}"
    for state, weight in weights.items():
        if not (isinstance(weight, (int, float)) and 0 <= weight < float("inf")):
            raise FieldValueError(
                f"{owner} for {asked.trigger!r}: {state_text(state)} must be a number, 0 or more, "
                f"got {weight!r}"
            )
        if state not in options and not kind.chart.definition.leaves_of(state):
            raise FieldValueError(
                f"{owner} for {asked.trigger!r} name {state_text(state)!r}, which is no state of "
                "the chart"
            )
    if kind.has_regions:
        common = frozenset.intersection(*(frozenset(leaves_in(each)) for each in options))
        weights = {option: _of_leaves(option, weights, common) for option in options}
    if not any(weights.get(each) for each in options):
        listed = ", ".join(map(state_text, options))
        raise FieldValueError(f"{owner} for {asked.trigger!r} must be above 0 for one of {listed}")
    return weights


def _of_leaves(option: Any, weights: Mapping[Any, float], common: frozenset[Any]) -> float:
    if option in weights:
        return weights[option]
    own = [leaf for leaf in leaves_in(option) if leaf not in common]
    product = 1.0
    for leaf in own or leaves_in(option):
        product *= weights.get(leaf, 0.0)
    return product
