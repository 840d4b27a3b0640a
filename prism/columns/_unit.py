"""A world's class as the text of a module, or the reasons why it cannot be compiled."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from linecache import getlines
from operator import methodcaller
from typing import Any

from prism._faults import Place
from prism.columns import _table as T  # noqa: N812
from prism.columns import _types as types
from prism.columns._language import MATH
from prism.columns._pieces import Body
from prism.columns._types import LOST, Layout, Stored, Type, Unit, Value, kind_of, type_of
from prism.statechart import Statechart
from prism.statechart._definition import TIMEOUT
from prism.worlds import Agent, World
from prism.worlds._fields import hints_of, words_of_type
from prism.worlds._guest import Proxy
from prism.worlds._kinds import _kind_wanted, _limits_of, parts_of
from prism.worlds._world import kinds_of

_MOST_STATES = 250
_WITHOUT = "run this world without columns"


def problems_of(cls: type[World[Any]]) -> list[str]:
    """Return why a world cannot run in columns, by file and line, or nothing if it can."""
    problems = list(_class_problems(cls))
    return [*problems, *unit_of(cls).problems] if _has_steps(cls) else problems


@lru_cache(maxsize=64)
def unit_of(cls: type[World[Any]]) -> Unit:
    """Return a world's class as text, and what of it cannot be compiled."""
    return _Builder(cls).built()


def _has_steps(cls: Any) -> bool:
    """Return whether a world has what its steps are compiled for: one kind, with a flat chart."""
    kinds = kinds_of(cls)
    chart = getattr(kinds[0], "chart", None) if len(kinds) == 1 else None
    is_flat = isinstance(chart, Statechart) and chart.definition.tree is None
    return is_flat and not cls._prism_arguments and not issubclass(kinds[0], Proxy)


def _class_problems(cls: Any) -> Iterator[str]:
    where = f"{_place(cls)}: {cls.__name__}"
    kinds = kinds_of(cls)
    if cls._prism_arguments:
        yield f"{where} is the social feed, which columns do not support: {_WITHOUT}"
        return
    if len(kinds) != 1:
        listed = " | ".join(each.__name__ for each in kinds) or "no kind that is named"
        yield f"{where} is a world of {listed}; columns support only one kind of agents: {_WITHOUT}"
    if cls.overlap:
        yield f"{where} has overlap = True, which is only for agents that ask a model: leave it out"
    if cls.activation == "rate":
        yield f"{where} has activation = 'rate', which columns do not support: {_WITHOUT}"

    for agent in kinds:
        yield from _agent_problems(agent, f"{_place(agent)}: {agent.__name__}")


def _agent_problems(agent: Any, about: str) -> Iterator[str]:
    chart = getattr(agent, "chart", None)
    if issubclass(agent, Proxy) or not isinstance(chart, Statechart):
        yield f"{about} has no chart of its own, so columns cannot hold its states: {_WITHOUT}"
        return

    definition = chart.definition
    if definition.tree is not None:
        yield (
            f"{about}.chart has states inside of others, timers, rates, probabilities or eventless "
            f"transitions, which have no columns: write it flat, or {_WITHOUT}"
        )
        return
    if len(definition.states) > _MOST_STATES:
        yield f"{about}.chart has more than {_MOST_STATES} states: {_WITHOUT}"
    for each in definition.transitions:
        if each.action is not None:
            yield f"{about}.chart: {each} has an action: let a step do it, or {_WITHOUT}"
    for name in ("archetype", "relevance"):
        if hasattr(agent, name):
            yield f"{about}.{name} is not supported; columns draw by weights: {_WITHOUT}"


def _place(cls: type) -> str:
    try:
        file, line = inspect.getsourcefile(cls) or "?", inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return "?"
    return str(Place(file, line, "", "")).partition(",")[0]


