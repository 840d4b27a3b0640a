"""Configurations: what files give, and what is told of those that are wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.errors import FieldValueError, InputError
from prism.programs.thinking import (
    Config,
    ConfigFileError,
    ConfigProblem,
    Iterate,
    Limit,
    Paging,
    StorageLimits,
    ThinkingLog,
)
from prism.programs.thinking._config import AVAILABLE_ACTIONS, INSTRUCTIONS, STATE_DESCRIPTION
from tests.programs.thinking.config.examples import (
    ACTIONS,
    EXECUTING,
    FLAT,
    LKJAGENT,
    OLDEST,
    ROLE,
    THINKING,
)


def loaded(document: Any) -> Config:
    return Config.from_text(json.dumps(document))


def problems_of(text: str, folder: Path) -> list[ConfigProblem]:
    path = folder / "config.json"
    path.write_text(text, encoding="utf-8")
    return Config.check(path)


def told(document: Any) -> list[str]:
    with pytest.raises(ConfigFileError) as caught:
        loaded(document)
    return [f"{problem.key}: {problem.message}" for problem in caught.value.problems]


# What files give


def test_the_default_has_the_texts_and_figures_of_the_specification() -> None:
    """Without a file there are the specification's limits, log and texts."""
    config = Config()
    assert config.thinking_log == ThinkingLog(True, 10, "thinking_log_")
    assert (config.paging_limit, config.hard_limit) == (Limit(True, 4096), Limit(True, 8192))
    assert config.iterate == Iterate(True, 1000)
    assert config.paging == Paging("lru")
    assert config.instructions.startswith("Always respond with valid XML")
    assert loaded({}) == config


def test_what_is_written_loads_as_the_same_configuration() -> None:
    """The text of a configuration, default or not, gives the same configuration again."""
    changed = Config(
        role="r",
        instructions='i "quoted"\n<b> ü \ud83d\ude42'.encode("utf-16", "surrogatepass").decode(
            "utf-16"
        ),
        goal="a goal",
        state_description={"thinking": "t", "executing": "e", "paging": "p"},
        available_actions={**AVAILABLE_ACTIONS, "page_in": "x"},
        thinking_log=ThinkingLog(False, 3, "log-"),
        paging_limit=Limit(False, 2000),
        hard_limit=Limit(False, 1000),
        iterate=Iterate(False, 5),
        paging=Paging("model"),
    )
    for config in (Config(), changed):
        assert Config.from_text(config.to_json()) == config


def test_a_file_of_lkjagent_loads_and_what_is_not_used_is_noted_once() -> None:
    """Its settings are read; what prism does not use is named in one warning."""
    config = loaded(LKJAGENT)
    assert (config.role, config.instructions) == (ROLE, "Reply in XML.")
    assert config.state_description == {
        "thinking": THINKING,
        "executing": EXECUTING,
        "paging": "Choose what leaves working memory.",
    }
    assert config.available_actions == {
        **ACTIONS,
        "page_out": AVAILABLE_ACTIONS["page_out"],
        "page_in": AVAILABLE_ACTIONS["page_in"],
    }
    assert config.paging_limit == Limit(True, 1024)
    assert config.thinking_log.max_entries == 4

    (note,) = config.warnings
    for key in ("version", "llm", "documentation", "agent.state.paging.prompt.strategy"):
        assert key in note.message


def test_the_oldest_files_load() -> None:
    """A limit that is a bare number is the most tokens; what has no counterpart is noted."""
    config = loaded(OLDEST)
    assert config.hard_limit == Limit(True, 4096)
    assert "agent.soft_limit" in config.warnings[0].message


def test_fragments_may_stand_at_the_top() -> None:
    """The fragments of the specification are read as they stand, too."""
    config = loaded(FLAT)
    assert config.state_description["thinking"] == THINKING
    assert config.available_actions["storage_load"] == ACTIONS["storage_load"]
    assert config.warnings == ()


@pytest.mark.parametrize("state", ["base", "thinking", "executing", "paging"])
def test_descriptions_and_actions_may_stand_in_any_prompt(state: str) -> None:
    """The specification names the fragments, not the prompt that they belong to."""
    prompt = {"state_description": {"thinking": "t"}, "available_actions": {"storage_load": "l"}}
    config = loaded({"agent": {"state": {state: {"prompt": prompt}}}})
    assert config.state_description == {**STATE_DESCRIPTION, "thinking": "t"}
    assert list(config.available_actions) == ["storage_load", "page_out", "page_in"]


