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
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from enum import Enum
from typing import Any

from prism.columns import _types as types
from prism.columns._types import Layout, RefusedError, Type, Value
from prism.worlds import Agent, World

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
_OPERATIONS: Mapping[type, tuple[str, str]] = {
    ast.Add: ("plus(run, {}, {}, {})", "({} + {})"),
    ast.Sub: ("minus(run, {}, {}, {})", "({} - {})"),
    ast.Mult: ("times(run, {}, {}, {})", "({} * {})"),
    ast.FloorDiv: ("whole_floor(run, {}, {}, {})", "float_floor(run, {}, {}, {})"),
    ast.Mod: ("whole_rest(run, {}, {}, {})", "float_rest(run, {}, {}, {})"),
    ast.Div: ("", "divided(run, {}, {}, {})"),
    ast.Pow: ("", "power(run, {}, {}, {})"),
}
"""Operations of whole numbers, and of floats: both sides and the line."""

MATH: Sequence[Callable[[float], float]] = (
    *(math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.log10, math.fabs),
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan),
    *(math.sinh, math.cosh, math.tanh),
)
"""Functions of `math` that take a float and return one."""

_Signature = tuple[tuple[Type, ...], Type, str]
_FUNCTIONS: Mapping[Any, _Signature] = {
    len: ((types.NEIGHBOURS,), types.INT, "degree(run, {0})"),
    math.floor: ((types.FLOAT,), types.INT, "truncated(run, np.floor({0}), {line})"),
    math.ceil: ((types.FLOAT,), types.INT, "truncated(run, np.ceil({0}), {line})"),
    math.pow: ((types.FLOAT, types.FLOAT), types.FLOAT, "power(run, {0}, {1}, {line})"),
    **{
        each: ((types.FLOAT,), types.FLOAT, f"{each.__name__}_of(run, {{0}}, {{line}})")
        for each in MATH
    },
}
"""Functions: what they take, what they return, and the text of a call."""

_OF_WORLD: Mapping[str, _Signature] = {
    "count": ((types.STATE,), types.INT, "get_i8(run.counts, {0})"),
    "share": ((types.STATE,), types.FLOAT, "(get_i8(run.counts, {0}) / run.size)"),
}
_METHODS: Mapping[Type, tuple[str, Mapping[str, _Signature]]] = {
    types.NEIGHBOURS: (
        "count(state), len, for and in",
        {"count": ((types.STATE,), types.INT, "count_neighbours(run, {of}, {0})")},
    ),
    types.STREAM: (
        "random, chance, index, between, exponential and choice",
        {
            "random": ((), types.FLOAT, "draw(run, {of}, {line})"),
            "chance": ((types.FLOAT,), types.BOOL, "chance(run, {of}, {0}, {line})"),
            "index": ((types.FLOAT,), types.INT, "index(run, {of}, {0}, {line})"),
            "between": (
                (types.FLOAT, types.FLOAT),
                types.FLOAT,
                "between(run, {of}, {0}, {1}, {line})",
            ),
            "exponential": ((types.FLOAT,), types.FLOAT, "exponential(run, {of}, {0}, {line})"),
            "choice": ((types.NEIGHBOURS,), types.AGENT, "choose(run, {of}, {0}, {line})"),
        },
    ),
}
"""Methods: which there are in words, and the signature of each."""

