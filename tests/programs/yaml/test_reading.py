"""Files that are wrong, or probably so: each problem at its line and column; and components."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.writers import prompts_of, writer_of

MACHINE = "state_machine:\n  states: [a, b]\n"
STEP = "steps: [{name: s, code: ''}]\n"

WRONG = [
    # what each type requires
    ("steps:\n  - {name: 3, code: '', on_failure: retyr, max_retries: 101, reply_tokens: 0}\n",
     ["2:6: steps[0].name: Input should be a valid string, got 3",
      "2:25: steps[0].on_failure: Input should be 'retry', 'skip' or 'fail', got 'retyr'",
      "2:44: steps[0].max_retries: Input should be less than or equal to 100, got 101",
      "2:62: steps[0].reply_tokens: Input should be greater than or equal to 1, got 0"]),
    ("steps: [{name: s, type: llm, prompt: p, output: {pattern: (?!a)}}]",
     ["1:41: steps[0].output: the output schema is not a JSON Schema that prism can check: "
      "$.pattern: error: look-around, including look-ahead and look-behind, is not supported"]),
    # states and transitions
    (f"state_machine:\n  states: [a, b, a]\n{STEP}", ["2:3: state_machine.states: 2 states "
        "are called 'a': give each its own name"]),
    (f"{MACHINE}  transitions:\n    - a b\n    - from: a\n{STEP}",
     ["4:7: state_machine.transitions[0]: must be 'a -> b' or a mapping of from and to",
      "5:7: state_machine.transitions[1].to: is missing"]),
    (f"{MACHINE}  transitions:\n    - from: a\n      to: b\n      condition: 'x +'\n{STEP}",
     ["6:7: state_machine.transitions[0].condition: the condition 'x +' is not Python: "
       "invalid syntax"]),
    (f"{MACHINE}steps:\n  - name: s\n    type: transition\n    transition_map:\n      x: a\n"
     "      y: c\n",
     ["8:7: steps[0].transition_map.y: 'c' is not a state: states are a, b"]),
    # several at once: of shape, or of meaning
    ("state_machine: {states: [a], inital_state: q}\nnme: x\nsteps:\n"
     "  - {name: s, type: llm}\n  - {name: t, code: 'x = ('}\n",
     ["1:30: state_machine.inital_state: is unknown; did you mean 'initial_state'?",
      "2:1: nme: is unknown; did you mean 'name'?",
      "4:5: steps[0]: a step of type llm needs 'prompt'"]),
    (f"{MACHINE}  initial_state: z\nsteps:\n  - {{name: t, code: ''}}\n"
     "  - {name: t, code: 'x =', in_state: q}\n",
     ["3:3: state_machine.initial_state: 'z' is not a state: states are a, b",
      "4:1: steps: 2 steps are called 't': give each its own name",
      "6:15: steps[1].code: the code is not Python: invalid syntax",
      "6:28: steps[1].in_state: 'q' is not a state: states are a, b"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problems"), WRONG)
def test_every_problem_is_reported_with_its_position(
    text: str, problems: list[str], tmp_path: Path
) -> None:
    """A file that is wrong lists all that is, as file:line:column: key: message, in order."""
    path = written(tmp_path, text)
    assert [str(problem) for problem in Workflow.check(path)] == [
        f"{path}:{problem}" for problem in problems
    ]
    with pytest.raises(
        InputError, match=f"has {len(problems)} problems" if problems[1:] else "line"
    ):
        Workflow.load(path)


HAGGLER = """
state_machine:
  states: [browsing, haggling, happy]
  transitions: [browsing -> haggling, {from: haggling, to: happy, condition: offer <= budget}]
steps:
  - {name: count, code: "rounds = context.get('rounds', 0) + 1\\nbudget = 20\\noffer = 30 - rounds"}
  - {name: greet, type: llm, in_state: browsing, prompt: "Round {rounds}, {agent_id}", output: text,
     transition_to: haggling}
  - {name: decide, type: transition, in_state: haggling, run_if: rounds > 1, prompt: Buy or wait,
     transition_map: {buy: happy}}
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("transition_to: haggling", "transition_to: happy",
         "8:6: steps[1].transition_to: no transition leads from browsing to 'happy'"),
        ("{buy: happy}", "{buy: happy, wait: browsing}", "10:35: steps[2].transition_map.wait: "
         "no transition leads from haggling to 'browsing'"),
        ("in_state: haggling, run_if", "run_if", None),
    ],
)  # fmt: skip
def test_what_is_probably_a_mistake_is_a_warning(
    old: str, new: str, problem: str | None, tmp_path: Path
) -> None:
    """A target that no transition allows from any state of its step."""
    assert HAGGLER.count(old) == 1
    path = written(tmp_path, HAGGLER.replace(old, new))
    found = Workflow.check(path)
    assert [str(each) for each in found] == ([] if problem is None else [f"{path}:{problem}"])
    assert Workflow.load(path).problems == tuple(found)
    assert all(each.severity == "warning" for each in found)


def test_a_workflow_is_called_what_its_file_is() -> None:
    """The name in the file, else the file's."""
    assert Workflow.from_text(STEP, name="walk").name == "walk"
    assert Workflow.from_text(f"name: run\n{STEP}", name="walk").name == "run"


def test_unknown_keys_are_one_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are other programs' business."""
    path = written(
        tmp_path, "id: 3\nllm_model: m\nworkflow:\n  steps: [{name: s, code: '', output_key: x}]\n"
    )
    (note,) = Workflow.load(path).problems
    assert (note.severity, note.kind, note.line) == ("note", "left_out", 1)
    assert note.message == "prism ignores id, llm_model, workflow.steps[0].output_key"
    assert [record.getMessage() for record in caplog.records] == [str(note)]


