"""The Python that a step may use: expressions and statements, translated one by one.

Whatever is not translated is refused by its line, with what to do instead. Types are known before
anything runs, so numbers, agents and states are machine words, and every operation is the one that
Python would carry out.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from copy import copy
from enum import Enum
from functools import reduce
from typing import Any

from prism.columns import _types as types
from prism.columns._types import Layout, RefusedError, Type, Value, is_word
from prism.worlds import Agent, World
from prism.worlds._charts import named

MATH: Sequence[Callable[[float], float]] = (
    *(math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.log10, math.fabs),
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan),
    *(math.sinh, math.cosh, math.tanh),
)
"""Functions of `math` that take a float and return one."""

_Form = tuple[tuple[Type, ...], Type, str]
"""The types of arguments and result, and the text of a translation."""

INT, FLOAT, NUMBER, BOOL = types.INT, types.FLOAT, types.NUMBER, types.BOOL


def _of_both(whole: str, real: str, gives: Type | None = None) -> Sequence[_Form]:
    """Return the forms of an operation for two integers, and for any two numbers."""
    return ((INT, INT), gives or INT, whole), ((NUMBER, NUMBER), gives or FLOAT, real)


_OPERATIONS: Mapping[type, Sequence[_Form]] = {
    ast.Add: _of_both("plus(run, {0}, {1}, {line})", "({0} + {1})"),
    ast.Sub: _of_both("minus(run, {0}, {1}, {line})", "({0} - {1})"),
    ast.Mult: _of_both("times(run, {0}, {1}, {line})", "({0} * {1})"),
    ast.FloorDiv: _of_both(
        "whole_floor(run, {0}, {1}, {line})", "float_floor(run, {0}, {1}, {line})"
    ),
    ast.Mod: _of_both("whole_rest(run, {0}, {1}, {line})", "float_rest(run, {0}, {1}, {line})"),
    ast.Div: [((NUMBER, NUMBER), FLOAT, "divided(run, {0}, {1}, {line})")],
    ast.Pow: _of_both("whole_power(run, {0}, {1}, {line})", "power(run, {0}, {1}, {line})"),
    ast.USub: [((INT,), INT, "minus(run, 0, {0}, {line})"), ((FLOAT,), FLOAT, "(-{0})")],
    ast.UAdd: [((INT,), INT, "{0}"), ((FLOAT,), FLOAT, "{0}")],
}
_COMPARED: Mapping[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    **dict.fromkeys((ast.Eq, ast.Is), "=="),
    **dict.fromkeys((ast.NotEq, ast.IsNot), "!="),
}
_MOST_POWER = 64
_FUNCTIONS: Mapping[Any, Sequence[_Form]] = {
    len: [((types.NEIGHBOURS,), INT, "degree(run, {0})")],
    min: [((kind, kind), kind, "smaller({0}, {1})") for kind in (INT, FLOAT)],
    max: [((kind, kind), kind, "larger({0}, {1})") for kind in (INT, FLOAT)],
    abs: [((INT,), INT, "whole_size(run, {0}, {line})"), ((FLOAT,), FLOAT, "abs({0})")],
    int: [
        ((BOOL,), INT, "(1 if {0} else 0)"),
        ((INT,), INT, "{0}"),
        ((FLOAT,), INT, "truncated(run, {0}, {line})"),
    ],
    float: [((NUMBER,), FLOAT, "{0}")],
    bool: [((types.CONDITION,), BOOL, "{0}")],
    math.floor: [((NUMBER,), INT, "truncated(run, np.floor({0}), {line})")],
    math.ceil: [((NUMBER,), INT, "truncated(run, np.ceil({0}), {line})")],
    math.pow: [((NUMBER, NUMBER), FLOAT, "power(run, {0}, {1}, {line})")],
    **{each: [((NUMBER,), FLOAT, f"{each.__name__}_of(run, {{0}}, {{line}})")] for each in MATH},
}
_VALUES: Mapping[tuple[Type, str], Value] = {
    (types.WORLD, "round"): Value("run.round", INT),
    (types.WORLD, "tick"): Value("run.tick", INT),
    (types.AGENT, "state"): Value("state_of(run, {of})", types.STATE),
    (types.AGENT, "ticks_in_state"): Value("ticks_of(run, {of})", INT),
    (types.AGENT, "neighbours"): Value("{of}", types.NEIGHBOURS),
    (types.AGENT, "random"): Value("{of}", types.STREAM),
}
_METHODS: Mapping[Type, Mapping[str, _Form]] = {
    types.WORLD: {
        "count": ((types.STATE,), INT, "get_i8(run.counts, {0})"),
        "share": ((types.STATE,), FLOAT, "(get_i8(run.counts, {0}) / run.size)"),
    },
    types.NEIGHBOURS: {"count": ((types.STATE,), INT, "count_neighbours(run, {of}, {0})")},
    types.STREAM: {
        "random": ((), FLOAT, "draw(run, {of}, {line})"),
        "chance": ((NUMBER,), BOOL, "chance(run, {of}, {0}, {line})"),
        "index": ((NUMBER,), INT, "index(run, {of}, {0}, {line})"),
        "between": ((NUMBER, NUMBER), FLOAT, "between(run, {of}, {0}, {1}, {line})"),
        "exponential": ((NUMBER,), FLOAT, "exponential(run, {of}, {0}, {line})"),
        "choice": ((types.NEIGHBOURS,), types.AGENT, "choose(run, {of}, {0}, {line})"),
    },
}
_CONVERSIONS: Mapping[tuple[Type, Type], str] = {
    (INT, NUMBER): "real(run, {0}, {line})",
    (FLOAT, NUMBER): "{0}",
    (BOOL, types.CONDITION): "{0}",
    (types.TRUTH, types.CONDITION): "{0}",
    **{(each, types.CONDITION): "({0} != 0)" for each in (INT, FLOAT)},
    **{
        (each, types.CONDITION): "({0} >= 0)"
        for each in (types.AGENT, types.MAYBE_AGENT, types.STATE, types.MAYBE_STATE)
    },
    (types.NEIGHBOURS, types.CONDITION): "(degree(run, {0}) > 0)",
    (types.MAYBE_AGENT, types.AGENT): "somebody(run, {0}, {line})",
    **{(each, types.MAYBE_AGENT): "{0}" for each in (types.AGENT, types.NONE)},
}
"""The conversions from one type to another."""

_ELSEWHERE = "run this world without columns"
IN_THE_MIDDLE = "an answer in the middle of something: give it a name first, name = await ..."

_AGENTS_OWN: Mapping[str, str] = {
    **dict.fromkeys(
        ("send", "receive", "inbox"), f"messages have no column: set a field, or {_ELSEWHERE}"
    ),
    **dict.fromkeys(
        ("write", "agent_id", "name", "persona", "meanings"),
        f"texts have no column: use a number, an enum or one_of(...), or {_ELSEWHERE}",
    ),
    "remember": f"notes have no column: set a field, or {_ELSEWHERE}",
    "state_history": "histories are not kept: keep what you need in a field",
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
    """The names and the parts of one function.

    Args:
        function: The function.
        names: Its parameters and their translations.
        own: The function's name in messages.
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
        # the states to which a name ever gives weights
        self.weighed: dict[str, dict[int, str]] = {}
        self.returned: Type | None = None
        self.is_waiting = False
        closure = inspect.getclosurevars(function) if inspect.isfunction(function) else None
        self.outside: dict[str, Any] = {
            **vars(builtins),
            **getattr(function, "__globals__", {}),
            **(dict(closure.nonlocals) if closure else {}),
        }

    def can_be_given(self, name: str) -> bool:
        """Return whether the value of a name can be an argument of a function."""
        value = self.names[name]
        return name in self.defined and value.type is not types.WEIGHTS and value.text != "self"

    def inside(self, given: Mapping[str, Type], variable: str) -> Scope:
        """Return the scope of a loop in an expression, which takes names as arguments."""
        inner = copy(self)
        own = {name: Value(f"v_{name}", kind) for name, kind in given.items()}
        inner.names = {**self.names, **own, variable: Value(f"v_{variable}", types.AGENT)}
        inner.defined = {*self.defined, variable}
        return inner


