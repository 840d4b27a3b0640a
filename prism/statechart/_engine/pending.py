"""Fires that wait for a transition to end, and questions that wait for a reasoner.

An agent may have moved before the answer to its question comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from itertools import takewhile
from threading import get_ident
from typing import Any, NamedTuple, Protocol

from prism.errors import RunawayError
from prism.statechart._definition import Definition
from prism.statechart._engine.reporting import Asked, Reporter, announce
from prism.statechart._engine.writing import history_of
from prism.statechart._identity import agent_name
from prism.statechart._nesting import Configuration, leaf_texts
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, StateTransition


class Decider(Protocol):
    """Anything that `Statechart.afire` can ask, such as a `Reasoner` or a `PolicyReasoner`.

    If a reasoner has only this method, its decisions are announced with the source ``policy``.
    Derive from `BaseReasoner` to give another source.
    """

    async def decide(
        self, agent: Any, current_state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        """Choose one of the options."""


class Options(list[Any]):
    """The options of a question that a chart asks.

    Args:
        options: The targets to choose from.
        chart: The definition of the chart that asks; None if nobody's.

    Attributes:
        chart: As given.
        are_announced: Whether a reasoner that was asked has logged its decision itself.
    """

    def __init__(self, options: Iterable[Any], chart: Definition[Any] | None) -> None:
        super().__init__(options)
        self.chart = chart
        self.are_announced: bool = False


class Choice(NamedTuple):
    """A transition that an event enables.

    Args:
        target: The state it leads to.
        made_by: The Machine's transition; in a chart with composites, the candidate.
        edge: Its ends and trigger.
    """

    target: Any
    made_by: Any
    edge: Edge


OpenQuestions = dict[int, dict[object, Set[str]]]
"""A chart's open questions, by the agent's address, each with the leaves that it is about."""


async def ask(
    reasoner: Decider,
    agent: Any,
    trigger: str,
    options: list[Any],
    context: Any,
    *,
    about: Set[str],
    chart: Definition[Any],
    questions: OpenQuestions,
    reporter: Reporter,
) -> tuple[Any, bool]:
    """Return a reasoner's choice, and whether the agent has moved meanwhile.

    Args:
        reasoner: Who chooses.
        agent: Who is to move.
        trigger: Name of the event.
        options: The targets to choose from.
        context: The event's context.
        about: The texts of the leaves that the choice is about.
        chart: The chart's definition.
        questions: Its open questions, which this one is added to meanwhile.
        reporter: Where to announce the decision, if nobody else announces it.
    """
    state, question = agent.state, object()
    record = next(reversed(history_of(agent)), None)
    questions.setdefault(id(agent), {})[question] = about

    try:
        offered = Options(options, chart)
        chosen = await _answer_of(reasoner, (agent, state, trigger, offered, context))

        # an answer outside the options is no decision, and an error of its own
        if not offered.are_announced and chosen in options:
            asked = Asked(agent, state, trigger, options, context)
            how = {"reason": None, "probabilities": None}
            announce(reporter.logger, asked, chosen, "policy", how, {})

        # two signs, since another chart may have moved the agent, which shows only in its state or
        # its history, and an agent without a history may have come back
        is_open = question in questions.get(id(agent), ())
        return chosen, not is_open or has_moved(
            agent.state, state, history_of(agent), record, about
        )
    finally:
        others = questions.pop(id(agent), {})
        others.pop(question, None)
        if others:
            questions[id(agent)] = others


def _answer_of(reasoner: Decider, question: tuple[Any, ...]) -> Awaitable[Any]:
    """Put a question to a reasoner, and return the answer to wait for.

    Raises:
        TypeError: If it has no ``decide``, or one that is no coroutine function.
    """
    decide = getattr(reasoner, "decide", None)
    if decide is None or isinstance(reasoner, type):
        raise TypeError(
            f"afire needs a reasoner with a method {_DECIDE}, got {reasoner!r}: pass such an "
            "object, or one of prism's, such as Reasoner(Model(...)) or PolicyReasoner(seed=1)"
        )

    answer: Awaitable[Any] = decide(*question)
    if not hasattr(answer, "__await__"):
        raise TypeError(
            f"{type(reasoner).__name__}.decide returned {answer!r} instead of something to await: "
            f"write  {_DECIDE}"
        )

    return answer


_DECIDE = "async def decide(self, agent, current_state, trigger, options, context=None)"


def close_overtaken(questions: OpenQuestions, agent: Any, edge: Edge) -> None:
    """Close an agent's questions about leaves that a transition leaves or enters."""
    asked = questions.get(id(agent), {})
    for question in [each for each, about in asked.items() if _touches(edge, about)]:
        del asked[question]


