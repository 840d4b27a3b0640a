"""Prompts and their variables: what stands in them, who provides it, and how it is shown."""

import json
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import FieldTypeError
from prism.programs.yaml import WorkflowAgent
from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of, events_named, prompts_of, turns_of, writer_of

COMPONENTS = """
steps:
  - {name: look, type: llm, prompt: "Look, {agent_id}.\\n"}
components:
  goals:
    rich: {inject_into: [look], prompt_fragment: "Have {balance}."}
  traits:
    second: {inject_into: [rest, look], prompt_fragment: "Be quick.\\n"}
    other: {inject_into: [rest], prompt_fragment: "Be elsewhere."}
    first: {inject_into: [look], prompt_fragment: "Be {mood}."}
"""


async def test_a_prompt_is_the_steps_then_traits_then_goals() -> None:
    """Components follow in the order in which they are named, one a line, if they name the step."""
    writer = writer_of()
    agent = agent_of(COMPONENTS, writer, {"mood": "calm"}, variables={"balance": 7})
    await agent.turn()
    assert prompts_of(writer) == ["Look, agent.\nBe quick.\nBe calm.\nHave 7."]


async def test_an_unknown_variable_stays_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Its name stands in the step's event and in what the turn returns, in components too.

    The programmer is warned in the first turn, once for all agents of the workflow.
    """
    writer = writer_of()
    agent = agent_of(COMPONENTS, writer)
    with capture_logs() as events:
        turn = await agent.turn()
    assert "Be {mood}." in prompts_of(writer)[0]
    assert turn.steps[0].unknown == ("mood", "balance")
    (event,) = events_named(events, "workflow.step")
    assert event["unknown_variables"] == ["mood", "balance"]
    await agent.turn()
    await WorkflowAgent(agent.workflow, writer).turn()
    (warning,) = [each.getMessage() for each in caplog.records if "set" in each.getMessage()]
    assert warning == "nobody has set mood, balance, which the prompt of look names"


VALUES: dict[str, Any] = {"rate": 1 / 3, "x": 12.5, "n": 10**6, "word": "a", "list": ["a", 1]}
VALUES |= {"tiny": 1e-7, "round": 5.2e4, "yes": True, "none": None, "map": {"a": {"b": 1}}}
VALUES |= {"braces": "{x}"}


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        # a text stands as it is and all else as JSON; what it brings is not looked through again
        ("<{word}> {n} {none} {list} {map} {braces}", '<a> 1000000 null ["a",1] {"a":{"b":1}} {x}'),
        # a number with the fewest digits that are exact, as in every other prompt
        ("{tiny} {round} {x}", "0.0000001 52000 12.5"),
        # a prompt that doubles its braces, as `str.format` wants it, is asked with single ones
        ('{{"id": "{n}_notes", "of": {{"a": [{n}]}}}}',
         '{"id": "1000000_notes", "of": {"a": [1000000]}}'),
        ("{{x}} is {{{x}}}, {x:+.1f}", "{x} is {12.5}, +12.5"),
        # numbers may have plain formats; what is no number is shown as without one
        ("{rate:.0%}", "33%"),
        ("{x:,.2f} {n:,} {n:d} {n:05d} {x:e}", "12.50 1,000,000 1000000 1000000 1.250000e+01"),
        ("{n:.1f} {x:d}", "1000000.0 12"),
        ("{word:.0%} {list:+.0f} {yes:d} {none:.1f}", 'a ["a",1] true null'),
        # neither a number's format nor one that is bounded
        ("{x:1} {x:>9} {x:.999f} {x:1000000d} {x.real:d} {x!r:.0f}",
         "{x:1} {x:>9} {x:.999f} {x:1000000d} {x.real:d} {x!r:.0f}"),
        ('{"x": 1} {x:}', '{"x": 1} {x:}'),
    ],
)  # fmt: skip
async def test_how_values_are_shown(prompt: str, shown: str) -> None:
    """In a prompt as it is written."""
    writer = writer_of()
    text = f"steps: [{{name: s, type: llm, prompt: {json.dumps(prompt)}}}]\n"
    await agent_of(text, writer, VALUES).turn()
    assert prompts_of(writer) == [shown]


async def test_a_prompt_that_is_too_long_is_not_built() -> None:
    """A long variable that is named very often fails the step."""
    prompt = "{x}" * 100_000
    text = f"steps: [{{name: s, type: llm, on_failure: skip, prompt: '{prompt}'}}]\n"
    (run,) = (await agent_of(text, context={"x": "a" * 1_000_000}).turn()).steps
    assert (run.outcome, "characters" in str(run.reason)) == ("skipped", True)


# Who provides a variable

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

    def act(action: Any) -> str:
        if action.turn == 2:
            raise OSError("gone")
        return "found it"

    names = "last_action_result, success_rate, action_history"
    found = {"action": {"kind": "wait"}, "result": "found it", "succeeded": True}
    failed = {**found, "result": "failed: OSError: gone", "succeeded": False}
    history = [found, failed, found]
    assert await kept(names, after=3, on_action=act) == [failed["result"], 0.5, history[:2]]
    assert await kept(names, after=4, on_action=act) == ["found it", 2 / 3, history]


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


async def test_a_hosts_variable_that_code_repeats_stays_the_hosts() -> None:
    """It would never change again if it became part of the context."""
    text = "steps: [{name: s, code: 'balance = balance'}]\n"
    agent = agent_of(text, variables={"balance": lambda agent: agent.turn_number})
    await turns_of(agent, 2)
    assert agent.context == {}


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
    assert str(run.reason).startswith(reason)


@pytest.mark.parametrize("where", ["context", "variables"])
@pytest.mark.parametrize("value", [object(), float("inf"), [float("nan")], -(2**70), "\ud800"])
def test_what_is_not_data_is_refused_at_once(where: str, value: Any) -> None:
    """What JSON would not bring back is an error that names the variable."""
    with pytest.raises(FieldTypeError, match="'thing' must be data that JSON can hold, got"):
        agent_of(KEEP % "tick", **{where: {"thing": value}})
