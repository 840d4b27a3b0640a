"""The published schema of workflow files, held to what the loader accepts."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from prism.programs.yaml import Workflow
from prism.programs.yaml._file import SCHEMA_NAME, workflow_schema

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
        "phases": {"p": {}},
    },
    "id": "trader_1",
    "enabled": True,
}
BARE: dict[str, Any] = {"steps": [{"name": "c", "code": ""}], "name": "x"}


@pytest.mark.parametrize("document", [AGENT, BARE])
def test_both_accept_what_is_right(document: Any) -> None:
    """Every key, and keys of other programs beside a workflow and in its components."""
    Workflow.from_text(json.dumps(document))
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": []},
        {"steps": [{"name": "", "code": ""}]},
        {"steps": [{"name": "s", "code": "", "type": "lmm"}]},
        {"steps": [{"name": "s", "code": "", "max_retries": 101}]},
        {"steps": [{"name": "s", "code": "", "on_failure": "stop"}]},
        {"state_machine": {"states": []}},
        {"state_machine": {"states": ["a"], "transitions": ["a"]}},
        {"state_machine": {"states": ["a"], "transitions": [{"from": "a"}]}},
        {"components": {"traits": {"t": {"inject_into": ["c"]}}}},
        {"error_handling": {"max_retries": -1}},
    ],
)
def test_both_refuse_what_is_wrong(change: dict[str, Any]) -> None:
    """Whatever the shape of a file can say."""
    document = {**BARE, **change}
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(InputError):
        Workflow.from_text(json.dumps(document))


def test_the_published_schema_is_current() -> None:
    """The file in the documentation is what the models give, and a schema."""
    published = json.loads((DOCS / SCHEMA_NAME).read_text(encoding="utf-8"))
    assert published == workflow_schema()
    jsonschema.Draft202012Validator.check_schema(published)