_ELSEWHERE = "run this world without columns"
IN_THE_MIDDLE = "an answer in the middle of something: give it a name first, name = await ..."

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
        return name in self.defined and value.type is not types.WEIGHTS and value.text != "self"

    def inside(self, given: Mapping[str, Type], variable: str) -> Scope:
        """Return the scope of a loop in an expression, which is given names as arguments."""
        inner = copy(self)
        own = {name: Value(f"v_{name}", kind) for name, kind in given.items()}
        inner.names = {**self.names, **own, variable: Value(f"v_{variable}", types.AGENT)}
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
            raise _unsupported(node)
        found: Value = method(node)
        return found

    def truth(self, node: ast.expr) -> str:
        """Return an expression as a condition."""
        return self.truth_of(self.value(node), node)

    def truth_of(self, value: Value, node: ast.AST) -> str:
        """Return a value as a condition."""
        kind = value.type
        if kind in (types.BOOL, types.TRUTH):
            return value.text
        if kind.is_number:
            return f"({value.text} != 0)"
        if kind in (types.AGENT, types.MAYBE_AGENT, types.STATE, types.MAYBE_STATE):
            return f"({value.text} >= 0)"
        if kind is types.NEIGHBOURS:
            return f"(degree(run, {value.text}) > 0)"

        raise RefusedError(node, f"{kind.name} has no truth value here: compare it with something")

    def number(self, node: ast.expr, wanted: Type = types.FLOAT) -> str:
        """Return an expression as a number of a type."""
        return self.number_of(self.value(node), node, wanted)

    def number_of(self, value: Value, node: Any, wanted: Type = types.FLOAT) -> str:
        """Return a value as a number of a type."""
        if value.type == wanted:
            return value.text
        if wanted is types.FLOAT and value.type is types.INT:
            if value.constant is not None and abs(value.constant) <= 2**53:
                return repr(float(value.constant))
            return f"real(run, {value.text}, {node.lineno})"

        told = f"must be {wanted.name} here, not {value.type.name}"
        raise RefusedError(node, f"{_shown(node)} {told}")

    def agent(self, node: ast.expr) -> str:
        """Return an expression as an agent."""
        value = self.value(node)
        if value.type is types.MAYBE_AGENT:
            return f"somebody(run, {value.text}, {node.lineno})"
        if value.type is not types.AGENT:
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
            return Value(str(number), types.STATE, found)
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
            return Value(f"run.{name}", types.INT)
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
            return Value(f"state_of(run, {agent})", types.STATE)
        if name == "ticks_in_state":
            return Value(f"ticks_of(run, {agent})", types.INT)
        if name == "neighbours":
            self.is_apart = False
            return Value(agent, types.NEIGHBOURS)
        if name == "random":
            return Value(agent, types.STREAM)
        if name in self.layout.fields:
            stored = self.layout.fields[name]
            return stored.of(f"agent_at(run, {agent})")
        if name in self.layout.others:
            raise RefusedError(node, self.layout.others[name])
        if name in _AGENTS_OWN:
            raise RefusedError(node, f"{_shown(node)}: {_AGENTS_OWN[name]}: {_ELSEWHERE}")

        found = inspect.getattr_static(cls, name, _UNKNOWN)
        if isinstance(found, property) and found.fget is not None:
            return self._called(found.fget, [Value(agent, types.AGENT)], node, is_bound=False)
        return _constant(found, node)

    # Operations

    def _binop(self, node: ast.BinOp) -> Value:
        return self.operate(node.op, self.value(node.left), self.value(node.right), node)

    def operate(self, op: ast.operator, left: Value, right: Value, node: Any) -> Value:
        """Return an operation on two numbers."""
        for each in (left, right):
            if not each.type.is_number:
                told = "in arithmetic: use whole numbers and floats"
                raise RefusedError(node, f"{each.type.name} {told}")
        if type(op) not in _OPERATIONS:
            raise RefusedError(node, f"{_shown(node)}: the operators are + - * / // % and **")

        whole, real = _OPERATIONS[type(op)]
        if left.type is right.type is types.INT:
            if isinstance(op, ast.Pow):
                return self._whole_power(left, right, node)
            if whole:
                return Value(whole.format(left.text, right.text, node.lineno), types.INT)

        one, other = self.number_of(left, node), self.number_of(right, node)
        return Value(real.format(one, other, node.lineno), types.FLOAT)

    def _whole_power(self, left: Value, right: Value, node: Any) -> Value:
        if not (isinstance(right.constant, int) and 0 <= right.constant <= 64):
            raise RefusedError(
                node,
                "a whole number to a whole power may or may not be a float: write one of them as a "
                "float, or the power as a number from 0 to 64",
            )
        text = f"whole_power(run, {left.text}, {right.constant}, {node.lineno})"
        return Value(text, types.INT)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(f"(not {self.truth(node.operand)})", types.BOOL)

        value = self.value(node.operand)
        if not value.type.is_number or isinstance(node.op, ast.Invert):
            raise _unsupported(node)
        if isinstance(node.op, ast.UAdd):
            return value
        if value.constant is not None:
            return _constant(-value.constant, node)
        if value.type is types.INT:
            return Value(f"minus(run, 0, {value.text}, {node.lineno})", types.INT)
        return Value(f"(-{value.text})", types.FLOAT)

    def _boolop(self, node: ast.BoolOp) -> Value:
        values = [self.value(each) for each in node.values]
        word = " and " if isinstance(node.op, ast.And) else " or "
        text = word.join(self.truth_of(each, node) for each in values)
        # Python returns one of the operands, which is a bool if all are
        kind = types.BOOL if all(each.type is types.BOOL for each in values) else types.TRUTH
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
        return Value(f"({' and '.join(found)})", types.BOOL)

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
        if left.type.options and right.type is types.TEXT:
            return left, as_option(right, left.type, node)
        if right.type.options and left.type is types.TEXT:
            return as_option(left, right.type, node), right
        left, right = map(self._as_state, (left, right))
        nothing = {types.AGENT: types.MAYBE_AGENT, types.STATE: types.MAYBE_STATE}
        if types.NONE in (left.type, right.type):
            kinds = [nothing.get(each.type, each.type) for each in (left, right)]
            known = next((each for each in kinds if each is not types.NONE), types.NONE)
            if known in (types.MAYBE_AGENT, types.MAYBE_STATE):
                return Value(left.text, known), Value(right.text, known)

        return left, right

    def _as_state(self, value: Value) -> Value:
        """Return the value of a field whose type is that of the states as a state."""
        is_state = value.type.options and value.type.options == tuple(self.layout.states)
        return Value(value.text, types.STATE) if is_state else value

    def _among(self, op: ast.cmpop, one: ast.expr, other: ast.expr) -> str:
        if not isinstance(other, (ast.Tuple, ast.List, ast.Set)) or not other.elts:
            value = self.value(other)
            if value.type is not types.NEIGHBOURS:
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
            if func.attr not in _OF_WORLD:
                return None
            self.is_apart = False
            return self._applied(_OF_WORLD[func.attr], node)

        value = self.value(func.value)
        if value.type in _METHODS:
            told, methods = _METHODS[value.type]
            if func.attr not in methods:
                raise RefusedError(node, f"{_shown(func)}: {value.type.name} support {told}")
            return self._applied(methods[func.attr], node, value.text)
        if func.attr == "fire":
            return self._fired(node, func)
        if func.attr == "decide":
            raise RefusedError(node, "decide is awaited: write  await  before it")
        return None

    def _applied(self, signature: _Signature, node: ast.Call, of: str = "") -> Value:
        """Return a call of what takes arguments of known types."""
        takes, gives, text = signature
        if len(node.args) != len(takes) or node.keywords:
            told = f"takes {len(takes)} positional argument{'s' * (len(takes) != 1)} here"
            raise RefusedError(node, f"{_shown(node.func)} {told}")
        given = (
            self.state(each) if kind is types.STATE else self.number(each, kind)
            for each, kind in zip(node.args, takes, strict=True)
        )
        return Value(text.format(*given, of=of, line=node.lineno), gives)

    def _fired(self, node: ast.Call, func: ast.Attribute) -> Value:
        agent = self.agent(func.value)
        if not (isinstance(func.value, ast.Name) and agent == "me"):
            self.is_apart = False
        trigger, context = self.event(node)
        return Value(f"fire(run, {agent}, {trigger}, {context})", types.MAYBE_STATE)

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
        if context.type not in (types.AGENT, types.MAYBE_AGENT, types.NONE):
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
        owner = [] if is_worlds else [Value(self.agent(func.value), types.AGENT)]
        return self._called(found, [*owner, *self._arguments(node)], node, is_bound=is_worlds)

    def _arguments(self, node: ast.Call) -> list[Value]:
        if node.keywords:
            raise RefusedError(node, "keyword arguments: use positional ones")
        return [self.value(each) for each in node.args]

    def _called(
        self, function: Any, given: Sequence[Value], node: ast.AST, *, is_bound: bool = True
    ) -> Value:
        kinds = [each.type for each in given]
        name, returned = self._compile((function, is_bound), kinds, node)
        return Value(
            f"{name}({', '.join(['run', 'me', *(each.text for each in given)])})", returned
        )

    def _function(self, called: Any, node: ast.Call) -> Value:
        if called in _LOOPS and node.args and isinstance(node.args[0], ast.GeneratorExp):
            return self._part(called.__name__, node.args[0], node)
        if called in (min, max):
            return self._least(called, node)
        if called in (abs, int, float, bool):
            return self._converted(called, node)
        if called in _FUNCTIONS:
            return self._applied(_FUNCTIONS[called], node)
        if inspect.isfunction(called):
            return self._called(called, self._arguments(node), node, is_bound=False)

        raise _unsupported(node, f"{_shown(node.func)}(...)")

    def _converted(self, to: Any, node: ast.Call) -> Value:
        value, line = self.value(self._only(node)), node.lineno
        if to is bool:
            return Value(self.truth_of(value, node.args[0]), types.BOOL)
        if to is int and value.type is types.BOOL:
            return Value(f"(1 if {value.text} else 0)", types.INT)
        if not value.type.is_number:
            raise RefusedError(node, f"{to.__name__}() of {value.type.name}: give it a number")
        if to is float:
            return Value(self.number_of(value, node), types.FLOAT)
        if value.type is types.INT:
            return (
                value if to is int else Value(f"whole_size(run, {value.text}, {line})", types.INT)
            )
        if to is int:
            return Value(f"truncated(run, {value.text}, {line})", types.INT)
        return Value(f"abs({value.text})", types.FLOAT)

    def _least(self, called: Any, node: ast.Call) -> Value:
        if len(node.args) < 2 or node.keywords:
            raise _unsupported(node)
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
        if not is_plain or source.type is not types.NEIGHBOURS:
            raise RefusedError(node, f"{name}(...) goes through the neighbours of one agent")
        return source, loop.target.id  # type: ignore[attr-defined]

    def _found(self, name: str, element: Value, node: ast.AST) -> tuple[dict[str, str], Type]:
        if element.type is types.FLOAT:
            raise RefusedError(node, "a float has no truth value here: compare it with something")
        truth, is_any = self.truth_of(element, node), name == "any"
        do = f"if {truth if is_any else f'not {truth}'}:\n                return {is_any}"
        return {"begin": "pass", "do": do, "end": f"return {not is_any}"}, types.BOOL

    def _summed(self, element: Value, call: ast.Call) -> tuple[dict[str, str], Type]:
        begin = [self.value(each).constant for each in call.args[1:]]
        if begin != ([0.0] if element.type is types.FLOAT else []):
            raise RefusedError(
                call,
                "begin a sum of floats with 0.0, so that an empty one is a float, too: sum(..., "
                "0.0); a sum of whole numbers needs no start",
            )
        if element.type is types.FLOAT:
            do = f"total, lost = added(total, lost, {element.text})"
            end = "return summed(total, lost)"
            return {"begin": "total, lost = 0.0, 0.0", "do": do, "end": end}, types.FLOAT
        if element.type not in (types.INT, types.BOOL):
            raise RefusedError(call, f"a sum of {element.type.name}: sum numbers")

        more = element.text if element.type is types.INT else f"(1 if {element.text} else 0)"
        do = f"total = plus(run, total, {more}, {call.lineno})"
        return {"begin": "total = 0", "do": do, "end": "return total"}, types.INT

    def _only(self, node: ast.Call) -> ast.expr:
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise RefusedError(node, f"{_shown(node.func)} takes one argument here")
        return node.args[0]

    def _await(self, node: ast.Await) -> Value:
        raise RefusedError(node, IN_THE_MIDDLE)


