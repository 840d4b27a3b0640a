"""How active each agent is, compared with the others, and when it is awake."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log1p
from statistics import NormalDist
from typing import Any

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.files import parse_json
from prism.randomness import RandomStream, total_of
from prism.social._parameters import HOURS, Parameters

FREQUENCY = "activity_level_frequency"

_NORMAL = NormalDist()
_RANKS: Mapping[str, int] = {"superuser": 0, "contributor": 1, "lurker": 3}
_UNKNOWN = 2


def waits(probability: float, stream: RandomStream) -> Iterator[int]:
    """Yield, without end, the number of failed trials before each success.

    The numbers are geometric, so one draw covers all trials until the next success (Devroye
    1986, Non-Uniform Random Variate Generation, X.2).

    Args:
        probability: Chance of success in each trial, above 0; 1 or more is certain.
        stream: Random numbers.
    """
    if probability >= 1:
        yield from itertools.repeat(0)

    of_failure = log1p(-probability)
    while True:
        yield int(log1p(-stream.random()) / of_failure)


def activities(agents: Sequence[SocialAgent], parameters: Parameters, seed: int) -> list[float]:
    """Return how active each agent is, as a multiple of the population's mean.

    The population as a whole follows exactly the distribution that the parameters name: the n-th
    agent of a ranking gets the n-th part of its Lorenz curve. If agents have archetypes,
    superusers rank first and lurkers last. Otherwise, the ranks are drawn, keyed by (seed,
    agent).

    Args:
        agents: The agents.
        parameters: The kind of the distribution, its width, the silent share and the largest value.
        seed: Seed of the run.
    """
    size = len(agents)
    writing = max(1, round(size * (1 - parameters.silent_share)))
    shares = _shares(writing, parameters)
    if parameters.most_active:
        shares = _limited(shares, parameters.most_active / size)

    ranked = sorted(range(size), key=lambda place: _rank(agents[place], seed))
    found = [0.0] * size
    for place, share in zip(ranked, shares, strict=False):
        found[place] = share * size

    return found


def in_means_of_all(activity: float) -> str:
    """Describe an activity in words, for a model's prompt."""
    if not activity:
        return "never"

    return f"{activity:.2g} times as often as people do on average"


def _rank(agent: SocialAgent, seed: int) -> tuple[int, float]:
    kind = getattr(agent.archetype, "name", None)
    drawn = RandomStream(seed, "activity", agent.agent_id).random()
    return _RANKS.get(str(kind), _UNKNOWN), drawn


def _shares(size: int, parameters: Parameters) -> list[float]:
    """Return each agent's share of all writing, the largest first."""
    if parameters.activity == "equal":
        return [1 / size] * size

    curve = [_of_the_first(number / size, parameters) for number in range(size + 1)]
    return [after - before for before, after in itertools.pairwise(curve)]


def _of_the_first(part: float, parameters: Parameters) -> float:
    """Return the share of the most active part of a population: the Lorenz curve from the top.

    For a lognormal it is ``Phi(Phi^-1(p) + sigma)``, for a Pareto ``p ** (1 - 1 / exponent)``
    (Kleiber and Kotz 2003, sections 4.5 and 3.3).
    """
    if part <= 0 or part >= 1:
        return float(part >= 1)
    if parameters.activity == "classes":
        return _of_classes(part, parameters)
    if parameters.activity == "pareto":
        share: float = part ** (1 - 1 / parameters.activity_exponent)
        return share

    return _NORMAL.cdf(_NORMAL.inv_cdf(part) + parameters.activity_sigma)


def _of_classes(part: float, parameters: Parameters) -> float:
    """Return the share of the first part of a population of three classes, each of equal agents."""
    top, following = parameters.top_share, parameters.next_share
    in_top, in_next = parameters.top_agents, parameters.next_agents
    if part <= in_top:
        return top * part / in_top
    if part <= in_top + in_next:
        return top + following * (part - in_top) / in_next

    rest = (part - in_top - in_next) / (1 - in_top - in_next)

    return top + following + max(0.0, 1 - top - following) * rest


def _limited(shares: list[float], most: float) -> list[float]:
    """Limit every share, and distribute the excess over the others."""
    if most * len(shares) <= 1:
        return [1 / len(shares)] * len(shares)

    factor = 1.0
    for _ in range(len(shares)):
        at_limit = sum(share * factor >= most for share in shares)
        below = total_of(shares[at_limit:])
        before, factor = factor, (1 - at_limit * most) / below if below else factor
        if factor == before:
            break

    return [min(most, share * factor) for share in shares]


def first_hour(parameters: Parameters, seed: int) -> int:
    """Return the hour of the day in which a run begins."""
    if parameters.first_hour is not None:
        return parameters.first_hour

    return RandomStream(seed, "first hour").index(HOURS)


class Hours:
    """When agents are awake.

    Args:
        agents: The agents.
        parameters: The parameters that set their hours.
        seed: Seed of the run.

    Raises:
        FieldValueError: If an agent lacks the 24 numbers that ``file`` reads.
    """

    def __init__(self, agents: Iterable[SocialAgent], parameters: Parameters, seed: int) -> None:
        self._seed = seed
        self._hour = -1
        self._asleep: frozenset[int] = frozenset()
        self._agents = list(agents)
        by_file = parameters.hours == "file"
        self._curves = {
            agent.agent_id: _frequency(agent) if by_file else parameters.diurnal_curve
            for agent in self._agents
        }

    def asleep(self, hour: int) -> frozenset[int]:
        """Return the places of the agents that are asleep in an hour, counted from the start."""
        if hour != self._hour:
            self._hour = hour
            self._asleep = frozenset(
                place
                for place, agent in enumerate(self._agents)
                if not self._is_awake(agent.agent_id, hour)
            )

        return self._asleep

    def _is_awake(self, agent_id: str, hour: int) -> bool:
        share = self._curves[agent_id][hour % HOURS]
        return share >= 1 or RandomStream(self._seed, "hour", agent_id, hour).chance(share)


def _frequency(agent: SocialAgent) -> tuple[float, ...]:
    """Return the share of each hour of the day in which an agent is awake."""
    given: Any = (getattr(agent, "attributes", None) or {}).get(FREQUENCY)
    numbers = _numbers(parse_json(given) if isinstance(given, str) else given)
    if numbers is None:
        raise FieldValueError(
            f"hours = 'file' needs {FREQUENCY} of agent {agent.agent_id!r}, {HOURS} numbers, 0 "
            f"or more, got {given!r}: keep that column (--keep {FREQUENCY})"
        )

    most = max(numbers)
    # an agent with zeros for all hours is never awake, and takes no step
    return tuple(number / most if most else 0.0 for number in numbers)


def _numbers(given: Any) -> list[float] | None:
    if not isinstance(given, (list, tuple)) or len(given) != HOURS:
        return None
    if not all(isinstance(each, (int, float)) and each >= 0 for each in given):
        return None

    return [float(each) for each in given]
