"""Code steps: they see and change the context, or change nothing."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_monty")

from tests.kit.charts import ANY
from tests.kit.writers import agent_of


def workflow(code: str, more: str = "") -> str:
    indented = "".join(f"      {line}\n" for line in code.splitlines())
    return f"steps:\n  - name: compute\n    on_failure: skip\n    code: |\n{indented}{more}"


OF_THE_SPECIFICATION = """\
success_rate = context.get('successes', 0) / max(context.get('total', 1), 1)
should_pivot = success_rate < 0.3
context['success_rate'] = success_rate
context['should_pivot'] = should_pivot
"""


@pytest.mark.parametrize(
    ("code", "context", "after"),
    [
        (
            OF_THE_SPECIFICATION,
            {"successes": 3, "total": 4},
            {"successes": 3, "total": 4, "success_rate": 0.75, "should_pivot": False},
        ),
        ("x = x + 1", {"x": 1}, {"x": 2}),
        ("x += 1\n_local = 3", {"x": 1}, {"x": 2}),
        ("long = [w for w in words if len(w) > 2]", {"words": ["a", "bcd"]},
         {"words": ["a", "bcd"], "long": ["bcd"]}),
        ("words.append('b')", {"words": ["a"]}, {"words": ["a", "b"]}),
        ("context.pop('x')", {"x": 1, "y": 2}, {"y": 2}),
        ("who = agent_id + ':' + str(tick) + ':' + state", {}, {"who": "agent:1:active"}),
        ("for n in range(3):\n  total = total + n", {"total": 0}, {"total": 3}),
        ("first, *rest = [1, 2, 3]", {}, {"first": 1, "rest": [2, 3]}),
        ("def double(n):\n  return n * 2\nx = double(x)", {"x": 2}, {"x": 4}),
        ("context['a'] = 1\na = 2", {}, {"a": 1}),
        ("top = max([1, 2])", {"max": 7}, {"max": 7, "top": 2}),
        ("n = len(compute)", {"compute": [1], "len": "x"}, {"compute": [1], "len": "x", "n": 1}),
    ],
)  # fmt: skip
async def test_a_code_step_sees_and_changes_the_context(
    code: str, context: dict[str, Any], after: dict[str, Any]
) -> None:
    """Bare names and ``context`` are the same variables; names with an underscore stay local."""
    agent = agent_of(workflow(code), context=context)
    turn = await agent.turn()
    assert turn.steps[0].outcome == "done", turn.steps[0].reason
    assert agent.context == after


FAILING = [
    ("context['x'] = 2\nraise ValueError('no')", "line 2 of the code: ValueError: no"),
    ("x = 2\ny = nowhere", "line 2 of the code: NameError"),
    ("words.append('b')\n1 / 0", "line 2 of the code: ZeroDivisionError"),
    ("context['x'] = {1, 2}", "TypeError: Object of type set"),
    ("context = 3", "replaced context with something other than a dict"),
    ("context['f'] = float('nan')", ""),
    ("x = 2 ** 64", "left a value that is not data: x must be data"),
    ("while True:\n  x = 1", ""),
]


@pytest.mark.parametrize(("code", "reason"), FAILING)
@pytest.mark.sampled(3)
async def test_a_failed_code_step_changes_nothing(code: str, reason: str) -> None:
    """The context is what it was before the step, whatever it had done until then."""
    before = {"x": 1, "words": ["a"]}
    agent = agent_of(workflow(code), context=before)
    (run,) = (await agent.turn()).steps
    assert (run.outcome, agent.context) == ("skipped", before)
    assert run.reason is not None
    assert run.reason.startswith(reason)


async def test_what_a_step_prints_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    """It can print without end."""
    await agent_of(workflow("print('dropped')")).turn()
    assert "dropped" not in "".join(capfd.readouterr())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(ANY, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(ANY, max_size=3), inner),
    max_leaves=6,
)


@given(context=st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=4))
async def test_what_a_step_does_not_touch_stays(context: dict[str, Any]) -> None:
    """Any context passes through a step unchanged."""
    agent = agent_of(workflow("z = 1"), context=context)
    await agent.turn()
    assert agent.context == {**context, "z": 1}


@pytest.mark.parametrize(
    ("code", "x"),
    [
        # what the page lists, and what each shows
        ("import asyncio, base64, bisect, collections, copy, csv, dataclasses, datetime, decimal\n"
         "import functools, hashlib, itertools, json, math, random, re, typing, unicodedata\n"
         "x = math.floor(2.5)", 2),
        ("import os, pathlib, sys\nx = [os.getcwd(), sys.platform]", ["/", "monty"]),
        ("import time, datetime\nx = [time.time(), str(datetime.datetime.now())]",
         [0.0, "1970-01-01 00:00:00"]),
        *((f"import os, pathlib\nx = {code}", PermissionError) for code in (
            "os.listdir('/')", "pathlib.Path('/etc/passwd').read_text()")),
        *((f"import os\nx = {code}", RuntimeError) for code in (
            "dict(os.environ)", "os.getenv('HOME')")),
        *((f"import {name}\nx = 1", ModuleNotFoundError) for name in (
            "ctypes", "importlib", "io", "socket", "subprocess", "threading", "urllib")),
    ],
)  # fmt: skip
async def test_what_the_sandbox_has(code: str, x: Any) -> None:
    """Modules that compute; those of a machine show none of it, and others are not there."""
    agent = agent_of(workflow(code))
    (run,) = (await agent.turn()).steps
    if isinstance(x, type):
        assert f": {x.__name__}: " in str(run.reason)
    else:
        assert (run.reason, agent.context) == (None, {"x": x})


async def test_random_numbers_belong_to_the_turn() -> None:
    """The same turn of another agent draws the same numbers, and the next turn draws others."""
    text = workflow("import random\nn = random.random()")
    one, two = agent_of(text), agent_of(text)
    await one.turn()
    await two.turn()
    first = one.context["n"]
    assert first == two.context["n"]
    await one.turn()
    assert one.context["n"] != first


async def test_numbers_of_numpy_are_data() -> None:
    """Turns, context and variables may be such numbers, and JSON can hold the context."""
    about = {"context": {"x": np.int64(2)}, "variables": {"z": np.float32(0.5)}}
    agent = agent_of(workflow("y = x + z"), turns=np.int8(3), **about)
    await agent.turn()
    assert json.loads(json.dumps(agent.context)) == {"x": 2, "y": 2.5}
