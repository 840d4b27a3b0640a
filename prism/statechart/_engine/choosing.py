"""Which transitions an event enables for an agent: the candidates whose guards pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from prism.statechart._engine.arguments import Checks
from prism.statechart._engine.machine import PASSED, Candidate, distinct, evaluate
from prism.statechart._engine.memory import histories, memory_of, random_of
from prism.statechart._engine.pending import Answer
from prism.statechart._engine.writing import Discarded, Reporter
from prism.statechart._nesting import Configuration
from prism.statechart.transitions import Edge, StateT
from prism.telemetry._instrument import GuardEvaluated, engine_hooks, observe

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows
    from prism.statechart._tree.numbers import Arc


class Chooser(Checks[StateT]):
    """Tells which transitions of one definition an event enables, and changes nothing."""

    _reporter: Reporter
    # the rows of a chart with composites, which are made on first use; None for a flat chart
    _nested: NestedRows | None

    def enabled_targets(self, agent: Any, trigger: str, context: Any = None) -> list[StateT]:
        """Return the distinct targets whose guards pass now, in definition order.

        Nothing is changed.
        """
        return distinct(target for _, _, target, _ in self._enabled(agent, trigger, context))

    def enabled_triggers(self, agent: Any, context: Any = None) -> list[str]:
        """Return the events that would cause a transition now, in definition order.

        Nothing is changed. Guards are evaluated with this context, whatever the event.

        Args:
            agent: Anything with a ``state``.
            context: What the event would be about.

        Returns:
            The triggers of the agent's state that have a candidate whose guard passes.
        """
        row = self._rows[self._require_known_state(agent)]
        return [
            trigger
            for trigger in self._triggers
            if any(self._opened(row.get(trigger, ()), agent, context))
        ]

    def _first_enabled(
        self, agent: Any, trigger: str, context: Any, answer: Answer | None
    ) -> Candidate[StateT] | None:
        candidates = self._candidates(agent, trigger, context)
        if answer is None:
            return next(self._passing(candidates, agent, context), None)

        target, asked_in, is_quiet = answer
        state = agent.state if asked_in is None else asked_in
        if self._nested is not None:
            candidates = tuple(self._opened(candidates, agent, context))
            target, state = self._as_it_is_now(agent, target, state)
        has_moved = state != agent.state
        leading = [] if has_moved else [item for item in candidates if item[2] == target]
        if leading and leading[0][0] is None:
            return leading[0]
        for candidate in self._passing(leading, agent, context):
            return candidate

        if not is_quiet:
            self._discard(agent, trigger, state, target, "moved" if has_moved else "not_enabled")
        return None

    def _unguarded_to(
        self, agent: Any, trigger: str, target: Any, asked_in: Any
    ) -> Candidate[StateT] | None:
        """Return the candidate for an answer if it is plain that there is no other; else None.

        This is the usual case of `_first_enabled`, without its calls.
        """
        try:
            state = agent.state
            candidates = self._rows[state][trigger]
        except (AttributeError, KeyError, TypeError):
            return None

        if self._nested is not None or not (asked_in is None or asked_in is state):
            return None

        for candidate in candidates:
            if candidate[2] == target:
                is_plain = candidate[0] is None and candidate[3].from_state is state
                return candidate if is_plain else None
        return None

    def _as_it_is_now(self, agent: Any, target: Any, asked_in: Any) -> tuple[Any, Any]:
        """Return an answer's target and its state, with the other regions as they are now.

        A question stays open while its own region does not move.
        """
        now = agent.state
        if not all(isinstance(each, Configuration) for each in (target, asked_in, now)):
            return target, asked_in

        left, entered = {*asked_in.leaves} - {*target.leaves}, {*target.leaves} - {*asked_in.leaves}
        if not left or not left.issubset(now.leaves):
            return target, asked_in

        assert self._nested is not None
        there = ({*now.leaves} - left) | entered
        found = Configuration(each for each in self._definition.states if each in there)
        return (found, now) if found in self._nested else (target, asked_in)

    def _decides(self, state: Any) -> bool:
        """Return whether a reasoner chooses in a state, or in one of its leaves."""
        deciding = self._definition.decision_states
        return state in deciding or (
            isinstance(state, Configuration) and not deciding.isdisjoint(state.leaves)
        )

    def _still_passes(
        self, agent: Any, trigger: str, candidate: Candidate[StateT], context: Any
    ) -> bool:
        """Return whether a candidate that was enabled when a reasoner was asked still is."""
        if self._nested is None:
            return next(self._passing([candidate], agent, context), None) is not None
        return any(each[2] == candidate[2] for each in self._enabled(agent, trigger, context))

    def _discard(
        self, agent: Any, trigger: str, state: Any, target: Any, reason: Discarded
    ) -> None:
        # of an event that the chart does not have there is a warning already
        if type(trigger) is str and trigger in self._triggers:
            self._reporter.discarded(agent, trigger, state, target, reason)

    def _enabled(self, agent: Any, trigger: str, context: Any) -> list[Candidate[StateT]]:
        candidates = self._candidates(agent, trigger, context)
        if self._nested is None:
            return list(self._passing(candidates, agent, context))

        return list(self._opened(candidates, agent, context))

    def _opened(
        self, candidates: Iterable[Candidate[StateT]], agent: Any, context: Any
    ) -> Iterator[Candidate[StateT]]:
        """Yield the candidates that pass; one that stands for several is replaced by them."""
        for candidate in self._passing(candidates, agent, context):
            edge = candidate[3]
            if edge.plan is not None and edge.plan.is_open:
                yield from edge.plan.enabled(
                    partial(self._ask, edge, agent, context), partial(self._histories, agent)
                )
            else:
                yield candidate

    def _resolved(
        self, candidate: Candidate[StateT], agent: Any, context: Any
    ) -> Candidate[StateT] | None:
        """Resolve a candidate now; return None if no guard passes, or chance decides against it."""
        edge = candidate[3]
        plan = edge.plan
        if not plan.is_open:
            return candidate

        assert self._nested is not None
        if plan.is_plain and not engine_hooks and self._nested.event_of is None:
            plain: Candidate[StateT] | None = plan.chosen(self._passing_of(plan, agent, context))
            return plain

        name = self._definition.name
        found: Candidate[StateT] | None = plan.resolve(
            partial(self._ask, edge, agent, context),
            lambda: random_of(name, agent).random(),
            lambda: self._histories(agent),
        )
        return found

    def _passing_of(self, plan: Any, agent: Any, context: Any) -> tuple[Arc, ...]:
        """Return the first transition of each region whose guard passes, as `resolve` does.

        Written out for speed, for nobody who observes guards.
        """
        found = []
        for group in plan.groups:
            for arc in group:
                guard = arc.guard
                try:
                    if guard is None or guard(agent, context):
                        found.append(arc)
                        break
                except Exception as error:
                    self._reporter.guard_failed(error, agent, plan.edge)

        return tuple(found)

    def _ask(self, edge: Edge, agent: Any, context: Any, arc: Arc) -> bool:
        """Evaluate the guard of one of several transitions; report one that raises."""
        assert self._nested is not None
        if self._nested.event_of is not None:
            context = self._nested.event_of(edge.trigger, context)
        if arc.guard is None:
            return True

        verdict = evaluate(arc.guard, agent, context)
        if engine_hooks:
            number = (arc.place,)
            observe("guard", GuardEvaluated, self.definition, number, agent, context, *verdict)
        if verdict.error is not None:
            self._reporter.guard_failed(verdict.error, agent, edge)

        return verdict is PASSED

    def _histories(self, agent: Any) -> dict[int, tuple[int, ...]]:
        assert self._nested is not None
        memory = memory_of(self._definition.name, agent)
        return histories(memory, self._nested.planner.tree)

    def _passing(
        self, candidates: Iterable[Candidate[StateT]], agent: Any, context: Any
    ) -> Iterator[Candidate[StateT]]:
        """Yield the candidates whose guards pass, in order; report the guards that raise."""
        for candidate in candidates:
            if candidate[0] is None:
                yield candidate
                continue

            verdict = evaluate(candidate[0], agent, context)
            if engine_hooks:
                number = self._number_of(candidate[3])
                observe("guard", GuardEvaluated, self.definition, number, agent, context, *verdict)

            if verdict.error is not None:
                self._reporter.guard_failed(verdict.error, agent, candidate[3])
            elif verdict is PASSED:
                yield candidate

    def _candidates(self, agent: Any, trigger: str, context: Any) -> tuple[Candidate[StateT], ...]:
        row = self._rows[self._require_known_state(agent)]
        try:
            return row[trigger]
        except (KeyError, TypeError):
            # nothing is wrong with an event that does not apply
            self._require_trigger(trigger, context)
            return ()

    def _number_of(self, edge: Edge) -> int | tuple[int, ...]:
        """Return the index of a transition, or the indices of all that are made together."""
        return self._numbers[edge] if edge.plan is None else edge.plan.numbers

    @cached_property
    def _numbers(self) -> dict[Edge, int]:
        """The places of the transitions in the definition, by the edges of their candidates."""
        remaining = {
            (state, trigger): iter(candidates)
            for state, row in self._rows.items()
            for trigger, candidates in row.items()
        }
        return {
            next(remaining[item.source, item.trigger])[3]: number
            for number, item in enumerate(self.definition.transitions)
        }
