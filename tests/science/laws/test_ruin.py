"""The gambler's ruin: a random walk between two barriers, against its exact laws."""

from functools import cache
from math import cos, pi, sin

import pytest

from prism import Run
from prism.statechart import Statechart, Transition, state_enum
from prism.worlds import Agent, World, during, state
from tests.kit.laws import assert_follows, on_fixed_seeds, p_of_counts, p_of_mean, p_of_outcomes

pytest.importorskip("scipy")

START, GOAL, WINS = 2, 5, 0.45
LOSES = 1 - WINS
TICKS = 200

Capital = state_enum("Capital", [f"has {pounds}" for pounds in range(GOAL + 1)])
CAPITALS = list(Capital)
PLAYING = CAPITALS[1:GOAL]


class Gambler(Agent):
    """Somebody who wins or loses one pound at a time."""

    chart = Statechart(
        Capital,
        [
            Transition("plays", CAPITALS[pounds], CAPITALS[pounds + change])
            for pounds in range(1, GOAL)
            for change in (1, -1)
        ],
        CAPITALS[START],
        decision_states=PLAYING,
        final_states=[CAPITALS[0], CAPITALS[GOAL]],
    )
    played: int = state(0)


class Casino(World[Gambler]):
    """Gamblers who play until they are ruined or have what they came for."""

    rounds = 1
    ticks = TICKS

    @during(*PLAYING)
    async def play(self, gambler: Gambler) -> None:
        place = CAPITALS.index(gambler.state)
        gambler.played += 1
        chances = {CAPITALS[place + 1]: WINS, CAPITALS[place - 1]: LOSES}
        await gambler.decide("plays", weights=chances)


@cache
def played(seed: int) -> tuple[list[bool], list[int]]:
    """Return who was ruined, and how long each played, when a casino has closed."""
    run = Run(Casino(), 500, seed=seed)
    run.run()
    assert not any(gambler.state in PLAYING for gambler in run.agents)
    ruined = [gambler.state is CAPITALS[0] for gambler in run.agents]

    return ruined, [gambler.played for gambler in run.agents]


def chance_of_ruin_at(trial: int, start: int, wins: float) -> float:
    """Return the probability of ruin at a trial (Feller 1968, XIV, equation 5.8)."""
    if trial == 0:
        return 0.0

    loses = 1 - wins
    waves = sum(
        cos(pi * v / GOAL) ** (trial - 1) * sin(pi * v / GOAL) * sin(pi * start * v / GOAL)
        for v in range(1, GOAL)
    )
    return 2**trial / GOAL * wins ** ((trial - start) / 2) * loses ** ((trial + start) / 2) * waves


def chance_of_end_at(trial: int) -> float:
    """Return the probability that the game ends at a trial: in ruin, or in the ruin of the bank."""
    return max(
        chance_of_ruin_at(trial, START, WINS) + chance_of_ruin_at(trial, GOAL - START, LOSES), 0.0
    )


def p_of_ruin(seed: int) -> float:
    """Return the p-value of how many were ruined (Feller 1968, XIV, equation 2.4)."""
    ratio = LOSES / WINS
    ruin = (ratio**GOAL - ratio**START) / (ratio**GOAL - 1)
    ruined, _ = played(seed)

    return p_of_counts([sum(ruined), len(ruined) - sum(ruined)], [ruin, 1 - ruin])


def p_of_mean_duration(seed: int) -> float:
    """Return the p-value of the mean duration (Feller 1968, XIV, equation 3.4)."""
    ratio = LOSES / WINS
    mean = (START - GOAL * (1 - ratio**START) / (1 - ratio**GOAL)) / (LOSES - WINS)
    chances = [chance_of_end_at(trial) for trial in range(TICKS)]
    assert sum(chances) == pytest.approx(1)
    assert sum(k * chance for k, chance in enumerate(chances)) == pytest.approx(mean)
    variance = sum((k - mean) ** 2 * chance for k, chance in enumerate(chances))

    return p_of_mean(played(seed)[1], mean, variance)


def p_of_durations(seed: int) -> float:
    """Return the p-value of all durations against their law (Feller 1968, XIV, equation 5.8)."""
    return p_of_outcomes(played(seed)[1], chance_of_end_at, 60)


@on_fixed_seeds
@pytest.mark.parametrize("p_value", [p_of_ruin, p_of_mean_duration, p_of_durations])
def test_gamblers_ruin(p_value, seeds: range) -> None:
    """A gambler who wins each game with .45 is ruined, and plays for as long, as Feller derives."""
    assert_follows([p_value(seed) for seed in seeds])
