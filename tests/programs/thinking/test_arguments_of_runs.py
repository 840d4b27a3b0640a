"""The arguments of a run of a thinking agent."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.programs.thinking import CognitiveAgent, Config
from prism.testing import FakeOllama
from tests.kit.cognition import thought


class Thinker(CognitiveAgent):
    """An agent that is not the file of a configuration."""

    config = Config(goal="Think.")


class Misled(CognitiveAgent):
    """An agent whose configuration is none."""

    config: Any = "think.json"


@pytest.fixture
def options(tmp_path: Path) -> Any:
    """Return a function that makes a run of a cycle."""

    def make(world: Any = Thinker, **others: Any) -> Run[Any]:
        given = {"memory": tmp_path / "m.json", "rounds": 1, "model": "ollama:llama3.2", **others}
        return Run(world, **given)

    return make


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"world": Misled}, r"Misled\.config must be a Config, got"),
        ({"rounds": 0}, "'rounds': must be 1 or more, got 0"),
        ({"model": None}, "no model is named: add --model"),
        ({"count": "words"}, "no token counter 'words': use estimate, bytes or package"),
        ({"count": "counters:nothing"}, "nothing must return a number of tokens, got None"),
        (
            {"count": "counters:fails"},
            "cannot be used: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_what_a_run_cannot_use_is_refused(
    given: dict[str, Any], problem: str, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An argument of a thinking agent that is no good is named, before a model is asked."""
    counters: Any = ModuleType("counters")
    counters.nothing = lambda text: None
    counters.fails = lambda text: 1 / 0
    monkeypatch.setitem(sys.modules, "counters", counters)
    with pytest.raises(InputError, match=problem):
        options(**given).run()


def test_a_run_without_a_memory_says_of_which_agent() -> None:
    """What a class needs is asked for by the name of the class."""
    with pytest.raises(InputError, match="'memory': is needed to run Thinker: name it"):
        Run(Thinker, model="ollama:llama3.2")


def test_tokens_are_counted_as_is_said(options: Any) -> None:
    """Each counter counts the prompt in its own way: bytes are the most that there can be."""
    counted = []
    with FakeOllama(write=lambda *_: thought()) as server:
        for count in ("estimate", "bytes"):
            model = Model("llama3.2", hosts=(server.url,))
            cycles: list[Any] = []
            options(model=model, count=count).run(cycles.append)
            counted.append(cycles[0].prompt_tokens)
    estimate, number_of_bytes = counted
    assert estimate < number_of_bytes
