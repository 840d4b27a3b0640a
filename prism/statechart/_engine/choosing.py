"""Which transitions an event enables for an agent: the candidates whose guards pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from prism.statechart._engine.arguments import Checks
from prism.statechart._engine.machine import PASSED, Candidate, Verdict, distinct, evaluate
from prism.statechart._engine.memory import histories, memory_of, random_of
from prism.statechart._engine.pending import Answer, has_moved
from prism.statechart._engine.writing import Discarded, Reporter
from prism.statechart._nesting import Configuration, leaf_texts
from prism.statechart.transitions import Edge, StateT
from prism.telemetry._instrument import GuardEvaluated, engine_hooks, observe

if TYPE_CHECKING:
    from prism.statechart._engine.rows import NestedRows, Resolver
    from prism.statechart._tree.numbers import Arc

_target_of: Callable[[Candidate[Any]], Any] = itemgetter(2)


class Chooser(Checks[StateT]):
    """Tells which transitions of one definition an event enables, and changes nothing."""

    _reporter: Reporter
    # the rows of a chart with composites, which are made on first use; None for a flat chart
    _nested: NestedRows | None

    def enabled_targets(self, agent: Any, trigger: str, context: Any = None) -> list[StateT]:
        """Return the distinct targets whose guards pass now, in definition order.

        Nothing is changed.
        """
        enabled = self._enabled(agent, trigger, context)
        if len(enabled) == 1:
            return [enabled[0][2]]
        return distinct(map(_target_of, enabled))

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
        candidates = self._candidates(agent, trigger)
        if answer is None:
            return next(self._passing(candidates, agent, context), None)

        state = agent.state if answer.asked_in is None else answer.asked_in
        reason: Discarded = "moved"
        if not self._is_overtaken(agent, trigger, state):
            reason = "not_enabled"
            for candidate in self._carrying_out(answer, candidates, agent, trigger, context):
                return candidate

        if not answer.is_quiet:
            self._discard(agent, trigger, state, answer.target, reason)
        return None

    def _is_overtaken(self, agent: Any, trigger: str, asked_in: Any) -> bool:
        """Return whether an agent is no longer where it was asked about an event."""
        now = agent.state
        return asked_in != now and not self._leaves_asked(asked_in, trigger) <= {*leaf_texts(now)}

    def _has_moved(
        self, agent: Any, asked_in: Any, trigger: str, history: Sequence[Any], record: Any
    ) -> bool:
        """Return whether an agent has moved since it was asked: see `has_moved`."""
        about = self._leaves_asked(asked_in, trigger)
        return has_moved(agent.state, asked_in, history, record, about)

    def _leaves_asked(self, state: Any, trigger: str) -> Set[str]:
        """Return the texts of the leaves that an answer about an event depends on."""
        if self._nested is None or state not in self._nested:
            return {*leaf_texts(state)}
        return self._nested.leaves_asked(state, trigger)

    def _carrying_out(
        self,
        answer: Answer,
        candidates: Iterable[Candidate[StateT]],
        agent: Any,
        trigger: str,
        context: Any,
    ) -> Iterator[Candidate[StateT]]:
        """Yield the transitions that carry out an answer and are enabled now."""
        target, asked_in, _, chosen = answer
        if self._nested is None:
            meant = [each for each in candidates if each[2] == target]
            yield from self._passing(meant if chosen is None else [chosen], agent, context)
            return

        numbers = None if chosen is None else {chosen[3].plan.numbers}
        if asked_in not in (None, agent.state):
            # other regions have moved, so the same transitions lead to another target now
            about = self._nested.leaves_asked(asked_in, trigger)
            candidates = [self._nested.about(agent.state, trigger, about)]
            then = self._nested.about(asked_in, trigger, about)[3].plan
            numbers = numbers or self._leading_to(target, then, agent)

        for each in self._opened(candidates, agent, context):
            if each[2] == target if numbers is None else each[3].plan.numbers in numbers:
                yield each

    def _leading_to(self, target: Any, resolver: Resolver, agent: Any) -> set[tuple[int, ...]]:
        """Return the numbers of the transitions that lead to a target, guards ignored."""
        enabled = resolver.enabled(lambda _: True, partial(self._histories, agent))
        return {each[3].plan.numbers for each in enabled if each[2] == target}

    def _decides(self, state: Any) -> bool:
        """Return whether a reasoner chooses in a state, or in one of its leaves."""
        deciding = self._definition.decision_states
        return state in deciding or (
            isinstance(state, Configuration) and not deciding.isdisjoint(state.leaves)
        )

    def _discard(
        self, agent: Any, trigger: str, state: Any, target: Any, reason: Discarded
    ) -> None:
        # of an event that the chart does not have there is a warning already
        if type(trigger) is str and trigger in self._triggers:
            self._reporter.discarded(agent, trigger, state, target, reason)

    def _enabled(self, agent: Any, trigger: str, context: Any) -> list[Candidate[StateT]]:
        candidates = self._candidates(agent, trigger)
        return list(self._opened(candidates, agent, context))

    def _opened(
        self, candidates: Iterable[Candidate[StateT]], agent: Any, context: Any
    ) -> Iterator[Candidate[StateT]]:
        """Yield the candidates that pass; one that stands for several is replaced by them."""
        for candidate in self._passing(candidates, agent, context):
            edge = candidate[3]
            if edge.plan is not None and edge.plan.is_open:
                yield from edge.plan.enabled(
                    self._asking(edge, agent, context), partial(self._histories, agent)
                )
            else:
                yield candidate

    def _resolved(
        self, candidate: Candidate[StateT], agent: Any, context: Any
    ) -> Candidate[StateT] | None:
        """Resolve a candidate now; return None if no guard passes, or chance decides against it."""
        edge = candidate[3]
        if not edge.plan.is_open:
            return candidate

        found: Candidate[StateT] | None = edge.plan.resolve(
            self._asking(edge, agent, context),
            lambda: random_of(self._definition.name, agent).random(),
            lambda: self._histories(agent),
        )
        return found

    def _asking(self, edge: Edge, agent: Any, context: Any) -> Callable[[Arc], bool]:
        """Return what evaluates guards, each once though several regions share a transition."""
        answers: dict[Arc, bool] = {}

        def ask(arc: Arc) -> bool:
            if arc.guard is None:
                return True
            passes = answers.get(arc)
            if passes is None:
                verdict = evaluate(arc.guard, agent, context)
                if engine_hooks or verdict.error is not None:
                    self._report_guard(verdict, (arc.place,), edge, agent, context)
                passes = answers[arc] = verdict is PASSED
            return passes

        return ask

    def _report_guard(
        self,
        verdict: Verdict,
        numbers: int | tuple[int, ...],
        edge: Edge,
        agent: Any,
        context: Any,
    ) -> None:
        """Tell who observes guards about one, and report one that raised."""
        if engine_hooks:
            observe("guard", GuardEvaluated, self.definition, numbers, agent, context, *verdict)
        if verdict.error is not None:
            self._reporter.guard_failed(verdict.error, agent, edge)

    def _histories(self, agent: Any) -> dict[int, tuple[int, ...]]:
        assert self._nested is not None
        memory = memory_of(self._definition.name, agent)
        return histories(memory, self._nested.tree)

    def _passing(
        self, candidates: Iterable[Candidate[StateT]], agent: Any, context: Any
    ) -> Iterator[Candidate[StateT]]:
        """Yield the candidates whose guards pass, in order; report the guards that raise."""
        for candidate in candidates:
            guard, _, _, edge = candidate
            if guard is None:
                yield candidate
                continue

            verdict = evaluate(guard, agent, context)
            if engine_hooks or verdict.error is not None:
                self._report_guard(verdict, self._number_of(edge), edge, agent, context)
            if verdict is PASSED:
                yield candidate

    def _candidates(self, agent: Any, trigger: str) -> tuple[Candidate[StateT], ...]:
        row = self._rows[self._require_known_state(agent)]
        try:
            return row[trigger]
        except (KeyError, TypeError):
            # nothing is wrong with an event that does not apply
            self._require_trigger(trigger)
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
