"""What a step may say: expressions and statements of Python, translated one by one.

Whatever is not translated is refused by its line, with what to do instead. Types are known before
anything runs, so numbers, agents and states are machine words, and every operation is the one that
Python would carry out.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from enum import Enum
from typing import Any

from prism.columns._types import (
    AGENT,
    BOOL,
    FLOAT,
    INT,
    MAYBE_AGENT,
    MAYBE_STATE,
    NEIGHBOURS,
    NONE,
    STATE,
    STREAM,
    TEXT,
    TRUTH,
    WEIGHTS,
    Layout,
    RefusedError,
    Type,
    Value,
)
from prism.worlds import Agent, World

_MATH: Mapping[Any, str] = {
    getattr(math, name): name
    for name in (
        *("sqrt", "exp", "expm1", "log", "log1p", "log10", "sin", "cos", "tan", "asin", "acos"),
        *("atan", "sinh", "cosh", "tanh", "fabs"),
    )
}
_COMPARED: Mapping[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "==",
    ast.IsNot: "!=",
}
_WHOLE: Mapping[type, str] = {
    ast.Add: "plus",
    ast.Sub: "minus",
    ast.Mult: "times",
    ast.FloorDiv: "whole_floor",
    ast.Mod: "whole_rest",
}
_FLOATS: Mapping[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_WITH_LINE: Mapping[type, str] = {
    ast.Div: "divided",
    ast.FloorDiv: "float_floor",
    ast.Mod: "float_rest",
}
_ELSEWHERE = "run this world without columns"

_AGENTS_OWN: Mapping[str, str] = {
    **dict.fromkeys(("send", "receive", "inbox"), "messages have no column"),
    **dict.fromkeys(("write", "agent_id", "name", "persona", "meanings"), "texts have no column"),
    "remember": "notes have no column",
    "state_history": "histories are not kept",
    "decision_random": "it is for reasoners: use random",
    "attributes": "columns of a table have none here: keep them as fields",
    "begin_in": "it belongs in setup",
}
_WORLDS_OWN: Mapping[str, str] = {
    "random": "the world's random numbers depend on who draws first: use the agent's",
    "log": "a step logs nothing: let tick_ends do it, or measure it",
    "stop": "let until say when the run ends",
    "agents": "a step that goes through everybody costs a day at a million: use neighbours, "
    "count, or a hook such as tick_begins",
    "network": "a network does not change in a step: change it in a hook, by setting another",
    "assign": "it belongs in hooks",
    "time": "use round and tick",
    "seed": "a step draws from its agent's numbers",
    "acting": "it is the step's own agent",
}


class Scope:
    """The names of one function, and what it is made of.

    Args:
        function: The function.
        names: Its parameters, with what stands for each.
        own: What the function is called in messages.
    """

    def __init__(self, function: Any, names: Mapping[str, Value], own: str) -> None:
        self.function = function
        self.names: dict[str, Value] = dict(names)
        self.own = own
        self.defined: set[str] = set(names)
        self.fixed: frozenset[str] = frozenset(names)
        # what would have been set by statements that were refused
        self.lost: set[str] = set()
        self.locals: dict[str, Type] = {}
        self.returned: Type | None = None
        self.is_waiting = False
        closure = inspect.getclosurevars(function) if inspect.isfunction(function) else None
        self.outside: dict[str, Any] = {
            **vars(builtins),
            **getattr(function, "__globals__", {}),
            **(dict(closure.nonlocals) if closure else {}),
        }

    def can_be_given(self, name: str) -> bool:
        """Return whether a name has a value that a function can be called with."""
        value = self.names[name]
        return name in self.defined and value.type is not WEIGHTS and value.text != "self"

    def inside(self, given: Mapping[str, Type], variable: str) -> Scope:
        """Return the scope of a loop in an expression, which is given names as arguments."""
        inner = copy(self)
        own = {name: Value(f"v_{name}", kind) for name, kind in given.items()}
        inner.names = {**self.names, **own, variable: Value(f"v_{variable}", AGENT)}
        inner.defined = {*self.defined, variable}
        return inner


class Language:
    """Translates expressions.

    Args:
        layout: What is known of the world.
        call: Translates a method that a step calls; returns its name, and what it returns.

    Attributes:
        parts: The texts of functions that expressions needed.
        written: Fields that steps write.
        is_apart: Whether steps look at and change their own agents alone.
    """

    def __init__(
        self, layout: Layout, call: Callable[[Any, Sequence[Type], ast.AST], tuple[str, Type]]
    ) -> None:
        self.layout = layout
        self.parts: list[str] = []
        self.written: dict[str, None] = {}
        self.is_apart = True
        self.scope = Scope(None, {}, "")
        self._compile = call

    # Values

    def value(self, node: ast.expr) -> Value:
        """Return an expression, translated.

        Raises:
            RefusedError: If it cannot be.
        """
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise RefusedError(node, f"{_shown(node)} is not supported in columns: {_ELSEWHERE}")
        found: Value = method(node)
        return found

    def truth(self, node: ast.expr) -> str:
        """Return an expression as a condition."""
        return self.truth_of(self.value(node), node)

    def truth_of(self, value: Value, node: ast.AST) -> str:
        """Return a value as a condition."""
        kind = value.type
        if kind in (BOOL, TRUTH):
            return value.text
        if kind.is_number:
            return f"({value.text} != 0)"
        if kind in (AGENT, MAYBE_AGENT, STATE, MAYBE_STATE):
            return f"({value.text} >= 0)"
        if kind is NEIGHBOURS:
            return f"(degree(run, {value.text}) > 0)"

        raise RefusedError(node, f"{kind.name} has no truth value here: compare it with something")

    def number(self, node: ast.expr, wanted: Type = FLOAT) -> str:
        """Return an expression as a number of a type."""
        return self.number_of(self.value(node), node, wanted)

    def number_of(self, value: Value, node: Any, wanted: Type = FLOAT) -> str:
        """Return a value as a number of a type."""
        if value.type == wanted:
            return value.text
        if wanted is FLOAT and value.type is INT:
            if value.constant is not None and abs(value.constant) <= 2**53:
                return repr(float(value.constant))
            return f"real(run, {value.text}, {node.lineno})"

        raise RefusedError(
            node, f"{_shown(node)} is {value.type.name}, but {wanted.name} is needed here"
        )

    def agent(self, node: ast.expr) -> str:
        """Return an expression as an agent."""
        value = self.value(node)
        if value.type is MAYBE_AGENT:
            return f"somebody(run, {value.text}, {node.lineno})"
        if value.type is not AGENT:
            raise RefusedError(node, f"{_shown(node)} is {value.type.name}, not an agent")
        return value.text

    def state(self, node: ast.expr) -> int:
        """Return the number of a state that is named."""
        found = self._outside(node)
        number = self.layout.number_of(found)
        if number is None:
            raise RefusedError(
                node, f"{_shown(node)} is not a state of the chart: name one, such as Mind.SPREADER"
            )
        return number

    def _constant(self, node: ast.Constant) -> Value:
        return _constant(node.value, node)

    def _name(self, node: ast.Name) -> Value:
        scope = self.scope
        if node.id in scope.lost:
            raise RefusedError(node, "")
        if node.id in scope.names:
            if node.id not in scope.defined:
                raise RefusedError(
                    node, f"{node.id} may have no value yet: set it earlier on every path"
                )
            return scope.names[node.id]

        return _constant(self._outside(node), node)

    def _outside(self, node: ast.expr) -> Any:
        """Return what an expression of names outside of the function is."""
        if isinstance(node, ast.Name):
            if node.id not in self.scope.names and node.id in self.scope.outside:
                return self.scope.outside[node.id]
        elif isinstance(node, ast.Attribute):
            owner = self._outside(node.value)
            if owner is not _UNKNOWN and hasattr(owner, node.attr):
                return getattr(owner, node.attr)
        return _UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Value:
        if (found := self._outside(node)) is not _UNKNOWN:
            return self._state_or(found, node)
        if self._is_self(node.value):
            return self._of_world(node)

        return self._of_agent(self.agent(node.value), node)

    def _state_or(self, found: Any, node: ast.AST) -> Value:
        number = self.layout.number_of(found)
        if number is not None:
            return Value(str(number), STATE, found)
        return _constant(found, node)

    def _is_self(self, node: ast.expr) -> bool:
        value = self.scope.names.get(node.id) if isinstance(node, ast.Name) else None
        return value is not None and value.text == "self"

    def _of_world(self, node: ast.Attribute) -> Value:
        name = node.attr
        if name in self.layout.values:
            stored = self.layout.values[name]
            return stored.of("run")
        if name in ("round", "tick"):
            return Value(f"run.{name}", INT)
        if name in self.layout.cls.fields:
            raise RefusedError(
                node,
                f"self.{name} is not a number, bool, enum or Literal: columns support only these",
            )
        if hasattr(World, name):
            why = _WORLDS_OWN.get(name, "it is not supported in columns")
            raise RefusedError(node, f"self.{name} in a step: {why}")

        found = getattr(self.layout.cls, name, _UNKNOWN)
        if isinstance(found, property) and found.fget is not None:
            return self._called(found.fget, [], node)
        return _constant(found, node)

    def _of_agent(self, agent: str, node: ast.Attribute) -> Value:
        name, cls = node.attr, self.layout.agent
        if name == "state":
            return Value(f"state_of(run, {agent})", STATE)
        if name == "ticks_in_state":
            return Value(f"ticks_of(run, {agent})", INT)
        if name == "neighbours":
            self.is_apart = False
            return Value(agent, NEIGHBOURS)
        if name == "random":
            return Value(agent, STREAM)
        if name in self.layout.fields:
            stored = self.layout.fields[name]
            return stored.of(f"agent_at(run, {agent})")
        if name in self.layout.others:
            raise RefusedError(node, self.layout.others[name])
        if name in _AGENTS_OWN:
            raise RefusedError(node, f"{_shown(node)}: {_AGENTS_OWN[name]}: {_ELSEWHERE}")

        found = inspect.getattr_static(cls, name, _UNKNOWN)
        if isinstance(found, property) and found.fget is not None:
            return self._called(found.fget, [Value(agent, AGENT)], node, is_bound=False)
        return _constant(found, node)

    # Operations

    def _binop(self, node: ast.BinOp) -> Value:
        return self.operate(node.op, self.value(node.left), self.value(node.right), node)

    def operate(self, op: ast.operator, left: Value, right: Value, node: Any) -> Value:
        """Return an operation on two numbers."""
        kind, line = type(op), node.lineno
        for each in (left, right):
            if not each.type.is_number:
                raise RefusedError(
                    node, f"{each.type.name} in arithmetic: use whole numbers and floats"
                )
        if left.type is INT and right.type is INT and kind in _WHOLE:
            return self._whole(kind, left, right, node)
        if kind is ast.Pow:
            return self._power(left, right, node)

        one, other = self.number_of(left, node), self.number_of(right, node)
        if kind in _FLOATS:
            return Value(f"({one} {_FLOATS[kind]} {other})", FLOAT)
        if kind in _WITH_LINE:
            return Value(f"{_WITH_LINE[kind]}(run, {one}, {other}, {line})", FLOAT)

        raise RefusedError(node, f"{_shown(node)}: the operators are + - * / // % and **")

    def _whole(self, kind: type, left: Value, right: Value, node: Any) -> Value:
        if kind in _FOLDED and None not in (left.constant, right.constant):
            return _constant(_FOLDED[kind](left.constant, right.constant), node)
        return Value(f"{_WHOLE[kind]}(run, {left.text}, {right.text}, {node.lineno})", INT)

    def _power(self, left: Value, right: Value, node: Any) -> Value:
        if left.type is INT and right.type is INT:
            if not (isinstance(right.constant, int) and 0 <= right.constant <= 64):
                raise RefusedError(
                    node,
                    "a whole number to a whole power may or may not be a float: write one of "
                    "them as a float, or the power as a number from 0 to 64",
                )
            text = f"whole_power(run, {left.text}, {right.constant}, {node.lineno})"
            return Value(text, INT)

        one, other = self.number_of(left, node), self.number_of(right, node)
        return Value(f"power(run, {one}, {other}, {node.lineno})", FLOAT)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(f"(not {self.truth(node.operand)})", BOOL)

        value = self.value(node.operand)
        if not value.type.is_number or isinstance(node.op, ast.Invert):
            raise RefusedError(node, f"{_shown(node)} is not supported in columns: {_ELSEWHERE}")
        if isinstance(node.op, ast.UAdd):
            return value
        if value.constant is not None:
            return _constant(-value.constant, node)
        if value.type is INT:
            return Value(f"minus(run, 0, {value.text}, {node.lineno})", INT)
        return Value(f"(-{value.text})", FLOAT)

    def _boolop(self, node: ast.BoolOp) -> Value:
        values = [self.value(each) for each in node.values]
        word = " and " if isinstance(node.op, ast.And) else " or "
        text = word.join(self.truth_of(each, node) for each in values)
        # Python returns one of the operands, which is a bool if all are
        kind = BOOL if all(each.type is BOOL for each in values) else TRUTH
        return Value(f"({text})", kind)

    def _ifexp(self, node: ast.IfExp) -> Value:
        test, one, other = self.truth(node.test), self.value(node.body), self.value(node.orelse)
        if one.type != other.type:
            raise RefusedError(
                node, f"{one.type.name} or {other.type.name}: give both the same type"
            )
        return Value(f"({one.text} if {test} else {other.text})", one.type)

    def _compare(self, node: ast.Compare) -> Value:
        operands = [node.left, *node.comparators]
        if any(
            not isinstance(each, (ast.Name, ast.Constant, ast.Attribute, ast.UnaryOp))
            for each in operands[1:-1]
        ):
            raise RefusedError(node, "the middle of a comparison: give it a name first")

        found = [
            self._compared(op, one, other, node)
            for op, one, other in zip(node.ops, operands[:-1], operands[1:], strict=True)
        ]
        return Value(f"({' and '.join(found)})", BOOL)

    def _compared(self, op: ast.cmpop, one: ast.expr, other: ast.expr, node: ast.AST) -> str:
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._among(op, one, other)

        left, right = self._pair(self.value(one), self.value(other), node)
        word = _COMPARED[type(op)]
        if left.type.is_number and right.type.is_number:
            if isinstance(op, (ast.Is, ast.IsNot)):
                raise RefusedError(node, "numbers are compared with == and !=")
            if left.type is right.type:
                return f"({left.text} {word} {right.text})"
            return f"({self.number_of(left, node)} {word} {self.number_of(right, node)})"

        is_ordered = not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot))
        if is_ordered or not _are_alike(left.type, right.type):
            raise RefusedError(
                node,
                f"{left.type.name} compared with {right.type.name}: compare values of the "
                "same type",
            )
        return f"({left.text} {word} {right.text})"

    def _pair(self, left: Value, right: Value, node: ast.AST) -> tuple[Value, Value]:
        """Return two values, a text or a member among them as the number of an option."""
        if left.type.options and right.type is TEXT:
            return left, as_option(right, left.type, node)
        if right.type.options and left.type is TEXT:
            return as_option(left, right.type, node), right
        left, right = map(self._as_state, (left, right))
        nothing = {AGENT: MAYBE_AGENT, STATE: MAYBE_STATE}
        if NONE in (left.type, right.type):
            kinds = [nothing.get(each.type, each.type) for each in (left, right)]
            known = next((each for each in kinds if each is not NONE), NONE)
            if known in (MAYBE_AGENT, MAYBE_STATE):
                return Value(left.text, known), Value(right.text, known)

        return left, right

    def _as_state(self, value: Value) -> Value:
        """Return the value of a field whose type is that of the states as a state."""
        is_state = value.type.options and value.type.options == tuple(self.layout.states)
        return Value(value.text, STATE) if is_state else value

    def _among(self, op: ast.cmpop, one: ast.expr, other: ast.expr) -> str:
        if not isinstance(other, (ast.Tuple, ast.List, ast.Set)) or not other.elts:
            value = self.value(other)
            if value.type is not NEIGHBOURS:
                raise RefusedError(other, "write the values to look for in brackets: in (A, B)")
            found = f"is_neighbour(run, {value.text}, {self.agent(one)})"
        else:
            if not isinstance(one, (ast.Name, ast.Attribute)):
                raise RefusedError(one, "what is looked for: give it a name first")
            found = " or ".join(self._compared(ast.Eq(), one, each, other) for each in other.elts)
        return f"(not ({found}))" if isinstance(op, ast.NotIn) else f"({found})"

    # Calls

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute):
            found = self._method(node, node.func)
            if found is not None:
                return found

        called = self._outside(node.func)
        if called is _UNKNOWN and isinstance(node.func, ast.Attribute):
            return self._own_method(node, node.func)
        return self._function(called, node)

    def _method(self, node: ast.Call, func: ast.Attribute) -> Value | None:
        """Return a call of what agents, their numbers and their neighbours have."""
        if self._outside(func.value) is not _UNKNOWN:
            return None
        if self._is_self(func.value):
            if func.attr in ("count", "share"):
                return self._counted(func.attr, node)
            return None

        value = self.value(func.value)
        if value.type is STREAM:
            return self._drawn(value.text, func.attr, node)
        if value.type is NEIGHBOURS:
            if func.attr == "count":
                number = self.state(self._only(node))
                return Value(f"count_neighbours(run, {value.text}, {number})", INT)
            raise RefusedError(
                node, f"neighbours.{func.attr}: neighbours support count(state), len, for and in"
            )
        if func.attr == "fire":
            return self._fired(node, func)
        if func.attr == "decide":
            raise RefusedError(node, "decide is awaited: write  await  before it")
        return None

    def _counted(self, name: str, node: ast.Call) -> Value:
        self.is_apart = False
        count = f"get_i8(run.counts, {self.state(self._only(node))})"
        if name == "count":
            return Value(count, INT)
        return Value(f"({count} / run.size)", FLOAT)

    def _drawn(self, whose: str, name: str, node: ast.Call) -> Value:
        line = node.lineno
        if name == "random":
            self._none(node)
            return Value(f"draw(run, {whose}, {line})", FLOAT)
        if name in _DRAWS:
            number, kind = _DRAWS[name]
            if len(node.args) != number or node.keywords:
                raise RefusedError(node, f"random.{name} takes {number} positional arguments")
            given = ", ".join(self.number(each) for each in node.args)
            return Value(f"{name}(run, {whose}, {given}, {line})", kind)
        if name == "choice":
            among = self.value(self._only(node))
            if among.type is NEIGHBOURS:
                return Value(f"choose(run, {whose}, {among.text}, {line})", AGENT)
            raise RefusedError(node, "choice draws from neighbours here: use index for the rest")

        raise RefusedError(
            node,
            f"random.{name} is not supported in columns: use random, chance, index, between, "
            "exponential or choice",
        )

    def _fired(self, node: ast.Call, func: ast.Attribute) -> Value:
        agent = self.agent(func.value)
        if not (isinstance(func.value, ast.Name) and agent == "me"):
            self.is_apart = False
        trigger, context = self.event(node)
        return Value(f"fire(run, {agent}, {trigger}, {context})", MAYBE_STATE)

    def event(self, node: ast.Call) -> tuple[int, str]:
        """Return the trigger and the context that a call of fire or decide names."""
        given = dict(zip(("trigger", "context"), node.args, strict=False))
        given |= {each.arg: each.value for each in node.keywords if each.arg in _EVENT}
        name = given.get("trigger")
        text = self._text_of(name)
        if text not in self.layout.triggers:
            where = node if name is None else name
            known = ", ".join(self.layout.triggers)
            raise RefusedError(where, f"the trigger must be named, one of {known}")
        if "context" not in given:
            return self.layout.triggers.index(text), "-1"

        context = self.value(given["context"])
        if context.type not in (AGENT, MAYBE_AGENT, NONE):
            raise RefusedError(
                given["context"], f"{context.type.name} as context: an agent or None can be one"
            )
        return self.layout.triggers.index(text), context.text

    def _text_of(self, node: ast.expr | None) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        return None if node is None else self._outside(node)

    def _own_method(self, node: ast.Call, func: ast.Attribute) -> Value:
        """Return a call of a method of the user's world or agent."""
        is_worlds = self._is_self(func.value)
        cls = self.layout.cls if is_worlds else self.layout.agent
        base: Any = World if is_worlds else Agent
        own = _WORLDS_OWN if is_worlds else _AGENTS_OWN
        if hasattr(base, func.attr):
            why = own.get(func.attr, f"it is not supported in columns: {_ELSEWHERE}")
            raise RefusedError(node, f"{_shown(func)}(...) in a step: {why}")

        found = inspect.getattr_static(cls, func.attr, None)
        if isinstance(found, staticmethod):
            return self._called(found.__func__, self._arguments(node), node, is_bound=False)
        if not inspect.isfunction(found):
            raise RefusedError(node, f"{_shown(func)}(...) is unknown here: {_ELSEWHERE}")
        owner = [] if is_worlds else [Value(self.agent(func.value), AGENT)]
        return self._called(found, [*owner, *self._arguments(node)], node, is_bound=is_worlds)

    def _arguments(self, node: ast.Call) -> list[Value]:
        if node.keywords:
            raise RefusedError(node, "keyword arguments: use positional ones")
        return [self.value(each) for each in node.args]

    def _called(
        self, function: Any, given: Sequence[Value], node: ast.AST, *, is_bound: bool = True
    ) -> Value:
        types = [each.type for each in given]
        name, returned = self._compile((function, is_bound), types, node)
        return Value(
            f"{name}({', '.join(['run', 'me', *(each.text for each in given)])})", returned
        )

    def _function(self, called: Any, node: ast.Call) -> Value:
        if called in _LOOPS and node.args and isinstance(node.args[0], ast.GeneratorExp):
            return self._part(called.__name__, node.args[0], node)
        if called in _MATH:
            one = self.number(self._only(node))
            return Value(f"{_MATH[called]}_of(run, {one}, {node.lineno})", FLOAT)
        if called in _FUNCTIONS:
            found: Value = getattr(self, _FUNCTIONS[called])(called, node)
            return found
        if inspect.isfunction(called):
            return self._called(called, self._arguments(node), node, is_bound=False)

        raise RefusedError(
            node, f"{_shown(node.func)}(...) is not supported in columns: {_ELSEWHERE}"
        )

    def _length(self, _called: Any, node: ast.Call) -> Value:
        value = self.value(self._only(node))
        if value.type is not NEIGHBOURS:
            raise RefusedError(node, f"{_shown(node)} is not supported in columns: {_ELSEWHERE}")
        return Value(f"degree(run, {value.text})", INT)

    def _to_whole(self, called: Any, node: ast.Call) -> Value:
        number = self.number(self._only(node))
        return Value(f"truncated(run, np.{called.__name__}({number}), {node.lineno})", INT)

    def _raised(self, _called: Any, node: ast.Call) -> Value:
        if len(node.args) != 2:
            raise RefusedError(node, "math.pow takes two arguments here")
        one, other = (self.number(each) for each in node.args)
        return Value(f"power(run, {one}, {other}, {node.lineno})", FLOAT)

    def _converted(self, to: Any, node: ast.Call) -> Value:
        value, line = self.value(self._only(node)), node.lineno
        if to is bool:
            return Value(self.truth_of(value, node.args[0]), BOOL)
        if to is int and value.type is BOOL:
            return Value(f"(1 if {value.text} else 0)", INT)
        if not value.type.is_number:
            raise RefusedError(node, f"{to.__name__}() of {value.type.name}: give it a number")
        if to is float:
            return Value(self.number_of(value, node), FLOAT)
        if value.type is INT:
            return value if to is int else Value(f"whole_size(run, {value.text}, {line})", INT)
        if to is int:
            return Value(f"truncated(run, {value.text}, {line})", INT)
        return Value(f"abs({value.text})", FLOAT)

    def _least(self, called: Any, node: ast.Call) -> Value:
        if len(node.args) < 2 or node.keywords:
            raise RefusedError(node, f"{_shown(node)} is not supported in columns: {_ELSEWHERE}")
        first, *others = [self.value(each) for each in node.args]
        if any(each.type is not first.type for each in others) or not first.type.is_number:
            name = called.__name__
            raise RefusedError(node, f"{name} of values of several types: make all of them floats")

        text, chosen = first.text, "smaller" if called is min else "larger"
        for each in others:
            text = f"{chosen}({text}, {each.text})"
        return Value(text, first.type)

    # Loops in expressions

    def _part(self, name: str, node: ast.GeneratorExp, call: ast.Call) -> Value:
        """Return what goes through neighbours, in a function of its own."""
        loop = node.generators[0]
        source, variable = self._gone_through(name, node)
        outer = self.scope
        taken = {each: outer.names[each] for each in outer.names if outer.can_be_given(each)}
        self.scope = outer.inside({each: value.type for each, value in taken.items()}, variable)
        try:
            test = " and ".join(self.truth(each) for each in loop.ifs) or "True"
            element = self.value(node.elt)
            body, returned = (
                self._summed(element, call) if name == "sum" else self._found(name, element, node)
            )
        finally:
            self.scope = outer

        part, names = f"part_{len(self.parts)}", [f"v_{each}" for each in taken]
        head = f"def {part}({', '.join(['run', 'me', 'source', *names])}):"
        self.parts.append(_PART.format(head=head, variable=f"v_{variable}", test=test, **body))
        given = ["run", "me", source.text, *(value.text for value in taken.values())]
        return Value(f"{part}({', '.join(given)})", returned)

    def _gone_through(self, name: str, node: ast.GeneratorExp) -> tuple[Value, str]:
        """Return the neighbours that a loop goes through, and what it calls each."""
        loop = node.generators[0]
        source = self.value(loop.iter)
        is_plain = len(node.generators) == 1 and isinstance(loop.target, ast.Name)
        if not is_plain or source.type is not NEIGHBOURS:
            raise RefusedError(node, f"{name}(...) goes through the neighbours of one agent")
        return source, loop.target.id  # type: ignore[attr-defined]

    def _found(self, name: str, element: Value, node: ast.AST) -> tuple[dict[str, str], Type]:
        if element.type is FLOAT:
            raise RefusedError(node, "a float has no truth value here: compare it with something")
        truth, is_any = self.truth_of(element, node), name == "any"
        do = f"if {truth if is_any else f'not {truth}'}:\n                return {is_any}"
        return {"begin": "pass", "do": do, "end": f"return {not is_any}"}, BOOL

    def _summed(self, element: Value, call: ast.Call) -> tuple[dict[str, str], Type]:
        begin = [self.value(each).constant for each in call.args[1:]]
        if begin != ([0.0] if element.type is FLOAT else []):
            raise RefusedError(
                call,
                "begin a sum of floats with 0.0, so that an empty one is a float, too: sum(..., "
                "0.0); a sum of whole numbers needs no start",
            )
        if element.type is FLOAT:
            do = f"total, lost = added(total, lost, {element.text})"
            end = "return summed(total, lost)"
            return {"begin": "total, lost = 0.0, 0.0", "do": do, "end": end}, FLOAT
        if element.type not in (INT, BOOL):
            raise RefusedError(call, f"a sum of {element.type.name}: sum numbers")

        more = element.text if element.type is INT else f"(1 if {element.text} else 0)"
        do = f"total = plus(run, total, {more}, {call.lineno})"
        return {"begin": "total = 0", "do": do, "end": "return total"}, INT

    def _only(self, node: ast.Call) -> ast.expr:
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise RefusedError(node, f"{_shown(node.func)} takes one argument here")
        return node.args[0]

    def _none(self, node: ast.Call) -> None:
        if node.args or node.keywords:
            raise RefusedError(node, f"{_shown(node.func)} takes no argument")

    def _await(self, node: ast.Await) -> Value:
        raise RefusedError(
            node, "an answer in the middle of something: give it a name first, name = await ..."
        )


