"""The complete workflows of the documentation, scripted and against a server."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow, WorkflowAgent
from prism.reasoner import TextCall
from prism.testing import FakeOllama
from tests.kit.models import Filler
from tests.kit.writers import ACT, turns_of, writer_of

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = DOCS / "workflows"
FILES = sorted((*FOLDER.glob("*.yaml"), *(DOCS.parent / "tests/data/agents").glob("*.yaml")))
SPECIFIED = ["observing", "ideating", "implementing", "testing", "reflecting", "shipping"]

HOST: dict[str, Any] = {
    "balance": 100,
    "artifacts": ["a counter"],
    "my_artifacts": [],
    "economic_context": "Prices fall.",
    "working_memory": {},
    "ticket": {"id": 1, "from": "ada@vip.example"},
    "customer": "Ada",
    "text": "It broke.",
}


async def walk(agent: WorkflowAgent, number: int) -> list[str]:
    return [turn.state for turn in await turns_of(agent, number)]


async def test_the_specifications_agent() -> None:
    """It looks twice, has an idea, builds, tests, reflects, ships, and looks again."""

    def says(call: TextCall) -> str:
        if "What will you build?" in call.prompt:
            return '{"idea": "a better counter", "confidence": 0.8}'
        return "C) SHIP" if "choose ONE" in call.prompt else ACT

    agent = WorkflowAgent(
        Workflow.load(FOLDER / "builder.yaml"), writer_of(says), variables=HOST,
        on_action=lambda action: "it worked", turns=20,
    )  # fmt: skip
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
    writer = writer_of(
        lambda call: next(left) if "editor. A draft" in call.prompt else "A night train."
    )
    workflow = Workflow.load(FOLDER / "essay.yaml")
    agent = WorkflowAgent(workflow, writer, {"topic": "night trains", "words": 200})
    assert await walk(agent, len(states)) == states
    assert agent.context.get("verdict") == verdict
    assert agent.context["draft"] == "A night train."


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_agents_load_and_run(path: Path, connect: Any) -> None:
    """Those of the documentation, with nothing left out, and those in use, with one note at most.

    Their model only reads its prompts: what it decided lately stands there, so that it gets to all
    states of the specification. No step fails.
    """
    problems = Workflow.check(path)
    assert [each.kind for each in problems] in ([], ["left_out"] * (path.parent != FOLDER))
    with FakeOllama(models=["tiny"], write=Filler()) as server:
        agent = WorkflowAgent(
            Workflow.load(path), connect(server), {"successes": 1}, turns=24,
            variables=HOST, on_action=lambda action: "it worked",
        )  # fmt: skip
        states = await walk(agent, 24)
    assert agent.stopped is None
    assert path.stem != "builder" or {*states} == {*SPECIFIED}
