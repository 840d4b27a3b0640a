"""Components: traits, goals and phases, inline or in files beside the workflow."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.workflow import Workflow, WorkflowFileError
from tests.kit.writers import agent_of, prompts_of, writer_of

ASK = "steps: [{name: ask, type: llm, prompt: p}]\n"


def prompt_of(workflow: Workflow) -> str:
    prompt = workflow.steps[0].prompt
    assert prompt is not None
    return prompt.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a trait, a goal and two phases."""
    texts = {
        "traits/calm": "inject_into: [ask]\nprompt_fragment: Be calm.\n",
        "goals/rich": "inject_into: [ask]\nprompt_fragment: Be rich.\n",
        "phases/rest": "step: {code: 'x = 1'}\n",
        "phases/look": "prompt_fragment: Look.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    (folder / "w.yaml").write_text(text, encoding="utf-8")
    return folder / "w.yaml"


def test_components_are_files_beside_the_workflow(folder: Path) -> None:
    """Traits come before goals, however they are listed."""
    path = written(folder, f"{ASK}components: {{goals: [rich], traits: [calm]}}\n")
    assert prompt_of(Workflow.load(path)) == "p\nBe calm.\nBe rich."


def test_they_may_stand_in_a_folder_of_their_own(folder: Path) -> None:
    """A folder `components` beside the workflow is looked through as well, also for .yml."""
    (folder / "components").mkdir()
    (folder / "traits").rename(folder / "components" / "traits")
    (folder / "components/traits/calm.yaml").rename(folder / "components/traits/calm.yml")
    path = written(folder, f"{ASK}components: {{traits: [calm]}}\n")
    assert prompt_of(Workflow.load(path)) == "p\nBe calm."


def test_they_may_stand_beside_the_workflow_key(folder: Path) -> None:
    """Components of an agent's file join those of the workflow in it."""
    text = (
        f"workflow:\n  {ASK}  components: {{traits: [calm]}}\n"
        "components: {goals: [rich], traits: {t: {inject_into: [ask], prompt_fragment: Be t.}}}\n"
    )
    assert prompt_of(Workflow.load(written(folder, text))) == "p\nBe calm.\nBe t.\nBe rich."


def test_phases_are_steps(folder: Path) -> None:
    """A phase is a step under its own name or the file's; what stands beside it is replaced."""
    text = (
        "state_machine: {states: [a, b]}\n"
        "steps: [rest, {phase: look, in_state: b, transition_to: a, max_retries: 7}]\n"
        "components: {phases: [rest, look]}\n"
    )
    rest, look = Workflow.load(written(folder, text)).steps
    assert (rest.name, rest.kind, rest.in_state) == ("rest", "code", None)
    assert (look.name, look.kind, look.in_state) == ("look", "llm", {"b"})
    assert (look.transition_to, look.max_retries) == ("a", 7)


@pytest.mark.parametrize(
    ("kind", "name", "problem"),
    [
        ("traits", "gone", "there is no component traits/gone.yaml in {folder}"),
        ("goals", "calm", "there is no component goals/calm.yaml in {folder}"),
    ],
)
def test_a_missing_trait_or_goal_is_a_warning(
    folder: Path, kind: str, name: str, problem: str
) -> None:
    """The prompts stand without it; `check` tells its place."""
    path = written(folder, f"{ASK}components:\n  {kind}:\n    - {name}\n")
    workflow = Workflow.load(path)
    assert prompt_of(workflow) == "p"
    (warning,) = workflow.warnings
    assert str(warning) == f"{path}:4:7: components.{kind}[0]: " + problem.format(folder=folder)
    assert warning.kind == "missing_component"
    assert warning in Workflow.check(path)


def test_a_missing_phase_leaves_a_step_without_its_body(folder: Path) -> None:
    """So the file is refused, and both places are told."""
    path = written(folder, "steps: [gone]\ncomponents: {phases: [gone]}\n")
    with pytest.raises(WorkflowFileError, match="there is no phase 'gone'"):
        Workflow.load(path)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/b", "..", ".hidden", "a\\b", "~", "", "x\ny"]
)
def test_a_name_cannot_leave_the_folder(folder: Path, name: str) -> None:
    """What is not a plain name is refused before any file is looked for."""
    (folder.parent / "secret.yaml").write_text("prompt_fragment: s3cret\n", encoding="utf-8")
    quoted = name.replace("\\", "\\\\").replace("\n", "\\n")
    path = written(folder, f'{ASK}components: {{traits: ["{quoted}"]}}\n')
    with pytest.raises(WorkflowFileError, match=r"is not the name of a file|must not be empty"):
        Workflow.load(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("inject_into: [ask]\n", "bad.yaml:1:1: prompt_fragment: is missing"),
        ("prompt_fragment: x\ninjects: [ask]\n", "bad.yaml:2:1: injects: is unknown"),
        ("prompt_fragment: 3\n", "bad.yaml:1:1: prompt_fragment: must be text, got 3"),
        ("- x\n", "bad.yaml:1:1: must be a mapping"),
        ("a: [\n", "w.yaml:2:29: components.traits[1]: {folder}/traits/bad.yaml"),
        ("", "w.yaml:2:29: components.traits[1]: {folder}/traits/bad.yaml: is empty"),
    ],
)
def test_what_is_wrong_with_a_component_is_told_in_its_file(
    folder: Path, text: str, problem: str
) -> None:
    """Its file, line and column; where it is no YAML at all, also the place that names it."""
    (folder / "traits/bad.yaml").write_text(text, encoding="utf-8")
    path = written(folder, f"{ASK}components: {{traits: [calm, bad]}}\n")
    with pytest.raises(WorkflowFileError) as caught:
        Workflow.load(path)
    (found,) = caught.value.problems
    assert problem.format(folder=folder) in str(found)


