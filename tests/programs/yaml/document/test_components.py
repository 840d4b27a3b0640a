"""Components: traits and goals, inline or in files that several workflows share."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow, WorkflowFileError

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


def test_phases_are_left_out_with_a_note(folder: Path) -> None:
    """Nobody reads them, beside the workflow or in it; a step that is a name alone is refused."""
    for text in (
        f"{ASK}components: {{phases: [a, b]}}\n",
        f"workflow:\n  {ASK}components: {{phases: 3}}\n",
    ):
        (note,) = Workflow.load(written(folder, text)).warnings
        assert (note.severity, note.kind) == ("note", "left_out")
        assert note.message == "prism ignores components.phases"
    with pytest.raises(WorkflowFileError, match="must be a mapping of keys, got 'rest'"):
        Workflow.load(written(folder, "steps: [rest]\ncomponents: {phases: [rest]}\n"))


@pytest.mark.parametrize(
    "text",
    [
        f"{ASK}components: {{folder: ../shared, traits: [calm]}}\n",
        f"workflow:\n  {ASK}components: {{folder: ../shared, traits: [calm]}}\n",
        f"workflow:\n  {ASK}  components: {{traits: [calm]}}\ncomponents: ../shared\n",
    ],
)
def test_a_file_can_name_the_folder_of_its_components(folder: Path, text: str) -> None:
    """Several agents share it; its path is taken from the file's own folder."""
    (folder / "shared").mkdir()
    (folder / "traits").rename(folder / "shared" / "traits")
    (folder / "agents").mkdir()
    path = written(folder / "agents", text)
    workflow = Workflow.load(path)
    assert prompt_of(workflow) == "p\nBe calm."
    assert len(workflow.files) == 2


def test_who_loads_a_workflow_can_name_the_folder_of_its_components(folder: Path) -> None:
    """It goes before what the file says, and serves a text or plain data that has no place."""
    text = f"{ASK}components: {{folder: nowhere, traits: [calm]}}\n"
    (folder / "agents").mkdir()
    path = written(folder / "agents", text)
    assert prompt_of(Workflow.load(path, components=folder)) == "p\nBe calm."
    assert prompt_of(Workflow.from_text(text, components=folder)) == "p\nBe calm."
    assert Workflow.check(path, components=folder) == ()


def test_prompts_have_an_end_however_often_a_fragment_joins_them(folder: Path) -> None:
    """Few values of a file could stand for gigabytes of prompts."""
    names = [f"s{number}" for number in range(100)]
    steps = "".join(f"  - {{name: {name}, type: llm, prompt: p}}\n" for name in names)
    trait = f"{{inject_into: [{', '.join(names)}], prompt_fragment: {'x' * 50_000}}}"
    text = f"steps:\n{steps}components:\n  traits:\n    t: {trait}\n"
    with pytest.raises(WorkflowFileError, match="the prompts have more than 4,000,000 characters"):
        Workflow.from_text(text)


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


def test_warnings_of_a_component_are_told_in_its_file(folder: Path) -> None:
    """A variable that there is not; steps of other workflows are no warning."""
    (folder / "traits/odd.yaml").write_text(
        "prompt_fragment: x\ninject_into:\n  - ask\n  - nowhere\nrequires_context: [k]\n",
        encoding="utf-8",
    )
    path = written(folder, f"{ASK}components: {{traits: [odd]}}\n")
    name = f"{folder}/traits/odd.yaml"
    assert [str(problem) for problem in Workflow.check(path)] == [
        f"{name}:5:20: requires_context[0]: 'odd' needs the variable 'k', which nobody sets",
    ]
