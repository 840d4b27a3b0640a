"""Every process that has run conditions and code steps ends with its own status."""

import subprocess
import sys

import pytest

pytest.importorskip("pydantic_monty")

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
