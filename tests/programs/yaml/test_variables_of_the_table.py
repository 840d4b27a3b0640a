"""The specification's variables: who provides each, of what type, and a host's own."""

from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import FieldTypeError
from prism.programs.yaml import WorkflowAgent
from tests.kit.writers import agent_of, prompts_of, turns_of, writer_of

KEEP = "steps:\n  - {name: keep, code: 'kept = [%s]'}\n  - {name: act, type: llm, prompt: p}\n"


async def kept(names: str, after: int = 1, **settings: Any) -> Any:
    """Return what a code step keeps in a turn."""
    agent = agent_of(KEEP % names, **settings)
    await turns_of(agent, after)
    return agent.context["kept"]


async def test_time_is_known_where_the_number_of_turns_is() -> None:
    """Turns that remain, this one included, and the share that is over, in percent."""
    names = "time_remaining, progress_percent"
    assert await kept(names, after=1, turns=4) == [4, 0.0]
    assert await kept(names, after=3, turns=4) == [2, 50.0]
    assert await kept(names, after=5, turns=4) == [0, 100.0]


async def test_results_of_actions_are_variables_of_the_next_turn() -> None:
    """The last result, the history as mappings, and the share that succeeded."""
    results = iter(["found it", OSError("gone")])

    def act(_action: Any) -> Any:
        found = next(results)
        if isinstance(found, Exception):
            raise found
        return found

    names = "last_action_result, success_rate, action_history"
    last, rate, history = await kept(names, after=3, on_action=act)
    assert (last, rate) == ("failed: OSError: gone", 0.5)
    assert history == [
        {"action": {"kind": "wait"}, "result": "found it", "succeeded": True},
        {"action": {"kind": "wait"}, "result": "failed: OSError: gone", "succeeded": False},
    ]


async def test_a_host_provides_values_and_functions() -> None:
    """A function is given the agent, and called only where its variable is looked up."""
    called: list[WorkflowAgent] = []

    def balance(agent: WorkflowAgent) -> int:
        called.append(agent)
        return 10 * agent.turn_number

    writer = writer_of()
    agent = agent_of(
        """
steps:
  - {name: s, type: llm, prompt: '{balance} {artifacts}', run_if: tick < 4}
  - {name: t, type: llm, prompt: 'nothing'}
""",
        writer,
        variables={"balance": balance, "artifacts": ["a"]},
    )
    await turns_of(agent, 4)
    assert prompts_of(writer) == ['10 ["a"]', "nothing", '30 ["a"]', "nothing"]
    assert called == [agent, agent]


async def test_the_context_stands_before_the_host_and_the_host_before_the_runner() -> None:
    """Code steps and results may hide what the host provides, and the host what the runner does."""
    own = {"x": "host", "y": "host", "tick": "host"}
    found = await kept("x, y, tick", context={"x": "context"}, variables=own)
    assert found == ["context", "host", "host"]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda _agent: 1 / 0, "the variable 'x' failed: ZeroDivisionError: division by zero"),
        (lambda _agent: object(), "the variable 'x' must be data that JSON can hold, got object"),
        (lambda: 1, "the variable 'x' failed: TypeError: "),
    ],
)
@pytest.mark.parametrize("step", ["code: 'y = x'", "type: llm, prompt: '{x}'"])
async def test_a_function_that_fails_fails_the_step(function: Any, reason: str, step: str) -> None:
    """The step's policy decides what follows, and the reason names the variable."""
    agent = agent_of(f"steps: [{{name: s, on_failure: skip, {step}}}]\n", variables={"x": function})
    (run,) = (await agent.turn()).steps
    assert (run.outcome, agent.context) == ("skipped", {})
    assert run.reason is not None
    assert run.reason.startswith(reason)


@pytest.mark.parametrize("where", ["context", "variables"])
@pytest.mark.parametrize("value", [object(), float("inf"), [float("nan")], -(2**70), "\ud800"])
def test_what_is_not_data_is_refused_at_once(where: str, value: Any) -> None:
    """What JSON would not bring back is an error that names the variable."""
    with pytest.raises(FieldTypeError, match="'thing' must be data that JSON can hold, got"):
        agent_of(KEEP % "tick", **{where: {"thing": value}})


async def test_a_hosts_variable_that_code_repeats_stays_the_hosts() -> None:
    """It would never change again if it became part of the context."""
    text = "steps: [{name: s, code: 'balance = balance'}]\n"
    agent = agent_of(text, variables={"balance": lambda agent: agent.turn_number})
    await turns_of(agent, 2)
    assert agent.context == {}
