"""What follows a failed step: retry, skip or fail, and how many requests are sent."""

import asyncio
from functools import partial
from socket import gaierror
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow, WorkflowAgent
from prism.testing import FakeOllama, Fault
from tests.kit.clients import Client
from tests.kit.clocks import Clock
from tests.kit.writers import agent_of, names_of, prompts_of, writer_of


def asking(policy: str = "", top: str = "") -> str:
    return f"{top}\nsteps:\n  - {{name: ask, type: llm, prompt: p, output: text{policy}}}\n"


EMPTY, BUSY, HANG = Fault.says(""), Fault.status(503), Fault.hang()


@pytest.mark.parametrize("own", [1, 3])
@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize(
    "faults", [[EMPTY] * 9, [BUSY] * 9, [HANG] * 9, [BUSY, EMPTY] * 9, [EMPTY] + [BUSY] * 9]
)
async def test_max_retries_bounds_all_requests(
    server: FakeOllama,
    connect: Any,
    loop_clock: Clock,
    faults: list[Fault],
    own: int,
    retries: int,
) -> None:
    """`max_retries: 3` is four requests in all, whatever fails, and whatever the pool retries."""
    server.fail(*faults)
    pool: Any = connect(attempts=own, timeout=5)
    for each in pool.servers:
        each.backoff = lambda _failures: 0.0
    workflow = Workflow.from_text(asking(f", max_retries: {retries}"))
    asking_it = asyncio.create_task(WorkflowAgent(workflow, pool).turn())
    for number in range(1 + retries) if HANG in faults else ():
        await loop_clock.passes(5, when=partial(lambda least: server.asked > least, number))
    turn = await asking_it
    assert server.asked == 1 + retries
    assert turn.has_stopped
    assert turn.steps[0].cost is not None
    assert turn.steps[0].cost.attempts == 1 + retries


@pytest.mark.parametrize("error", [RuntimeError("busy"), gaierror("no such name")])
async def test_an_own_client_is_asked_again_after_an_exception_of_its_own(
    error: Exception, no_pauses: None
) -> None:
    """`on_failure: retry` asks again whatever the client raises, and takes the reply."""
    client = Client([error, error, "done"])
    agent = WorkflowAgent(Workflow.from_text(asking(", max_retries: 2")), client)
    turn = await agent.turn()
    assert (turn.steps[0].outcome, len(client.prompts)) == ("done", 3)


async def test_behind_a_skipped_step_code_runs_and_no_other_step_asks() -> None:
    """One request to a model in a turn holds for skipped ones, too."""
    writer = writer_of([OSError("down")])
    agent = agent_of(
        """
steps:
  - {name: ask, type: llm, prompt: p, on_failure: skip, transition_to: active}
  - {name: note, code: 'noted = 1'}
  - {name: again, type: llm, prompt: q}
  - {name: choose, type: transition, transition_to: active}
  - {name: last, code: 'noted = noted + 1'}
""",
        writer,
    )
    turn = await agent.turn()
    assert names_of(turn.steps) == ["ask", "note", "last"]
    assert (turn.steps[0].outcome, turn.steps[0].moved_to) == ("skipped", None)
    assert turn.steps[0].reason == "down"
    assert (agent.context, len(writer.calls)) == ({"noted": 2}, 1)
    # the next one is that below, whose policy is another
    assert names_of((await agent.turn()).steps) == ["note", "again"]


async def test_the_next_prompt_says_what_was_refused() -> None:
    """Until a reply is used, never in the same words; a model that failed has said nothing."""
    writer = writer_of(["...", "...", OSError("down"), "a plan", "a plan"])
    agent = agent_of(asking(", on_failure: skip"), writer)
    for _ in range(5):
        await agent.turn()
    first, *told, last = prompts_of(writer)
    assert first == last == "p"
    assert told[0] != told[1] == told[2]
    assert told[0].startswith("p\n\nYour reply in turn 1 was refused: ")


@pytest.mark.parametrize(
    ("top", "policy", "requests", "stops"),
    [
        ("", "", 4, True),
        ("default_on_failure: skip", "", 1, False),
        ("default_max_retries: 1", ", max_retries: 2", 3, True),
        ("default_on_failure: skip", ", on_failure: retry, max_retries: 0", 1, True),
        ("error_handling: {default_on_failure: retry, max_retries: 5}", "", 6, True),
        ("error_handling: {max_retries: 0}\ndefault_max_retries: 9", "", 1, True),
        ("error_handling: {default_on_failure: skip}", ", on_failure: fail", 1, False),
    ],
)
async def test_defaults_and_what_overrides_them(
    top: str, policy: str, requests: int, stops: bool
) -> None:
    """The step first, then `error_handling`, then the top level, else three retries."""
    agent = agent_of(asking(policy, top), [OSError("down")])
    step = agent.workflow.steps[0]
    most = 1 + (step.max_retries if step.on_failure == "retry" else 0)
    turn = await agent.turn()
    assert most == requests
    assert turn.has_stopped == (stops or step.on_failure != "skip")


@pytest.mark.parametrize(("policy", "runs"), [("retry", 3), ("skip", 1), ("fail", 1)])
async def test_a_failed_code_step_follows_the_same_policies(policy: str, runs: int) -> None:
    """It is repeated, left out, or ends the run; the context is that of before."""
    calls: list[int] = []
    agent = agent_of(
        "steps:\n"
        f"  - {{name: s, code: 'x = 1 // n', on_failure: {policy}, max_retries: 2}}\n"
        "  - {name: t, code: 'y = 1'}\n",
        variables={"n": lambda _agent: calls.append(1) or 0},
    )
    turn = await agent.turn()
    assert turn.has_stopped == (policy != "skip")
    assert (agent.context, len(calls)) == ({"y": 1} if policy == "skip" else {}, runs)
    assert turn.steps[0].reason == "line 1 of the code: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("code", "limit"), [("while True: x = 1", "TimeoutError"), ("x = [n] * 10**9", "MemoryError")]
)
async def test_code_at_its_limit_is_not_tried_again(code: str, limit: str) -> None:
    """It would meet the limit again, and take the time of the turn's other steps."""
    calls: list[int] = []
    agent = agent_of(
        f"steps: [{{name: s, code: '{code}; y = n', on_failure: retry, max_retries: 2}}]",
        variables={"n": lambda _agent: calls.append(1) or 0},
    )
    (run,) = (await agent.turn()).steps
    assert (limit in str(run.reason), len(calls)) == (True, 1)