def test_a_prompt_may_be_a_text() -> None:
    """The base prompt's text is the role, that of a state its description."""
    states = {"base": {"prompt": "r"}, "thinking": {"prompt": "t"}}
    config = loaded({"agent": {"state": states}})
    assert (config.role, config.instructions) == ("r", INSTRUCTIONS)
    assert config.state_description["thinking"] == "t"


def test_blocks_may_leave_out_keys() -> None:
    """What a block does not say has its default."""
    config = loaded(
        {"agent": {"iterate": {"max_iterations": 7.0}, "paging_limit": {"enable": False}}}
    )
    assert config.iterate == Iterate(True, 7)
    assert isinstance(config.iterate.max_iterations, int)
    assert config.paging_limit == Limit(False, 4096)


def test_the_same_setting_twice_is_fine_if_it_says_the_same() -> None:
    """Only settings that contradict each other are refused, both places named."""
    limit = {"max_tokens": 5000}
    assert loaded({"paging_limit": limit, "agent": {"paging_limit": limit}})

    (problem,) = told({"paging_limit": limit, "agent": {"paging_limit": {"max_tokens": 4999}}})
    assert problem.startswith("agent.paging_limit.max_tokens: ")
    assert "paging_limit.max_tokens" in problem


# What is refused


@pytest.mark.parametrize(
    ("document", "key", "message"),
    [
        ({"agents": {}}, "agents", "did you mean 'agent'?"),
        ({"agent": {"paging_limits": {}}}, "agent.paging_limits", "did you mean 'paging_limit'?"),
        (
            {"agent": {"iterate": {"max_iteration": 3}}},
            "agent.iterate.max_iteration",
            "did you mean",
        ),
        ({"role": "x"}, "role", "did you mean agent.state.base.prompt.role?"),
        (
            {"available_actions": {"working_memory_remov": "x"}},
            "available_actions.working_memory_remov",
            "did you mean 'working_memory_remove'?",
        ),
        ({"agent": {"xyz": 1}}, "agent.xyz", "is unknown; known are state_description, "),
        ([], "", "must be a mapping of keys, got []"),
        ({"agent": {"goal": None}}, "agent.goal", "must be text, got nothing"),
        ({"iterate": {"enable": "true"}}, "iterate.enable", "must be true or false, got 'true'"),
        ({"iterate": {"enable": 1}}, "iterate.enable", "must be true or false, got 1"),
        ({"thinking_log": {"max_entries": 0}}, "thinking_log.max_entries", "must be at least 1, "),
        ({"thinking_log": {"max_entries": True}}, "thinking_log.max_entries", "a whole number"),
        ({"hard_limit": -5}, "hard_limit", "a mapping of keys or at least 1, got -5"),
        ({"hard_limit": {"max_tokens": 1.5}}, "hard_limit.max_tokens", "a whole number, got 1.5"),
        ({"paging": {"policy": "fifo"}}, "paging.policy", "must be 'lru' or 'model', got 'fifo'"),
        (
            {"thinking_log": {"key_prefix": "log_1"}},
            "thinking_log.key_prefix",
            "not end in a digit",
        ),
        ({"thinking_log": {"key_prefix": ""}}, "thinking_log.key_prefix", "must be letters"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(document: Any, key: str, message: str) -> None:
    """Every kind of mistake names the key, what is wrong with it, and what was probably meant."""
    (problem,) = told(document)
    assert problem.startswith(f"{key}: ")
    assert message in problem


def test_everything_that_is_wrong_is_told_at_once_with_line_and_column(tmp_path: Path) -> None:
    """A check lists all mistakes in the order of the file, each with its place."""
    text = """{
  "agent": {
    "paging_limit": {"enable": "yes", "max_tokens": 0},
    "state": {"base": {"prompt": {"rôle": "x"}}},
    "iterate": {"max_iterations": [1, {"x": ","}]}
  }, "é\\"": 1
}"""
    found = problems_of(text, tmp_path)
    assert [(problem.line, problem.column, problem.key) for problem in found] == [
        (3, 22, "agent.paging_limit.enable"),
        (3, 39, "agent.paging_limit.max_tokens"),
        (4, 35, "agent.state.base.prompt.rôle"),
        (5, 17, "agent.iterate.max_iterations"),
        (6, 6, 'é"'),
    ]
    assert str(found[0]).startswith(f"{tmp_path / 'config.json'}:3:22: agent.paging_limit.enable: ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"agent": {\n  "goal": "x",}', 2, "is not valid JSON"),
        ("", None, "is empty"),
        ('{"goal": "a", "goal": "b"}', 1, "appears twice"),
        ('{"agent": {\n  "goal": "a",\n  "goal": "b"}}', 3, "appears twice"),
        ('{"goal": "a", "goal": "b",}', 1, "is not valid JSON"),
        ('{"goal": NaN, "llm": {"a": 1, "a": 2}}', None, "NaN"),
        ('{"goal": NaN}', None, "NaN"),
        ("[" * 100_000 + "]" * 100_000, None, "is nested too deeply"),
        ('{"llm": ' + "[" * 60 + "]" * 60 + "}", None, "is nested more than 50 levels deep"),
        ('{"goal": "' + "x" * 1_000_001 + '"}', None, "has more than 1,000,000 characters"),
    ],
)
def test_what_is_no_configuration_at_all_is_an_error(
    text: str, line: int | None, message: str, tmp_path: Path
) -> None:
    """A file that is not JSON, or too large or deep, is told with its line where there is one."""
    with pytest.raises(InputError, match=message) as checked:
        problems_of(text, tmp_path)
    assert checked.value.line == line

    with pytest.raises(InputError, match=message):
        Config.load(tmp_path / "config.json")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Files that some editors of Windows write are read."""
    assert problems_of('\ufeff{"goal": "x"}', tmp_path) == []


@pytest.mark.parametrize("keys", [3_000, 3, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["x", "output_example", "agent", "thinking_log\\u0007", "k" * 200])
@pytest.mark.sampled(20)
def test_a_check_is_bounded_whatever_the_file_holds(name: str, keys: int, tmp_path: Path) -> None:
    """Of very many mistakes the first hundred are told, and long names are cut."""
    text = ", ".join(f'"{name}{number}": 1' for number in range(keys))
    shortened = f"{{{text[:900_000].rpartition(',')[0]}}}"
    prompt = f'{{"agent": {{"state": {{"base": {{"prompt": {shortened}}}}}}}}}'
    found = problems_of(prompt, tmp_path)
    assert 1 <= len(found) <= 101
    assert all(len(str(problem)) < 3_000 for problem in found)


# Limits


def test_a_hard_limit_below_the_paging_limit_is_refused() -> None:
    """It is told at the limit, also where one of them is the default; not if one does not hold."""
    (problem,) = told({"agent": {"hard_limit": {"max_tokens": 3000}}})
    assert problem.startswith("agent.hard_limit.max_tokens: ")
    assert "(4096)" in problem

    for switched_off in ("paging_limit", "hard_limit"):
        limits = {"hard_limit": {"max_tokens": 3000}, "paging_limit": {"max_tokens": 4000}}
        limits[switched_off]["enable"] = False
        assert loaded(limits)

    with pytest.raises(FieldValueError, match="hard_limit"):
        Config(hard_limit=Limit(max_tokens=3000))


@pytest.mark.parametrize("limit", ["paging_limit", "hard_limit"])
def test_a_limit_that_the_fixed_part_passes_is_refused_at_load(limit: str) -> None:
    """A limit that leaves no room is refused with the size of the prompt, unless it is off."""
    other = {"enable": False}
    limits: dict[str, Any] = {"paging_limit": other, "hard_limit": other}
    problems = told({**limits, limit: {"max_tokens": 100}})
    assert all("tokens even without memories" in problem for problem in problems)
    assert [problem.split(":")[0] for problem in problems] == [f"{limit}.max_tokens"] * len(
        problems
    )
    assert loaded({**limits, limit: {"max_tokens": 100, "enable": False}})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limit(max_tokens=0),
        lambda: Limit(max_tokens=True),
        lambda: Limit(max_tokens=10**9 + 1),
        lambda: StorageLimits(versions=-1),
        lambda: Limit(max_tokens=1.0),  # type: ignore[arg-type]
        lambda: ThinkingLog(max_entries=-1),
        lambda: ThinkingLog(key_prefix="log1"),
        lambda: ThinkingLog(key_prefix="log\n"),
        lambda: Iterate(max_iterations=0),
        lambda: Paging(policy="fifo"),  # type: ignore[arg-type]
    ],
)
def test_values_outside_their_range_are_refused_in_python_too(make: Any) -> None:
    """A configuration that is made in Python is held to the same ranges."""
    with pytest.raises(FieldValueError):
        make()