class _Builder:
    """Puts a module's text together."""

    def __init__(self, cls: Any) -> None:
        agent: Any = kinds_of(cls)[0]
        definition = agent.chart.definition
        triggers = dict.fromkeys(each.trigger for each in definition.transitions)
        self._cls, self._agent, self._definition = cls, agent, definition
        self._layout = Layout(cls, agent, definition.states, list(triggers))
        self._unit = Unit(self._layout)
        self._helpers: dict[Any, tuple[str, Type] | str] = {}
        self._guards: dict[Any, int] = {}
        self._slot: dict[str, str] = dict(T.SLOT)
        self._lay_out()

    def built(self) -> Unit:
        """Return the unit."""
        unit, cls = self._unit, self._cls
        steps: dict[Any, int] = {}
        methods: list[Any] = []
        for name, method, states in parts_of(cls).steps:
            fitting = issubclass(self._agent, _kind_wanted(method))
            for state in states if fitting else ():
                if method not in methods:
                    methods.append(method)
                    self._step(name, method, len(methods) - 1)
                steps[state] = methods.index(method)

        rows = self._rows()
        for guard, number in self._guards.items():
            self._guard(guard, number)

        unit.has_limits = bool(_limits_of(self._agent))
        unit.is_apart &= not cls.together and cls.activation == "all"
        unit.text = "\n\n".join(
            [
                *self._constants(steps, rows),
                "\n".join(self._records()),
                *unit.functions,
                *self._dispatch(len(methods)),
            ]
        )
        return unit

    # Fields

    def _lay_out(self) -> None:
        layout = self._layout
        hints = hints_of(self._agent)
        for name, each in self._agent.fields.items():
            if name in Agent.fields:
                continue
            hint = hints.get(name, each.annotation)
            kind = type_of(hint) or _drawn_texts(each)
            if kind is None:
                layout.others[name] = (
                    f"{self._agent.__name__}.{name} is {words_of_type(hint, each.annotation)}, "
                    "which columns do not support: use a number, a bool, an enum, a Literal or "
                    "one_of(...)"
                )
            else:
                layout.fields[name] = Stored(f"f_{name}", kind)

        hints = hints_of(self._cls)
        for name, each in self._cls.fields.items():
            kind = type_of(hints.get(name, each.annotation))
            if kind is not None:
                layout.values[name] = Stored(f"w_{name}", kind)
            else:
                layout.other_values[name] = (
                    f"self.{name} is not a number, bool, enum or Literal: columns support only "
                    "these"
                )

    # Functions

    def _step(self, name: str, method: Any, number: int) -> None:
        values = [Value("self", types.WORLD), Value("me", types.AGENT)]
        if self._cls.activation == "pair":
            values.append(Value("other", types.AGENT))
            self._unit.is_apart = False
        head = f"step_{number}(run, me, other, piece, slot, answer)"
        own = f"{self._cls.__name__}.{name}"
        if (node := self._source(method, own)) is not None:
            body = self._write(method, node, values, head, own, number=number)
            self._slot |= {each.name: kind_of(each.type) for each in body.kept.values()}

    def _guard(self, guard: Any, number: int) -> None:
        values = [Value("agent", types.AGENT), Value("context", types.MAYBE_AGENT)]
        head = f"guard_{number}(run, me, agent, context)"
        own = f"the guard {getattr(guard, '__qualname__', guard)!s}"
        if (node := self._source(guard, own)) is not None:
            self._write(guard, node, values, head, own, is_guard=True)

    def _called(self, function: Any, kinds: Sequence[Type]) -> tuple[str, Type] | str:
        """Translate a function that another one calls, once for each set of argument types.

        Returns:
            Its name and what it returns, or why it cannot be called.
        """
        key = function, tuple(kinds)
        if key not in self._helpers:
            self._helpers[key] = f"{function.__qualname__} calls itself: use a loop"
            self._helpers[key] = self._helper(f"help_{len(self._helpers)}", function, kinds)
        return self._helpers[key]

    def _helper(self, name: str, function: Any, kinds: Sequence[Type]) -> tuple[str, Type] | str:
        own = function.__qualname__
        source = self._source(function, own)
        if source is None:
            return f"{own} cannot be read"

        given = source.args
        others = [given.vararg, *given.kwonlyargs, given.kwarg]
        if len(given.args) != len(kinds) or any(others):
            return f"{own} takes other arguments: give all of them, in order"
        # the world stands for itself
        values = [
            Value("self" if of is types.WORLD else f"v_{each.arg}", of)
            for each, of in zip(given.args, kinds, strict=True)
        ]
        texts = [each.text for each in values if each.type is not types.WORLD]
        head = f"{name}({', '.join(['run', 'me', *texts])})"
        body = self._write(function, source, values, head, own)
        return name, body.returned or (LOST if body.has_problems else types.NONE)

    def _write(
        self, function: Any, node: Any, values: Sequence[Value], head: str, own: str, **kind: Any
    ) -> Body:
        """Write a function."""
        names = dict(zip((each.arg for each in node.args.args), values, strict=False))
        body = Body(self._unit, self._called, function, own, names, **kind)
        lines = body.lines(node)
        self._unit.functions.append(_function(head, *(f"    {each}" for each in (*lines, "pass"))))
        return body

    def _source(self, function: Any, own: str) -> Any:
        """Return the syntax tree of a function, and say why if there is none."""
        code = getattr(function, "__code__", None)
        lines = getlines(code.co_filename) if code is not None else []
        problem = "its source cannot be read: define it in a file"
        if code is not None and lines:
            try:
                tree = ast.parse("".join(lines))
            except SyntaxError:
                tree = ast.parse("")
            found = [each for each in ast.walk(tree) if _is_source(each, code)]
            if len(found) == 1:
                return found[0]
            problem = "there are several on one line: give it a name, with def"

        self._unit.problems.append(f"{own}: {problem}")
        return None

    # The chart

    def _rows(self) -> dict[str, list[int]]:
        start = [0]
        target: list[Any] = []
        guards: list[int] = []
        for state in self._layout.states:
            for trigger in self._layout.triggers:
                for each in self._definition.transitions:
                    if each.source is not state or each.trigger != trigger:
                        continue
                    target.append(self._layout.number_of(each.target))
                    guard = each.guard
                    guards.append(
                        -1 if guard is None else self._guards.setdefault(guard, len(self._guards))
                    )
                start.append(len(target))

        return {"START": start, "TARGET": target or [0], "GUARD": guards or [0]}

    def _constants(self, steps: Any, rows: Any) -> Iterator[str]:
        cls, layout, definition = self._cls, self._layout, self._definition
        due_after = _limits_of(self._agent)
        count = len(layout.states)
        triggers = layout.triggers
        plain = {
            "TOGETHER": cls.together,
            "LISTED": cls.order == "listed",
            "INDEPENDENT": self._unit.is_apart,
            "IN_PAIRS": cls.activation == "pair",
            "ALL_ACT": cls.activation == "all",
            "HAS_LIMITS": self._unit.has_limits,
            "COMPENSATED": sys.version_info >= (3, 12),
            "N_STATES": count,
            "N_TRIGGERS": len(triggers),
            "TIMEOUT": triggers.index(TIMEOUT) if TIMEOUT in triggers else -1,
            "USES_WAITS": self._unit.uses_waits,
        }
        tables: dict[str, Any] = {
            **rows,
            "DECIDES": [int(state in definition.decision_states) for state in layout.states],
            "VISITED": [int(state in steps) for state in layout.states],
            "STEP_OF": [steps.get(state, -1) for state in layout.states],
            "DUE_AFTER": [due_after.get(state, -1) for state in layout.states],
        }
        yield "\n".join(f"{name} = {value!r}" for name, value in plain.items())
        yield "\n".join(f"{name} = np.array({of}, np.int64)" for name, of in tables.items())
        for name in (each.__name__ for each in MATH):
            yield (
                f"@jit\ndef {name}_of(run, number, line):\n"
                f"    return finite(run, math.{name}(number), number, line)\n"
            )

    def _dispatch(self, steps: int) -> Iterator[str]:
        given = "me, other, piece, slot, answer"
        yield _switch(f"run_step(run, step, {given})", "step", f"(run, {given})", steps, "0")
        guards = len(self._guards)
        given = "(run, agent, agent, context)"
        yield _switch("passes(run, guard, agent, context)", "guard", given, guards, "True")

        names = list(self._unit.written) if self._cls.together else []
        yield from _shadowing([self._layout.fields[name].name for name in names])

    def _records(self) -> Iterator[str]:
        """Yield the records of a run; in a together world, that of agents also has their writes."""
        unit = self._unit
        values = [(each.name, kind_of(each.type)) for each in self._layout.values.values()]
        kinds = {
            "agents": self._agent_record(),
            "slots": self._slot,
            "deeds": T.DEED,
            "events": T.EVENT,
        }
        unit.records = {"run": T.run_record(values)}
        unit.records |= {column: T.packed(each) for column, each in kinds.items()}
        for column, each in unit.records.items():
            yield f"{column.upper()} = np.dtype({each!r}, align=True)"
        yield "AGENT_SIZE = AGENTS.itemsize"
        yield "run_of = run_at(RUN)"
        for column in kinds:
            yield f'{column[:-1]}_at = records(RUN, "{column}", {column.upper()})'

    def _agent_record(self) -> dict[str, str]:
        fields = {each.name: kind_of(each.type) for each in self._layout.fields.values()}
        record = {**T.AGENT, **fields}
        if self._unit.uses_waits:
            record |= T.AGENT_THAT_DECIDES
        if self._cls.together:
            written = [self._layout.fields[name].name for name in self._unit.written]
            record |= T.AGENT_TOGETHER
            record |= {f"{way}_{name}": fields[name] for name in written for way in _WAYS}
        return record