MISSPELT = """\
descripton: x
workflow:
  state_machine:
    initial_state: a
    final_states: [a]
    states: [a]
    transitions: [{from: a, to: a, conditon: x}]
  steps:
    - {name: s, typ: code, code: ""}
components: {traits: {t: {prompt_fragment: p, inject_in: [s]}}}
error_handling: {max_retrys: 1}
"""


def test_a_misspelt_key_is_a_warning_with_the_nearest_one(tmp_path: Path) -> None:
    """At every level with its line, and also where a key is missing because of it."""
    found = Workflow.check(written(tmp_path, MISSPELT))
    assert [(each.line, each.message.rpartition(" ")[2]) for each in found] == [
        *((1, "'description'?"), (5, "workflow.state_machine.final_states")),
        *((7, "'condition'?"), (9, "'type'?"), (10, "'inject_into'?"), (11, "'max_retries'?")),
    ]
    path = written(tmp_path, "worflow: {}\nstatemachine: {}\nstepps: []\n")
    with pytest.raises(InputError) as raised:
        Workflow.load(path)
    for line in (
        "w.yaml:1:1: steps: is missing",
        "w.yaml:1:1: worflow: is unknown; did you mean 'workflow'?",
        "w.yaml:2:1: statemachine: is unknown; did you mean 'state_machine'?",
        "w.yaml:3:1: stepps: is unknown; did you mean 'steps'?",
    ):
        assert line in str(raised.value)


# Components

ASK = "steps: [{name: ask, type: llm, prompt: p}]\n"


def prompt_of(workflow: Workflow) -> str:
    prompt = workflow.steps[0].prompt
    assert prompt is not None
    return prompt.fill({})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a component of each kind."""
    for name in ("traits/calm", "behaviors/bold", "goals/rich"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = f"inject_into: [ask]\nprompt_fragment: Be {Path(name).name}.\n"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    (folder / "w.yaml").write_text(text, encoding="utf-8")
    return folder / "w.yaml"


@pytest.mark.parametrize("place", ["", "components", "_components", "../_components"])
def test_they_may_stand_in_a_folder_of_their_own(folder: Path, place: str) -> None:
    """Beside the file, or in a folder of several agents."""
    path = written(folder, f"{ASK}components: {{traits: [calm]}}\n")
    if place.startswith(".."):
        (folder / "agents").mkdir()
        path = path.rename(folder / "agents/w.yaml")
    if place:
        (path.parent / place).mkdir()
        (folder / "traits").rename(path.parent / place / "traits")
    workflow = Workflow.load(path)
    assert prompt_of(workflow) == "p\nBe calm."
    assert len(workflow.files) == 2
    assert list(Workflow.check(path)) == []


def test_they_may_stand_beside_the_workflow_key(folder: Path) -> None:
    """Those of an agent's file join those of the workflow; behaviors follow traits, then goals."""
    text = (
        f"workflow:\n  {ASK}  components: {{traits: [calm]}}\n"
        "components: {goals: [rich], behaviors: [bold], "
        "traits: {t: {inject_into: [ask], prompt_fragment: Be t.}}}\n"
    )
    assert (
        prompt_of(Workflow.load(written(folder, text))) == "p\nBe calm.\nBe t.\nBe bold.\nBe rich."
    )


@pytest.mark.parametrize(
    "name", ["gone", "rich", "../secret", "/etc/passwd", "a/b", "..", "a\\b", "~", "x\ny"]
)
def test_a_missing_component_is_a_warning(folder: Path, name: str) -> None:
    """The prompts stand without it; what is not a plain name is none, and leaves no folder."""
    (folder.parent / "secret.yaml").write_text("prompt_fragment: s3cret\n", encoding="utf-8")
    quoted = name.replace("\\", "\\\\").replace("\n", "\\n")
    path = written(folder, f'{ASK}components:\n  traits:\n    - "{quoted}"\n')
    workflow = Workflow.load(path)
    assert (prompt_of(workflow), len(workflow.files)) == ("p", 1)
    (warning,) = workflow.problems
    assert str(warning).startswith(f"{path}:4:7: components.traits[0]: there is no component")
    assert warning.kind == "missing_component"
    assert warning in Workflow.check(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("inject_into: [ask]\n", "bad.yaml:1:1: prompt_fragment: is missing"),
        ("a: [\n", "w.yaml:2:29: components.traits[1]: {folder}/traits/bad.yaml"),
        ("", "w.yaml:2:29: components.traits[1]: {folder}/traits/bad.yaml: is empty"),
    ],
)
def test_what_is_wrong_with_a_component_is_reported_in_its_file(
    folder: Path, text: str, problem: str
) -> None:
    """Its file, line and column; where it is no YAML at all, also the place that names it."""
    (folder / "traits/bad.yaml").write_text(text, encoding="utf-8")
    path = written(folder, f"{ASK}components: {{traits: [calm, bad]}}\n")
    (found,) = Workflow.check(path)
    assert problem.format(folder=folder) in str(found)


async def test_agents_change_no_component(folder: Path) -> None:
    """Variables are filled in anew for each prompt; a workflow serves agent after agent."""
    (folder / "traits/calm.yaml").write_text("inject_into: [ask]\nprompt_fragment: Be {mood}.\n")
    workflow = Workflow.load(written(folder, f"{ASK}components: {{traits: [calm]}}\n"))
    prompts = list[str]()
    for mood in ("calm", "bold", "calm"):
        writer = writer_of()
        await WorkflowAgent(workflow, writer, {"mood": mood}).turn()
        prompts += prompts_of(writer)
    assert prompts == ["p\nBe calm.", "p\nBe bold.", "p\nBe calm."]
