"""Whether a world gives the same run in columns is found by running it in both engines."""

from pathlib import Path

import pytest

from prism.columns import compare_engines
from prism.worlds import Run
from tests.columns.worlds import Epidemic
from tests.columns.written import town


class Telling(Epidemic):
    """A world that asks how its agents are kept, which is none of its business."""

    tells: str = "nothing"

    def round_ends(self) -> None:
        """Keep or log it, from the second round on."""
        how = len(type(self.agents).__name__)
        if self.round == 2 and self.tells == "the fields":
            self.agents[0].met = how
        if self.round == 2 and self.tells == "the log":
            self.log("kept", how=how)


def test_a_world_may_be_the_same_in_both_engines() -> None:
    """Where logs and fields agree after each round, nothing is found."""
    assert compare_engines(Run(Telling, 9, rounds=1)) == []


@pytest.mark.parametrize("tells", ["the fields", "the log"])
def test_the_first_difference_is_told_with_its_round(tells: str) -> None:
    """A finding says in which round the engines part, and whether in the log or in fields."""
    (found,) = compare_engines(Run(Telling, 9, rounds=2, parameters={"tells": tells}))
    assert found.round == 2
    assert found.problem.endswith(f"the first difference is in {tells}")


def test_what_cannot_be_compiled_is_found_by_its_line(tmp_path: Path) -> None:
    """Reasons against columns are findings, each with its place."""
    (found,) = compare_engines(Run(town("self.stop()", tmp_path), 5))
    assert found.where.endswith("written.py:55")
    assert found.problem == "Town.step: self.stop: let until say when the run ends"
