"""Who is treated."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Agent, Run, Statechart, World
from prism.errors import FieldValueError
from tests.kit.lamps import Light
from tests.kit.worlds import run_logged


class Person(Agent):
    """Somebody who may be treated."""

    chart = Statechart(Light, [], initial=Light.OFF)


class Town(World[Person]):
    """A town that is assigned to arms in its setup."""

    arms: tuple[tuple[str, float], ...] = (("half", 0.5),)
    experiment: str = "trust"
    mixed: int = 0

    def setup(self) -> None:
        people = Random(self.mixed).sample([*self.agents], len(self.agents))
        vars(self)["treated"] = {
            arm: {
                person.agent_id
                for person in self.assign(arm, share, people, experiment=self.experiment)
            }
            for arm, share in self.arms
        }


def treated(size: int, seed: int = 0, **parameters: Any) -> dict[str, set[str]]:
    """Return who is in which arm."""
    found: dict[str, set[str]] = vars(Run(Town(**parameters), size, seed=seed).world)["treated"]
    return found


@given(st.integers(0, 99), st.lists(st.floats(0.01, 0.33), min_size=1, max_size=3))
def test_an_arm_depends_on_the_subject_alone(seed: int, shares: list[float]) -> None:
    """Nobody is in two arms, and order and company of the subjects change nobody's arm."""
    arms = [(f"arm_{number}", share) for number, share in enumerate(shares)]
    found = treated(60, seed, arms=arms)
    assert treated(60, seed, arms=arms, mixed=1) == found
    assert sum(map(len, found.values())) == len(set().union(*found.values()))
    fewer = treated(30, seed, arms=arms)
    assert all(fewer[arm] <= found[arm] for arm, _ in arms)


def test_the_log_has_the_arm_of_everybody_once(tmp_path: Path) -> None:
    """Who is in no arm is in the control group; the lines do not depend on the order of agents."""
    shares = (("a", 0.5), ("b", 0.2))
    done, mixed = (run_logged(tmp_path, Town(arms=shares, mixed=order), 60) for order in (0, 1))
    found = {each["agent_id"]: each["arm"] for each in done.events("treatment.assigned")}
    assert [*found] == [each["agent_id"] for each in mixed.events("treatment.assigned")]
    arms = vars(done.run.world)["treated"]
    everybody = {who: next((arm for arm in "ab" if who in arms[arm]), "control") for who in found}
    assert found == everybody
    assert len(found) == len(done.events("treatment.assigned")) == 60


def test_shares_are_met_and_another_seed_or_experiment_draws_anew() -> None:
    """Of 4,000 subjects a share of .3 is between .27 and .33, four standard errors."""
    arms = [("likes", 0.3)]
    first = treated(4000, arms=arms)["likes"]
    assert 0.27 < len(first) / 4000 < 0.33
    for other in (treated(4000, 1, arms=arms), treated(4000, arms=arms, experiment="b")):
        assert 0.05 < len(first & other["likes"]) / 4000 < 0.13


def test_arms_that_come_to_one_leave_nobody_out() -> None:
    """Three thirds have no control; an arm may be named again with its share, and have none."""
    found = treated(200, arms=[(arm, 1 / 3) for arm in "abc"])
    assert sum(map(len, found.values())) == 200
    found = treated(50, arms=[("a", 0.1 + 0.2), ("a", 0.3), ("b", 0.7), ("c", 0)])
    assert (len(found["a"]) + len(found["b"]), found["c"]) == (50, set())


@pytest.mark.parametrize(
    "arms",
    [
        [("likes", 0.6), ("dislikes", 0.6)],
        [("likes", 0.3), ("likes", 0.4)],
        [("likes", -0.5)],
    ],
)
def test_a_share_that_cannot_be_is_refused(arms: Any) -> None:
    """The message names experiment and arms."""
    with pytest.raises(FieldValueError, match="of experiment 'trust': a share must be 0 or more"):
        treated(5, arms=arms)
