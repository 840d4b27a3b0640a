"""Expressions: what they can say, and what they cannot do."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.expressions import Budget, Expression, ExpressionError, UnknownNameError

CONTEXT: dict[str, Any] = {
    "tick": 3,
    "rate": 0.25,
    "name": "Ann",
    "tags": ["a", "b"],
    "last": {"kind": "write", "parts": [1, 2]},
    "ready": True,
    "nothing": None,
    "wide": "a" * 101,
}


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("ready", True),
        ("not ready", False),
        ("tick > 2 and rate < 0.3", True),
        ("'b' in tags", True),
        ("name.lower() == 'ann'", True),
        ("last.get('kind') == 'write'", True),
        ("last['parts'][0] == 1", True),
        ("tags[1:] == ['b']", True),
        ("len(tags) == 2 and max(last['parts']) == 2", True),
        ("round(rate, 1) == 0.2", True),
        ("tick if ready else 0", True),
        ("nothing is None", True),
        ("tick % 2 == 1 and tick ** 2 == 9 and tick // 2 == 1", True),
        ("0.5 ** 2 == 0.25 and tick ** 0.5 < 2 and 0.5 * tick == 1.5", True),
        ("0", False),
        ("''", False),
        ("tags", True),
        ("ready or nowhere", True),
        ("  tick == 3 ", True),
        ("1 < tick < 5 and not 1 < tick < 3 < nowhere", True),
        ("(tick, name)[1] == 'Ann' and tick in (2, 3)", True),
        ("int('3') + int(0.5) == tick and name.strip('An') == ''", True),
    ],
)
def test_a_condition_reads_the_context(source: str, holds: bool) -> None:
    """Comparisons, arithmetic, subscripts and looking methods work as in Python."""
    assert Expression(source).holds(CONTEXT) is holds


def test_an_expression_is_pickled_by_its_source() -> None:
    """A copy in another process is equal, and holds where the expression does."""
    expression = Expression("tick > 2")
    assert expression.holds(CONTEXT)
    again = pickle.loads(pickle.dumps(expression))
    assert again == expression
    assert again.holds(CONTEXT)


def test_a_name_that_nobody_provides_is_named() -> None:
    """An unknown variable is an error of its own, which the workflow can tell."""
    with pytest.raises(UnknownNameError, match="there is no variable 'nowhere'"):
        Expression("nowhere").holds(CONTEXT)


def test_the_names_of_a_condition_are_known() -> None:
    """The variables that a condition needs can be listed; functions are none."""
    assert Expression("max(tags) == name or ready").names == {"tags", "name", "ready"}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "is not an expression"),
        ("a = 1", "is not an expression"),
        ("(a := 1)", "uses NamedExpr"),
        ("[t for t in tags]", "uses ListComp"),
        ("tick << 2", "uses LShift"),
        ("name.format(1)", "uses .format"),
        ("open('x')", r"calls open\(\)"),
        ("last.get", r"names .get without calling it: write .get\(...\)"),
        ("tags[0]()", "calls something other than a named function"),
        ("b'x'", "which JSON does not have"),
        ("a" * 1001, "has more than 1,000 characters"),
        ("1" + "+1" * 400, "nested more than 100 levels deep"),
        ("[" * 150, "is not an expression"),
        ("\0", "is not an expression"),
        ("{**last}", r"uses \*\*, which dicts in expressions do not have"),
        ("max(**last)", r"uses \*\*, which calls in expressions do not have"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_conditions_do_not_have_is_refused_when_they_are_read(
    source: str, problem: str
) -> None:
    """Whatever would fail at every evaluation, or could do harm, is told at once."""
    with pytest.raises(ExpressionError, match=problem):
        Expression(source)


def test_a_function_is_no_value() -> None:
    """A variable called like a function is unknown where nobody provides it; it does not hold."""
    for name in ("round", "max", "len"):
        assert Expression(name).names == {name}
        assert Expression(f"{name}({name})").names == {name}
        with pytest.raises(UnknownNameError):
            Expression(name).holds(CONTEXT)
        assert not Expression(name).holds({name: 0})


def test_a_variable_may_ask_another_condition() -> None:
    """A condition that is evaluated while another one looks a variable up leaves that one alone."""

    class Asking(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            return Expression("x > 1").holds({"x": 2})

    assert Expression("first and second").holds(Asking())


@pytest.mark.parametrize(
    "source",
    [
        "9**9**9",
        "10**400",
        "(2**600)*(2**600)",
        "'a'*10**9",
        "'%1000000000d' % 1",
        "tags + tags",
        "round(5, -10**9)",
        "int('9', 36)",
        "str(1, 2)",
        "len(name, name)",
        "last.keys(1)",
        "max()",
        "max(tags, key=name)",
        "tick.get('a')",
        "1/0",
        "last['nowhere']",
        "name.strip(wide)",
        "(0 - tick) ** 0.5",
        "last < 3",
    ],
)
def test_a_failing_condition_is_one_error(source: str) -> None:
    """Whatever an evaluation raises comes out as one kind of error, with its reason."""
    with pytest.raises(ExpressionError):
        Expression(source).holds(CONTEXT)


def test_a_live_object_in_the_context_lends_no_method() -> None:
    """An object of the host that got into the context cannot be called, whatever its methods."""

    class Account:
        emptied = False

        def get(self, _key: str) -> bool:
            self.emptied = True
            return True

        def keys(self) -> list[str]:
            return []

    class Loud(dict[str, Any]):
        def get(self, *_args: Any) -> Any:
            raise AssertionError

    account = Account()
    for source in ("account.get('x')", "account.keys()", "loud.get('x')"):
        with pytest.raises(ExpressionError, match="has no"):
            Expression(source).holds({"account": account, "loud": Loud()})
    assert not account.emptied


@given(st.text("abt0123456789+-*/%<>=()[]{}.,'\" notridfel_:@\\\n", max_size=60))
@settings(max_examples=20 * settings().max_examples)
def test_no_text_does_anything_else_than_being_refused_or_evaluated(source: str) -> None:
    """Any text is an error of conditions or a truth value; nothing else comes out."""
    try:
        assert Expression(source).holds(CONTEXT) in (True, False)
    except ExpressionError:
        return


LEAVES = st.sampled_from(
    ["0", "1", "2.5", "-3", "True", "None", "'b'", "''", "tick", "rate", "name", "tags", "last",
     "[1, 2]", "('a', 1)", "{'kind': 1}", "last['parts']", "tags[0]", "name[1:]", "tags[::-1]"]
)  # fmt: skip
FUNCTIONS = {"abs": abs, "bool": bool, "float": float, "int": int, "len": len, "str": str}


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = ["+", "-", "*", "/", "//", "%", "and", "or", "<", "<=", ">", ">=", "==", "!=", "in"]
    two = st.tuples(inner, st.sampled_from(signs), inner).map(lambda each: f"({' '.join(each)})")
    not_one = inner.map(lambda one: f"(not {one})")
    chain = st.tuples(inner, inner, inner).map(lambda each: f"({' < '.join(each)})")
    either = st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format)
    called = st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map("{0[0]}({0[1]})".format)
    most = st.tuples(inner, inner).map("max({0[0]}, {0[1]})".format)
    return two | not_one | chain | either | called | most


@given(st.recursive(LEAVES, _larger, max_leaves=6))
@settings(max_examples=5 * settings().max_examples)
def test_an_expression_gives_what_python_gives(source: str) -> None:
    """Or fails; it may fail where Python repeats, joins or formats texts and lists."""
    names = {"__builtins__": {}, **FUNCTIONS, "max": max, **CONTEXT}
    try:
        expected = eval(source, names)
    except Exception:
        expected = ExpressionError
    try:
        found = Expression(source).value(CONTEXT)
    except ExpressionError:
        assert expected is ExpressionError or any(sign in source for sign in "+*%")
    else:
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    "source",
    ["x == y", "x != y", "x < y", "'q' in x", "max(x)", "min(x, y)", "str(x)", "x[1:]", "o.keys()",
     "x == y and x == y", "[1] in n", "o.items() == 1", "t.upper()", "t == u", "t in u"],
)  # fmt: skip
def test_what_is_looked_at_is_paid_for(source: str) -> None:
    """Whatever goes through a text or container has a budget, and fails before it goes on."""
    long = {"x": list(range(1000)), "y": list(range(1000)), "n": [[1]] * 1000, "t": "a" * 5000,
            "u": "a" * 5000, "o": {str(number): 1 for number in range(1000)}}  # fmt: skip
    Expression(source).value(long, Budget(40_000))
    with pytest.raises(ExpressionError, match="makes or reads texts or lists that are too long"):
        Expression(source).value(long, Budget(900))