def test_what_is_wrong_with_a_phase_is_told_where_it_is_written(folder: Path) -> None:
    """What the phase's own file says in that file, what stands beside its name in the workflow."""
    (folder / "phases").mkdir(exist_ok=True)
    (folder / "phases/ph.yaml").write_text(
        "step:\n  type: llm\n  promt: x\n  in_state: [1]\n", encoding="utf-8"
    )
    path = written(folder, "steps:\n  - ph\ncomponents: {phases: [ph]}\n")
    with pytest.raises(WorkflowFileError) as caught:
        Workflow.load(path)
    name = f"{folder}/phases/ph.yaml"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{name}:1:1: step.prompt: is missing in a step of type llm",
        f"{name}:3:3: step.promt: is unknown in a step of type llm; did you mean 'prompt'?",
        f"{name}:4:14: step.in_state[0]: must be text, got 1; put it in quotes",
    ]


def test_warnings_of_a_component_are_told_in_its_file(folder: Path) -> None:
    """A step or a variable that there is not, at the entry of the list that names it."""
    (folder / "traits/odd.yaml").write_text(
        "prompt_fragment: x\ninject_into:\n  - ask\n  - nowhere\nrequires_context: [k]\n",
        encoding="utf-8",
    )
    path = written(folder, f"{ASK}components: {{traits: [odd]}}\n")
    name = f"{folder}/traits/odd.yaml"
    assert [str(problem) for problem in Workflow.check(path)] == [
        f"{name}:4:5: inject_into[1]: the component 'odd' joins 'nowhere', which is no step",
        f"{name}:5:20: requires_context[0]: the component 'odd' names the variable 'k': "
        "nobody sets it",
    ]


async def test_inline_components_need_no_folder() -> None:
    """A workflow that is only a text has its components in it."""
    writer = writer_of()
    agent = agent_of(
        f"{ASK}components: {{traits: {{t: {{inject_into: [ask], prompt_fragment: t}}}}}}\n", writer
    )
    await agent.turn()
    assert prompts_of(writer) == ["p\nt"]
