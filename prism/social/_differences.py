"""What sets agents apart: how active they are, when they are awake, and whom they follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import fsum, log1p
from statistics import NormalDist
from typing import Any

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.files import parse_json
from prism.randomness import RandomStream
from prism.social._readers import Reader
from prism.social.parameters import DIURNAL, HOURS, Parameters

Pair = tuple[int, int]

FREQUENCY = "activity_level_frequency"

_NORMAL = NormalDist()
_RANKS: Mapping[str, int] = {"superuser": 0, "contributor": 1, "lurker": 3}
_UNKNOWN = 2
_TOP, _NEXT = 0.01, 0.09
"""The parts of the agents in the first two classes (Nielsen 2006); all others are in the third."""


def wait(probability: float, stream: RandomStream) -> int:
    """Draw the number of failed trials before the next success.

    It is geometric, so one draw covers all trials until then (Devroye 1986, Non-Uniform Random
    Variate Generation, X.2).

    Args:
        probability: Chance of success in each trial, above 0; 1 or more is certain.
        stream: Random numbers.
    """
    return 0 if probability >= 1 else int(log1p(-stream.random()) / log1p(-probability))


def set_activities(agents: Sequence[Reader], parameters: Parameters, seed: int) -> None:
    """Set how active each agent is, as a multiple of the population's mean.

    The population as a whole follows exactly the distribution that the parameters name: the n-th
    agent of a ranking gets the n-th part of its Lorenz curve. If agents have archetypes,
    superusers rank first and lurkers last. Otherwise, the ranks are drawn, keyed by (seed,
    agent).

    Args:
        agents: The agents.
        parameters: The kind of the distribution, its width, and the largest value.
        seed: Seed of the run.
    """
    size = len(agents)
    shares = _shares(size, parameters)
    if parameters.most_active:
        shares = _limited(shares, parameters.most_active / size)

    for agent, share in zip(
        sorted(agents, key=lambda each: _rank(each, seed)), shares, strict=True
    ):
        agent.activity = share * size


def _rank(agent: Reader, seed: int) -> tuple[int, float]:
    kind = None if agent.archetype is None else agent.archetype.name
    drawn = RandomStream(seed, "activity", agent.agent_id).random()
    return _RANKS.get(kind or "", _UNKNOWN), drawn


def _shares(size: int, parameters: Parameters) -> list[float]:
    """Return each agent's share of all writing, the largest first."""
    if parameters.activity == "equal":
        return [1 / size] * size

    curve = [_of_the_first(number / size, parameters) for number in range(size + 1)]
    return [after - before for before, after in pairwise(curve)]


def _of_the_first(part: float, parameters: Parameters) -> float:
    """Return the share of the most active part of a population: the Lorenz curve from the top.

    For a lognormal it is ``Phi(Phi^-1(p) + sigma)`` (Kleiber and Kotz 2003, section 4.5).
    """
    if part <= 0 or part >= 1:
        return float(part >= 1)
    if parameters.activity == "classes":
        return _of_classes(part, parameters)
    return _NORMAL.cdf(_NORMAL.inv_cdf(part) + parameters.activity_sigma)


def _of_classes(part: float, parameters: Parameters) -> float:
    """Return the share of the first part of a population of three classes, each of equal agents."""
    top, following = parameters.top_share, parameters.next_share
    if part <= _TOP:
        return top * part / _TOP
    if part <= _TOP + _NEXT:
        return top + following * (part - _TOP) / _NEXT
    rest = (part - _TOP - _NEXT) / (1 - _TOP - _NEXT)
    return top + following + max(0.0, 1 - top - following) * rest


def _limited(shares: list[float], most: float) -> list[float]:
    """Limit every share, and distribute the excess over the others."""
    if most * len(shares) <= 1:
        return [1 / len(shares)] * len(shares)

    factor = 1.0
    for _ in range(len(shares)):
        at_limit = sum(share * factor >= most for share in shares)
        below = fsum(shares[at_limit:])
        before, factor = factor, (1 - at_limit * most) / below if below else factor
        if factor == before:
            break

    return [min(most, share * factor) for share in shares]


