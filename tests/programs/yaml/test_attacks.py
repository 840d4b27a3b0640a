"""Attacks on conditions and code steps: none escapes, hangs, eats memory or keeps a process."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.writers import writer_of

MOST_SECONDS = 5.0
MOST_KILOBYTES = 100 << 10

EXPRESSIONS = {
    "dunder chain": "().__class__.__base__.__subclasses__()",
    "format-string attribute": "'{0.__class__}'.format(1)",
    "format_map": "'{x.__class__}'.format_map(context)",
    "power tower": "9**9**9",
    "text times number": "'a'*10**9",
    "huge range": "list(range(10**10))",
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
    "object of the host": "host.empty()",
    "shared lists": "[" * 90 + "x" + ",x]" * 90,
    "shift": "1 << 10**9",
    "exec": "exec('import os')",
    "eval": "eval('1')",
    "getattr": "getattr((), '__class__')",
    "comprehension bomb": "[a for a in x for b in x for c in x for d in x]",
    "product chain": "*".join(["99999999999999999999"] * 40),
    "round": "round(1, -10**9)",
    "encode": "'a'.encode('idna')",
    "dict of methods": "{'f': ''.join}['f'](x)",
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
    "slices": f"[{','.join(['x[1:]'] * 160)}]",
    "backwards": f"[{','.join(['x[::-1]'] * 120)}]",
    "text of a list": f"[{','.join(['str(l)'] * 130)}]",
    "text of many texts": f"len(str([{','.join(['x'] * 300)}]))",
    "texts in texts": "len(" + "str([" * 20 + "x" + "])" * 20 + ")",
    "comparisons of lists": " and ".join(["l==m"] * 90),
    "looking in lists": " and ".join(["not 'q' in l"] * 50),
    "largest": " and ".join(["max(l)"] * 90),
    "stripping": "p.strip(q)",
    "key of a maximum": "max(l, key=x.strip)",
}

PROGRAMS = {
    **{name: f"y = {source}" for name, source in EXPRESSIONS.items() if "\n" not in source},
    "endless loop": "while True:\n    pass",
    "endless growth": "y = [0]\nwhile True:\n    y = y + y",
    "endless printing": "while True:\n    print('a' * 100000)",
    "swallowed time-out": "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "shared structure": "y = []\nfor i in range(40):\n    y = [y, y]",
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
    "long complaint": "raise ValueError('a' * 20_000_000)",
    "indented json": "import json\ny = len(json.dumps([[1]], indent=10**9))",
    "factorial": "import math\ny = math.factorial(10**7)",
    "join of a million": "y = ('a' * 10**6).join(['b'] * 10**6)",
    "back references": "import re\ny = bool(re.match(r'(.*)(.*)(.*)\\1\\2\\3b', 'a' * 3000))",
    "finally recursion": "def f():\n    try:\n        f()\n    finally:\n        f()\nf()",
    "deep hash": "_a = ()\nfor i in range(10**5):\n    _a = (_a,)\ny = len({_a})",
    "class by pieces": "y = str(getattr('', '__cl' + 'ass__'))",
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def context_after(step: dict[str, Any], context: dict[str, Any]) -> dict[str, Any] | None:
    """Return the context after a turn; None if the file is refused or the step fails."""
    try:
        workflow = Workflow.from_text(json.dumps({"steps": [step]}))
    except InputError:
        return None
    agent = WorkflowAgent(workflow, writer_of(), context)
    turn = await agent.turn()
    return None if turn.has_stopped else agent.context


async def require_harmless(step: dict[str, Any], context: dict[str, Any]) -> None:
    """Carry out a step, and require that nothing but its own variables is changed by it."""
    given = dict(context)
    began, memory = seconds(), peak()
    left = await context_after(step, context)
    assert seconds() - began < MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES
    assert context == given
    assert not Path("escaped").exists()
    if left is not None:
        assert set(left) <= {*context, "y", "i"}
        assert "prism" not in str(left.get("y"))
        assert str(os.getpid()) not in str(left.get("y"))
    assert await context_after({"name": "after", "code": "y = len([1, 2])"}, {}) == {"y": 2}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(30)
async def test_no_code_step_escapes(name: str) -> None:
    """An attack as a code step fails or ends in time, and the next step runs as if it had not."""
    step = {"name": "s", "code": PROGRAMS[name], "on_failure": "fail"}
    await require_harmless(step, {"x": ["a"] * 100, "balance": 10})


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.sampled(10)
async def test_no_condition_escapes(name: str) -> None:
    """An attack as a condition is refused, or evaluated at once, and leaves no trace."""
    step = {"name": "s", "code": "y = 1", "run_if": EXPRESSIONS[name]}
    await require_harmless(step, {"x": ["a"] * 100, "host": {}, "context": {}})


@pytest.mark.parametrize("name", ON_LONG_VARIABLES)
@pytest.mark.sampled(10)
async def test_no_condition_makes_much_of_long_variables(name: str) -> None:
    """A megabyte that a model wrote is not multiplied, by whatever a condition has."""
    step = {"name": "s", "code": "y = 1", "run_if": ON_LONG_VARIABLES[name]}
    await require_harmless(step, LONG)


@pytest.mark.parametrize("of_what", ["conditions", "code", "guards"])
async def test_all_of_a_turn_ends_in_time(of_what: str) -> None:
    """However many steps and conditions take almost a second each."""
    slow = "sum([sum([m for m in range(1000)]) for n in range(10**6)])"
    steps: list[dict[str, Any]] = [
        {"name": f"s{number}", "code": slow if of_what == "code" else "y = 1", "on_failure": "skip"}
        for number in range(40)
    ]
    machine: dict[str, Any] = {"states": ["a"]}
    if of_what == "conditions":
        steps = [{**step, "run_if": slow} for step in steps]
    if of_what == "guards":
        machine["transitions"] = [{"from": "a", "to": "a", "condition": slow}]
        steps = [{**step, "transition_to": "a"} for step in steps]
    text = json.dumps({"state_machine": machine, "steps": steps})
    agent = WorkflowAgent(Workflow.from_text(text), writer_of())
    for _ in range(2):
        began = seconds()
        turn = await agent.turn()
        assert seconds() - began < MOST_SECONDS
        told = [run for run in turn.steps if "have taken 2.5 s already" in (run.reason or "")]
        assert told or of_what == "conditions"


def workers() -> list[Path]:
    """Return the processes that this one has started; each is the child of a thread."""
    threads = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [pid for thread in threads for pid in thread.read_text(encoding="ascii").split()]
    return [Path("/proc") / pid for pid in pids]


def seconds() -> float:
    """Return how long this process and its workers have computed."""
    ticks = 0
    for worker in workers():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            ticks += sum(map(int, (worker / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def peak() -> int:
    """Return the most memory that this process and its workers have used, in kilobytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return own + max((_peak_of(worker) for worker in workers()), default=0)