class Language:
    """Translates expressions.

    Args:
        layout: The layout of the world.
        call: Translates a method that a step calls; returns its name, and what it returns.

    Attributes:
        parts: The texts of functions that expressions needed.
        written: Fields that steps write.
        is_apart: Whether steps look at and change their own agents alone.
        may_be_endless: Whether a step may never end.
    """

    def __init__(
        self, layout: Layout, call: Callable[[Any, Sequence[Type], ast.AST], tuple[str, Type]]
    ) -> None:
        self.layout = layout
        self.parts: list[str] = []
        self.written: dict[str, None] = {}
        self.is_apart = True
        self.may_be_endless = False
        self.scope = Scope(None, {}, "")
        self._compile = call

    # Values

    def value(self, node: ast.expr) -> Value:
        """Translate an expression.

        Raises:
            RefusedError: If it cannot be.
        """
        if (known := self.outside(node)) is not _UNKNOWN:
            return self._known(known, node)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise _unsupported(node)
        found: Value = method(node)
        return found

    def values(self, nodes: Iterable[ast.expr]) -> list[Value]:
        """Translate several expressions.

        Raises:
            RefusedError: If any cannot be; it has the others.
        """
        found, refused = [], []
        for each in nodes:
            try:
                found.append(self.value(each))
            except RefusedError as error:
                refused.append(error)
        if refused:
            raise RefusedError(ast.Pass(), "", refused)
        return found

    def value_as(self, wanted: Type, node: ast.expr) -> str:
        """Translate an expression into a value of a type."""
        return self.as_type(wanted, self.value(node), node)

    def as_type(self, wanted: Type, value: Value, node: ast.AST) -> str:
        """Convert a value to a type."""
        found = _converted(wanted, value, node)
        if found is None:
            more = ": compare it with something" if wanted is types.CONDITION else ""
            told = f"must be {wanted.name} here, not {value.type.name}{more}"
            raise RefusedError(node, f"{_shown(node)} {told}")
        return found

    def state(self, node: ast.expr) -> int:
        """Return the number of a named state."""
        number = self.layout.number_of(self.outside(node))
        if number is None:
            states = ", ".join(map(named, self.layout.states))
            raise RefusedError(
                node, f"{_shown(node)} is not a state of the chart: its states are {states}"
            )
        return number

    def _formed(
        self, forms: Sequence[_Form], given: Sequence[Value], node: Any, of: str = ""
    ) -> Value:
        """Return the first form that accepts the values."""
        for takes, gives, text in forms:
            if len(takes) == len(given):
                texts = [_converted(*each, node) for each in zip(takes, given, strict=True)]
                if None not in texts:
                    return Value(text.format(*texts, of=of, line=node.lineno), gives)

        listed = ", or ".join(_listed(takes) for takes, _, _ in forms)
        told = f"takes {listed}, but gets {_listed([each.type for each in given])}"
        raise RefusedError(node, f"{_shown(node)} {told}")

    def _known(self, value: Any, node: ast.AST) -> Value:
        """Return a constant: a number, a text, a state or another member."""
        number = self.layout.number_of(value)
        if number is not None:
            return Value(str(number), types.STATE, value)
        if value is None:
            return Value("-1", types.NONE)
        if isinstance(value, bool):
            return Value(str(value), BOOL, value)
        if isinstance(value, Enum):
            options = tuple(type(value))
            return Value(str(options.index(value)), Type(type(value).__name__, options), value)
        if is_word(value):
            return Value(repr(value), INT, value)
        if isinstance(value, float):
            text = repr(value).replace("inf", "np.inf").replace("nan", "np.nan")
            return Value(f"({text})", FLOAT, value if math.isfinite(value) else None)
        if isinstance(value, str):
            return Value("-1", types.TEXT, value)

        raise RefusedError(
            node, f"{_shown(node)} is not supported in columns: use numbers, states, agents"
        )

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

        return self._known(_UNKNOWN, node)

    def outside(self, node: ast.AST) -> Any:
        """Evaluate an expression that needs nothing of the function: constants and outer names."""
        scope = self.scope
        match node:
            case ast.Constant():
                return node.value
            case ast.Name(name) if name not in scope.names and name not in scope.lost:
                return scope.outside.get(name, _UNKNOWN)
            case ast.Attribute(owner, name) if (known := self.outside(owner)) is not _UNKNOWN:
                return getattr(known, name, _UNKNOWN)
            case ast.BinOp(one, op, other):
                return _folded(op, self.outside(one), self.outside(other))
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return -number
        return _UNKNOWN

    # Attributes of world and agents

    def _owner(self, node: ast.expr) -> Value:
        """Return the owner of an attribute, which must be an agent."""
        value = self.value(node)
        if value.type is types.MAYBE_AGENT:
            return Value(self.as_type(types.AGENT, value, node), types.AGENT)
        return value

    def _attribute(self, node: ast.Attribute) -> Value:
        owner, name, layout = self._owner(node.value), node.attr, self.layout
        if (owner.type, name) in _VALUES:
            value = _VALUES[owner.type, name]
            if value.type is types.NEIGHBOURS:
                self.is_apart = False
            return Value(value.text.format(of=owner.text), value.type)
        if owner.type is types.WORLD and name in layout.values:
            return layout.values[name].of("run")
        if owner.type is types.AGENT and name in layout.fields:
            return layout.fields[name].of(f"agent_at(run, {owner.text})")

        found = self._member(owner, name, node)
        if isinstance(found, property) and found.fget is not None:
            return self._called(found.fget, [owner], node)
        return self._known(found, node)

    def _member(self, owner: Value, name: str, node: ast.AST) -> Any:
        """Return the member of the user's class with this name, and refuse one without a column."""
        is_world = owner.type is types.WORLD
        if not is_world:
            self.as_type(types.AGENT, owner, node)
        others = self.layout.other_values if is_world else self.layout.others
        cls: Any = self.layout.cls if is_world else self.layout.agent
        base, own = (World, _WORLDS_OWN) if is_world else (Agent, _AGENTS_OWN)
        if name in others:
            raise RefusedError(node, others[name])
        if name in own or hasattr(base, name):
            why = own.get(name, f"it is not supported in columns: {_ELSEWHERE}")
            raise RefusedError(node, f"{_shown(node)}: {why}")
        return inspect.getattr_static(cls, name, _UNKNOWN)

    # Operations

    def _binop(self, node: ast.BinOp) -> Value:
        return self._operated(node.op, self.values([node.left, node.right]), node)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(f"(not {self.value_as(types.CONDITION, node.operand)})", BOOL)
        return self._operated(node.op, [self.value(node.operand)], node)

    def _operated(self, op: ast.AST, given: Sequence[Value], node: Any) -> Value:
        if type(op) not in _OPERATIONS:
            raise RefusedError(node, f"{_shown(node)}: the operators are + - * / // % and **")
        if isinstance(op, ast.Pow) and given[0].type is given[1].type is INT:
            power = given[1].constant
            if power is None or not 0 <= power <= _MOST_POWER:
                raise RefusedError(
                    node,
                    "a whole number to a whole power may or may not be a float: write one of them "
                    f"as a float, or the power as a number from 0 to {_MOST_POWER}",
                )
        return self._formed(_OPERATIONS[type(op)], given, node)

    def _boolop(self, node: ast.BoolOp) -> Value:
        values = self.values(node.values)
        word = " and " if isinstance(node.op, ast.And) else " or "
        text = word.join(self.as_type(types.CONDITION, each, node) for each in values)
        # Python returns one of the operands, which is a bool if all are
        kind = BOOL if all(each.type is BOOL for each in values) else types.TRUTH
        return Value(f"({text})", kind)

    def _ifexp(self, node: ast.IfExp) -> Value:
        asked, one, other = self.values([node.test, node.body, node.orelse])
        test = self.as_type(types.CONDITION, asked, node.test)
        if one.type != other.type:
            raise RefusedError(
                node, f"{one.type.name} or {other.type.name}: give both the same type"
            )
        return Value(f"({one.text} if {test} else {other.text})", one.type)

    def _compare(self, node: ast.Compare) -> Value:
        operands = [node.left, *node.comparators]
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and len(operands) == 2:
            return self._among(node, *operands)

        values, is_numbers = self._alike(operands, node)
        for op in map(type, node.ops):
            if is_numbers and op in (ast.Is, ast.IsNot):
                raise RefusedError(node, "numbers are compared with == and !=")
            if op not in _COMPARED or not (is_numbers or _COMPARED[op] in ("==", "!=")):
                raise RefusedError(node, f"{_shown(node)}: compare values of the same type")
        words = [
            f" {_COMPARED[type(op)]} {text}" for op, text in zip(node.ops, values[1:], strict=True)
        ]
        return Value(f"({values[0]}{''.join(words)})", BOOL)

    def _alike(self, nodes: Sequence[ast.expr], node: ast.AST) -> tuple[list[str], bool]:
        """Translate values that are compared, and return whether they are numbers."""
        values = self.values(nodes)
        if all(each.type.is_number for each in values):
            kind = INT if all(each.type is INT for each in values) else NUMBER
            return [self.as_type(kind, each, node) for each in values], True

        options = next((each.type for each in values if each.type.options), None)
        if options is not None:
            values = [
                as_option(each, options, node) if each.type is types.TEXT else each
                for each in values
            ]
        if not self._can_be_equal({each.type for each in values}):
            told = " compared with ".join(each.type.name for each in values)
            raise RefusedError(node, f"{told}: compare values of the same type")
        return [each.text for each in values], False

    def _can_be_equal(self, kinds: Set[Type]) -> bool:
        """Return whether values of some types, which are no numbers, can be compared."""
        among = {self._family(each) for each in kinds if each is not types.NONE}
        if len(among) != 1:
            return False
        (kind,) = among
        if kind in (types.AGENT, types.STATE):
            return True
        return types.NONE not in kinds and (kind is BOOL or bool(kind.options))

    def _family(self, kind: Type) -> Type:
        """Return the type of agents or states, if a value can be compared with these."""
        if kind is types.MAYBE_AGENT:
            return types.AGENT
        if kind is types.MAYBE_STATE or kind.options == tuple(self.layout.states):
            return types.STATE
        return kind

    def _among(self, node: ast.Compare, one: ast.expr, others: ast.expr) -> Value:
        if isinstance(others, (ast.Tuple, ast.List, ast.Set)) and others.elts:
            (text, *texts), _ = self._alike([one, *others.elts], node)
            found = f"({text} in ({', '.join(texts)},))"
        else:
            value = self.value(others)
            if value.type is not types.NEIGHBOURS:
                raise RefusedError(node, "write the values to look for in brackets: in (A, B)")
            found = f"is_neighbour(run, {value.text}, {self.value_as(types.AGENT, one)})"
        return Value(f"(not {found})" if isinstance(node.ops[0], ast.NotIn) else found, BOOL)

    # Calls

    def _call(self, node: ast.Call) -> Value:
        func, called = node.func, self.outside(node.func)
        if called is not _UNKNOWN:
            return self._function(called, node)
        if not isinstance(func, ast.Attribute):
            raise _unsupported(node)

        owner, name = self._owner(func.value), func.attr
        methods = _METHODS.get(owner.type, {})
        if name in methods:
            if owner.type is types.WORLD:
                self.is_apart = False
            return self._formed([methods[name]], self._arguments(node), node, owner.text)
        if methods and owner.type is not types.WORLD:
            told = f"in columns, {owner.type.name} support {', '.join(methods)}"
            raise RefusedError(node, f"{_shown(func)}: {told}")
        if name == "fire" and owner.type is types.AGENT:
            self.is_apart &= owner.text == "me"
            trigger, context = self.event(node)
            return Value(f"fire(run, {owner.text}, {trigger}, {context})", types.MAYBE_STATE)
        return self._own_method(owner, node, func)

    def _own_method(self, owner: Value, node: ast.Call, func: ast.Attribute) -> Value:
        """Translate a call of a method of the user's class."""
        name = func.attr
        if name == "decide":
            raise RefusedError(node, "decide is awaited: write  await  before it")
        found = self._member(owner, name, func)
        if isinstance(found, staticmethod):
            return self._called(found.__func__, self._arguments(node), node)
        if not inspect.isfunction(found):
            raise RefusedError(node, f"{_shown(func)}(...) is unknown here: {_ELSEWHERE}")
        return self._called(found, [owner, *self._arguments(node)], node)

    def event(self, node: ast.Call) -> tuple[int, str]:
        """Return the trigger and the context that a call of fire or decide names."""
        given = dict(zip(("trigger", "context"), node.args, strict=False))
        given |= {each.arg: each.value for each in node.keywords if each.arg in _EVENT}
        name = given.get("trigger")
        text = name and self.outside(name)
        if text not in self.layout.triggers:
            known = ", ".join(self.layout.triggers)
            raise RefusedError(name or node, f"the trigger must be named, one of {known}")

        number = self.layout.triggers.index(text)
        if "context" not in given:
            return number, "-1"
        return number, self.value_as(types.MAYBE_AGENT, given["context"])

    def _arguments(self, node: ast.Call) -> list[Value]:
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise RefusedError(node, "keyword arguments and *: use positional ones")
        return self.values(node.args)

    def _called(self, function: Any, given: Sequence[Value], node: ast.AST) -> Value:
        """Translate a call of a function that is also compiled; the world is always available."""
        name, returned = self._compile(function, [each.type for each in given], node)
        texts = [each.text for each in given if each.type is not types.WORLD]
        return Value(f"{name}({', '.join(['run', 'me', *texts])})", returned)

    def _function(self, called: Any, node: ast.Call) -> Value:
        if called in _LOOPS and node.args and isinstance(node.args[0], ast.GeneratorExp):
            return self._part(called.__name__, node.args[0], node)
        if called in _FUNCTIONS:
            forms, given = _FUNCTIONS[called], self._arguments(node)
            if called in (min, max) and len(given) > 1:
                return reduce(lambda *pair: self._formed(forms, pair, node), given)
            return self._formed(forms, given, node)
        if inspect.isfunction(called):
            return self._called(called, self._arguments(node), node)

        raise _unsupported(node, f"{_shown(node.func)}(...)", called)

    # Loops in expressions

    def _part(self, name: str, node: ast.GeneratorExp, call: ast.Call) -> Value:
        """Translate a loop over neighbours into a function of its own."""
        loop, source = node.generators[0], self.value(node.generators[0].iter)
        is_plain = len(node.generators) == 1 and isinstance(loop.target, ast.Name)
        if not is_plain or source.type is not types.NEIGHBOURS:
            raise RefusedError(node, f"{name}(...) goes through the neighbours of one agent")

        outer, variable = self.scope, loop.target.id  # type: ignore[attr-defined]
        taken = {each: outer.names[each] for each in outer.names if outer.can_be_given(each)}
        self.scope = outer.inside({each: value.type for each, value in taken.items()}, variable)
        try:
            body, returned = self._inside(name, node, call)
        finally:
            self.scope = outer

        part, names = f"part_{len(self.parts)}", [f"v_{each}" for each in taken]
        head = f"def {part}({', '.join(['run', 'me', 'source', *names])}):"
        self.parts.append(_PART.format(head=head, variable=f"v_{variable}", **body))
        given = ["run", "me", source.text, *(value.text for value in taken.values())]
        return Value(f"{part}({', '.join(given)})", returned)

    def _inside(
        self, name: str, node: ast.GeneratorExp, call: ast.Call
    ) -> tuple[dict[str, str], Type]:
        """Translate what such a loop does for each neighbour, and what it returns."""
        tests = [self.value_as(types.CONDITION, each) for each in node.generators[0].ifs]
        element = self.value(node.elt)
        body, returned = (
            self._summed(element, call) if name == "sum" else self._found(name, element, node)
        )
        return {**body, "test": " and ".join(tests) or "True"}, returned

    def _found(self, name: str, element: Value, node: ast.AST) -> tuple[dict[str, str], Type]:
        truth, is_any = self.as_type(types.CONDITION, element, node), name == "any"
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

        more = self._formed(_FUNCTIONS[int], [element], call).text
        do = f"total = plus(run, total, {more}, {call.lineno})"
        return {"begin": "total = 0", "do": do, "end": "return total"}, INT

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
    """Return the number of a text or enum member among a field's options."""
    options = [(type(each), each) for each in kind.options]
    if kind == value.type:
        return value
    if value.constant is None or (type(value.constant), value.constant) not in options:
        listed = ", ".join(map(str, kind.options))
        raise RefusedError(node, f"one of {listed} is needed here")
    return Value(str(options.index((type(value.constant), value.constant))), kind)