def has_moved(
    state: Any, asked_in: Any, history: Sequence[Any], record: Any, about: Set[str]
) -> bool:
    """Return whether an agent has moved since it was asked, even if it has come back.

    In a chart with regions only the leaves count that the question is about.

    Args:
        state: Its state now.
        asked_in: Its state when it was asked.
        history: Its history now.
        record: The last entry of its history when it was asked; None if there was none.
        about: The texts of the leaves that the question is about.
    """
    if not about <= {*leaf_texts(state)}:
        return True

    later = takewhile(lambda entry: entry is not record, reversed(history))
    if not isinstance(asked_in, Configuration):
        return any(True for _ in later)
    return any(_touches(entry, about) for entry in later if isinstance(entry, StateTransition))


def _touches(edge: Edge | StateTransition, about: Set[str]) -> bool:
    changed = {*leaf_texts(edge.from_state)} ^ {*leaf_texts(edge.to_state)}
    return not about.isdisjoint(changed)


# Fires behind a transition that is under way

MOST_QUEUED_FIRES = 1000
"""Fires that an agent's own actions may queue behind one fire before the engine stops them."""


class Run:
    """A transition that is under way, and the fires that wait for its end.

    Attributes:
        thread: The thread that makes it.
        queue: The fires that wait, each with its name for messages.
        event: The Machine's event, while the Machine makes the transition.
        active: Numbers of the states that are active while an action of a composite runs.
        is_between: Whether one of the fires that waited is next, so that it need not wait.
        raised: What the steps of a chart with composites have raised and not answered yet.
        answered: How many of the raised the step at hand answers.
    """

    # in the class, since most runs differ in nothing but their thread
    queue: deque[tuple[str, Callable[[], object]]] | tuple[()] = ()
    event: Any = None
    active: frozenset[int] | None = None
    is_between: bool = False
    raised: list[str]
    answered: int

    def __init__(self) -> None:
        self.thread: int = get_ident()

    def add(self, name: str, fire: Callable[[], object]) -> None:
        """Let a fire wait."""
        # made late, since few actions queue anything
        if not isinstance(self.queue, deque):
            self.queue = deque()
        self.queue.append((name, fire))


def drain(chart: str, agent: Any, run: Run) -> None:
    """Run the fires that wait, and those that they add.

    Raises:
        RunawayError: If they go on adding others without end.
    """
    fired = 0
    while isinstance(run.queue, deque) and run.queue:
        name, fire = run.queue.popleft()
        fired += 1
        if fired > MOST_QUEUED_FIRES:
            raise RunawayError(
                f"chart {chart!r}: the actions of agent {agent_name(agent)!r} "
                f"fired {MOST_QUEUED_FIRES} more events without coming to rest; the last was "
                f"{name}: make one of the actions stop firing"
            )
        run.is_between = True
        fire()
    run.is_between = False


def restless(chart: str, agent: Any) -> RunawayError:
    """Return the error for eventless transitions, or raised events, that go on without end."""
    return RunawayError(
        f"chart {chart!r}: agent {agent_name(agent)!r} did not settle within "
        f"{MOST_QUEUED_FIRES} steps; it is now in {state_text(agent.state)!r}: give the "
        "eventless transitions there a guard that ends them"
    )
