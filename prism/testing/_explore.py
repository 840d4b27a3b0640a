"""Invariants of agents, checked by hypothesis over random sequences of a chart's events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any, ClassVar, cast

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from prism.errors import DefinitionError, FieldTypeError, UnknownStateError
from prism.statechart import MachineError, Statechart
from prism.statechart.states import state_text

Contexts = st.SearchStrategy[Any] | Mapping[str, st.SearchStrategy[Any]]
"""Strategy for the contexts of events, or a strategy for each trigger that has contexts."""

Invariant = Callable[[Any], object]
"""``invariant(agent)``: raises, or returns False, if something that must always hold does not."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An event, its context, and which of several enabled transitions a decision takes."""

    trigger: str
    context: Any = None
    choice: int = 0

    def __repr__(self) -> str:
        about = "" if self.context is None else f" about {brief(self.context)}"
        choice = f", choice {self.choice}" if self.choice else ""
        return f"<{self.trigger}{about}{choice}>"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


@st.composite
def _steps(draw: st.DrawFn) -> _Step:
    """Draw an event, usually one that the agent's state reacts to; another does nothing."""
    machine: Exploration = draw(st.runner())
    state = machine.state

    # hypothesis shrinks towards 0, so towards events drawn from all triggers: when it deletes a
    # step, those after it stay the same events, and loops can be cut out one step at a time
    is_steered = draw(st.integers(0, 9)) > 0
    reactions = machine.chart.valid_triggers(state) if _is_whole_state(machine.chart, state) else []
    of_state = machine.any_trigger.filter(reactions.__contains__)
    trigger = draw(of_state if is_steered and reactions else machine.any_trigger)

    # it deletes only steps of few draws, so nothing is drawn that makes no difference
    if trigger not in reactions:
        return _Step(trigger)

    contexts = machine.contexts
    if isinstance(contexts, Mapping):
        contexts = contexts.get(trigger)
    context = None if contexts is None else draw(contexts)
    choices = st.integers(0, len(machine.chart.transitions))
    choice = draw(choices) if machine.chart.decides(state) else 0

    return _Step(trigger, context, choice)


class Exploration(RuleBasedStateMachine):
    """One agent under random events; `explore` makes the subclass for a chart.

    A subclass may add rules, such as for fields that the application sets between two events.

    Attributes:
        agent: The agent.
        path: The path of the agent, such as ``idle --feed_ready--> scrolling``.
    """

    chart: ClassVar[Statechart[Any]]
    agent_factory: ClassVar[Callable[[], Any]]
    contexts: ClassVar[Contexts | None]
    invariants_of_agent: ClassVar[tuple[Invariant, ...]]
    any_trigger: ClassVar[st.SearchStrategy[str]]

    def __init__(self) -> None:
        super().__init__()
        self.agent: Any = type(self).agent_factory()
        state = self.state
        if isinstance(state, self.chart.state_type) and not _is_whole_state(self.chart, state):
            # it is in a composite, and has not entered what is inside
            self.chart.begin(self.agent)
        self.path: str = state_text(self.state)

    @property
    def state(self) -> Any:
        """The agent's state."""
        return getattr(self.agent, self.chart.state_attribute)

    @classmethod
    def run(cls) -> None:
        """Explore now; a failure is raised, and hypothesis prints the shortest sequence to it."""
        run_state_machine_as_test(cls, settings=settings(cls.TestCase.settings))

    @rule(step=_steps())
    def fire(self, step: _Step) -> None:
        """Fire one event."""
        try:
            moved = self._make(step)
        except Exception as error:
            error.add_note(f"path: {self.path} --{step.trigger}--> ?")
            raise

        if moved is not None:
            self.path += f" --{step.trigger}--> {state_text(moved)}"

    def _make(self, step: _Step) -> Any:
        if not self.chart.decides(self.state):
            # elsewhere a reasoner would not be asked
            return self._fire(step)

        options = self.chart.enabled_targets(self.agent, step.trigger, step.context)
        if not options:
            return None

        target = options[step.choice % len(options)]

        return self.chart.fire_to(self.agent, step.trigger, target, step.context)

    def _fire(self, step: _Step) -> Any:
        state = self.state
        try:
            return self.chart.fire(self.agent, step.trigger, step.context)
        except MachineError:
            # so a strict chart, and most Machines, refuse what a state does not react to
            if step.trigger in self.chart.valid_triggers(state):
                raise
            return None

    @invariant()
    def holds(self) -> None:
        """Check the invariants."""
        for check in self.invariants_of_agent:
            try:
                if check(self.agent) is False:
                    raise AssertionError(f"{getattr(check, '__name__', check)!r} does not hold")
            except Exception as error:
                error.add_note(f"path: {self.path}")
                raise


def explore(
    chart: Statechart[Any],
    agent_factory: Callable[[], Any],
    *,
    contexts: Contexts | None = None,
    invariants: Iterable[Invariant] = (),
    max_steps: int = 50,
) -> type[Exploration]:
    """Make a hypothesis state machine that drives an agent through a chart by random events.

    In a decision state any target that the guards allow may be chosen, as if by a reasoner. The
    invariants are checked after every step. hypothesis shrinks a failure to the shortest sequence
    of events that it finds; a note shows the path.

    Run it by ``explore(...).run()``, or have pytest or unittest collect ``TestAgent =
    explore(...).TestCase``.

    Args:
        chart: The chart.
        agent_factory: Returns a new agent; called once for every sequence.
        contexts: A strategy for the contexts of all events, or one for each trigger. None for no
            contexts.
        invariants: Functions of the agent that raise, or return False, if an invariant is broken.
        max_steps: Maximum number of events in a sequence.

    Returns:
        The class of the state machine.

    Raises:
        DefinitionError: If the chart has no transitions, or the contexts name an unknown trigger.
        FieldTypeError: If the contexts are no strategies.
    """
    strategies = contexts.values() if isinstance(contexts, Mapping) else [contexts]
    if not all(isinstance(each, st.SearchStrategy | None) for each in strategies):
        cure = "use strategies of hypothesis, such as st.sampled_from([1, 2])"
        raise FieldTypeError(f"contexts must not be {brief(contexts)}: {cure}")
    triggers = chart.triggers
    unknown = set(contexts if isinstance(contexts, Mapping) else ()) - set(triggers)
    if unknown or not triggers:
        names = ", ".join(map(repr, sorted(unknown)))
        problem = f"has no trigger {names}" if unknown else "has no transitions to explore"
        raise DefinitionError(
            f"chart {chart.name!r} {problem}; its triggers are {', '.join(triggers) or 'none'}"
        )

    attributes = {
        "chart": chart,
        "agent_factory": staticmethod(agent_factory),
        "contexts": contexts,
        "invariants_of_agent": tuple(invariants),
        "any_trigger": st.sampled_from(triggers),
    }
    machine: Any = type("Exploration", (Exploration,), attributes)

    # the explanations of hypothesis would point at lines of this module
    phases = [phase for phase in settings().phases if phase is not Phase.explain]
    machine.TestCase.settings = settings(
        machine.TestCase.settings, stateful_step_count=max_steps, deadline=None, phases=phases
    )

    return cast("type[Exploration]", machine)


def _is_whole_state(chart: Statechart[Any], state: Any) -> bool:
    """Return whether an agent can be in a state: not in one region alone."""
    try:
        chart.state_of(state)
    except UnknownStateError:
        return False
    return True
