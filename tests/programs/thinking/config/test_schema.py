"""The published schema of configurations, held to what the loader accepts."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import InputError
from prism.files._source import Problems, Source
from prism.programs.thinking import Config
from prism.programs.thinking._config import SCHEMA_NAME, ConfigDocument, config_schema
from tests.programs.thinking.config.examples import FLAT, LKJAGENT, OLDEST

DOCS = Path(__file__).parents[4] / "docs"
VALIDATOR = jsonschema.Draft202012Validator(config_schema())

EXAMPLES: list[Any] = [Config().to_dict(), LKJAGENT, OLDEST, FLAT, {}]
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 3.0, 2.5, 1e300, 10**9, 10**9 + 1, 10**400, "", "x", "lru",
    "model", "LRU", "log_", "log_1", "a b", "log_\n", "é_", "3", [], ["x"], {}, {"x": 1},
    {"enable": True}, {"max_tokens": 5}, {"prompt": "p"}, {"prompt": {}}, {"thinking": "t"},
]  # fmt: skip
KEYS = [
    "agent", "state", "base", "thinking", "executing", "paging", "prompt", "role", "instructions",
    "goal", "enable", "max_tokens", "max_entries", "key_prefix", "policy", "version", "llm",
    "thinking_log", "hard_limit", "state_description", "available_actions", "page_out", "purpose",
    "output_example_case9", "output_examples", "evaluating", "x", "", "max_token", "$schema",
]  # fmt: skip


def accepted(document: Any) -> bool:
    return shaped(ConfigDocument, document, Problems(Source.of(document))) is not None


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every mapping or list of a document with each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], (dict, list)):
            found += places(value[key])
    return found


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return every mapping of a document, itself included."""
    held = [owner[key] for owner, key in places(value)]
    return [item for item in (value, *held) if isinstance(item, dict)]


@st.composite
def documents(draw: st.DrawFn) -> Any:
    document = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    for _ in range(draw(st.integers(0, 3))):
        value = copy.deepcopy(draw(st.sampled_from(VALUES)))
        found = places(document)
        if not found or draw(st.booleans()):
            draw(st.sampled_from(mappings(document)))[draw(st.sampled_from(KEYS))] = value
            continue

        owner, key = draw(st.sampled_from(found))
        if draw(st.booleans()):
            owner[key] = value
        else:
            del owner[key]
    return document


@pytest.mark.parametrize("example", EXAMPLES[:4], ids=["default", "lkjagent", "oldest", "flat"])
@pytest.mark.slow
def test_every_value_at_every_place_is_accepted_by_both_or_by_neither(example: Any) -> None:
    """Each value of an example, replaced by each of many, has the right shape to both or none."""
    document = copy.deepcopy(example)
    for owner, key in places(document):
        kept = owner[key]
        for value in VALUES:
            owner[key] = value
            assert VALIDATOR.is_valid(document) == accepted(document), (key, value)
        owner[key] = kept


@given(documents())
@settings(max_examples=2 * settings().max_examples)
def test_a_file_of_the_right_shape_is_only_refused_for_what_no_schema_can_say(
    document: Any,
) -> None:
    """Beyond the shape there are limits that contradict each other, or two settings of one key."""
    beyond_the_schema = {"set_twice", "limits", "no_room"}
    try:
        Config.from_text(json.dumps(document))
    except InputError as error:
        kinds = {problem.kind for problem in getattr(error, "problems", ())}
        assert kinds
        assert (kinds <= beyond_the_schema) == VALIDATOR.is_valid(document)
    else:
        assert VALIDATOR.is_valid(document)


def test_the_published_schema_is_current() -> None:
    """The file in the documentation is the schema that the loader reads by."""
    published = json.loads((DOCS / SCHEMA_NAME).read_text(encoding="utf-8"))
    assert published == config_schema()


@pytest.mark.slow
def test_the_schema_is_a_schema() -> None:
    """It is valid draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(config_schema())
