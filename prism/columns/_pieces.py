"""Statements of steps, which may stop at an await and go on later.

Values of a step that waits are kept in columns. When it goes on, it runs from its beginning, skips
what comes before the await, and takes the same ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import copy
from typing import Any

from prism.columns import _types as types
from prism.columns._language import IN_THE_MIDDLE, WRITTEN_OUT, Expressions
from prism.columns._types import LOST, Stored, Type, Value
from prism.worlds._charts import never_reached, targets_of

_NAMELESS = (types.TEXT, types.NONE, types.WORLD)
_BLOCKS = ("body", "orelse", "finalbody")
_CHECKED = "check it in a hook, such as tick_ends, or in a test"
_INSTEAD: Mapping[type, str] = {
    **dict.fromkeys((ast.Assert, ast.Raise), _CHECKED),
    ast.Try: "ask with if before something can fail",
    ast.With: "let a hook do it, such as tick_begins",
    **dict.fromkeys((ast.Import, ast.ImportFrom), "import it at the top of the file"),
    **dict.fromkeys((ast.Global, ast.Nonlocal), "keep it in a field of the world, set in a hook"),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), "make it a method of the world"),
}
"""What to do instead of statements that no step may have."""


class Body(Expressions):
    """Translates the body of one function.

    Args:
        given: What `Expressions` takes.
        number: The step's number; None for a function that cannot wait.
        is_guard: Whether what it returns is a condition.

    Attributes:
        kept: The variables that are kept while the step waits, and their names in its record.
        returned: The type of what it returns.
    """

    def __init__(self, *given: Any, number: int | None = None, is_guard: bool = False) -> None:
        super().__init__(*given)
        self.kept: dict[str, Stored] = {}
        self.returned: Type | None = None
        self._is_guard = is_guard
        self._number = number
        self._fixed = frozenset(self.names)
        self._locals: dict[str, Type] = {}
        # the states to which a name ever gives weights
        self._weighed: dict[str, set[int]] = {}
        self._lines: list[str] = []
        self._is_cut = self._is_guarded = False
        self._asked_before = 0
        self._indent = 0
        self._loops = 0

    def lines(self, node: Any) -> list[str]:
        """Translate a function's body into lines."""
        is_lambda = isinstance(node, ast.Lambda)
        # a lambda is the return of its expression
        nodes = [ast.copy_location(ast.Return(node.body), node)] if is_lambda else node.body
        self._is_cut = any(map(_waits, nodes))
        self._statements(nodes)
        if self._number is not None:
            self._put("return 0")
        elif self._is_guard:
            self._put("return False")
        else:
            if self.returned and not _always_returns(nodes):
                self.refuse(node, "it returns nothing on some path: return on every path")
            self._put("return -1")
        return [*self._beginning(), *self._lines]

    def _beginning(self) -> Iterator[str]:
        """Yield the lines that give local variables their types and restore kept values."""
        for name, kind in self._locals.items():
            yield f"{name} = {types.ZERO.get(kind, '0')}"
        if self.kept:
            yield "if piece != 0:"
            for name, stored in self.kept.items():
                yield f"    {name} = {stored.of('slot_at(run, slot)').text}"

    # Statements

    def _statements(self, nodes: Iterable[ast.stmt]) -> None:
        for node in nodes:
            with nullcontext() if _waits(node) else self._guarded():
                getattr(self, f"_{type(node).__name__.lower()}", self._refused)(node)

    def _refused(self, node: ast.stmt) -> None:
        head = ast.unparse(node).split("\n")[0].rstrip(":")
        instead = _INSTEAD.get(type(node), "run this world without columns")
        self.refuse(node, f"{head}: steps in columns cannot have such a statement: {instead}")
        self._lose(node)
        # a block whose head is refused has problems of its own
        for block in _BLOCKS:
            self._statements(getattr(node, block, ()))

    def _lose(self, node: ast.AST) -> None:
        """Let the names that a part sets stand for something that was refused."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self.names.setdefault(each.id, Value("0", LOST))
                self._defined.add(each.id)

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._line(self._lifted(node.value).text)

    def _pass(self, node: ast.stmt) -> None:
        self._line(ast.unparse(node))

    _break = _continue = _pass

    def _return(self, node: ast.Return) -> None:
        is_nothing = node.value is None or _is_nothing(node.value)
        if self._number is not None:
            if not is_nothing:
                self.refuse(node, "a step returns nothing: return by itself")
            self._line("return 0")
        elif node.value is None:
            self.refuse(node, "a function that a step calls must return a value on every path")
        else:
            value = self.value(node.value)
            if self._is_guard:
                value = Value(self.as_type(types.CONDITION, value, node), types.BOOL)
            self._returned(value, node)
            self._line(f"return {value.text}")
        self._defined = set(self.names)

    def _returned(self, value: Value, node: ast.AST) -> None:
        has_no_type = value.type in (*_NAMELESS, types.WEIGHTS, types.NEIGHBOURS)
        is_other = value.type is not LOST and self.returned not in (None, LOST, value.type)
        if has_no_type or is_other:
            value = self.refuse(
                node,
                f"a return of {value.type.name}: return values of one type, numbers, truth "
                "values, agents or states",
            )
        self.returned = value.type

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._set_target(node.target, self._lifted(node.value))

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.refuse(node, "two names for one value: set them one after the other")
            self._lose(node)
        else:
            self._set_target(node.targets[0], self._lifted(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        before: Any = copy(node.target)
        before.ctx = ast.Load()
        value = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        self._set_target(node.target, self._lifted(value))

    def _set_target(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._set_name(target, value)
        elif isinstance(target, ast.Attribute):
            self._set_field(target, value)
        else:
            if value.type is not LOST:
                self.refuse(target, "a step sets names and fields of agents, one at a time")
            self._lose(target)

    def _set_name(self, target: ast.Name, value: Value) -> None:
        if value.type in _NAMELESS:
            value = self.refuse(
                target, f"{value.type.name} has no name in columns: use it where it is"
            )
        text = self._bind(target, value.type)
        self._defined.add(target.id)
        if value.type is not types.WEIGHTS:
            self._line(f"{text} = {value.text}")
            return
        weighed = self._weighed.get(value.text, value.constant)
        self._weighed.setdefault(text, set()).update(weighed)
        named = {state: f"{text}_{state}" for state in range(len(self.layout.states))}
        self.names[target.id] = Value(text, types.WEIGHTS, named)
        for state, name in named.items():
            self._locals[name] = types.FLOAT
            self._line(f"{name} = {value.constant.get(state, '0.0')}")

    def _bind(self, target: ast.Name, kind: Type) -> str:
        """Give a name to values of a type; return what it is called in compiled code."""
        name, text = target.id, f"v_{target.id}"
        known = self.names.setdefault(name, Value(text, kind)).type
        if name in self._fixed:
            self.refuse(target, f"{name} is an argument: give the new value another name")
        elif LOST in (known, kind):
            self.names[name] = Value(text, LOST)
        elif known != kind:
            self.refuse(
                target, f"{name} is {known.name} before, and {kind.name} here: use two names"
            )
        elif kind is not types.WEIGHTS:
            self._locals[text] = kind
        return text

    def _set_field(self, target: ast.Attribute, value: Value) -> None:
        owner, name = self.value(target.value), target.attr
        if owner.type is types.WORLD:
            self.refuse(
                target,
                f"self.{name} is set in a step, where the order of agents would "
                "decide: let a hook do it, such as tick_ends",
            )
            return
        if owner.type is LOST:
            return
        agent = self.as_type(types.AGENT, owner, target)
        stored = self.layout.fields.get(name)
        if stored is None:
            told = f"{ast.unparse(target)} cannot be set in a step: a step sets fields of agents"
            self.refuse(target, self.layout.others.get(name, told))
            return
        text = self._stored(stored.type, value, target)
        if agent != "me":
            self.unit.is_apart = False
            agent = f"own(run, {agent}, {self.line(target)})"
        self.unit.written[name] = None
        self._line(f"agent_at(run, {agent}).{stored.name} = {text}")

    def _stored(self, kind: Type, value: Value, target: ast.Attribute) -> str:
        """Convert a value to the type of a field, which holds no other numbers than its own."""
        if kind.options or value.type in (kind, LOST):
            return self.as_type(kind, value, target)
        more = "write 0.0 for 0, or float(...)" if kind is types.FLOAT else "use one type"
        told = f"{target.attr} is {kind.name}, and gets {value.type.name}: {more}"
        return self.refuse(target, told).text

    # Ways

    def _if(self, node: ast.If) -> None:
        test = self._truth(node.test)
        if _waits(node):
            # a step that goes on takes the same way
            test = self._temporary(Value(test, types.TRUTH)).text
        self._put(f"if {test}:")
        before = set(self._defined)
        self._block(node.body)
        after, self._defined = self._defined, set(before)
        if node.orelse:
            self._put("else:")
            self._block(node.orelse)
        self._defined &= after

    def _while(self, node: ast.While) -> None:
        self._line(f"while {self.value_as(types.CONDITION, node.test)}:")
        self._loop(node, is_endless=True)

    def _for(self, node: ast.For) -> None:
        target, source = node.target, node.iter
        if not isinstance(target, ast.Name):
            self.refuse(node, "a loop has one name")
            self._lose(node)
            self._loop(node)
            return
        if isinstance(source, ast.Call) and self.looked_up(source.func).constant is range:
            if len(source.args) not in (1, 2) or source.keywords:
                self.refuse(node, "range takes one or two numbers here")
            ends = ", ".join(self.value_as(types.INT, each) for each in source.args)
            self._line(f"for {self._bind(target, types.INT)} in range({ends}):")
            self._loop(node, target.id, is_endless=True)
            return

        value = self.value(source)
        if value.type not in (types.NEIGHBOURS, LOST):
            value = self.refuse(node, "a loop goes through neighbours, or a range of numbers")
        self._loops += 1
        of, number = f"of_{self._loops}", f"number_{self._loops}"
        name = self._bind(target, LOST if value.type is LOST else types.AGENT)
        self._line(f"{of} = {value.text}")
        self._line(f"for {number} in range(degree(run, {of})):")
        self._line(f"    {name} = neighbour(run, {of}, {number})")
        self._loop(node, target.id)

    def _loop(
        self, node: ast.For | ast.While, name: str | None = None, *, is_endless: bool = False
    ) -> None:
        """Write the body of a loop; one that may never end looks whether it is interrupted."""
        if node.orelse:
            self.refuse(node, "an else of a loop: put it behind the loop")
        if _waits(node):
            self.refuse(node, "await in a loop: ask once in a step, and go on in the next tick")
        before = set(self._defined)
        if name is not None:
            self._defined.add(name)
        with self._indented():
            if is_endless:
                self.unit.may_be_endless = True
                self._line(f"end_if_interrupted(run, {self.line(node)})")
            self._statements(node.body)
        self._defined = before

    def _block(self, nodes: Sequence[ast.stmt]) -> None:
        with self._indented():
            self._statements(nodes)

    # Awaits

    def _lifted(self, node: ast.expr) -> Value:
        """Translate an expression; what it awaits is asked first, and the step is cut there."""
        match node:
            case ast.Await():
                return self._asked(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if _waits(node):
                return Value(f"(not {self._truth(operand)})", types.BOOL)
            case ast.BoolOp() if _waits(node):
                return self._one_by_one(node)
            case ast.Compare(left=left) if _waits(left):
                name = f"_{len(self.names)}"
                self.names[name] = self._lifted(left)
                self._defined.add(name)
                asked: Any = copy(node)
                asked.left = ast.copy_location(ast.Name(name, ast.Load()), node)
                return self.value(asked)
        return self.value(node)

    def _truth(self, node: ast.expr) -> str:
        return self.as_type(types.CONDITION, self._lifted(node), node)

    def _one_by_one(self, node: ast.BoolOp) -> Value:
        """Ask for a part of ``and`` or ``or`` only if the earlier parts leave the result open."""
        first, *others = node.values
        found = self._temporary(Value(self._truth(first), types.TRUTH))
        word = "if" if isinstance(node.op, ast.And) else "if not"
        with ExitStack() as inside:
            for each in others:
                self._put(f"{word} {found.text}:")
                inside.enter_context(self._indented())
                self._line(f"{found.text} = {self._truth(each)}")

        return found

    def _temporary(self, value: Value) -> Value:
        text = f"t_{len(self._locals)}"
        self._locals[text] = value.type
        self._line(f"{text} = {value.text}")
        return Value(text, value.type)

    def _asked(self, node: ast.Await) -> Value:
        """Ask a question, and cut the step there."""
        call = node.value
        if problem := self._problem_of(call):
            return self.refuse(node, problem)

        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Attribute)
        self.unit.is_apart = False
        self.unit.uses_waits = True
        agent = self.value_as(types.AGENT, call.func.value)
        trigger, context = self.event(call)
        with self._guarded():
            # as Python evaluates them: whom, about what, weights
            self._line(f"whom, about = {agent}, {context}")
            self._line("if slot < 0:")
            self._line(f"    slot = new_slot(run, me, {self._number}, other)")
            weighted = self._put_weights(call, trigger)
            given = f"slot, whom, {trigger}, about, {weighted}, {self.line(node)}"
            self._line(f"answer = ask(run, {given})")
            self._line("if answer == T.ASKED:")
            for name, kind in self._locals.items():
                stored = self.kept.setdefault(name, Stored(f"of_{self._number}_{name}", kind))
                self._line(f"    slot_at(run, slot).{stored.name} = {name}")
            self._line(f"    return {self._asked_before + 1}")

        self._asked_before += 1
        return self._temporary(Value("answer", types.MAYBE_STATE))

    def _problem_of(self, call: ast.expr) -> str | None:
        """Return why something cannot be awaited, or None if it can."""
        func = call.func if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or getattr(func, "attr", "") != "decide":
            what = {"write": "texts have no column", "receive": "messages have no column"}
            why = what.get(getattr(func, "attr", ""), "a step awaits decide alone")
            return f"{ast.unparse(call)[:50]}: {why}: run this world without columns"
        if self._number is None:
            return "a function that a step calls cannot wait: move the await into the step"

        others = {str(each.arg) for each in call.keywords} - {"trigger", "context", "weights"}
        if others:
            return (
                f"{', '.join(sorted(others))} is for a model, which columns do not ask: leave it "
                "out, or run without columns"
            )
        return IN_THE_MIDDLE if len(call.args) > 2 or _waits(call) else None

    def _put_weights(self, call: ast.Call, trigger: int) -> int:
        """Store the weights of a question, and return 1 if it has any."""
        given = next((each.value for each in call.keywords if each.arg == "weights"), None)
        if given is None or _is_nothing(given):
            return 0

        value = self.value(given)
        if value.type not in (types.WEIGHTS, LOST):
            value = self.refuse(given, WRITTEN_OUT)
        if value.type is LOST:
            return 0
        self._require_targets(self._weighed.get(value.text, value.constant), trigger, given)
        for state in range(len(self.layout.states)):
            weight = value.constant.get(state, "0.0")
            self._line(f"put_f8(run.weights, slot * N_STATES + {state}, {weight})")
        return 1

    def _require_targets(self, weighed: Iterable[int], trigger: int, node: ast.expr) -> None:
        """Refuse weights of states to which a trigger never leads."""
        name, states = self.layout.triggers[trigger], self.layout.states
        targets = targets_of(self.layout.agent.chart.definition, name)
        for each in weighed:
            if states[each] not in targets:
                problem = never_reached(states[each], name, targets)
                self.refuse(node, f"the weights of {name!r} {problem}")

    # Text

    def _line(self, text: str) -> None:
        with self._guarded():
            self._put(text)

    def _put(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def _indented(self) -> Iterator[None]:
        self._indent += 1
        # a block may be empty
        self._put("pass")
        yield
        self._indent -= 1

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let a step that goes on after a later await skip what is put inside the block."""
        if not self._is_cut or self._is_guarded:
            yield
            return

        self._put(f"if piece <= {self._asked_before}:")
        self._is_guarded = True
        with self._indented():
            yield
        self._is_guarded = False


def _waits(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Await) for each in ast.walk(node))


def _always_returns(nodes: Sequence[ast.stmt]) -> bool:
    last = nodes[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, ast.Return)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
