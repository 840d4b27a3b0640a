"""The configuration: pydantic models, and files that are checked with line and key."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.programs.thinking import Config, Iterate, ThinkingLog

LKJAGENT: dict[str, Any] = {
    "version": "1",
    "llm": {"endpoint": "http://localhost", "model": "x"},
    "agent": {
        "state": {
            "base": {"prompt": {"role": "R", "instructions": "I"}},
            "thinking": {
                "prompt": {
                    "purpose": "p",
                    "output_example_1": {"a": 1},
                    "state_description": {"thinking": "T", "evaluating": "E"},
                }
            },
            "executing": {"prompt": {"available_actions": {"storage_load": "Load"}}},
            "paging": {"prompt": "Page."},
        },
        "thinking_log": {"enable": True, "max_entries": 4, "key_prefix": "tl_"},
        "paging_limit": {"enable": True, "max_tokens": 1500},
        "hard_limit": {"max_tokens": 3000},
        "iterate": {"enable": True, "max_iterations": 7.0},
    },
}


def test_a_file_of_lkjagent_is_read(tmp_path: Path) -> None:
    """What prism has no use for is left out with one note of every key."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LKJAGENT, indent=1))
    (note,) = Config.check(path)
    assert note.severity == "note"
    for key in ("version", "llm", "agent.state.thinking.prompt.purpose", "evaluating"):
        assert key in note.message
    config = Config.load(path)
    assert (config.role, config.instructions) == ("R", "I")
    assert config.state_description.thinking == "T"
    assert config.available_actions.storage_save is None
    assert config.available_actions.storage_load == "Load"
    assert config.thinking_log == ThinkingLog(max_entries=4, key_prefix="tl_")
    assert (config.paging_limit.max_tokens, config.hard_limit.max_tokens) == (1500, 3000)
    assert config.iterate.max_iterations == 7


def test_a_configuration_is_written_and_read() -> None:
    """All settings are in the file that ``think init`` writes."""
    config = Config(goal="G", iterate=Iterate(enable=False))
    assert Config.from_text(config.to_json()) == config


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ('"hard_limit": {"max_tokens": 0}', "agent.hard_limit.max_tokens"),
        ('"iterate": {"max_iterations": 2.5}', "agent.iterate.max_iterations"),
        ('"paging_limit": {"max_tokens": 9000}', "must not be below paging_limit"),
        ('"goal": ', "is not valid JSON"),
    ],
)
def test_what_is_wrong_is_reported_with_its_position(settings: str, problem: str) -> None:
    """The message names the file and the key."""
    text = f'{{\n "agent": {{\n  {settings}\n }}\n}}\n'
    with pytest.raises(InputError, match=problem) as raised:
        Config.from_text(text, name="c.json")
    assert raised.value.path == "c.json"
