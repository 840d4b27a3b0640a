"""A world against the same model in another program: Mesa's epidemic."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, variance
from types import ModuleType
from typing import Any

import pytest

from prism import Run

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "coming-from" / "mesa.md"
SEEDS, PEOPLE, BETA = 60, 300, 0.15
MOST_OFF = 3.5
"""Standard errors; 40 rounds that hang together are all within once in a thousand times."""

Curve = list[float]


def in_mesa() -> Any:
    """Return the epidemic of the page in Mesa, which other tests need not load."""
    mesa, networkx = (pytest.importorskip(name) for name in ("mesa", "networkx"))

    class Person(mesa.Agent):  # type: ignore[misc]
        """Somebody who infects friends for five days."""

        def __init__(self, model):
            super().__init__(model)
            self.health = "susceptible"
            self.days = 0
            self.friends = []

        def step(self):
            if self.health != "infected":
                return
            self.days += 1
            if self.days > 5:
                self.health = "recovered"
                return
            for friend in self.friends:
                if friend.health == "susceptible" and self.random.random() < self.model.beta:
                    friend.health = "infected"

    class Epidemic(mesa.Model):  # type: ignore[misc]
        """The epidemic of the page, in Mesa."""

        def __init__(self, people=100, beta=0.1, seed=None):
            super().__init__(rng=seed)
            self.beta = beta
            Person.create_agents(self, people)
            everybody = list(self.agents)
            graph = networkx.watts_strogatz_graph(people, 6, 0.1, seed=seed)
            for place, person in enumerate(everybody):
                person.friends = [everybody[other] for other in graph[place]]
            everybody[0].health = "infected"
            self.datacollector = mesa.DataCollector(
                model_reporters={
                    "reached": lambda model: (
                        sum(person.health != "susceptible" for person in model.agents)
                        / len(model.agents)
                    )
                }
            )

        def step(self):
            self.agents.shuffle_do("step")
            self.datacollector.collect(self)

    return Epidemic


def program() -> ModuleType:
    """Return the program of the page, without what it runs at its end."""
    text = PAGE.read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    module = ModuleType("epidemic")
    exec(compile(code, str(PAGE), "exec"), vars(module))
    return module


def apart(ours: Sequence[Curve], theirs: Sequence[Curve]) -> float:
    """Return how far two means are apart at most in any round, in standard errors."""
    found = []
    for here, there in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True):
        spread = (variance(here) / len(here) + variance(there) / len(there)) ** 0.5
        difference = abs(mean(here) - mean(there))
        found.append(difference / spread if spread else float(difference > 0))

    return max(found)


def test_the_epidemic_is_that_of_mesa_round_by_round() -> None:
    """The page's two programs reach as many people in each of 40 rounds, over 60 seeds."""
    ours, theirs, theirs_of = [], [], in_mesa()
    for seed in range(SEEDS):
        model = theirs_of(people=PEOPLE, beta=BETA, seed=seed)
        for _ in range(40):
            model.step()
        theirs.append(model.datacollector.get_model_vars_dataframe()["reached"].tolist())
        run = Run(program().Epidemic(beta=BETA), PEOPLE, seed=seed)
        ours.append(run.run().series("reached"))

    assert apart(ours, theirs) < MOST_OFF
