"""The chart: one definition that is shared by all agents, and everything it can do.

`Statechart` is the definition together with the interpreter that runs it, plus ways to inspect it
and to write it as a document. The chart has no agents: everything that changes lives in the agents
themselves. What inspects is imported when it is first used, since an application that only runs
charts needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import partial
from operator import attrgetter
from time import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._engine.adopted import AdoptedEngine
from prism.statechart._engine.driving import Driving, distinct, remade
from prism.statechart._engine.machine import Arguments, Machine, definition_of
from prism.statechart._engine.rows import rows_of
from prism.statechart._engine.writing import add_missing_fields, history_of
from prism.statechart._parts import Action, Guard, State
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, StateT, StateTransition, Transition, read_only
from prism.telemetry.loggers import EventLogger

if TYPE_CHECKING:
    from prism.statechart.inspection import Explanation, Finding


AgentT = TypeVar("AgentT")


class Statechart(Driving[StateT]):
    """States and the transitions between them. All agents share a chart, which never changes.

    Args:
        states: Members of one Enum, or the Enum itself; a `State` for each one that contains
            states, or has actions on entry or exit.
        transitions: The transitions. Order matters: the first whose guard passes wins. Transitions
            of inner states come before those of the states around them.
        initial: State that new agents start in; a tuple with one in each region.
        name: Name in logs and messages.
        decision_states: States in which `afire` asks a reasoner when several targets are enabled.
        timeouts: Ticks after which `tick` fires ``timeout``, for states that differ from the
            agent's own ``timeout_threshold``.
        strict: Let exceptions of guards and actions propagate instead of logging them, and refuse
            events that are no transition's trigger.
        final_states: States in which an agent has finished: it reacts to no event and never times
            out. ``"*"`` does not include them, and a transition that leaves one is refused.
        description: What the chart is about, for a model's prompt.
        logger: A structlog logger for transitions and faults. None means structlog's own, once it
            is configured.
        clock: Returns the current time in seconds since the epoch, or as a datetime; in a
            simulation the simulated time.

    Attributes:
        definition: The chart's definition.

    Raises:
        DefinitionError: (a ValueError) listing all problems of the definition.
    """

    def __init__(
        self,
        states: Iterable[StateT | State[StateT]],
        transitions: Iterable[Transition[StateT]],
        initial: StateT | tuple[StateT, ...],
        *,
        name: str = "statechart",
        decision_states: Iterable[StateT] = (),
        timeouts: Mapping[StateT, int] | None = None,
        strict: bool = False,
        final_states: Iterable[StateT] = (),
        description: str = "",
        logger: EventLogger | None = None,
        clock: Callable[[], float | datetime] = time,
    ) -> None:
        rest = (name, decision_states, timeouts, strict, final_states, description)
        super().__init__(Definition(states, transitions, initial, *rest), logger, clock)

    # Other ways to make one

    @classmethod
    def from_machine(
        cls,
        machine: Machine,
        *,
        name: str | None = None,
        timeouts: Mapping[Any, int] | None = None,
        timeout_trigger: str = TIMEOUT,
        logger: EventLogger | None = None,
        clock: Callable[[], float | datetime] = time,
    ) -> AdoptedChart:
        """Adopt an application's own Machine of the transitions package.

        Its models' own triggers work as before. With them, and with ``chart.fire``, come records in
        ``state_history``, ticks and time-outs, the log of transitions and refused events,
        `explain`, `check`, pictures and coverage.

        Pictures and documents show the Machine's conditions, not its callbacks.

        Two methods of the Machine are replaced in this instance: ``set_state``, and the one that
        runs an event.

        Args:
            machine: The Machine.
            name: Name of the chart in logs and messages; that of the Machine by default.
            timeouts: Ticks after which `tick` fires the time-out, by state.
            timeout_trigger: The event that a time-out fires.
            logger: As for the chart itself.
            clock: As for the chart itself.

        Raises:
            DefinitionError: If the Machine belongs to a chart already, is an ``AsyncMachine`` or a
                ``HierarchicalMachine``, or lacks the event that time-outs fire.
            ValueError: (of transitions) if it lacks a state that has a time-out.
        """
        return AdoptedChart(machine, name, timeouts or {}, timeout_trigger, logger, clock)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        guards: Mapping[str, Guard] | None = None,
        actions: Mapping[str, Action] | None = None,
        states: type[Enum] | None = None,
        **options: Any,
    ) -> Statechart[Any]:
        """Make a chart from plain data, as `to_dict` returns it.

        Nothing in the data is imported or evaluated.

        Args:
            data: The definition. A transition whose source is ``"*"`` stands for one from every
                state, unless a state has that text.
            guards: The functions for the names of guards, rates and times.
            actions: The functions for the names of actions.
            states: The Enum of the states; one is made by `state_enum` without it.
            options: ``logger`` and ``clock``, as for the chart itself.

        Raises:
            DefinitionError: For the first part of the document that is wrong, or for what a chart
                itself refuses.
        """
        from prism.statechart._document import read_chart

        try:
            return cls(**read_chart(data, guards, actions, states), **options)
        except RecursionError:
            raise DefinitionError("states are nested too deeply: split the chart") from None

    @classmethod
    def from_json(cls, text: str, **options: Any) -> Statechart[Any]:
        """Make a chart from JSON text.

        Args:
            text: What `to_json` returns, or a document of that shape.
            options: As for `from_dict`.

        Raises:
            InputError: If the text is not valid JSON; names the line.
            DefinitionError: As `from_dict`.
        """
        from prism.files import parse_json

        return cls.from_dict(parse_json(text.removeprefix("\ufeff")), **options)

    @classmethod
    def from_scxml(cls, text: str, **options: Any) -> Statechart[Any]:
        """Make a chart from an SCXML document; ``docs/charts.md`` says what is read.

        Nothing in the document is imported, fetched or evaluated.

        Args:
            text: The document.
            options: As for `from_dict`; guards may be named by the texts of conditions.

        Raises:
            InputError: If the text is not well-formed XML; names the line.
            DefinitionError: For the first element or attribute that is not read, or as
                `from_dict`; names the lines.
        """
        from prism.statechart._scxml import read_scxml

        made: Statechart[Any] = read_scxml(text, partial(cls.from_dict, **options))
        return made

    # Its parts

    state_type: type[StateT] = read_only(attrgetter("definition.state_type"))
    """The enum of the states, for ``state_type`` in the class of agents."""

    transitions: tuple[Transition[StateT], ...] = read_only(attrgetter("definition.transitions"))
    """The transitions in definition order, wildcards replaced."""

    initial: StateT = read_only(attrgetter("definition.initial"))
    """State that new agents start in."""

    decision_states: frozenset[StateT] = read_only(attrgetter("definition.decision_states"))
    """States in which `afire` asks a reasoner."""

    final_states: frozenset[StateT] = read_only(attrgetter("definition.final_states"))
    """States in which an agent is done."""

    states: frozenset[StateT] = read_only(lambda chart: frozenset(chart.definition.states))
    """The states; ``definition.states`` has them in order."""

    triggers: tuple[str, ...] = read_only(lambda chart: tuple(chart._triggers))
    """The events that the chart knows, in definition order."""

    def valid_targets(self, state: StateT, trigger: str) -> list[StateT]:
        """Return the distinct targets of a state and an event, guards ignored."""
        outcomes = rows_of(self._as_it_runs).enabled(self.state_of(state_text(state)), trigger)
        return distinct(each.to_state for each in outcomes)

    def valid_triggers(self, state: StateT) -> list[str]:
        """Return the events that a state reacts to, in definition order, guards ignored."""
        rows, member = rows_of(self._as_it_runs), self.state_of(state_text(state))
        return [trigger for trigger in self._triggers if rows.groups(member, trigger)]

    # Documents and pictures

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as plain data, ready for JSON; ``docs/charts.md`` shows the shape.

        Guards and actions are written by their names (``__qualname__``, or a ``__name__`` that a
        callable object has).

        Raises:
            DefinitionError: If a function has no name, or two have the same; lists all of them.
        """
        from prism.statechart._document import to_data

        return to_data(self._as_it_runs)

    def to_json(self) -> str:
        """Return the definition as JSON text: see `to_dict`."""
        return format(self, "json")

    def to_scxml(self) -> str:
        """Return the chart as an SCXML document; ``docs/charts.md`` describes its contents."""
        return format(self, "scxml")

    def to_svg(self, traffic: Mapping[tuple[str, str], int] | None = None) -> str:
        """Draw the chart as an SVG picture: see `prism.drawing.draw_svg`.

        Args:
            traffic: How often agents moved from source to target; the more often, the wider the
                arrow.
        """
        from prism.drawing import draw_svg
        from prism.statechart.outline import to_outline

        return draw_svg(to_outline(self._as_it_runs), traffic)

    def __format__(self, spec: str) -> str:
        """Write the chart as ``mermaid``, ``dot``, ``scxml``, ``json`` or ``svg``, else as `str`.

        Raises:
            ValueError: If the format is another one.
        """
        if not spec:
            return str(self)
        from prism.statechart.outline import WRITERS

        if spec not in WRITERS:
            raise ValueError(f"unknown format of a chart {spec!r}: use one of {', '.join(WRITERS)}")
        return WRITERS[spec](self._as_it_runs)

    def _repr_svg_(self) -> str:
        """Offer a notebook a picture."""
        return self.to_svg()

    # Agents

    @staticmethod
    def history(agent: Any) -> Sequence[StateTransition]:
        """Return an agent's last transitions, oldest first, wherever they are kept.

        They are kept in ``agent.state_history``, unless the application has something else there.
        Then they are kept beside the agent, at most 50, for as long as it lives. An object without
        a ``state_history`` has none, until it is adopted.
        """
        return history_of(agent)

    def adopt(self, agent: AgentT) -> AgentT:
        """Give an existing object the missing fields of an agent, and the initial state.

        Existing fields stay as they are, and so does a state that is plain text.

        Args:
            agent: Any object that takes new attributes.

        Returns:
            The same object.

        Raises:
            AgentError: If its class leaves no room for the missing fields.
            UnknownStateError: If it is in a state that this chart does not define.
        """
        add_missing_fields(agent)
        if getattr(agent, "state", None) is None:
            agent.state = self.initial  # type: ignore[attr-defined]
        self._reporter.met(agent, state_text(self._require_state(agent)))
        return agent

    # Derived, checked and explained

    def extended(self, **changes: Any) -> Statechart[Any]:
        """Return a copy of this chart with states and transitions added, removed or replaced.

        A transition is named by ``(trigger, source, target)``, as it was written. A state may be a
        text or a member of any enum, and None stands for anything: ``("timeout", None, None)``
        names all time-outs. A trigger of None was written ``"always"``, a history ``"phone.H"``.

        Args:
            changes: What the new chart has otherwise:

                * ``states``: further states, as an enum or as texts, or a `State` with what it
                  contains. The new chart then has its own enum, `state_type`: the given one if it
                  has all states of the chart, otherwise one with all former and new members. Former
                  members equal their successors by text. Agents of the new chart set
                  ``state_type`` in their class.
                * ``transitions``: further transitions, between members of the former enum, of
                  ``states`` or of both. They are tried after the former ones. The source ``"*"``
                  stands for all states of the new chart, but a former ``"*"`` only for the former
                  states.
                * ``without``: the transitions to leave out, or their names.
                * ``guards``: new guards, by the transition's name; None for no guard.
                * ``timeouts``: new limits in ticks, by state; None for no limit.
                * ``decision_states`` and ``final_states``: further ones.
                * ``initial``, ``name``, ``description``, ``strict``, ``logger`` and ``clock``.

        Returns:
            The new chart, of the same class, whose constructor must take what a chart's does.

        Raises:
            DefinitionError: Listing every name without a transition, or all problems of the new
                chart.
        """
        from prism.statechart._extending import extended

        make: Callable[..., Statechart[Any]] = type(self)
        defaults = {"logger": self._reporter.logger, "clock": self._clock}
        return make(**{**defaults, **extended(self._definition, **changes)})

    def check(self) -> list[Finding]:
        """Return all probable mistakes of this chart.

        This reports states that cannot be reached, and states with no way out that are not final.
        """
        from prism.statechart.inspection import find_flaws

        return [*find_flaws(self._as_it_runs)]

    def explain(self, agent: Any, trigger: str, context: Any = None) -> Explanation:
        """Explain what an event would do to an agent, without changing or logging anything.

        Guards are evaluated as in `fire`, up to the first that passes; in a decision state all are,
        as in `afire`.

        Args:
            agent: Anything with a ``state``.
            trigger: Name of the event.
            context: The event's context.

        Returns:
            Every candidate with its guard's outcome, and what ``fire`` would do; ``print`` it to
            read it.

        Raises:
            UnknownStateError: If this chart does not define its state.
        """
        from prism.statechart.inspection import explain

        return explain(self._as_it_runs, agent, trigger, context, self._require_state(agent))

    # As a value

    def __eq__(self, other: object) -> bool:
        """Compare definitions; logger and clock do not count."""
        return isinstance(other, Statechart) and self.definition == other.definition

    def __hash__(self) -> int:
        """Hash the definition."""
        return hash(self.definition)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the chart itself: it has no agents, so copies of agents may refer to one chart."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by definition, with the fields of a derived class.

        These, guards, actions, logger and clock must be picklable themselves.
        """
        parts = type(self), self._as_it_runs.arguments, self._reporter.logger, self._clock
        # typing adds a field to what is made by ``Statechart[Mood](...)``
        usual = {*vars(remade(*parts)), "__orig_class__"}
        return remade, parts, {key: vars(self)[key] for key in vars(self) if key not in usual}

    def __repr__(self) -> str:
        """Show name and size."""
        size = f"{len(self.states)} states, {len(self.transitions)} transitions"
        return f"Statechart({self.name!r}, {size}, initial={state_text(self.initial)!r})"


class AdoptedChart(AdoptedEngine, Statechart[Any]):
    """A chart on an application's own Machine: see `Statechart.from_machine`."""

    def explain(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Explanation:
        """Explain what an event would do to a model, with the arguments that `fire` takes."""
        from prism.statechart.inspection import explain

        # no other question has the transitions that the Machine has added by itself
        chart = definition_of(self._machine, self._definition.arguments, trigger)
        return explain(chart, agent, trigger, Arguments(args, kwargs), self._require_state(agent))
