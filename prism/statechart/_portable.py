"""A chart outside the engine: as data, as text for other tools, as a picture in a notebook.

What writes and draws is imported when it is first used: an application that only runs charts does
not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from time import time
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast, overload

from prism.statechart._definition import in_definition_order
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition
from prism.telemetry._loggers import EventLogger

if TYPE_CHECKING:
    from prism.statechart.formats._document import Functions
    from prism.statechart.inspection._explain import Explanation
    from prism.statechart.statechart import Statechart

    class _Options(TypedDict, total=False):
        """What charts that are read are given, beside the states."""

        guards: Functions | None
        actions: Functions | None
        logger: EventLogger | None
        clock: Callable[[], float]


EnumT = TypeVar("EnumT", bound=Enum)

_MOST_DRAWN = 500
"""Transitions up to which a notebook draws a chart that it shows; nobody can read a picture of more."""


class Portable:
    """What `Statechart` can do with its definition apart from running it."""

    name: str
    states: frozenset[Any]
    transitions: tuple[Transition[Any], ...]
    initial: Any
    decision_states: frozenset[Any]
    timeouts: Mapping[Any, int]
    strict: bool

    def to_dict(
        self,
        *,
        guards: Functions | None = None,
        actions: Functions | None = None,
    ) -> dict[str, Any]:
        """Return the definition as plain data, ready for JSON; ``docs/charts.md`` describes the shape.

        Guards and actions are written by name: the one under which they are registered here, else
        their own (``__qualname__``, or a ``__name__`` that a callable object has).

        Args:
            guards: Guards by name, for those without a name of their own, such as lambdas.
            actions: Actions by name.

        Raises:
            DefinitionError: If a function has no name, or two have the same; lists all of them.
        """
        from prism.statechart.formats._document import to_data

        return to_data(self, guards, actions)

    @overload
    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, states: None = None, **options: Unpack[_Options]
    ) -> Statechart[StrEnum]: ...

    @overload
    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, states: type[EnumT], **options: Unpack[_Options]
    ) -> Statechart[EnumT]: ...

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        guards: Functions | None = None,
        actions: Functions | None = None,
        states: type[Enum] | None = None,
        logger: EventLogger | None = None,
        clock: Callable[[], float] = time,
    ) -> Statechart[Any]:
        """Make a chart from plain data, as `to_dict` gives it. Nothing in the data is imported or evaluated.

        Args:
            data: The definition. A transition whose source is ``"*"`` stands for one from every
                state, unless a state has that text.
            guards: The functions for the names of guards.
            actions: The functions for the names of actions.
            states: A ``str``-based Enum whose members the states are; without it one is made by
                `state_enum`.
            logger: As for the chart itself.
            clock: As for the chart itself.

        Raises:
            DefinitionError: Listing everything that is wrong, twenty offences in full and the rest
                counted: unknown keys and names, wrong types, repeated states. A document of a newer
                version, and a list of more transitions than a chart may have, are not looked into
                further.
        """
        from prism.statechart.formats._document import from_data

        parts = from_data(data, guards, actions, states)
        make = cast("Callable[..., Statechart[Any]]", cls)

        return make(
            parts.states,
            parts.transitions,
            parts.initial,
            **parts.settings,
            logger=logger,
            clock=clock,
        )

    def to_json(
        self,
        *,
        guards: Functions | None = None,
        actions: Functions | None = None,
    ) -> str:
        """Return the definition as JSON text: see `to_dict`."""
        from prism.statechart.formats._document import to_text

        return to_text(self.to_dict(guards=guards, actions=actions))

    @overload
    @classmethod
    def from_json(
        cls, text: str, *, states: None = None, **options: Unpack[_Options]
    ) -> Statechart[StrEnum]: ...

    @overload
    @classmethod
    def from_json(
        cls, text: str, *, states: type[EnumT], **options: Unpack[_Options]
    ) -> Statechart[EnumT]: ...

    @classmethod
    def from_json(cls, text: str, **options: Any) -> Statechart[Any]:
        """Make a chart from JSON text.

        Args:
            text: What `to_json` gives, or what somebody wrote in its shape.
            options: As for `from_dict`.

        Raises:
            InputError: If the text is not JSON; names the line.
            DefinitionError: As `from_dict`.
        """
        from prism.statechart.formats._document import from_text

        return cls.from_dict(from_text(text), **options)

    def to_svg(self, traffic: Mapping[tuple[str, str], int] | None = None) -> str:
        """Draw the chart as an SVG picture: see `prism.drawing._svg.draw_svg`.

        Args:
            traffic: How often each move (source, target) was made; arrows are drawn the wider for
                it.
        """
        from prism.drawing._svg import draw_svg
        from prism.statechart.formats._diagram import to_diagram

        return draw_svg(to_diagram(self), traffic)

    def explain(self, agent: Any, trigger: str, context: Any = None) -> Explanation:
        """Tell what an event would do to an agent, and why; nothing is changed and nothing is logged.

        Guards are asked as `Statechart.fire` asks them, up to the first that passes; in a decision
        state all are, as `Statechart.afire` does it.

        Args:
            agent: Anything with a ``state``.
            trigger: Name of the event.
            context: What the event is about.

        Returns:
            Every candidate with its guard's outcome, and what ``fire`` would do; ``print`` it to
            read it.

        Raises:
            AgentError: If the object has no ``state``.
            TypeError: If the arguments are in another order.
        """
        from prism.statechart.inspection._explain import explain

        return explain(self, agent, trigger, context)

    def __format__(self, spec: str) -> str:
        """Write the chart as ``mermaid``, ``dot``, ``scxml``, ``json`` or ``svg``; without a format as `str` does.

        Raises:
            ValueError: If the format is another one.
        """
        if not spec:
            return str(self)
        from prism.statechart.formats._export import as_text

        return as_text(self, spec)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """Show the chart in a notebook: a picture where one can be shown, else Mermaid, else a line of text."""
        bundle = {"text/plain": repr(self), "text/markdown": f"```mermaid\n{self:mermaid}```\n"}
        if len(self.transitions) <= _MOST_DRAWN:
            bundle["image/svg+xml"] = self.to_svg()
        return bundle

    def __eq__(self, other: object) -> bool:
        """Compare definitions: name, states in order, transitions, initial state, decision states, limits, strictness.

        States count by their texts, guards and actions by equality; logger and clock do not count.
        """
        if not isinstance(other, Portable):
            return NotImplemented
        return self is other or self._definition() == other._definition()

    def __hash__(self) -> int:
        """Hash what is at hand of the definition."""
        return hash((self.name, state_text(self.initial), len(self.states), len(self.transitions)))

    def _definition(self) -> tuple[Any, ...]:
        states = tuple(map(state_text, in_definition_order(self.states)))
        decisions = frozenset(map(state_text, self.decision_states))
        limits = {state_text(state): ticks for state, ticks in self.timeouts.items()}

        return (
            self.name,
            states,
            state_text(self.initial),
            decisions,
            limits,
            self.strict,
            self.transitions,
        )
