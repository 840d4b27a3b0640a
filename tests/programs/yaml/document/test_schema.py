"""The published schema of workflow files, held to what the loader accepts."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("yaml")
pytest.importorskip("pydantic_monty")

from prism.files._source import Source
from prism.programs.yaml import WorkflowFileError
from prism.programs.yaml._declarations import SCHEMA_NAME, workflow_schema
from prism.programs.yaml._reading import read_workflow

DOCS = Path(__file__).parents[4] / "docs"
VALIDATOR = jsonschema.Draft202012Validator(workflow_schema())

AGENT: dict[str, Any] = {
    "name": "trader",
    "version": 1.5,
    "description": "x",
    "workflow": {
        "state_machine": {
            "states": ["a", "b"],
            "initial_state": "a",
            "transitions": [
                {"from": "a", "to": "b", "condition": "x > 1"},
                {"from": ["a", "b"], "to": "a", "condition": True},
                {"from": "*", "to": "b", "condition": None},
                "a -> b",
            ],
        },
        "steps": [
            {"name": "c", "code": "x = 1", "in_state": ["a"], "run_if": False},
            {"name": "l", "type": "llm", "prompt": "p", "output": {"type": "object"}},
            {"name": "m", "type": "llm", "prompt": "p", "output": "text", "max_retries": 3},
            {"name": "t", "type": "transition", "transition_map": {"go": "b"}, "in_state": "a"},
            {"name": "u", "type": "transition", "transition_to": "b"},
        ],
        "default_on_failure": "retry",
        "default_max_retries": 2,
        "error_handling": {"default_on_failure": "fail", "max_retries": 1},
    },
    "components": {
        "traits": {"t": {"prompt_fragment": "f", "inject_into": ["l"], "requires_context": ["x"]}},
        "goals": ["g"],
        "folder": "shared",
        "phases": {"p": {}},
        "of_others": 3,
    },
    "id": "trader_1",
    "enabled": True,
}
BARE: dict[str, Any] = {"steps": [{"name": "c", "code": ""}], "name": "x"}

VALUES: list[Any] = [
    None, True, 0, -1, 3, 3.0, 2.5, 101, "", "x", "*", "a->b", "->", "llm", "code", "transition",
    "skip", "text", [], ["x"], [""], [3], {}, {"x": 1}, {"": "x"}, {"name": "n", "code": "1"},
]  # fmt: skip
KEYS = [
    "name", "type", "prompt", "code", "output", "phases", "workflow", "steps", "from", "to",
    "states", "transition_map", "transition_to", "max_retries", "x", "components", "traits",
]  # fmt: skip


NOT_OF_SHAPE = {
    "ambiguous_answers", "code", "component_name", "condition", "output", "repeated_state",
    "repeated_step", "state_name", "unknown_state",
}  # fmt: skip
"""What a schema cannot say: whether names are those of other things, and what is in texts."""


def accepted(document: Any) -> bool:
    try:
        read_workflow(Source.parse(json.dumps(document), "yaml"), "agent", None)
    except WorkflowFileError as error:
        return all(
            problem.severity == "warning" or problem.kind in NOT_OF_SHAPE
            for problem in error.problems
        )
    return True


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every mapping or list of a document with each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], (dict, list)):
            found += places(value[key])
    return found


@st.composite
def documents(draw: st.DrawFn) -> Any:
    document = copy.deepcopy(draw(st.sampled_from([AGENT, BARE])))
    for _ in range(draw(st.integers(0, 3))):
        found = places(document)
        if not found:
            break
        owner, key = draw(st.sampled_from(found))
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "replace":
            owner[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif change == "remove":
            del owner[key]
        elif isinstance(owner, dict):
            owner[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return document


@given(documents())
@example({"steps": [{"name": "t", "type": "transition"}]})
@example({"steps": [{"name": "t", "type": "transition", "transition_map": None}]})
@example({"steps": [{"name": "t", "type": "transition", "transition_to": "active"}]})
@settings(max_examples=2 * settings().max_examples)
def test_the_schema_accepts_what_the_loader_accepts(document: Any) -> None:
    """A document, changed in up to three places, has the right shape to both or to neither."""
    assert VALIDATOR.is_valid(document) == accepted(document)


def test_both_accept_the_full_example() -> None:
    """The examples that the mutations begin with are accepted."""
    assert accepted(AGENT)
    assert accepted(BARE)
    assert VALIDATOR.is_valid(AGENT)


def test_the_published_schema_is_current() -> None:
    """The file in the documentation is what the models give."""
    published = json.loads((DOCS / SCHEMA_NAME).read_text(encoding="utf-8"))
    assert published == workflow_schema()


@pytest.mark.slow
def test_the_schema_is_a_schema() -> None:
    """It is valid draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(workflow_schema())
