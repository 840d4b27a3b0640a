"""Attacks on the sandboxes: none escapes, hangs or eats memory, and what comes after still runs."""

import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")
pytest.importorskip("simpleeval")

import contextlib

from prism.workflow._sandbox._conditions import Condition, ConditionError
from prism.workflow._sandbox._programs import CodeError, Program
from prism.workflow._sandbox._workers import WORKERS

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

PROGRAMS = {
    **{name: f"y = {source}" for name, source in EXPRESSIONS.items() if "\n" not in source},
    "endless loop": "while True:\n    pass",
    "endless growth": "y = [0]\nwhile True:\n    y = y + y",
    "endless printing": "while True:\n    print('a' * 100000)",
    "swallowed time-out": "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass",
    "swallowed memory": "y = 'a'\nwhile len(y) < 10**9:\n    try:\n        y = y + y\n"
    "    except BaseException:\n        y = 'a'",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "mutual recursion": "def f():\n    return g()\ndef g():\n    return f()\nf()",
    "shared structure": "y = []\nfor i in range(40):\n    y = [y, y]",
    "shared dict": "y = {}\nfor i in range(40):\n    y = {'a': y, 'b': y}",
    "shared text": "y = 'ab'\nfor i in range(40):\n    y = [y * 100, y]",
    "itself": "y = []\ny.append(y)",
    "itself in context": "context['me'] = context",
    "deep structure": "y = []\nfor i in range(100000):\n    y = [y]",
    "huge number": "y = 10 ** 100000000",
    "slow regular expression": "import re\ny = bool(re.match('(a+)+$', 'a' * 40 + 'b'))",
    "huge regular expression": "import re\nre.compile('a{1,1000}{1,1000}{1,1000}')",
    "deep json": "import json\njson.loads('[' * 1000000)",
    "file by pathlib": "from pathlib import Path\nPath('escaped').write_text('x')",
    "network": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "process": "import subprocess\nsubprocess.run(['touch', 'escaped'])",
    "sleep": "import asyncio\nasyncio.sleep(100)",
    "class with a destructor": "class A:\n    def __del__(self):\n        open('escaped', 'w')"
    "\nA()",
    "frame by exception": "try:\n    1/0\nexcept ZeroDivisionError as e:\n"
    "    y = e.__traceback__.tb_frame.f_globals",
    "exit": "raise SystemExit(3)",
    "interrupt": "raise KeyboardInterrupt()",
    "globals of a function": "def f():\n    return 1\ny = f.__globals__",
    "environment": "import os\ny = dict(os.environ)",
    "locals": "y = locals()['_prism_given']",
}


class Host:
    """An object of the application that no expression may touch."""

    emptied = False

    def empty(self) -> None:
        self.emptied = True


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_condition_escapes(name: str) -> None:
    """An attack as a condition is refused or evaluated at once, and leaves no trace."""
    host, began, memory = Host(), time.monotonic(), peak()
    with contextlib.suppress(ConditionError):
        Condition(EXPRESSIONS[name]).evaluate({"x": ["a"] * 100, "host": host, "context": {}})
    assert time.monotonic() - began < MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES
    assert not host.emptied
    assert not Path("escaped").exists()
    assert Condition("1 + 1 == 2").evaluate({})


@pytest.mark.parametrize("name", PROGRAMS)
async def test_no_code_step_escapes(name: str) -> None:
    """An attack as a code step fails or ends in time, and the next step runs as if it had not."""
    context: dict[str, Any] = {"x": ["a"] * 100, "balance": 10}
    began, memory = time.monotonic(), peak()
    try:
        ran = await WORKERS.run(Program(PROGRAMS[name]), context, {}, "k")
    except CodeError:
        pass
    else:
        assert set(ran.context) <= {"x", "balance", "y", "i"}
        assert "prism" not in str(ran.context)
        assert str(os.getpid()) not in str(ran.context)
    assert time.monotonic() - began < MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES
    assert context == {"x": ["a"] * 100, "balance": 10}
    assert not Path("escaped").exists()
    after = await WORKERS.run(Program("y = 1 + 1"), {}, {}, "k")
    assert after.context == {"y": 2}


def peak() -> int:
    """Return the most memory that this process and its workers have used, in kilobytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pid = os.getpid()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return own + max((_peak_of(child) for child in children), default=0)


def _peak_of(pid: str) -> int:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) if lines else 0