def _peak_of(worker: Path) -> int:
    try:
        status = (worker / "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) if lines else 0


# Every process that has run code ends with its own status

CHILD = """
import asyncio, os, sys
from prism.programs.yaml import Workflow, WorkflowAgent

workflow = Workflow.from_text("steps: [{name: s, code: 'x = 1', run_if: tick > 0}]")
agent = WorkflowAgent(workflow)
asyncio.run(agent.turn())
assert agent.context == {"x": 1}
if sys.argv[1] == "fork" and os.fork() == 0:
    other = WorkflowAgent(Workflow.from_text("steps: [{name: s, code: 'x = 1'}]"))
    asyncio.run(other.turn())
    os._exit("start it by spawn" not in other.failure)
if sys.argv[1] == "fork":
    _, status = os.wait()
    sys.exit(os.waitstatus_to_exitcode(status))
if sys.argv[1] == "raise":
    raise ValueError
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("number", range(25))
@pytest.mark.parametrize(("ending", "status"), [("0", 0), ("3", 3), ("raise", 1), ("fork", 0)])
@pytest.mark.sampled(25)
def test_a_process_ends_with_its_own_status(ending: str, status: int, number: int) -> None:
    """Whether it ends by itself, with a status, or with an error; a fork refuses to run code."""
    del number
    line = [sys.executable, "-c", CHILD, ending]
    done = subprocess.run(line, capture_output=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr.decode()
