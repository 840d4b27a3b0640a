"""Components: traits and goals, inline or in files that several workflows share."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.writers import prompts_of, writer_of

ASK = "steps: [{name: ask, type: llm, prompt: p}]\n"


def prompt_of(workflow: Workflow) -> str:
    prompt = workflow.steps[0].prompt
    assert prompt is not None
    return prompt.fill({})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a trait, a goal and two phases."""
    texts = {
        "traits/calm": "inject_into: [ask]\nprompt_fragment: Be calm.\n",
        "goals/rich": "inject_into: [ask]\nprompt_fragment: Be rich.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    (folder / "w.yaml").write_text(text, encoding="utf-8")
    return folder / "w.yaml"


def test_behaviors_stand_between_traits_and_goals(folder: Path) -> None:
    """They are components like the others, in a folder of their name."""
    (folder / "behaviors").mkdir()
    (folder / "behaviors/bold.yaml").write_text(
        "type: behavior\ninject_into: [ask]\nprompt_fragment: Be bold.\n"
    )
    path = written(folder, f"{ASK}components: {{goals: [rich], behaviors: [bold], traits: [calm]}}")
    assert prompt_of(Workflow.load(path)) == "p\nBe calm.\nBe bold.\nBe rich."


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
    """Components of an agent's file join those of the workflow in it."""
    text = (
        f"workflow:\n  {ASK}  components: {{traits: [calm]}}\n"
        "components: {goals: [rich], traits: {t: {inject_into: [ask], prompt_fragment: Be t.}}}\n"
    )
    assert prompt_of(Workflow.load(written(folder, text))) == "p\nBe calm.\nBe t.\nBe rich."


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
    (warning,) = workflow.problems
    assert str(warning) == f"{path}:4:7: components.{kind}[0]: " + problem.format(folder=folder)
    assert warning.kind == "missing_component"
    assert warning in Workflow.check(path)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", "..", "a\\b", "~", "x\ny"])
def test_a_name_cannot_leave_the_folder(folder: Path, name: str) -> None:
    """What is not a plain name is no component."""
    (folder.parent / "secret.yaml").write_text("prompt_fragment: s3cret\n", encoding="utf-8")
    quoted = name.replace("\\", "\\\\").replace("\n", "\\n")
    workflow = Workflow.load(written(folder, f'{ASK}components: {{traits: ["{quoted}"]}}\n'))
    (warning,) = workflow.problems
    assert warning.kind == "missing_component"
    assert len(workflow.files) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("inject_into: [ask]\n", "bad.yaml:1:1: prompt_fragment: is missing"),
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
    assert prompt_of(workflow) == "p\nBe {mood}."
