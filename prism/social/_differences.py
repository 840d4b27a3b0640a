"""What sets agents apart: how active they are, when they are awake, and whom they follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum, inf, log1p
from statistics import NormalDist

from prism.randomness import RandomStream
from prism.social._readers import Reader
from prism.social.parameters import DIURNAL, HOURS, Parameters

Pair = tuple[int, int]

_NORMAL = NormalDist()
_RANKS: Mapping[str, int] = {"superuser": 0, "contributor": 1, "lurker": 3}
_UNKNOWN = 2
_TOP, _NEXT = 0.01, 0.09
"""The parts of the agents in the first two classes (Nielsen 2006); all others are in the third."""


def wait(probability: float, stream: RandomStream) -> float:
    """Draw the number of failed trials before the next success.

    It is geometric, so one draw covers all trials until then (Devroye 1986, Non-Uniform Random
    Variate Generation, X.2).

    Args:
        probability: Chance of success in each trial; 1 or more is certain.
        stream: Random numbers.
    """
    if not 0 < probability < 1:
        return 0 if probability else inf
    return int(log1p(-stream.random()) / log1p(-probability))


def rank_of(reader: Reader, seed: int) -> tuple[int, float]:
    """Return what ranks a reader among the most active, keyed by (seed, agent).

    If agents have archetypes, superusers rank first and lurkers last.
    """
    kind = None if reader.archetype is None else reader.archetype.name
    drawn = RandomStream(seed, "activity", reader.agent_id).random()
    return _RANKS.get(kind or "", _UNKNOWN), drawn


def activities(size: int, parameters: Parameters) -> list[float]:
    """Return how active agents are, the most active first, as multiples of their mean.

    They follow exactly the distribution that the parameters name: the n-th agent gets the n-th part
    of its Lorenz curve.

    Args:
        size: Number of agents.
        parameters: The kind of the distribution, its width, and the largest value.
    """
    shares = _shares(size, parameters)
    if parameters.most_active:
        shares = _limited(shares, parameters.most_active / size)
    return [share * size for share in shares]


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
        return min(1.0, _of_classes(part, parameters))
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
    for at_limit, share in enumerate(shares):
        factor = (1 - at_limit * most) / fsum(shares[at_limit:])
        if 0 <= share * factor <= most:
            return [most] * at_limit + [each * factor for each in shares[at_limit:]]
    return [1 / len(shares)] * len(shares)


def is_awake(reader: Reader, hour: int, seed: int) -> bool:
    """Return whether a reader is awake in an hour, counted from midnight of the first day."""
    # an hour has many ticks
    if reader.awake[0] != hour:
        stream = RandomStream(seed, "hour", reader.agent_id, hour)
        reader.awake = hour, stream.chance(DIURNAL[hour % HOURS])
    return reader.awake[1]


# Who follows whom


def make_follows(readers: Sequence[Reader], parameters: Parameters) -> None:
    """Make readers follow each other in a scale-free network.

    It depends on the seed and the ids of the readers, not on their order, so the place in a list
    does not make a reader popular.

    Args:
        readers: The population.
        parameters: The numbers of the network.
    """
    seed, size = parameters.seed, len(readers)
    keys = {each.agent_id: RandomStream(seed, "network", each.agent_id) for each in readers}
    names = sorted(keys, key=lambda name: keys[name].random())
    follows = round(size * parameters.mean_follows)
    mutual = round(follows * parameters.reciprocity / 2)
    links = min(follows - mutual, size * (size - 1) // 2)
    stream = RandomStream(seed, "network")
    pairs = _scale_free(size, links, parameters.follower_exponent, stream)
    # some of the followed agents follow back
    back = stream.sample(pairs, min(mutual, len(pairs)))
    followed: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in (*pairs, *((other, one) for one, other in back)):
        followed[names[one]].add(names[other])
    for reader in readers:
        reader.follows = dict.fromkeys(sorted(followed[reader.agent_id]))


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
    pairs: list[Pair] = []
    ends: list[int] = []
    for one in range(1, size):
        # the first agents have few predecessors; later ones make up for their missing connections
        share = (links - len(pairs)) / (size - one)
        wanted = min(one, int(share) + stream.chance(share % 1))
        chosen: dict[int, None] = {}
        while len(chosen) < wanted:
            copies = ends and stream.chance(1 / (exponent - 1))
            chosen[stream.choice(ends) if copies else stream.index(one)] = None
        pairs += [(one, other) for other in chosen]
        ends += chosen

    return pairs