_WAYS = ("before", "written")


def _shadowing(names: Sequence[str]) -> Iterator[str]:
    """Yield code that shows agents of a together world the earlier values and their own writes."""
    me = "    me = agent_at(run, agent)"
    before = [f"    me.before_{name} = me.{name}" for name in names]
    written = [f"        me.{name} = me.written_{name}" for name in names]
    marks = ["    if me.has_written == 1:", *written, "        me.has_written = 2"]
    yield _function("begin_own(run, agent)", me, *before, *(marks if names else []))

    # what it had written before is written again, unless it has written something else
    changed = " or ".join(f"me.{name} != me.before_{name}" for name in names) or "False"
    kept = [
        f"    me.written_{name} = me.{name}\n    me.{name} = me.before_{name}" for name in names
    ]
    yield _function(
        "end_own(run, agent)", me, f"    has_changed = {changed}", *kept, "    return has_changed"
    )
    own = [f"    me.{name} = me.written_{name}" for name in names]
    yield _function("write_own(run, agent)", me, *own)


def _function(head: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"@jit\ndef {head}:\n{body}\n"


def _switch(head: str, which: str, given: str, count: int, otherwise: str) -> str:
    """Return a function that calls one of several, by a number."""
    lines = (
        f"    if {which} == {each}:\n        return {which}_{each}{given}" for each in range(count)
    )
    return _function(head, *lines, f"    return {otherwise}")


def _is_source(node: ast.AST, code: Any) -> bool:
    if isinstance(node, ast.Lambda):
        return bool(code.co_name == "<lambda>" and node.lineno == code.co_firstlineno)
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return bool(node.name == code.co_name and first == code.co_firstlineno)


def _drawn_texts(each: Any) -> Type | None:
    """Return the type of a text field with fixed options, or None for any other field."""
    draw = each.declared.draw
    if not isinstance(draw, methodcaller) or each.annotation not in (str, "str"):
        return None
    given: Any = draw.__reduce__()[1]
    is_choice = len(given) == 2 and given[0] == "choice"
    return Type("a text", tuple(given[1])) if is_choice else None
