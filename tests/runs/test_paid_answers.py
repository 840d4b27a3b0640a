"""A folder that holds one answer of a model is never deleted: somebody has paid for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism import Run, resume
from prism.errors import InputError
from prism.examples import Rumour
from prism.llm import Model
from prism.runlog import read_prompts
from prism.testing import FakeOllama
from tests.kit.dice import tree


class Failing(Rumour):
    """A rumour whose first round ends with an error of prism's own."""

    mended = False

    def round_ends(self) -> None:
        """Look for an agent that does not exist, until somebody mends it."""
        if not self.mended:
            raise InputError("has no such agent", path=Path("people.csv"))


def run_of(world: Any, server: FakeOllama, **settings: Any) -> Run:
    model = Model("llama3.2", hosts=(server.host,), mode="chat", **settings)
    return Run(world, 20, rounds=2, seed=1, model=model)


@pytest.mark.parametrize("records", [False, True])
def test_an_error_in_the_first_round_keeps_answers(
    records: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log and prompts stay, and the run goes on from them once the mistake is mended."""
    folder = tmp_path / "run"
    with FakeOllama() as server:
        with pytest.raises(InputError, match="has no such agent"):
            run_of(Failing, server, record_prompts=records or None).keep(folder)

        lines = map(json.loads, (folder / "events.jsonl").read_bytes().splitlines())
        paid = [line for line in lines if line.get("source") == "model"]
        assert paid
        if records:
            assert len(list(read_prompts(folder))) == len(paid)

        monkeypatch.setattr(Failing, "mended", True)
        assert resume(folder) is not None
        asked = server.asked

    with FakeOllama() as server:
        run_of(Failing, server).keep(tmp_path / "whole")
        # what was answered is not asked again, unless its prompt has to be recorded
        assert asked == server.asked + len(paid) * records


def test_an_error_before_any_answer_leaves_nothing(tmp_path: Path) -> None:
    """A run without a model would fail again, so its folder can be used at once."""
    with pytest.raises(InputError, match="has no such agent"):
        Run(Failing, 20, rounds=2, seed=1).keep(tmp_path / "run")
    assert tree(tmp_path) == {}
