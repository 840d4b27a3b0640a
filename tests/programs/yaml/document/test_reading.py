"""Files that are wrong: every problem at once, each at its line and column."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from prism.programs.yaml import Workflow

MACHINE = "state_machine:\n  states: [a, b]\n"
STEP = "steps: [{name: s, code: ''}]\n"

WRONG = [
    # what each type requires
    ("steps:\n  - name: s\n    type: lmm\n    prompt: x\n",
     ["3:5: steps[0].type: Input should be 'llm', 'code' or 'transition', got 'lmm'"]),
    ("steps:\n  - {name: 3, code: '', on_failure: retyr, max_retries: 101}\n",
     ["2:6: steps[0].name: Input should be a valid string, got 3",
      "2:25: steps[0].on_failure: Input should be 'retry', 'skip' or 'fail', got 'retyr'",
      "2:44: steps[0].max_retries: Input should be less than or equal to 100, got 101"]),
    # the file as a whole
    ("name: x\n", ["1:1: steps: is missing"]),
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
     ["4:5: steps[0]: a step of type llm needs 'prompt'"]),
    (f"{MACHINE}  initial_state: z\nsteps:\n  - {{name: t, code: ''}}\n"
     "  - {name: t, code: 'x =', in_state: q}\n",
     ["3:3: state_machine.initial_state: 'z' is not a state: states are a, b",
      "4:1: steps: 2 steps are called 't': give each its own name",
      "6:21: steps[1].code: the code is not Python: invalid syntax",
      "6:28: steps[1].in_state: 'q' is not a state: states are a, b"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problems"), WRONG)
def test_every_problem_is_told_with_its_place(
    text: str, problems: list[str], tmp_path: Path
) -> None:
    """A file that is wrong lists all that is, as file:line:column: key: message, in order."""
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    assert [str(problem) for problem in Workflow.check(path)] == [
        f"{path}:{problem}" for problem in problems
    ]
    with pytest.raises(
        InputError, match=f"has {len(problems)} problems" if problems[1:] else "line"
    ):
        Workflow.load(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("a: [", "is not valid YAML"),
        ("steps: 1\nsteps: 2\n", "the key 'steps' appears twice"),
        ("a: &x [*x]\n", "refers to itself"),
        ("steps: !!python/object:os.system {}\n", "has the tag"),
        ("a: 1\n---\nb: 2\n", "contains a second document"),
    ],
)
def test_what_is_not_yaml_is_told_by_its_line(text: str, problem: str, tmp_path: Path) -> None:
    """The YAML's own faults come first, and alone."""
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        Workflow.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing file is an error with its name, and so is a folder."""
    for path in (tmp_path / "no.yaml", tmp_path):
        with pytest.raises(InputError, match=path.name):
            Workflow.load(path)


def test_a_workflow_is_called_what_its_file_is() -> None:
    """The name in the file, else the file's."""
    assert Workflow.from_text(STEP, name="walk").name == "walk"
    assert Workflow.from_text(f"name: run\n{STEP}", name="walk").name == "run"


@pytest.mark.parametrize(
    "text",
    [
        f"{STEP}components:\n  traits: [{', '.join(f't{n}' for n in range(40_000))}]\n",
        f"workflow:\n  {STEP}" + "".join(f"  steq{n}: 1\n" for n in range(2_000)),
        "steps:\n" + "".join(f"  - {{name: s{n}, code: '('}}\n" for n in range(4_000)),
    ],
    ids=["traits", "below", "code"],
)
def test_nobody_is_told_of_very_many_problems(text: str, tmp_path: Path) -> None:
    """Of thousands the first are collected."""
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    assert 1 <= len(Workflow.check(path)) <= 1000


def test_unknown_keys_are_one_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are other programs' business; one that is probably mistyped is a warning."""
    path = tmp_path / "w.yaml"
    path.write_text(
        "id: 3\nllm_model: m\nworkflow:\n  steps: [{name: s, code: '', output_key: x}]\n"
    )
    (note,) = Workflow.load(path).problems
    assert (note.severity, note.kind, note.line) == ("note", "left_out", 1)
    assert note.message == "prism ignores id, llm_model, workflow.steps[0].output_key"
    assert [record.getMessage() for record in caplog.records] == [str(note)]
    (warning,) = Workflow.from_text(f"componets: {{}}\n{STEP}").problems
    assert warning.severity == "warning"
    assert warning.message == "prism ignores componets (did you mean components?)"
