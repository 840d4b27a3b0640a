"""What `check` says of a workflow that runs, and probably is not meant so."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Workflow

AB = "state_machine:\n  states: [a, b]\n"
BACK = "  - {name: back, code: '', in_state: b, transition_to: a}\n"


def told(tmp_path: Path, text: str, *variables: str) -> list[str]:
    """Return what is said of a workflow, as line:column: kind: message."""
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    found = Workflow.check(path, variables)
    assert {problem.severity for problem in found} <= {"warning"}
    return [f"{item.line}:{item.column}: {item.kind}" for item in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{AB}steps:\n  - {{name: s, code: ''}}\n",
            ["2:12: no_way_out",
             "2:15: unreachable_state"],
        ),
        (
            f"{AB}steps:\n  - {{name: go, code: '', transition_to: b}}\n",
            ["2:15: no_way_out"],
        ),
        (
            "state_machine:\n  states: [a, b, c]\nsteps:\n"
            "  - {name: go, code: '', in_state: a, transition_to: b}\n" + BACK +
            "  - {name: s, code: '', in_state: c}\n",
            ["2:18: unreachable_state",
             "6:5: step_never_runs"],
        ),
        (
            f"{AB}  transitions: [a->b, b->a]\nsteps:\n"
            "  - {name: go, code: '', in_state: a, transition_to: b}\n" + BACK +
            "  - {name: s, code: '', in_state: b, transition_to: b}\n",
            ["7:5: refused_transition"],
        ),
        (
            "steps:\n  - {name: s, type: llm, prompt: '{x} {balance} {tick}', run_if: y and x}\n",
            ["2:26: unknown_variable",
             "2:26: unknown_variable",
             "2:58: unknown_variable",
             "2:58: unknown_variable"],
        ),
        (
            f"{AB}  transitions:\n    - b->a\n    - from: a\n      to: b\n      condition: z > 1\n"
            "steps:\n  - {name: go, code: '', in_state: a, transition_to: b}\n" + BACK,
            ["7:7: unknown_variable"],
        ),
        (
            "steps:\n  - name: s\n    code: |\n      n = len(tickets)\n"
            "      words = [w for w in ticket['words'] if w]\n      print(n)\n",
            ["3:5: unknown_variable",
             "3:5: unknown_variable"],
        ),
        (
            "steps:\n  - {name: s, type: llm, prompt: p}\ncomponents:\n  traits:\n    t:\n"
            "      prompt_fragment: x\n      inject_into: [s, q]\n      requires_context: [k]\n",
            ["7:24: unknown_step",
             "8:26: unknown_variable"],
        ),
    ],
)  # fmt: skip
def test_what_is_probably_not_meant(text: str, expected: list[str], tmp_path: Path) -> None:
    """Each is told at its place; the workflow runs all the same."""
    assert told(tmp_path, text) == expected
    assert Workflow.from_text(text)


@pytest.mark.parametrize(
    "text",
    [
        # several steps that ask in one state take turns
        "steps:\n  - {name: one, type: llm, prompt: p}\n  - {name: two, type: llm, prompt: p}\n",
        # the second runs in more states
        f"{AB}steps:\n  - {{name: one, type: llm, prompt: p, in_state: a, transition_to: b}}\n"
        "  - {name: two, type: transition, transition_map: {x: a}}\n",
        # set by code, by another step, by a name in the code, by the runner
        "steps:\n  - {name: one, code: \"context['x'] = 1; y = 2\"}\n"
        "  - {name: two, type: llm, prompt: '{x} {y} {two} {state} {tick}'}\n",
        # bound inside the code
        "steps:\n  - name: s\n    code: |\n      import math\n"
        "      def f(a, *b, c=1, **d):\n        return a + c + len(b) + len(d)\n"
        "      n = f(1) + sum(i for i in [1]) + math.floor(1.5)\n"
        "      try:\n        n = (m := 3) + m\n      except ValueError as error:\n"
        "        n = str(error)\n      for k, v in {}.items():\n        n = k + v\n"
        "      g = [h(1) for h in [lambda q: q]]\n",
        # looked for before it is used
        "steps:\n  - {name: s, code: \"x = context.get('nobody')\"}\n",
    ],
)
def test_what_is_meant_is_not_told(text: str, tmp_path: Path) -> None:
    """These are in order."""
    assert told(tmp_path, text) == []


def test_the_hosts_variables_are_known(tmp_path: Path) -> None:
    """Names that are given as provided by the host are no more told."""
    text = "steps: [{name: s, type: llm, prompt: '{balance} {x}'}]\n"
    assert len(told(tmp_path, text)) == 2
    assert told(tmp_path, text, "balance", "x") == []
