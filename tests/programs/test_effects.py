"""Effects on the outside world: in the journal, and never carried out twice."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("pydantic_monty")

from prism import Run, replay, resume
from prism.errors import TooManyFallbacksError
from prism.llm import Model
from prism.programs.yaml import Action, Workflow, WorkflowAgent
from prism.runs.dry_run import estimate
from prism.science import rerun
from prism.testing import FakeOllama, Fault
from prism.worlds import Guest, World
from tests.kit.cognition import thought
from tests.kit.kept import StoppedError, stop_after
from tests.kit.worlds import Gossip, Teller

ACT = '{"reasoning": "why not", "action": {"kind": "pay"}}'
TEXT = """
steps:
  - {name: s, type: llm, prompt: "{tick}: {last_action_result}"}
"""
PAYER = """
from pathlib import Path
from prism.programs.thinking import CognitiveAgent, Config, action

class Payer(CognitiveAgent):
    config = Config(goal="Pay.")

    @action(outside=True)
    def pay(self, to: str) -> str:
        \"\"\"Pay somebody.\"\"\"
        with Path("paid").open("a") as file:
            file.write(f"{to}\\n")
        return f"paid {to}"
"""


class Paying(World[Any]):
    """Agents whose actions a test carries out."""

    act: ClassVar[Callable[[Action], Any]]

    def populate(self, agents: int) -> list[Any]:
        """Make the agents."""
        workflow, act = Workflow.from_text(TEXT), type(self).act
        names = [f"ada {number}" for number in range(agents)]
        return [Guest(object=WorkflowAgent(workflow, agent_id=n, on_action=act)) for n in names]


@pytest.mark.parametrize(("killed", "agents"), [(1, 3), (2, 3), (None, 1)])
def test_an_action_of_a_workflow_is_carried_out_once(
    tmp_path: Path, killed: int | None, agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed behind a round, or within an action: of that one nobody knows, and it is told so.

    Agents act beside each other. None acts while costs are estimated, nor in a replay or a rerun.
    """
    done = list[tuple[str, int]]()

    async def act(action: Action) -> str:
        await asyncio.sleep(0)
        done.append((action.agent_id, action.turn))
        if killed is None and len(done) == 2:
            raise StoppedError
        return f"receipt {action.turn}"

    with FakeOllama(write=lambda *_: ACT) as server:
        model = Model("llama3.2", hosts=(server.url,))
        monkeypatch.setattr(Paying, "act", staticmethod(act), raising=False)
        run = Run(Paying, agents, rounds=4, writer=model)
        estimate(run.replace())
        assert done == []
        with pytest.raises(StoppedError):
            run.keep(tmp_path / "run", on_round=stop_after(killed or 9))
        resume(tmp_path / "run")
        prompt = server.questions[-1].body["messages"][-1]["content"]
        rerun(tmp_path / "run", tmp_path / "changed", from_round=3)
    expected = [(f"ada {number}", turn) for number in range(agents) for turn in range(1, 5)]
    assert sorted(done) == expected
    assert prompt.startswith("4: receipt 3")
    lines = (tmp_path / "run/events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    results = [event["result"] for event in events if event["event"] == "workflow.action"]
    second = "receipt 2" if killed else "failed: the run was stopped in the middle"
    assert results[agents].startswith(second)

    replay(tmp_path / "run", tmp_path / "again")
    assert sorted(done) == expected
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("run", "again")]
    assert logs[0] == logs[1]


class Heard(Gossip, Paying):
    """An agent that acts among others that decide."""

    def populate(self, agents: int) -> list[Any]:
        """Make the agents."""
        return [*Paying.populate(self, 1), *(Teller() for _ in range(1, agents))]


def test_an_action_in_a_round_that_is_done_again_is_carried_out_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends as its model fails does its last round again, without what has been done."""
    monkeypatch.setattr("prism.reasoner.questions.WINDOW", 1)
    done = list[int]()

    def act(action: Action) -> str:
        done.append(action.turn)
        if len(done) == 3:
            server.fail_always(Fault.status(400, "no"))
        return f"receipt {action.turn}"

    monkeypatch.setattr(Heard, "act", staticmethod(act), raising=False)
    with FakeOllama(write=lambda *_: ACT) as server:
        model = Model("llama3.2", hosts=(server.url,), mode="chat")
        with pytest.raises(TooManyFallbacksError):
            Run(Heard, 3, rounds=3, writer=model, reasoner=model).keep(tmp_path / "run")
        assert done == [1, 2, 3]
        server.recover()
        resume(tmp_path / "run")
    assert done == [1, 2, 3, 4, 5, 6]


def test_an_outside_action_of_a_thinking_agent_is_carried_out_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run and a replay take its result from the journal."""
    monkeypatch.chdir(tmp_path)
    Path("payer.py").write_text(PAYER)
    numbers = iter(range(100))

    def say(prompt: str, *_more: Any) -> str:
        if "You are in the state thinking" in prompt:
            return thought(f"pay {next(numbers)}", "executing")
        return json.dumps({"name": "pay", "arguments": {"to": f"ada {next(numbers)}"}})

    with FakeOllama(write=say) as server:
        model = Model("llama3.2", hosts=(server.url,))
        run = Run("payer.py:Payer", memory=Path("m.json"), rounds=8, reasoner=model)
        with pytest.raises(StoppedError):
            run.keep("run", on_round=stop_after(5))
        resume("run")
    paid = Path("paid").read_text().splitlines()
    assert len(paid) == len({*paid}) == 4
    replay("run", "again")
    assert Path("paid").read_text().splitlines() == paid
    assert Path("again/memories/agent.json").read_bytes() == Path("m.json").read_bytes()
