"""``prism workflow run`` with files as they are in use, and with actions."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism.programs.yaml import Workflow
from prism.testing import FakeOllama
from tests.cli.test_workflow import log_of
from tests.kit.commands import Prism
from tests.kit.models import Filler
from tests.kit.processes import ROOT

# files in use

AGENTS = ROOT / "tests" / "data" / "agents"
OF_HOST = {
    "working_memory": {"aim": "a lamp", "step": "light it"},
    "balance": 100,
    "revenue": 12.5,
    "success_rate": 0.4,
    "artifacts": ["a lamp"],
    "my_artifacts": [],
    "economic_context": "Prices fall.",
    "topic": "lamps",
    "fuel": 3,
}
IN_USE = sorted(path.stem for path in AGENTS.glob("*.yaml"))


@pytest.fixture
def reader() -> Iterator[FakeOllama]:
    """Return a server whose model writes what its schema allows."""
    with FakeOllama(write=Filler()) as running:
        yield running


@pytest.mark.parametrize("name", IN_USE)
@pytest.mark.slow
def test_files_in_use_go_round_their_states(prism: Prism, reader: FakeOllama, name: str) -> None:
    """They load without a change; agents get to all states, but for those that they never chose."""
    path = AGENTS / f"{name}.yaml"
    given = [
        item for key, value in OF_HOST.items() for item in ("--set", f"{key}={json.dumps(value)}")
    ]
    model = ("--model", "llama3.2", "--host", reader.url, "--echo-actions")
    ran = prism("run", path, "--rounds", 60, *model, *given, "--out", "run")
    assert ran.status == 0, ran.err
    notes = [line for line in ran.err.splitlines() if "prism ignores" in line]
    assert notes == ran.err.splitlines()
    assert len(notes) == 1
    moved = [
        event["to_state"] for event in events_of(prism.folder / "run", "statechart.transition")
    ]
    definition = Workflow.load(path).definition
    chosen = {state for step in definition.steps for state in step.transition_map.values()}
    assert {*definition.states} - chosen <= {*moved, definition.initial}
    assert len(moved) > 15 or moved[-1] in definition.final_states


def events_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the events of a run's log that have a name."""
    events = map(orjson.loads, log_of(folder).splitlines())
    return [event for event in events if event["event"] == name]


# actions and refusals

ACTING = """\
state_machine:
  states: [a, b]
  final_states: [b]
  transitions: [{from: a, to: b, condition: "last_action_result == 'done'"}]
steps:
  - {name: act, type: llm, prompt: "Act.", transition_to: b}
"""
ACT = '{"reasoning": "so", "action": {"kind": "wait", "for": 3}}'
SCRIPT = """\
import json, sys
asked = json.load(sys.stdin)
assert (asked["agent_id"], asked["turn"], asked["step"]) == ("agent", int(asked["key"][0]), "act")
with open("acted", "a") as file:
    file.write(json.dumps(asked["action"]) + "\\n")
print(json.dumps("done" if asked["turn"] > 1 else {"kind": asked["action"]["kind"]}))
"""


@pytest.fixture
def acting(prism: Prism) -> Iterator[tuple[object, ...]]:
    """Return the command of a run whose model wants something done in every turn."""
    (prism.folder / "acting.yaml").write_text(ACTING)
    (prism.folder / "act.py").write_text(SCRIPT)
    with FakeOllama(write=lambda *_: ACT) as server:
        yield (
            "run",
            "acting.yaml",
            "--rounds",
            3,
            "--model",
            "llama3.2",
            "--host",
            server.url,
        )


