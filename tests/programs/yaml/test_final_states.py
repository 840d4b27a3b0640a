"""Final states: what a file declares, and an agent that is done."""

from pathlib import Path

import orjson
import pytest

from tests.kit import kept as runs

pytest.importorskip("pydantic_monty")

from prism import Run, replay, resume
from prism.errors import InputError
from prism.programs.yaml import Workflow
from prism.testing import ScriptedWriter
from tests.kit.structlogs import capture_logs
from tests.kit.writers import agent_of

DONE = """
name: w
state_machine:
  states: [open, shipped]
  final_states: [shipped]
  transitions: [{from: "*", to: shipped, condition: n > 1}]
steps:
  - {name: count, code: "n = context.get('n', 0) + 1", transition_to: shipped}
  - {name: ask, type: llm, prompt: "{n}", output: text}
"""


async def test_a_turn_says_that_the_agent_is_done() -> None:
    """The turn that reaches a final state is the last: no step behind it runs, nobody is asked."""
    writer = ScriptedWriter(["go on"])
    agent = agent_of(DONE, writer)
    first, second = [await agent.turn() for _ in range(2)]
    assert (first.has_finished, first.state, len(first.steps)) == (False, "open", 2)
    assert (second.has_finished, second.state, len(second.steps)) == (True, "shipped", 1)
    assert not second.has_stopped
    writer.assert_used_up()


async def test_a_done_agent_takes_no_turn() -> None:
    """A turn in a final state changes, counts and logs nothing."""
    agent = agent_of(DONE, ScriptedWriter([]), {"n": 1})
    await agent.turn()
    saved = agent.to_dict()
    with capture_logs() as events:
        turn = await agent.turn()
    assert (turn.number, turn.state, turn.steps, turn.has_finished) == (1, "shipped", (), True)
    assert (agent.to_dict(), events) == (saved, [])


async def test_no_wildcard_leaves_a_final_state() -> None:
    """Neither ``*`` nor a workflow without a list of transitions leads out of one."""
    listed = Workflow.from_text(DONE).chart
    free = Workflow.from_text(DONE.replace("  transitions:", "  # ")).chart
    for chart in (listed, free):
        assert {state.value for state in chart.final_states} == {"shipped"}
        assert {item.source.value for item in chart.transitions} == {"open"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[shipped]", "[gone]", r"w, line 5, .*: 'gone' is not a state: states are open, shipped"),
        (
            '"*"',
            "[open, shipped]",
            r"w, line 6, .* leaves 'shipped', which is a final state",
        ),
        (
            '{from: "*", to: shipped, condition: n > 1}',
            "shipped->open",
            r"w, line 6, .* leaves",
        ),
        ("[shipped]", "shipped", r"w, line 5, .*list"),
    ],
)
def test_what_is_wrong_with_final_states_is_told(old: str, new: str, message: str) -> None:
    """Unknown ones, and transitions that leave one, are errors at their place."""
    with pytest.raises(InputError, match=message):
        Workflow.from_text(DONE.replace(old, new, 1), name="w")


def test_a_run_of_turns_ends_there_as_complete(tmp_path: Path) -> None:
    """Turns that are left are not taken; the run is over, and there is nothing to resume."""
    file, out = tmp_path / "w.yaml", tmp_path / "run"
    text = "".join(line for line in DONE.splitlines(keepends=True) if "ask" not in line)
    file.write_text(text, encoding="utf-8")
    results = runs.begin(Run(file, rounds=10), out).results
    assert (results.turns, results.state, results.has_finished) == (2, "shipped", True)
    assert results.failure is None
    assert results.to_dict()["has_finished"] is True
    log = (out / "events.jsonl").read_bytes()
    names = [orjson.loads(line)["event"] for line in log.splitlines()]
    assert names.count("round.ended") == 2
    assert names[-1] == "run.ended"
    assert resume(out) is None

    again = tmp_path / "again"
    replay(out, again)
    assert (again / "events.jsonl").read_bytes() == log