def _converted(wanted: Type, value: Value, node: Any) -> str | None:
    """Convert a value to a type; return None if that is impossible."""
    if value.type == wanted:
        return value.text
    if (value.type, wanted) not in _CONVERSIONS:
        return None
    if wanted is NUMBER and type(value.constant) is int and abs(value.constant) <= 2**53:
        return repr(float(value.constant))
    return _CONVERSIONS[value.type, wanted].format(value.text, line=node.lineno)


def _folded(op: ast.operator, *numbers: Any) -> Any:
    """Evaluate an operation on constants, if Python and columns have its result."""
    is_plain = all(type(each) in (int, float) for each in numbers)
    if is_plain and not (isinstance(op, ast.Pow) and abs(numbers[1]) > _MOST_POWER):
        tree = ast.Expression(ast.BinOp(ast.Constant(numbers[0]), op, ast.Constant(numbers[1])))
        with suppress(ArithmeticError, TypeError):
            found = eval(compile(ast.fix_missing_locations(tree), "<constant>", "eval"))
            if type(found) is float or is_word(found):
                return found
    return _UNKNOWN


def _listed(kinds: Sequence[Type]) -> str:
    return " and ".join(kind.name for kind in kinds) or "nothing"


_THROUGH = "go through neighbours, with a loop, sum, any or all"
_INSTEAD: Mapping[type, str] = {
    **dict.fromkeys((ast.List, ast.Dict, ast.Set, ast.ListComp), _THROUGH),
    **dict.fromkeys((ast.SetComp, ast.DictComp, ast.GeneratorExp), _THROUGH),
    ast.Subscript: f"draw one, with random.choice, or {_THROUGH}",
    ast.Tuple: "use one value at a time",
    ast.JoinedStr: "texts have no column: let a hook write them, such as tick_ends",
    ast.Lambda: "make it a method of the world",
    ast.NamedExpr: "give it a name in a line before",
}
"""What to do instead of expressions that no step may have."""

_INSTEAD_OF_CALLS: Mapping[Any, str] = {
    print: "print in a hook, such as tick_ends",
    **dict.fromkeys((sorted, list, tuple, set, dict, enumerate, zip, map, filter), _THROUGH),
    round: "use math.floor(x + 0.5)",
    str: "texts have no column",
    isinstance: "all agents are of one kind",
}


def _unsupported(node: ast.AST, what: str = "", called: Any = None) -> RefusedError:
    told = what or _shown(node)
    instead = _INSTEAD.get(type(node), _ELSEWHERE)
    if called in _INSTEAD_OF_CALLS:
        instead = _INSTEAD_OF_CALLS[called]
    return RefusedError(node, f"{told} is not supported in columns: {instead}")


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 50 else f"{text[:47]}..."
