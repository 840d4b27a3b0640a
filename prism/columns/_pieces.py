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
from prism.columns._language import IN_THE_MIDDLE, Language, Scope, as_option
from prism.columns._types import RefusedError, Stored, Type, Value
from prism.worlds._charts import never_reached, targets_of

_NAMES = (types.TEXT, types.NONE)
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
_WRITTEN_OUT = "weights are written out: {State.A: 0.3, State.B: 0.7}"


class Writer:
    """Translates the body of one function.

    Args:
        language: What translates expressions.
        scope: The function's names.
        number: The step's number; None for a function that cannot wait.
        is_guard: Whether what it returns is a condition.

    Attributes:
        problems: The statements that could not be translated.
        kept: The variables that are kept while the step waits, and their names in its record.
    """

    def __init__(
        self, language: Language, scope: Scope, number: int | None, *, is_guard: bool = False
    ) -> None:
        self._language = language
        self._is_guard = is_guard
        self._scope = scope
        self._number = number
        self._lines: list[str] = []
        self._is_cut = self._is_guarded = False
        self._asked_before = 0
        self._indent = 0
        self._names = 0
        self._loops = 0
        self.problems: list[RefusedError] = []
        self.kept: dict[str, Stored] = {}

    def body(self, node: Any) -> list[str]:
        """Translate a function's body into lines."""
        is_lambda = isinstance(node, ast.Lambda)
        # a lambda is the return of its expression
        nodes = [ast.copy_location(ast.Return(node.body), node)] if is_lambda else node.body
        self._is_cut = any(map(_waits, nodes))
        self._statements(nodes)
        if self._number is not None:
            self._put("return 0")
            return self._lines

        if self._scope.returned and not (self._is_guard or _always_returns(nodes)):
            told = "it returns nothing on some path: return on every path"
            self.problems.append(RefusedError(node, told))
        self._line("return False" if self._is_guard else "return -1")
        return self._lines

    def beginning(self) -> Iterator[str]:
        """Yield the lines that give local variables their types and restore kept values."""
        for name, kind in self._scope.locals.items():
            yield f"{name} = {types.ZERO.get(kind, '0')}"
        if self.kept:
            yield "if piece != 0:"
            for name, stored in self.kept.items():
                yield f"    {name} = {stored.of('slot_at(run, slot)').text}"

    # Statements

    def _statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            try:
                with nullcontext() if _waits(node) else self._guarded():
                    self._statement(node)
            except RefusedError as problem:
                self.problems.extend(problem.told())
                for each in ast.walk(node):
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                        self._scope.lost.add(each.id)
                # a block whose head is refused has problems of its own
                for block in _BLOCKS:
                    self._statements(getattr(node, block, ()))

    def _statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            head = ast.unparse(node).split("\n")[0].rstrip(":")
            instead = _INSTEAD.get(type(node), "run this world without columns")
            raise RefusedError(
                node, f"{head}: steps in columns cannot have such a statement: {instead}"
            )
        method(node)

    def _expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        self._line(self._lifted(node.value).text)

    def _pass(self, node: ast.stmt) -> None:
        self._line(ast.unparse(node))

    _break = _continue = _pass

    def _return(self, node: ast.Return) -> None:
        if self._number is not None:
            if node.value is not None and not _is_nothing(node.value):
                raise RefusedError(node, "a step returns nothing: return by itself")
            self._line("return 0")
        else:
            if node.value is None:
                raise RefusedError(
                    node, "a function that a step calls must return a value on every path"
                )
            value = self._language.value(node.value)
            if self._is_guard:
                value = Value(self._truth(value, node), types.BOOL)
            self._returned(value, node)
            self._line(f"return {value.text}")
        self._scope.defined = set(self._scope.names)

    def _returned(self, value: Value, node: ast.AST) -> None:
        known = self._scope.returned
        if value.type in (*_NAMES, types.WEIGHTS, types.NEIGHBOURS) or (
            known and known != value.type
        ):
            raise RefusedError(
                node,
                f"a return of {value.type.name}: return values of one type, numbers, truth "
                "values, agents or states",
            )
        self._scope.returned = value.type

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            return
        self._set(node.target, self._given(node.value))

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise RefusedError(node, "two names for one value: set them one after the other")
        self._set(node.targets[0], self._given(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        before: Any = copy(node.target)
        before.ctx = ast.Load()
        value = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        self._set(node.target, self._given(value))

    def _given(self, node: ast.expr) -> Value | dict[int, str]:
        """Translate the value of an assignment, such as weights by state."""
        if isinstance(node, ast.Dict):
            return self._weights(node)
        return self._lifted(node)

    def _weights(self, node: ast.Dict) -> dict[int, str]:
        found = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise RefusedError(node, _WRITTEN_OUT)
            found[self._language.state(key)] = self._language.value_as(types.NUMBER, value)
        return found

    def _set(self, target: ast.expr, value: Value | dict[int, str]) -> None:
        if isinstance(target, ast.Name):
            self._set_name(target, value)
        elif isinstance(target, ast.Attribute) and isinstance(value, Value):
            self._set_field(target, value)
        else:
            raise RefusedError(target, "a step sets names and fields of agents, one at a time")

    def _set_name(self, target: ast.Name, value: Value | dict[int, str]) -> None:
        kind = types.WEIGHTS if isinstance(value, dict) else value.type
        if kind in _NAMES:
            raise RefusedError(target, f"{kind.name} has no name in columns: use it where it is")
        text = self._bind(target, kind)
        self._scope.defined.add(target.id)
        if not isinstance(value, dict):
            self._line(f"{text} = {value.text}")
            return
        self._scope.weighed.setdefault(text, {}).update(value)
        for state in range(len(self._language.layout.states)):
            self._scope.locals[f"{text}_{state}"] = types.FLOAT
            self._line(f"{text}_{state} = {value.get(state, '0.0')}")

    def _bind(self, target: ast.Name, kind: Type) -> str:
        """Give a name to values of a type; return what it is called in compiled code."""
        name, scope, text = target.id, self._scope, f"v_{target.id}"
        if name in scope.fixed:
            raise RefusedError(target, f"{name} is an argument: give the new value another name")
        known = scope.names.setdefault(name, Value(text, kind)).type
        if known != kind:
            raise RefusedError(
                target, f"{name} is {known.name} before, and {kind.name} here: use two names"
            )
        if kind is not types.WEIGHTS:
            scope.locals[text] = kind
        return text

    def _set_field(self, target: ast.Attribute, value: Value) -> None:
        language, name = self._language, target.attr
        owner = language.value(target.value)
        if owner.type is types.WORLD:
            raise RefusedError(
                target,
                f"self.{name} is set in a step, where the order of agents would "
                "decide: let a hook do it, such as tick_ends",
            )
        agent = language.as_type(types.AGENT, owner, target)
        stored = language.layout.fields.get(name)
        if stored is None:
            told = f"{ast.unparse(target)} cannot be set in a step: a step sets fields of agents"
            raise RefusedError(target, language.layout.others.get(name, told))
        if stored.type.options == tuple(language.layout.states) and value.type is types.STATE:
            value = Value(value.text, stored.type)
        if stored.type.options:
            value = as_option(value, stored.type, target)
        if value.type != stored.type:
            more = (
                "write 0.0 for 0, or float(...)" if stored.type is types.FLOAT else "use one type"
            )
            told = f"{name} is {stored.type.name}, and gets {value.type.name}: {more}"
            raise RefusedError(target, told)

        if agent != "me":
            language.is_apart = False
            agent = f"own(run, {agent}, {target.lineno})"
        language.written[name] = None
        self._line(f"agent_at(run, {agent}).{stored.name} = {value.text}")

    # Ways

    def _if(self, node: ast.If) -> None:
        test = self._truth(self._lifted(node.test), node.test)
        if _waits(node):
            # a step that goes on takes the same way
            test = f"v_{self._temporary(Value(test, types.TRUTH))}"
        self._put(f"if {test}:")
        before = set(self._scope.defined)
        self._block(node.body)
        after, self._scope.defined = self._scope.defined, set(before)
        if node.orelse:
            self._put("else:")
            self._block(node.orelse)
        self._scope.defined &= after

    def _while(self, node: ast.While) -> None:
        _require_plain(node)
        self._line(f"while {self._language.value_as(types.CONDITION, node.test)}:")
        self._loop(node.body, endless=node)

    def _for(self, node: ast.For) -> None:
        _require_plain(node)
        target, source, counts = node.target, node.iter, None
        if not isinstance(target, ast.Name):
            raise RefusedError(node, "a loop has one name")
        if isinstance(source, ast.Call) and self._language.outside(source.func) is range:
            if len(source.args) > 2 or source.keywords:
                raise RefusedError(node, "range takes one or two numbers here")
            ends = ", ".join(self._language.value_as(types.INT, each) for each in source.args)
            self._line(f"for {self._bind(target, types.INT)} in range({ends}):")
            counts = node
        else:
            value = self._language.value(source)
            if value.type is not types.NEIGHBOURS:
                raise RefusedError(node, "a loop goes through neighbours, or a range of numbers")
            self._loops += 1
            of, number = f"of_{self._loops}", f"number_{self._loops}"
            self._line(f"{of} = {value.text}")
            self._line(f"for {number} in range(degree(run, {of})):")
            self._line(f"    {self._bind(target, types.AGENT)} = neighbour(run, {of}, {number})")
        self._loop(node.body, target.id, endless=counts)

    def _loop(
        self, nodes: Sequence[ast.stmt], name: str | None = None, endless: ast.stmt | None = None
    ) -> None:
        """Write the body of a loop; one that may never end looks whether it is interrupted."""
        before = set(self._scope.defined)
        if name is not None:
            self._scope.defined.add(name)
        with self._indented():
            if endless is not None:
                self._language.may_be_endless = True
                self._line(f"end_if_interrupted(run, {endless.lineno})")
            self._statements(nodes)
        self._scope.defined = before

    def _block(self, nodes: Sequence[ast.stmt]) -> None:
        with self._indented():
            self._statements(nodes)

    # Awaits

    def _lifted(self, node: ast.expr) -> Value:
        """Translate an expression; what it awaits is asked first, and the step is cut there."""
        if not _waits(node):
            return self._language.value(node)
        if isinstance(node, ast.Await):
            return self._asked(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._lifted(node.operand)
            return Value(f"(not {self._truth(value, node)})", types.BOOL)
        if isinstance(node, ast.BoolOp):
            return self._one_by_one(node)
        if isinstance(node, ast.Compare) and not any(map(_waits, node.comparators)):
            name = self._temporary(self._lifted(node.left))
            left = ast.copy_location(ast.Name(name, ast.Load()), node)
            return self._language.value(
                ast.copy_location(ast.Compare(left, node.ops, node.comparators), node)
            )

        raise RefusedError(node, IN_THE_MIDDLE)

    def _one_by_one(self, node: ast.BoolOp) -> Value:
        """Ask for a part of ``and`` or ``or`` only if the earlier parts leave the result open."""
        first, *others = node.values
        text = f"v_{self._temporary(Value(self._truth(self._lifted(first), node), types.TRUTH))}"
        with ExitStack() as inside:
            for each in others:
                self._put(f"if {text}:" if isinstance(node.op, ast.And) else f"if not {text}:")
                inside.enter_context(self._indented())
                truth = self._truth(self._lifted(each), node)
                self._line(f"{text} = {truth}")

        return Value(text, types.TRUTH)

    def _temporary(self, value: Value) -> str:
        self._names += 1
        name = f"_{self._names}"
        self._scope.names[name] = Value(f"v_{name}", value.type)
        self._scope.locals[f"v_{name}"] = value.type
        self._scope.defined.add(name)
        self._line(f"v_{name} = {value.text}")
        return name

    def _asked(self, node: ast.Await) -> Value:
        """Ask a question, and cut the step there."""
        call = self._question(node)
        language = self._language
        language.is_apart = False
        self._scope.is_waiting = True
        agent = language.value_as(types.AGENT, call.func.value)  # type: ignore[attr-defined]
        trigger, context = language.event(call)
        with self._guarded():
            self._line("if slot < 0:")
            self._line(f"    slot = new_slot(run, me, {self._number}, other)")
            weighted = self._put_weights(call, trigger)
            given = f"slot, {agent}, {trigger}, {context}, {weighted}, {node.lineno}"
            self._line(f"answer = ask(run, {given})")
            self._line("if answer == T.ASKED:")
            for name, kind in self._scope.locals.items():
                stored = self.kept.setdefault(name, Stored(f"of_{self._number}_{name}", kind))
                self._line(f"    slot_at(run, slot).{stored.name} = {name}")
            self._line(f"    return {self._asked_before + 1}")

        self._asked_before += 1
        return self._scope.names[self._temporary(Value("answer", types.MAYBE_STATE))]

    def _question(self, node: ast.Await) -> ast.Call:
        """Return the awaited call of decide, and refuse any other await."""
        call = node.value
        func = call.func if isinstance(call, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "decide":
            what = {"write": "texts have no column", "receive": "messages have no column"}
            why = what.get(getattr(func, "attr", ""), "a step awaits decide alone")
            raise RefusedError(
                node, f"{ast.unparse(call)[:50]}: {why}: run this world without columns"
            )
        if self._number is None:
            raise RefusedError(
                node, "a function that a step calls cannot wait: move the await into the step"
            )

        assert isinstance(call, ast.Call)
        others = {each.arg for each in call.keywords} - {"trigger", "context", "weights"}
        if others:
            raise RefusedError(
                node,
                f"{', '.join(sorted(map(str, others)))} is for a model, which "
                "columns do not ask: leave it out, or run without columns",
            )
        if len(call.args) > 2 or any(map(_waits, (func.value, *call.args))):
            raise RefusedError(node, IN_THE_MIDDLE)
        return call

    def _put_weights(self, call: ast.Call, trigger: int) -> int:
        """Store the weights of a question, and return 1 if it has any."""
        given = next((each.value for each in call.keywords if each.arg == "weights"), None)
        if given is None or _is_nothing(given):
            return 0

        states = range(len(self._language.layout.states))
        if isinstance(given, ast.Dict):
            weights = self._weights(given)
            self._require_targets(weights, trigger, given)
        else:
            value = self._language.value(given)
            if value.type is not types.WEIGHTS:
                raise RefusedError(given, _WRITTEN_OUT)
            weights = {state: f"{value.text}_{state}" for state in states}
            self._require_targets(self._scope.weighed[value.text], trigger, given)
        for state in states:
            weight = weights.get(state, "0.0")
            self._line(f"put_f8(run.weights, slot * N_STATES + {state}, {weight})")
        return 1

    def _require_targets(self, weighed: Iterable[int], trigger: int, node: ast.expr) -> None:
        """Refuse weights of states to which a trigger never leads."""
        layout = self._language.layout
        name = layout.triggers[trigger]
        targets = targets_of(layout.agent.chart.definition, name)
        for each in weighed:
            if layout.states[each] not in targets:
                problem = never_reached(layout.states[each], name, targets)
                raise RefusedError(node, f"the weights of {name!r} {problem}")

    def _truth(self, value: Value, node: ast.AST) -> str:
        return self._language.as_type(types.CONDITION, value, node)

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


def _require_plain(loop: ast.For | ast.While) -> None:
    if loop.orelse:
        raise RefusedError(loop, "an else of a loop: put it behind the loop")
    if _waits(loop):
        raise RefusedError(loop, "await in a loop: ask once in a step, and go on in the next tick")


def _waits(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Await) for each in ast.walk(node))


def _always_returns(nodes: Sequence[ast.stmt]) -> bool:
    last = nodes[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, ast.Return)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