_UNKNOWN: Any = object()
_EVENT = ("trigger", "context")
_DRAWS: Mapping[str, tuple[int, Type]] = {
    "chance": (1, BOOL),
    "index": (1, INT),
    "between": (2, FLOAT),
    "exponential": (1, FLOAT),
}
_LOOPS = (sum, any, all)
_FUNCTIONS: Mapping[Any, str] = {
    len: "_length",
    math.pow: "_raised",
    **dict.fromkeys((math.floor, math.ceil), "_to_whole"),
    **dict.fromkeys((min, max), "_least"),
    **dict.fromkeys((abs, int, float, bool), "_converted"),
}

_PART = """
{head}
    {begin}
    for number in range(degree(run, source)):
        {variable} = neighbour(run, source, number)
        if {test}:
            {do}
    {end}
"""


_FOLDED: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def as_option(value: Value, kind: Type, node: ast.AST) -> Value:
    """Return a text, or a member of an enum, as the number of one of a field's options."""
    options = [(type(each), each) for each in kind.options]
    if kind == value.type:
        return value
    if value.constant is None or (type(value.constant), value.constant) not in options:
        listed = ", ".join(map(str, kind.options))
        raise RefusedError(node, f"one of {listed} is needed here")
    return Value(str(options.index((type(value.constant), value.constant))), kind)


def _constant(value: Any, node: ast.AST) -> Value:
    if value is None:
        return Value("-1", NONE)
    if isinstance(value, bool):
        return Value(str(value), BOOL, value)
    if isinstance(value, Enum):
        options = tuple(type(value))
        return Value(str(options.index(value)), Type(type(value).__name__, options), value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return Value(repr(value), INT, value)
    if isinstance(value, float):
        text = repr(value).replace("inf", "np.inf").replace("nan", "np.nan")
        return Value(f"({text})", FLOAT, value if math.isfinite(value) else None)
    if isinstance(value, str):
        return Value("-1", TEXT, value)

    raise RefusedError(
        node, f"{_shown(node)} is not supported in columns: use numbers, states, agents"
    )


def _are_alike(one: Type, other: Type) -> bool:
    agents, states = (AGENT, MAYBE_AGENT), (STATE, MAYBE_STATE)
    if one in agents or one in states:
        return other in (agents if one in agents else states)
    return one == other and (one is BOOL or bool(one.options))


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 50 else f"{text[:47]}..."
