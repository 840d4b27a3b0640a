"""Types of the smaller rooms, as users see them; checked by test_typing.py, never run."""

from pathlib import Path
from typing import Any, assert_type

from prism import Run, replay, resume
from prism.analysis import read_log
from prism.drawing import Arrow, Diagram, draw_svg, to_mermaid
from prism.files import write_durably
from prism.llm import Model, OllamaChatClient
from prism.programs import Turn
from prism.programs.thinking import (
    CognitiveAgent,
    Config,
    Cycle,
    Match,
    Memory,
)
from prism.programs.yaml import Problem, Workflow, WorkflowAgent
from prism.report import Page, make_report
from prism.runs import Outcome, RunFolder
from prism.social import Feed, Results
from prism.statechart import Decider, PolicyReasoner
from prism.telemetry import EventLogger, StandardLogger
from prism.watch import Watching, watch

diagram = Diagram(("a", "b"), (Arrow("a", "b", ("go",)),), initial="a")
assert_type(draw_svg(diagram), str)
assert_type(to_mermaid(diagram), str)
assert_type(make_report(read_log("runs/a")), Page)
assert_type(watch("runs/a"), Watching)
watch()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(RunFolder.for_new(Path("runs/b")), RunFolder)
assert_type(Run(Feed, 20, seed=7).keep("runs/c"), Outcome[Results])
assert_type(resume("runs/c"), Outcome[Any] | None)
assert_type(replay("runs/c"), Outcome[Any])
Run(Feed, reasoner=Model("llama3.2", mode="loud"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


write_durably("note.txt", b"")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

logger: EventLogger = StandardLogger("app")
decider: Decider = PolicyReasoner(seed=1)

workflow = Workflow.load("agent.yaml")
assert_type(workflow, Workflow)
assert_type(Run("agent.yaml", rounds=3).run(), Any)
assert_type(Run(CognitiveAgent, memory=Path("memory.json")).run(), Any)


async def one_turn(client: object) -> None:
    """A turn says what its steps did."""
    assert_type(await WorkflowAgent(workflow, client, {"balance": 100}).turn(), Turn)


config = Config(goal="to be brief")
assert_type(Config.check("config.json"), list[Problem])
with Memory.open("memory.json") as memory:
    assert_type(memory, Memory)
    thinker = CognitiveAgent(config, memory, OllamaChatClient("http://127.0.0.1:11434", "llama3.2"))
    assert_type(memory.search("a letter", limit=3), list[Match])


async def think() -> Cycle:
    """Run cycles of a thinking agent."""
    assert_type(await thinker.run(cycles=2), list[Cycle])
    return await thinker.cycle()
