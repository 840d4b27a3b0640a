"""The Python that a step may use: expressions, translated one by one.

Whatever is not translated is refused by its line, with what to do instead, and counts as lost:
nothing that is done with it is refused again. Types are known before anything runs, so numbers,
agents and states are machine words, and every operation is the one that Python would carry out.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import reduce
from linecache import getline
from typing import Any

from prism._faults import Place
from prism.columns import _types as types
from prism.columns._types import UNKNOWN, Type, Unit, Value, is_word
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
_ORDERED = frozenset(_COMPARED.values())
_EQUAL = frozenset(("==", "!="))
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
    **{(each, types.MAYBE_STATE): "{0}" for each in (types.STATE, types.NONE)},
}
"""The conversions from one type to another."""

_ELSEWHERE = "run this world without columns"
IN_THE_MIDDLE = "an answer in the middle of something: give it a name first, name = await ..."
WRITTEN_OUT = "weights are written out: {State.A: 0.3, State.B: 0.7}"

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


_LOST = Value("0", types.LOST)


class Expressions:
    """Translates the expressions of one function.

    Args:
        unit: What is compiled.
        call: Translates a function that this one calls; returns its name, and what it returns.
        function: The function.
        own: Its name in messages.
        names: Its parameters and their translations.

    Attributes:
        names: The names of values, and their translations.
        has_problems: Whether something in it cannot be translated.
    """

    def __init__(
        self,
        unit: Unit,
        call: Callable[[Any, Sequence[Type]], tuple[str, Type] | str],
        function: Any,
        own: str,
        names: Mapping[str, Value],
    ) -> None:
        self.unit = unit
        self.layout = unit.layout
        self.names: dict[str, Value] = dict(names)
        self.has_problems = False
        self._file: str = function.__code__.co_filename
        self._own = own
        self._call_of = call
        self._defined: set[str] = set(names)
        closure = inspect.getclosurevars(function) if inspect.isfunction(function) else None
        self._outside: dict[str, Any] = {
            **vars(builtins),
            **getattr(function, "__globals__", {}),
            **(dict(closure.nonlocals) if closure else {}),
        }

    # Values

    def refuse(self, node: Any, problem: str) -> Value:
        """Record a problem; return what stands for whatever has it."""
        self.has_problems = True
        told = f"{str(self._place(node)).partition(',')[0]}: {self._own}: {problem}"
        if told not in self.unit.problems:
            self.unit.problems.append(told)
        return _LOST

    def line(self, node: Any) -> int:
        """Return the number by which compiled code tells of a line."""
        place, places = self._place(node), self.unit.places
        if place not in places:
            places.append(place)
        return places.index(place) + 1

    def _place(self, node: Any) -> Place:
        text = getline(self._file, node.lineno).strip()
        return Place(self._file, node.lineno, self._own, text)

    def value(self, node: ast.expr) -> Value:
        """Translate an expression."""
        found = self.looked_up(node)
        if found.type is not types.OBJECT:
            return found
        return self.refuse(
            node, f"{shown(node)} is not supported in columns: use numbers, states, agents"
        )

    def looked_up(self, node: ast.expr) -> Value:
        """Translate an expression, which may stand for something that has no column."""
        found: Value = getattr(self, f"_{type(node).__name__.lower()}", self._unsupported)(node)
        return found

    def value_as(self, wanted: Type, node: ast.expr) -> str:
        """Translate an expression into a value of a type."""
        return self.as_type(wanted, self.value(node), node)

    def as_type(self, wanted: Type, value: Value, node: ast.AST) -> str:
        """Convert a value to a type."""
        found = self._converted(wanted, value, node)
        if found is None:
            listed = ", ".join(map(str, wanted.options))
            needed = f"one of {listed}" if listed else wanted.name
            more = ": compare it with something" if wanted is types.CONDITION else ""
            return self.refuse(
                node, f"{shown(node)} must be {needed} here, not {value.type.name}{more}"
            ).text
        return found

    def _converted(self, wanted: Type, value: Value, node: Any) -> str | None:
        """Convert a value to a type; return None if that is impossible."""
        of, states = value.type, tuple(self.layout.states)
        if of in (wanted, types.LOST):
            return value.text
        if (of.options, wanted) == (states, types.MAYBE_STATE):
            return value.text
        if (of, wanted.options) == (types.STATE, states):
            return value.text
        if wanted.options:
            return _place_in(wanted.options, value.constant)
        if wanted is NUMBER and type(value.constant) is int and abs(value.constant) <= 2**53:
            return repr(float(value.constant))
        form = _CONVERSIONS.get((of, wanted))
        return None if form is None else form.format(value.text, line=self.line(node))

    def _common(self, values: Sequence[Value], node: ast.AST) -> Type | None:
        """Return the type as which values are compared, or None if they cannot be."""
        options = [each.type for each in values if each.type.options]
        for kind in (INT, NUMBER, BOOL, types.MAYBE_AGENT, types.MAYBE_STATE, *options):
            if all(self._converted(kind, each, node) is not None for each in values):
                return kind
        # a text is none of the options
        has_text = any(each.type is types.TEXT for each in values)
        return options[0] if options and has_text else None

    def _formed(
        self, forms: Sequence[_Form], given: Sequence[Value], node: Any, of: str = ""
    ) -> Value:
        """Return the first form that accepts the values."""
        if _has_lost(given):
            return _LOST
        for takes, gives, text in forms:
            if len(takes) == len(given):
                texts = [self._converted(*each, node) for each in zip(takes, given, strict=True)]
                if None not in texts:
                    return Value(text.format(*texts, of=of, line=self.line(node)), gives)

        listed = ", or ".join(_listed(takes) for takes, _, _ in forms)
        told = f"takes {listed}, but gets {_listed([each.type for each in given])}"
        return self.refuse(node, f"{shown(node)} {told}")

    # Names and constants

    def known(self, value: Any) -> Value:
        """Return a constant: a number, a text, a state or another member."""
        number = self.layout.number_of(value)
        if number is not None:
            return Value(str(number), types.STATE, value)
        if value is None:
            return Value("-1", types.NONE, value)
        if isinstance(value, bool):
            return Value(str(value), BOOL, value)
        if isinstance(value, Enum):
            options = tuple(type(value))
            return Value(str(options.index(value)), Type(type(value).__name__, options), value)
        if is_word(value):
            return Value(repr(value), INT, value)
        if isinstance(value, float):
            text = repr(value).replace("inf", "np.inf").replace("nan", "np.nan")
            return Value(f"({text})", FLOAT, value)

        return Value("-1", types.TEXT if isinstance(value, str) else types.OBJECT, value)

    def _constant(self, node: ast.Constant) -> Value:
        return self.known(node.value)

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        if name not in self.names:
            return self.known(self._outside.get(name, UNKNOWN))
        if name not in self._defined:
            return self.refuse(node, f"{name} may have no value yet: set it earlier on every path")
        return self.names[name]

    def state(self, node: ast.expr) -> int | None:
        """Return the number of a named state."""
        number = self.layout.number_of(self.looked_up(node).constant)
        if number is None:
            states = ", ".join(map(named, self.layout.states))
            self.refuse(node, f"{shown(node)} is not a state of the chart: its states are {states}")
        return number

    def _dict(self, node: ast.Dict) -> Value:
        """Translate weights by state."""
        if None in node.keys:
            return self.refuse(node, WRITTEN_OUT)
        found = {
            self.state(key): self.value_as(NUMBER, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
        return _LOST if None in found else Value("", types.WEIGHTS, found)

    # Attributes of world and agents

    def _owner(self, node: ast.expr) -> Value:
        """Return the owner of an attribute, which must be an agent if it may be None."""
        value = self.looked_up(node)
        if value.type is types.OBJECT and value.constant is UNKNOWN:
            return self.value(node)
        if value.type is types.MAYBE_AGENT:
            return Value(self.as_type(types.AGENT, value, node), types.AGENT)
        return value

    def _attribute(self, node: ast.Attribute) -> Value:
        owner, name, layout = self._owner(node.value), node.attr, self.layout
        if owner.constant is not UNKNOWN:
            return self.known(getattr(owner.constant, name, UNKNOWN))
        if (owner.type, name) in _VALUES:
            value = _VALUES[owner.type, name]
            self.unit.is_apart &= value.type is not types.NEIGHBOURS
            return Value(value.text.format(of=owner.text), value.type)
        if owner.type is types.WORLD and name in layout.values:
            return layout.values[name].of("run")
        if owner.type is types.AGENT and name in layout.fields:
            return layout.fields[name].of(f"agent_at(run, {owner.text})")

        found = self._member(owner, name, node)
        if isinstance(found, property) and found.fget is not None:
            return self._called(found.fget, [owner], node)
        return found if isinstance(found, Value) else self.known(found)

    def _member(self, owner: Value, name: str, node: ast.AST) -> Any:
        """Return the member of the user's class with this name, and refuse one without a column."""
        is_world = owner.type is types.WORLD
        if not is_world and self._converted(types.AGENT, owner, node) is None:
            return self.refuse(node, f"{shown(node)}: {owner.type.name} has no such thing")
        if owner.type is types.LOST:
            return owner
        others = self.layout.other_values if is_world else self.layout.others
        cls: Any = self.layout.cls if is_world else self.layout.agent
        base, own = (World, _WORLDS_OWN) if is_world else (Agent, _AGENTS_OWN)
        if name in others:
            return self.refuse(node, others[name])
        if name in own or hasattr(base, name):
            why = own.get(name, f"it is not supported in columns: {_ELSEWHERE}")
            return self.refuse(node, f"{shown(node)}: {why}")
        return inspect.getattr_static(cls, name, UNKNOWN)

    # Operations

    def _binop(self, node: ast.BinOp) -> Value:
        one, other = self.value(node.left), self.value(node.right)
        folded = _folded(node.op, one.constant, other.constant)
        if folded is not UNKNOWN:
            return self.known(folded)
        return self._operated(node.op, [one, other], node)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(f"(not {self.value_as(types.CONDITION, node.operand)})", BOOL)
        value = self.looked_up(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value.constant, (int, float)):
            return self.known(-value.constant)
        return self._operated(node.op, [value], node)

    def _operated(self, op: ast.AST, given: Sequence[Value], node: Any) -> Value:
        if type(op) not in _OPERATIONS:
            return self.refuse(node, f"{shown(node)}: the operators are + - * / // % and **")
        if isinstance(op, ast.Pow) and given[0].type is given[1].type is INT:
            power = given[1].constant
            if power is UNKNOWN or not 0 <= power <= _MOST_POWER:
                return self.refuse(
                    node,
                    "a whole number to a whole power may or may not be a float: write one of them "
                    f"as a float, or the power as a number from 0 to {_MOST_POWER}",
                )
        return self._formed(_OPERATIONS[type(op)], given, node)

    def _boolop(self, node: ast.BoolOp) -> Value:
        values = list(map(self.value, node.values))
        word = " and " if isinstance(node.op, ast.And) else " or "
        text = word.join(self.as_type(types.CONDITION, each, node) for each in values)
        # Python returns one of the operands, which is a bool if all are
        kind = BOOL if all(each.type is BOOL for each in values) else types.TRUTH
        return Value(f"({text})", kind)

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self.value_as(types.CONDITION, node.test)
        one, other = self.value(node.body), self.value(node.orelse)
        if _has_lost([one, other]):
            return _LOST
        if types.WEIGHTS in (one.type, other.type):
            return self.refuse(node, WRITTEN_OUT)
        if one.type != other.type:
            return self.refuse(
                node, f"{one.type.name} or {other.type.name}: give both the same type"
            )
        return Value(f"({one.text} if {test} else {other.text})", one.type)

    def _compare(self, node: ast.Compare) -> Value:
        operands, ops = [node.left, *node.comparators], list(map(type, node.ops))
        if ops[0] in (ast.In, ast.NotIn) and len(operands) == 2:
            return self._among(node, *operands)

        values = list(map(self.value, operands))
        texts, kind = self._alike(values, node)
        if kind is types.LOST:
            return _LOST
        words = [_COMPARED.get(each, "") for each in ops]
        is_number = kind in (INT, NUMBER)
        if is_number and {ast.Is, ast.IsNot} & {*ops}:
            return self.refuse(node, "numbers are compared with == and !=")
        if not {*words} <= (_ORDERED if is_number else _EQUAL):
            return self.refuse(node, f"{shown(node)}: compare values of the same type")
        compared = [f" {word} {text}" for word, text in zip(words, texts[1:], strict=True)]
        return Value(f"({texts[0]}{''.join(compared)})", BOOL)

    def _alike(self, values: Sequence[Value], node: ast.AST) -> tuple[list[str], Type]:
        """Convert values to one type, in order to compare them."""
        kind = types.LOST if _has_lost(values) else self._common(values, node)
        if kind is None:
            told = " compared with ".join(each.type.name for each in values)
            kind = self.refuse(node, f"{told}: compare values of the same type").type
        if kind is types.LOST:
            return [], kind
        return [self.as_type(kind, each, node) for each in values], kind

    def _among(self, node: ast.Compare, one: ast.expr, others: ast.expr) -> Value:
        if isinstance(others, (ast.Tuple, ast.List, ast.Set)) and others.elts:
            texts, _ = self._alike(list(map(self.value, [one, *others.elts])), node)
            found = f"({''.join(texts[:1])} in ({', '.join(texts[1:])},))"
        else:
            value = self.value(others)
            if value.type is types.LOST:
                return value
            if value.type is not types.NEIGHBOURS:
                return self.refuse(node, "write the values to look for in brackets: in (A, B)")
            found = f"is_neighbour(run, {value.text}, {self.value_as(types.AGENT, one)})"
        return Value(f"(not {found})" if isinstance(node.ops[0], ast.NotIn) else found, BOOL)

    # Calls

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        owner = self._owner(func.value) if isinstance(func, ast.Attribute) else None
        if owner is None or owner.constant is not UNKNOWN:
            called = self.looked_up(func)
            return called if called.type is types.LOST else self._function(called.constant, node)
        assert isinstance(func, ast.Attribute)
        return self._method(owner, node, func)

    def _method(self, owner: Value, node: ast.Call, func: ast.Attribute) -> Value:
        name, methods = func.attr, _METHODS.get(owner.type, {})
        if name in methods:
            self.unit.is_apart &= owner.type is not types.WORLD
            return self._formed([methods[name]], self._arguments(node), node, owner.text)
        if methods and owner.type is not types.WORLD:
            told = f"in columns, {owner.type.name} support {', '.join(methods)}"
            return self.refuse(node, f"{shown(func)}: {told}")
        if name == "fire" and owner.type is types.AGENT:
            self.unit.is_apart &= owner.text == "me"
            trigger, context = self.event(node)
            return Value(f"fire(run, {owner.text}, {trigger}, {context})", types.MAYBE_STATE)
        if name == "decide":
            return self.refuse(node, "decide is awaited: write  await  before it")

        found = self._member(owner, name, func)
        if isinstance(found, Value):
            return found
        if isinstance(found, staticmethod):
            return self._called(found.__func__, self._arguments(node), node)
        if not inspect.isfunction(found):
            return self.refuse(node, f"{shown(func)}(...) is unknown here: {_ELSEWHERE}")
        return self._called(found, [owner, *self._arguments(node)], node)

    def event(self, node: ast.Call) -> tuple[int, str]:
        """Return the trigger and the context that a call of fire or decide names."""
        given = dict(zip(("trigger", "context"), node.args, strict=False))
        given |= {each.arg: each.value for each in node.keywords if each.arg in _EVENT}
        name, triggers = given.get("trigger"), list(self.layout.triggers)
        text = name and self.looked_up(name).constant
        if text not in triggers:
            known = ", ".join(triggers)
            self.refuse(name or node, f"the trigger must be named, one of {known}")

        number = triggers.index(text) if text in triggers else 0
        if "context" not in given:
            return number, "-1"
        return number, self.value_as(types.MAYBE_AGENT, given["context"])

    def _arguments(self, node: ast.Call) -> list[Value]:
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            return [self.refuse(node, "keyword arguments and *: use positional ones")]
        return list(map(self.value, node.args))

    def _called(self, function: Any, given: Sequence[Value], node: ast.AST) -> Value:
        """Translate a call of a function that is also compiled; the world is always available."""
        if _has_lost(given):
            return _LOST
        if any(each.type is types.WEIGHTS for each in given):
            return self.refuse(node, WRITTEN_OUT)
        found = self._call_of(function, [each.type for each in given])
        if isinstance(found, str):
            return self.refuse(node, found)
        texts = [each.text for each in given if each.type is not types.WORLD]
        return Value(f"{found[0]}({', '.join(['run', 'me', *texts])})", found[1])

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

        instead = _INSTEAD_OF_CALLS.get(called, _ELSEWHERE)
        return self.refuse(node, f"{shown(node.func)}(...) is not supported in columns: {instead}")

    # Loops in expressions

    def _seen_inside(self) -> dict[str, Value]:
        """Return the names with values that a function inside a step is given."""
        return {
            each: value
            for each, value in self.names.items()
            if each in self._defined and value.type not in (types.WEIGHTS, types.WORLD)
        }

    def _part(self, name: str, node: ast.GeneratorExp, call: ast.Call) -> Value:
        """Translate a loop over neighbours into a function of its own."""
        loop, source = node.generators[0], self.value(node.generators[0].iter)
        if source.type is types.LOST:
            return source
        if len(node.generators) != 1 or source.type is not types.NEIGHBOURS:
            return self.refuse(node, f"{name}(...) goes through the neighbours of one agent")
        if not isinstance(loop.target, ast.Name):
            return self.refuse(node, "a loop has one name")

        outer, variable = (self.names, self._defined), loop.target.id
        taken = self._seen_inside()
        own = {each: Value(f"v_{each}", value.type) for each, value in taken.items()}
        own[variable] = Value(f"v_{variable}", types.AGENT)
        self.names, self._defined = {**self.names, **own}, {*self._defined, variable}
        body, returned = self._inside(name, node, call)
        self.names, self._defined = outer

        functions, names = self.unit.functions, [f"v_{each}" for each in taken]
        part = f"part_{len(functions)}"
        head = f"def {part}({', '.join(['run', 'me', 'source', *names])}):"
        functions.append(_PART.format(head=head, variable=f"v_{variable}", **body))
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
        wanted = [0.0] if element.type is FLOAT else []
        if element.type is not types.LOST and begin != wanted:
            element = self.refuse(
                call,
                "begin a sum of floats with 0.0, so that an empty one is a float, too: sum(..., "
                "0.0); a sum of whole numbers needs no start",
            )
        if element.type is FLOAT:
            do = f"total, lost = added(total, lost, {element.text})"
            end = "return summed(total, lost)"
            return {"begin": "total, lost = 0.0, 0.0", "do": do, "end": end}, FLOAT

        more = self._formed(_FUNCTIONS[int], [element], call)
        do = f"total = plus(run, total, {more.text}, {self.line(call)})"
        return {"begin": "total = 0", "do": do, "end": "return total"}, more.type

    def _await(self, node: ast.Await) -> Value:
        return self.refuse(node, IN_THE_MIDDLE)

    def _unsupported(self, node: ast.expr) -> Value:
        instead = _INSTEAD.get(type(node), _ELSEWHERE)
        return self.refuse(node, f"{shown(node)} is not supported in columns: {instead}")


