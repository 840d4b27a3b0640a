"""A chart as SCXML (W3C, State Chart XML, https://www.w3.org/TR/scxml/).

What SCXML has is written as SCXML: regions, histories, internal transitions and ``In``. What it has
not stands in prism's namespace, which interpreters ignore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prism.statechart._definition import Definition
from prism.statechart._nesting import DONE, EventDescriptor, In, State
from prism.statechart._tree.hierarchy import member_of, with_insides
from prism.statechart.formats._names import Functions, name_of
from prism.statechart.formats._scxml_names import attribute, head, scxml_guards, scxml_name
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMING, History, Transition, as_tuple, is_any_state


def to_scxml(
    chart: Definition[Any], guards: Functions | None = None, actions: Functions | None = None
) -> str:
    """Write an SCXML document that makes the same transitions as the chart.

    States and triggers are named by `scxml_name`. A guard reads its outcome from the event's data,
    as ``cond="_event.data.guard_is_busy"``: see `scxml_guards`. An interpreter stops in a final
    state.

    Args:
        chart: The chart's definition.
        guards: Guards by name, for those without a name of their own.
        actions: Actions by name.
    """
    return "\n".join(_Writer(chart, guards, actions).lines()) + "\n"


class _Writer:
    """Writes one chart."""

    def __init__(
        self, chart: Definition[Any], guards: Functions | None, actions: Functions | None
    ) -> None:
        self._chart = chart
        self._tree = chart.hierarchy
        self._fields = scxml_guards(chart, guards)
        self._guards, self._actions = guards, actions
        self._histories = {
            history: f"{_id(history.state)}.history.{number}"
            for number, history in enumerate(dict.fromkeys(self._named_histories()), start=1)
        }
        self._leaving: dict[str, list[tuple[int, Transition[Any]]]] = {}
        for arc in self._tree.arcs:
            member = self._tree.tree.nodes[arc.source].state
            if member not in self._tree.final_states:
                leaving = self._leaving.setdefault(state_text(member), [])
                leaving.append((arc.place, arc.written))

    def _named_histories(self) -> Iterator[History[Any]]:
        targets = [each for item in self._tree.transitions for each in _targets(item)]
        for state in with_insides(self._tree.states):
            targets += state.initial if isinstance(state, State) else ()
        return (each for each in targets if isinstance(each, History))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the document."""
        chart = self._chart
        extras = ' prism:strict="true"' if chart.strict else ""
        extras += attribute("prism:needs", " ".join(chart.needs)) if chart.needs else ""
        yield from head(chart, self._places(as_tuple(self._tree.initial)), extras)
        for state in self._tree.states:
            yield from self._state(state, "  ")
        yield "</scxml>"

    def _state(self, state: Any, indent: str) -> Iterator[str]:
        member = member_of(state)
        tag = "state"
        if member in self._tree.final_states:
            tag = "final"
        elif isinstance(state, State) and state.parallel:
            tag = "parallel"

        inside = [
            *self._history_lines(member),
            *self._transition_lines(member),
            *(
                line
                for each in (state.states if isinstance(state, State) else ())
                for line in self._state(each, "  ")
            ),
        ]
        opened = f"{indent}<{tag}{self._attributes(state)}"
        if not inside:
            yield f"{opened}/>"
            return
        yield f"{opened}>"
        yield from (f"{indent}{line}" for line in inside)
        yield f"{indent}</{tag}>"

    def _attributes(self, state: Any) -> str:
        member = member_of(state)
        found = attribute("id", _id(member))
        if isinstance(state, State):
            if state.initial:
                found += attribute("initial", self._places(state.initial))
            for kind, functions in (("entry", state.entry), ("exit", state.exit)):
                if functions:
                    names = (self._action(each) for each in functions)
                    found += attribute(f"prism:{kind}", " ".join(names))
        if member in self._tree.decision_states:
            found += ' prism:decision="true"'
        if member in self._tree.timeouts:
            found += f' prism:timeout="{self._tree.timeouts[member]}"'

        return found

    def _places(self, targets: Iterable[Any]) -> str:
        return " ".join(
            self._histories[each] if isinstance(each, History) else _id(each) for each in targets
        )

    def _history_lines(self, member: Any) -> Iterator[str]:
        for history, name in self._histories.items():
            if history.state != member:
                continue
            node = self._tree.tree.nodes[self._tree.tree.numbers[state_text(member)]]
            implicit = "" if history.default is not None else ' prism:implicit="true"'
            kind = "deep" if history.deep else "shallow"
            numbers = node.children if node.kind == "parallel" else node.children[:1]
            default = (
                as_tuple(history.default)
                if history.default is not None
                else [self._tree.tree.nodes[number].state for number in numbers]
            )
            yield f'  <history id="{name}" type="{kind}"{implicit}>'
            yield f'    <transition target="{self._places(default)}"/>'
            yield "  </history>"

    def _transition_lines(self, member: Any) -> Iterator[str]:
        for place, item in self._leaving.get(state_text(member), []):
            yield f"  <transition{self._transition(place, item)}/>"

    def _action(self, action: Any) -> str:
        return scxml_name(name_of(action, self._actions) or "action")

    def _transition(self, place: int, item: Transition[Any]) -> str:
        found = _event(item.trigger) + self._condition(item.guard)
        if item.target is not None:
            found += attribute("target", self._places(_targets(item)))
        if item.internal:
            found += ' type="internal"'
        if item.action is not None:
            found += attribute("prism:action", self._action(item.action))
        if is_any_state(item.source):
            found += ' prism:source="*"'
        for name in TIMING:
            value = getattr(item, name)
            if value is not None:
                found += attribute(f"prism:{name}", self._number(value))

        return found + f' prism:place="{place}"'

    def _condition(self, guard: Any) -> str:
        if guard is None:
            return ""
        if isinstance(guard, In):
            return attribute("cond", f"In('{_id(guard.state)}')")
        field = next(name for name, known in self._fields.items() if known == guard)
        return attribute("cond", f"_event.data.{field}")

    def _number(self, value: Any) -> str:
        if callable(value):
            return scxml_name(name_of(value, self._guards) or "function")
        return repr(value)


def _targets(item: Transition[Any]) -> tuple[Any, ...]:
    return () if item.target is None else as_tuple(item.target)


def _id(state: Any) -> str:
    return scxml_name(state_text(state))


def _event(trigger: str | None) -> str:
    if trigger is None:
        return ""
    if isinstance(trigger, EventDescriptor):
        return attribute("event", trigger)
    prefix = DONE if trigger.startswith(DONE) else ""
    name = prefix + scxml_name(trigger.removeprefix(prefix))
    return attribute("event", name) + ' prism:exact="true"'
