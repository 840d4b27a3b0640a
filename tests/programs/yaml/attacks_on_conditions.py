"""Attacks on expressions: none escapes, takes long or eats memory."""

import contextlib
import resource
import time
from pathlib import Path

import pytest

from prism.expressions import Expression, ExpressionError

MOST_SECONDS = 5.0
MOST_KILOBYTES = 100 << 10

EXPRESSIONS = {
    "dunder chain": "().__class__.__base__.__subclasses__()",
    "dunder of a text": "''.__class__.__mro__[1].__subclasses__()",
    "format-string attribute": "'{0.__class__}'.format(1)",
    "format_map": "'{x.__class__}'.format_map(context)",
    "power tower": "9**9**9",
    "text times number": "'a'*10**9",
    "list times number": "[0]*10**9",
    "huge range": "list(range(10**10))",
    "length of a huge range": "len(range(10**18))",
    "import": "__import__('os').system('touch escaped')",
    "builtins": "__builtins__['open']('escaped', 'w')",
    "generator frame": "(x for x in [1]).gi_frame.f_globals",
    "type": "type('X', (), {})",
    "lambda recursion": "(lambda f: f(f))(lambda f: f(f))",
    "open": "open('/etc/passwd').read()",
    "ljust": "'a'.ljust(10**10)",
    "f-string width": "f'{1:1000000000}'",
    "% width": "'%1000000000d' % 1",
    "int chain": "int('9'*100000)",
    "doubling": "'a'.replace('a','aa').replace('a','aa')",
    "replace": "'a'.replace('', 'a'*10**8)",
    "deep source": "(" * 5000 + "1" + ")" * 5000,
    "deep negation": "-" * 900 + "1",
    "object of the host": "host.empty()",
    "shared lists": "[" * 90 + "x" + ",x]" * 90,
    "shift": "1 << 10**9",
    "shift in steps": "(1 << 60) << 60",
    "exec": "exec('import os')",
    "eval": "eval('1')",
    "getattr": "getattr((), '__class__')",
    "comprehension bomb": "[a for a in x for b in x for c in x for d in x]",
    "walrus": "(a := 10**9)",
    "power of floats": "1e308**1e308",
    "negative power": "10**-400",
    "product chain": "*".join(["99999999999999999999"] * 40),
    "round": "round(1, -10**9)",
    "repeated join": "','.join(x)",
    "encode": "'a'.encode('idna')",
    "bytes": "b'a'*10**9",
    "complex": "1j**10**9",
    "zfill": "'1'.zfill(10**10)",
    "center": "'1'.center(10**10)",
    "dict of methods": "{'f': ''.join}['f'](x)",
    "conditional call": "(open if 1 else open)('escaped', 'w')",
    "surrogates": "'\ud800'",
    "nul": "'\0'",
}

LONG = {
    "x": "a" * 999_900 + "\U0001f600",
    "l": list(range(140_000)),
    "m": list(range(140_000)),
    "o": {str(number): number for number in range(60_000)},
    "p": "a" * 500_000,
    "q": "b" * 499_999 + "a",
}

ON_LONG_VARIABLES = {
    "sum of texts": "+".join(["x"] * 90),
    "tree of sums": "+".join([f"({'+'.join(['x'] * 30)})"] * 14),
    "slices": f"[{','.join(['x[1:]'] * 160)}]",
    "backwards": f"[{','.join(['x[::-1]'] * 120)}]",
    "slices of lists": f"[{','.join(['l[1:]'] * 160)}]",
    "capitals": f"[{','.join(['x.upper()'] * 90)}]",
    "text of a list": f"[{','.join(['str(l)'] * 130)}]",
    "text of a dict": f"[{','.join(['str(o)'] * 130)}]",
    "text of many texts": f"len(str([{','.join(['x'] * 300)}]))",
    "texts in texts": "len(" + "str([" * 20 + "x" + "])" * 20 + ")",
    "comparisons of lists": " and ".join(["l==m"] * 90),
    "comparisons of texts": " and ".join(["str(l)==str(m)"] * 40),
    "looking in lists": " and ".join(["not 'q' in l"] * 50),
    "looking in texts": " and ".join(["not q in x"] * 60),
    "largest": " and ".join(["max(l)"] * 90),
    "stripping": "p.strip(q)",
    "keys": f"[{','.join(['str(o.keys())'] * 60)}]",
    "key of a maximum": "max(l, key=x.strip)",
    "numbers of texts": " or ".join(["float(p)"] * 90),
}

SLOW_ON_LONG_VARIABLES = {
    "comparisons of lists", "largest", "slices of lists", "looking in lists", "text of a list",
    "text of a dict",
}  # fmt: skip
"""Those of which each takes longer than all others together."""


class Host:
    """An object of the application that no expression may touch."""

    emptied = False

    def empty(self) -> None:
        self.emptied = True


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_condition_escapes(name: str) -> None:
    """An attack as a condition is refused or evaluated at once, and leaves no trace."""
    host, began, memory = Host(), time.thread_time(), peak()
    with contextlib.suppress(ExpressionError):
        Expression(EXPRESSIONS[name]).holds({"x": ["a"] * 100, "host": host, "context": {}})
    assert time.thread_time() - began < MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES
    assert not host.emptied
    assert not Path("escaped").exists()
    assert Expression("1 + 1 == 2").holds({})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW_ON_LONG_VARIABLES else name
        for name in ON_LONG_VARIABLES
    ],
)
@pytest.mark.sampled(4)
def test_no_condition_makes_much_of_long_variables(name: str) -> None:
    """A megabyte that a model wrote is not multiplied, by whatever a condition has."""
    began, memory = time.thread_time(), peak()
    with contextlib.suppress(ExpressionError):
        Expression(ON_LONG_VARIABLES[name]).holds(LONG)
    assert time.thread_time() - began < MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES


def peak() -> int:
    """Return the most memory that this process has used, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