_EVENT = ("trigger", "context")
_LOOPS = (sum, any, all)

_PART = """@jit
{head}
    {begin}
    for number in range(degree(run, source)):
        {variable} = neighbour(run, source, number)
        if {test}:
            {do}
    {end}
"""


def _folded(op: ast.operator, *numbers: Any) -> Any:
    """Evaluate an operation on constants, if Python and columns have its result."""
    is_plain = all(type(each) in (int, float) for each in numbers)
    if is_plain and not (isinstance(op, ast.Pow) and abs(numbers[1]) > _MOST_POWER):
        tree = ast.Expression(ast.BinOp(ast.Constant(numbers[0]), op, ast.Constant(numbers[1])))
        with suppress(ArithmeticError, TypeError):
            found = eval(compile(ast.fix_missing_locations(tree), "<constant>", "eval"))
            if type(found) is float or is_word(found):
                return found
    return UNKNOWN


def _place_in(options: Sequence[Any], value: Any) -> str | None:
    """Return the place of a value among options, as text; None if it is none of them."""
    # to Python, 1 and True are equal
    known = [(type(each), each) for each in options]
    given = type(value), value
    return str(known.index(given)) if given in known else None


def _has_lost(values: Sequence[Value]) -> bool:
    return any(each.type is types.LOST for each in values)


def _listed(kinds: Sequence[Type]) -> str:
    return " and ".join(kind.name for kind in kinds) or "nothing"


_THROUGH = "go through neighbours, with a loop, sum, any or all"
_INSTEAD: Mapping[type, str] = {
    **dict.fromkeys((ast.List, ast.Set, ast.ListComp), _THROUGH),
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
    **dict.fromkeys(_LOOPS, "give it a loop: sum(1 for other in person.neighbours)"),
    round: "use math.floor(x + 0.5)",
    str: "texts have no column",
    isinstance: "all agents are of one kind",
}


def shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 50 else f"{text[:47]}..."
