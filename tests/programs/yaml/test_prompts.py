"""Prompts: the step's, then the components that name it, with variables, the same every time."""

import json
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of, prompts_of, said, writer_of

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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a text", "a text"),
        (3, "3"),
        (None, "null"),
        (["a", 1], '["a",1]'),
        ({"a": {"b": 1}}, '{"a":{"b":1}}'),
        ("{x}", "{x}"),
    ],
)
async def test_how_values_are_shown(value: Any, shown: str) -> None:
    """A text stands as it is and all else as JSON; what it brings is not looked through again."""
    writer = writer_of()
    agent = agent_of(
        "steps: [{name: s, type: llm, prompt: '<{x}>'}]\n", writer, {"x": value, "secret": "s"}
    )
    await agent.turn()
    assert prompts_of(writer) == [f"<{shown}>"]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ('{{"id": "{x}_notes", "of": {{"a": [{x}]}}}}', '{"id": "1_notes", "of": {"a": [1]}}'),
        ("{{x}} is {{{x}}}, {x:+.1f}", "{x} is {1}, +1.0"),
        ("{{", "{"),
    ],
)
async def test_doubled_braces_are_single_ones(written: str, asked: str) -> None:
    """A prompt that doubles its braces, as `str.format` wants it, is asked with single ones."""
    writer = writer_of()
    agent = agent_of(
        f"steps: [{{name: s, type: llm, prompt: {json.dumps(written)}}}]\n", writer, {"x": 1}
    )
    await agent.turn()
    assert prompts_of(writer) == [asked]


async def test_an_unknown_variable_stays_and_is_logged() -> None:
    """Its name stands in the step's event and in what the turn returns, in components too."""
    writer = writer_of()
    agent = agent_of(COMPONENTS, writer)
    with capture_logs() as events:
        turn = await agent.turn()
    assert "Be {mood}." in prompts_of(writer)[0]
    assert turn.steps[0].unknown == ("mood", "balance")
    (event,) = said(events, "workflow.step")
    assert event["unknown_variables"] == ["mood", "balance"]


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("{rate:.0%}", "33%"),
        ("{x:+.0f}", "+12"),
        ("{x:,.2f} {n:,} {n:d} {n:05d} {x:e}", "12.50 1,000,000 1000000 1000000 1.250000e+01"),
        ("{n:.1f} {x:d}", "1000000.0 12"),
        ("{word:.0%} {list:+.0f} {yes:d} {none:.1f}", "a [1] true null"),
        # neither a number's format nor one that is bounded
        ("{x:1} {x:>9} {x:.999f} {x:1000000d} {x.real:d} {x!r:.0f}",
         "{x:1} {x:>9} {x:.999f} {x:1000000d} {x.real:d} {x!r:.0f}"),
        ('{"x": 1} {x:}', '{"x": 1} {x:}'),
    ],
)  # fmt: skip
async def test_numbers_may_have_plain_formats(prompt: str, shown: str) -> None:
    """What is no number is shown as without a format."""
    writer = writer_of()
    context = {"rate": 1 / 3, "x": 12.5, "n": 10**6, "word": "a", "list": [1], "yes": True}
    steps = f"steps: [{{name: s, type: llm, prompt: '{prompt}'}}]\n"
    await agent_of(steps, writer, {**context, "none": None}).turn()
    assert prompts_of(writer) == [shown]


async def test_a_prompt_that_is_too_long_is_not_built() -> None:
    """A long variable that is named very often fails the step."""
    prompt = "{x}" * 100_000
    text = f"steps: [{{name: s, type: llm, on_failure: skip, prompt: '{prompt}'}}]\n"
    (run,) = (await agent_of(text, context={"x": "a" * 1_000_000}).turn()).steps
    assert (run.outcome, "characters" in str(run.reason)) == ("skipped", True)
