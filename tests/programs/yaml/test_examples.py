"""The complete workflows of the documentation, scripted and against a server."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Action, Workflow, WorkflowAgent
from prism.testing import FakeOllama
from tests.kit.models import Filler
from tests.kit.writers import turns_of, writer_of

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = DOCS / "workflows"
IN_USE = sorted((DOCS.parent / "tests/data/agents").glob("*.yaml"))
SPECIFIED = ["observing", "ideating", "implementing", "testing", "reflecting", "shipping"]

HOST: dict[str, Any] = {
    "balance": 100,
    "artifacts": ["a counter"],
    "my_artifacts": [],
    "economic_context": "Prices fall.",
}
TICKETS = {"ticket": {"id": 1, "from": "ada@vip.example"}, "customer": "Ada", "text": "It broke."}
KNOWN = {
    "builder": HOST,
    "support": TICKETS,
    "essay": {"topic": "night trains", "words": 200},
}


def acting(kind: str) -> str:
    return json.dumps({"reasoning": "so", "action": {"kind": kind}})


def builder_says(prompt: str, reflected: str) -> str:
    if "What will you build?" in prompt:
        return '{"idea": "a better counter", "confidence": 0.8}'
    if "choose ONE" in prompt:
        return reflected

    return acting("look")


async def walk(agent: WorkflowAgent, number: int) -> list[str]:
    return [turn.state for turn in await turns_of(agent, number)]


@pytest.mark.parametrize("name", KNOWN)
def test_nothing_is_wrong_with_the_examples(name: str) -> None:
    """They load, and nothing is left out."""
    assert list(Workflow.check(FOLDER / f"{name}.yaml")) == []


async def test_the_specifications_agent() -> None:
    """It looks twice, has an idea, builds, tests, reflects, ships, and looks again."""
    agent = WorkflowAgent(
        Workflow.load(FOLDER / "builder.yaml"),
        writer_of(lambda call: builder_says(call.prompt, "C) SHIP")),
        variables=HOST,
        on_action=lambda action: "it worked",
        turns=20,
    )
    assert sorted(agent.workflow.chart.states) == sorted(SPECIFIED)
    assert await walk(agent, 8) == [
        "observing",  # there is no context yet
        "ideating",
        "ideating",  # an idea, taken up in the next turn
        "testing",
        "reflecting",
        "shipping",
        "observing",
        "ideating",
    ]
    assert agent.context["idea"] == "a better counter"
    assert agent.context["success_rate"] == 1.0


async def test_a_model_that_only_reads_its_prompts_goes_round(connect: Any) -> None:
    """What it decided lately stands in the prompt, so that it gets to all six states."""
    with FakeOllama(models=["tiny"], write=Filler()) as server:
        agent = WorkflowAgent(
            Workflow.load(FOLDER / "builder.yaml"), connect(server), variables=HOST,
            on_action=lambda action: "it worked",
        )  # fmt: skip
        states = await walk(agent, 24)
    assert set(states) == set(SPECIFIED)


async def test_the_support_desk() -> None:
    """Somebody important gets an answer before the ticket is handed on."""
    done: list[Action] = []
    reply = '{"action": {"kind": "reply", "text": "We look into it."}}'
    script = {"Can you answer": "hand on", "Answer Ada": reply, "Sum up": "Ada's is broken."}

    def says(call: Any) -> str:
        return next(text for begin, text in script.items() if begin in call.prompt)

    agent = WorkflowAgent(
        Workflow.load(FOLDER / "support.yaml"), writer_of(says), variables=TICKETS,
        on_action=done.append,
    )  # fmt: skip
    assert await walk(agent, 1) == ["reading"]  # refused: important, and not answered yet
    script["Can you answer"] = "answer"
    assert await walk(agent, 2) == ["answering", "reading"]
    assert [action.action["text"] for action in done] == ["We look into it."]

    agent.context["answers"] = 1
    script["Can you answer"] = "Hand on."
    assert await walk(agent, 2) == ["handing_on", "reading"]
    assert agent.context["hand_on"] == "Ada's is broken."


@pytest.mark.parametrize(
    ("answers", "states", "verdict"),
    [
        (["accept"], ["reviewing", "done"], None),
        (["revise", "accept"], ["reviewing", "drafting", "reviewing", "done"], None),
        (["revise"] * 3, ["reviewing", "drafting"] * 2 + ["done"], "out of time"),
    ],
)
async def test_the_essay(answers: list[str], states: list[str], verdict: str | None) -> None:
    """It is drafted and reviewed until it is accepted, three times at most."""
    left = iter(answers)
    agent = WorkflowAgent(
        Workflow.load(FOLDER / "essay.yaml"),
        writer_of(
            lambda call: next(left) if "editor. A draft" in call.prompt else "A night train."
        ),
        KNOWN["essay"],
    )
    assert await walk(agent, len(states)) == states
    assert agent.context.get("verdict") == verdict
    assert agent.context["draft"] == "A night train."


@pytest.mark.parametrize("path", IN_USE, ids=lambda path: path.stem)
async def test_agents_in_use_load_and_run(path: Path, connect: Any) -> None:
    """Keys of other programs are at most one note; ten turns pass without a step that fails."""
    problems = Workflow.check(path)
    assert len([each for each in problems if each.kind == "left_out"]) <= 1
    assert all(each.severity != "error" for each in problems)
    with FakeOllama(models=["tiny"], write=Filler()) as server:
        agent = WorkflowAgent(
            Workflow.load(path), connect(server), {"successes": 1}, turns=10,
            variables=HOST | {"working_memory": {}}, on_action=lambda action: "it worked",
        )  # fmt: skip
        await turns_of(agent, 10)
    assert agent.failure is None