@pytest.mark.slow
def test_a_command_carries_out_actions(prism: Prism, acting: tuple[object, ...]) -> None:
    """It reads the action as JSON and writes what came of it, which conditions and prompts see."""
    ran = prism(*acting, "--action", f"{sys.executable} act.py", "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    assert (prism.folder / "acted").read_text() == '{"kind": "wait", "for": 3}\n' * 2
    results = [event["result"] for event in events_of(prism.folder / "run", "workflow.action")]
    assert results == [{"kind": "wait"}, "done"]
    assert len(events_of(prism.folder / "run", "statechart.transition")) == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('no lamp')", "ended with status 1: no lamp"),
        ("print('[1')", "wrote a result that is not valid JSON: "),
        ("print('1' * 2_000_000)", "wrote more than 1,000,000 bytes"),
        ("", None),
    ],
)
@pytest.mark.sampled(4)
def test_what_a_command_fails_of_is_a_result(
    prism: Prism, acting: tuple[object, ...], code: str, said: str | None
) -> None:
    """The workflow goes on, and prompts can show it; a command that writes nothing says null."""
    (prism.folder / "act.py").write_text(code)
    ran = prism(*acting, "--action", f"{sys.executable} act.py", "--out", "run")
    assert ran.status == 0
    result = events_of(prism.folder / "run", "workflow.action")[0]["result"]
    assert result is None if said is None else said in result
    lines = " ".join(ran.out.split())
    if said is None:
        assert "actions done" in lines
        assert ran.err == ""
    else:
        assert "actions failed 3" in lines
        assert f"the last action that failed: ActionError: {sys.executable} {said}" in ran.err
        results = json.loads((prism.folder / "run" / "run.json").read_text())["results"]
        assert results["actions"] == {"failed": 3}


def test_actions_are_echoed(prism: Prism, acting: tuple[object, ...]) -> None:
    """Each is its own result; the run goes on with what it was begun with."""
    assert prism(*acting, "--echo-actions", "--out", "run").status == 0
    results = [event["result"] for event in events_of(prism.folder / "run", "workflow.action")]
    assert results == [{"kind": "wait", "for": 3}] * 3
    config = json.loads((prism.folder / "run" / "run.json").read_text())["config"]
    assert (config["action"], config["echo_actions"]) == (None, True)


def test_the_summary_names_what_was_refused(prism: Prism, acting: tuple[object, ...]) -> None:
    """Step, states, how often and by which condition; run.json has the same."""
    ran = prism(*acting, "--echo-actions", "--out", "run")
    lines = " ".join(ran.out.split())
    assert "refused step from to times why" in lines
    assert "act a b 3 the condition \"last_action_result == 'done'\" is false" in lines
    (refused,) = json.loads((prism.folder / "run" / "run.json").read_text())["results"]["refused"]
    assert (refused["step"], refused["target"], refused["times"]) == ("act", "b", 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--action", "no-such-command x"), "--action there is no command 'no-such-command x'"),
        (("--action", "'"), "--action"),
        (("--action", "true", "--echo-actions"), "--action contradicts"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_actions_that_cannot_be_are_refused(
    prism: Prism, acting: tuple[object, ...], given: tuple[str, ...], said: str
) -> None:
    """Before the first turn, with status 2."""
    ran = prism(*acting, *given)
    assert ran.status == 2
    assert said in ran.err


def test_warnings_of_the_check_are_printed_by_a_run(
    prism: Prism, acting: tuple[object, ...]
) -> None:
    """The file's own first, then those of its components; what the host provides is known."""
    (prism.folder / "traits").mkdir()
    (prism.folder / "traits" / "t.yaml").write_text(
        "prompt_fragment: '{here}'\ninject_into: [act, elsewhere]\nrequires_context: [nobody]\n"
    )
    text = (
        ACTING.replace("  final_states: [b]\n", "").replace("Act.", "Act, {here} and {there}.")
        + "components: {traits: [t]}\n"
    )
    (prism.folder / "acting.yaml").write_text(text)
    ran = prism(*acting, "--set", "here=1")
    assert [line.partition(": ")[2][:8] for line in ran.err.splitlines()] == [
        "acting.y",
        "acting.y",
        "traits/t",
    ]
    assert "no step leads out of the state 'b'" in ran.err
    assert "names the variable 'there', which nobody sets" in ran.err
    assert "'here'" not in ran.err


def test_a_note_alone_is_no_finding(prism: Prism) -> None:
    """What is left out beside a workflow is said, and the check has found nothing."""
    (prism.folder / "of_others.yaml").write_text(
        "id: x\nworkflow: {steps: [{name: s, code: ''}]}\n"
    )
    ran = prism("workflow", "check", "of_others.yaml")
    said = "prism: of_others.yaml:1:1: id: prism ignores id\n"
    assert (ran.status, ran.out, ran.err) == (0, "", said)
