"""Attacks on the sandbox: none escapes, hangs or eats memory, and what comes after still runs."""

import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

import contextlib

from prism.programs.yaml._programs import CodeError, Program
from prism.programs.yaml._workers import Workers, workers_of
from tests.programs.yaml.attacks_on_conditions import EXPRESSIONS

MOST_SECONDS = 5.0
MOST_KILOBYTES = 100 << 10

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
    "own length": "for len in [lambda y: 0]:\n    pass\ny = 'a' * 5_000_000",
    "own locals": "def locals():\n    return {'y': 1}\ny = 2",
    "long complaint": "raise ValueError('a' * 20_000_000)",
    "indented json": "import json\ny = len(json.dumps([[1]], indent=10**9))",
    "power of three": "y = pow(3, 10**1000000, 10**1000)",
    "factorial": "import math\ny = math.factorial(10**7)",
    "long division": "y = 10**1000000 // 7",
    "join of a million": "y = ('a' * 10**6).join(['b'] * 10**6)",
    "lines of a million": "y = len(('\\n' * 10**7).splitlines())",
    "back references": "import re\ny = bool(re.match(r'(.*)(.*)(.*)\\1\\2\\3b', 'a' * 3000))",
    "finally recursion": "def f():\n    try:\n        f()\n    finally:\n        f()\nf()",
    "equal circles": "_a = []\n_a.append(_a)\n_b = []\n_b.append(_b)\ny = _a == _b",
    "deep hash": "_a = ()\nfor i in range(10**5):\n    _a = (_a,)\ny = len({_a})",
    "class by pieces": "y = str(getattr('', '__cl' + 'ass__'))",
    "state of the machine": "context['x'] = {'_state_machine': {'current_state': 'x'}}",
    "locals": "y = locals()['_prism_given']",
}


OUTSIDE = {
    "carriage return": "x = 1\rdef len(y):\r    return 0",
    "carriage return in a block": "if 1:\n    x = 1\rdef len(y):\r    return 0",
    "form feed": "x = 1\n\x0cdef len(y):\n\x0c    return 0",
    "form feed in a block": "if 1:\n    x = 1\n \x0cdef len(y):\n \x0c    return 0",
    "carriage return behind a text": "x = '''a\rb'''\rdef len(y):\r    return 0",
    "carriage return in a comment": "# a\rdef len(y):\r    return 0",
    "continued line": "x = 1\\\rdef len(y):\r    return 0",
    "line separator": "x = 1\u2028def len(y):\u2028    return 0",
    "next line": "x = 1\x85def len(y):\x85    return 0",
    "attribute of a module": "import json\njson.dumps = lambda x: '[{}, {}]'",
    "attribute of a type": "str.upper = lambda text: ''",
    "own name": "len = lambda y: 0",
    "own class": "class len:\n    pass",
    "import as": "import json as len",
    "loop over": "for len in [0]:\n    pass",
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.sampled(5)
async def test_no_line_of_a_step_stands_outside_it(name: str) -> None:
    """Whatever ends a line or an indentation, later steps of the same worker find all as it was."""
    workers = Workers(count=1)
    with contextlib.suppress(CodeError):
        await workers.run(Program(OUTSIDE[name]), {}, {}, "k")
    after = await workers.run(Program("x = len([1, 2])"), {}, {}, "k")
    assert after == {"x": 2}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(30)
async def test_no_code_step_escapes(name: str) -> None:
    """An attack as a code step fails or ends in time, and the next step runs as if it had not."""
    context: dict[str, Any] = {"x": ["a"] * 100, "balance": 10}
    began, memory = time.monotonic(), peak()
    try:
        found = await workers_of(None).run(Program(PROGRAMS[name]), context, {}, "k")
    except CodeError:
        pass
    else:
        assert set(found) <= {"x", "balance", "y", "i"}
        assert "prism" not in str(found)
        assert str(os.getpid()) not in str(found)
    # of the clock on the wall, which others on the machine may hold up
    assert time.monotonic() - began < 10 * MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES
    assert context == {"x": ["a"] * 100, "balance": 10}
    assert not Path("escaped").exists()
    after = await workers_of(None).run(Program("y = 1 + 1"), {}, {}, "k")
    assert after == {"y": 2}


def peak() -> int:
    """Return the most memory that this process and its workers have used, in kilobytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # a worker is the child of the thread that started it
    threads = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    children = [pid for thread in threads for pid in thread.read_text(encoding="ascii").split()]
    return own + max((_peak_of(child) for child in children), default=0)


def _peak_of(pid: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) if lines else 0