_UNKNOWN: Any = object()
_EVENT = ("trigger", "context")
_LOOPS = (sum, any, all)

_PART = """
{head}
    {begin}
    for number in range(degree(run, source)):
        {variable} = neighbour(run, source, number)
        if {test}:
            {do}
    {end}
"""


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
        return Value("-1", types.NONE)
    if isinstance(value, bool):
        return Value(str(value), types.BOOL, value)
    if isinstance(value, Enum):
        options = tuple(type(value))
        return Value(str(options.index(value)), Type(type(value).__name__, options), value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return Value(repr(value), types.INT, value)
    if isinstance(value, float):
        text = repr(value).replace("inf", "np.inf").replace("nan", "np.nan")
        return Value(f"({text})", types.FLOAT, value if math.isfinite(value) else None)
    if isinstance(value, str):
        return Value("-1", types.TEXT, value)

    raise RefusedError(
        node, f"{_shown(node)} is not supported in columns: use numbers, states, agents"
    )


def _are_alike(one: Type, other: Type) -> bool:
    agents, states = (types.AGENT, types.MAYBE_AGENT), (types.STATE, types.MAYBE_STATE)
    if one in agents or one in states:
        return other in (agents if one in agents else states)
    return one == other and (one is types.BOOL or bool(one.options))


def _unsupported(node: ast.AST, what: str = "") -> RefusedError:
    told = what or _shown(node)
    return RefusedError(node, f"{told} is not supported in columns: {_ELSEWHERE}")


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 50 else f"{text[:47]}..."