def awake_by_hour(
    readers: Iterable[Reader], parameters: Parameters, seed: int
) -> Callable[[int], frozenset[Reader]]:
    """Return a function that returns who is awake in an hour, counted from the start.

    Args:
        readers: The agents.
        parameters: The parameters that set their hours.
        seed: Seed of the run.

    Raises:
        FieldValueError: If an agent lacks the 24 numbers that ``file`` reads.
    """
    by_file = parameters.hours == "file"
    curves = {each: _frequency(each) if by_file else DIURNAL for each in readers}

    def is_awake(reader: Reader, hour: int) -> bool:
        stream = RandomStream(seed, "hour", reader.agent_id, hour)
        return stream.chance(curves[reader][hour % HOURS])

    # an hour has many ticks
    @lru_cache(maxsize=1)
    def awake(hour: int) -> frozenset[Reader]:
        return frozenset(each for each in curves if is_awake(each, hour))

    return awake


def _frequency(reader: Reader) -> tuple[float, ...]:
    """Return the share of each hour of the day in which an agent is awake."""
    value: Any = reader.attributes.get(FREQUENCY)
    numbers = parse_json(value) if isinstance(value, str) else value
    is_list = isinstance(numbers, (list, tuple)) and len(numbers) == HOURS
    if not is_list or not all(isinstance(each, (int, float)) and each >= 0 for each in numbers):
        raise FieldValueError(
            f"hours = 'file' needs {FREQUENCY} of agent {reader.agent_id!r}, {HOURS} numbers, 0 "
            f"or more, got {value!r}"
        )

    most = max(numbers)
    # an agent with zeros for all hours is never awake, and takes no step
    return tuple(number / most if most else 0.0 for number in numbers)


# Who follows whom


def follows_of(agents: Sequence[SocialAgent], parameters: Parameters) -> list[tuple[str, ...]]:
    """Return the ids of those whom each agent follows, by the parameters.

    A generated network depends on the seed and the ids of the agents, not on their order, so the
    place in a list does not make an agent popular.

    Args:
        agents: The population.
        parameters: Kind and numbers of the network.

    Raises:
        FieldValueError: If there are too few agents for it.
    """
    seed = parameters.seed
    if parameters.follow_network == "given":
        return [agent.following for agent in agents]

    stream = RandomStream(seed, "network")
    names = sorted(
        (agent.agent_id for agent in agents),
        key=lambda name: RandomStream(seed, "network", name).random(),
    )
    follows = round(len(agents) * parameters.mean_follows)
    mutual = round(follows * parameters.reciprocity / 2)
    links, most = follows - mutual, len(agents) * (len(agents) - 1) // 2
    if links > most:
        raise FieldValueError(
            f"mean_follows must be smaller: {len(agents)} agents have {most} pairs, and the "
            f"network needs {links}"
        )
    pairs = _scale_free(len(agents), links, parameters.follower_exponent, stream)
    # some of the followed agents follow back
    back = stream.sample(pairs, min(mutual, len(pairs)))
    followed: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in (*pairs, *((other, one) for one, other in back)):
        followed[names[one]].add(names[other])

    return [tuple(sorted(followed[agent.agent_id])) for agent in agents]


def _scale_free(size: int, links: int, exponent: float, stream: RandomStream) -> list[Pair]:
    """Return a network whose numbers of connections follow a power law (Price 1976).

    Each agent connects to some earlier agents: with probability ``1 / (exponent - 1)`` to the end
    of a random earlier connection (the copying of Kumar et al. 2000), or else to any of them. With
    m connections each, the share of agents with k incoming connections falls as ``(k + a) **
    -exponent`` with ``a = m * (exponent - 2)``; an exponent of 3 is the network of Barabási and
    Albert (1999).

    Args:
        size: Number of agents.
        links: Number of connections.
        exponent: Of the power law, above 2.
        stream: Random numbers.

    Returns:
        Pairs, whose first agent made the connection.
    """
    copying = 1 / (exponent - 1)
    pairs: list[Pair] = []
    chosen_before: list[int] = []
    for one in range(1, size):
        # the first agents have few predecessors; later ones make up for their missing connections
        share = (links - len(pairs)) / (size - one)
        wanted = min(one, int(share) + stream.chance(share % 1))
        chosen: dict[int, None] = {}
        while len(chosen) < wanted:
            copies = chosen_before and stream.chance(copying)
            chosen[stream.choice(chosen_before) if copies else stream.index(one)] = None

        pairs += [(one, other) for other in chosen]
        chosen_before += chosen

    return pairs
