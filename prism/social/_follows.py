"""Who follows whom: the population's own follows, or a generated network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._parameters import Parameters
from prism.worlds._addresses import function_at
from prism.worlds._networks import (
    Pair,
    pairs_in,
    random_pairs,
    scale_free_pairs,
    small_world_pairs,
)

_MOST_FAILED = 1000
"""Failed draws in a row after which blocks are ignored, because no pair is left in them."""


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
    kind, seed = parameters.follow_network, parameters.seed
    if kind == "given":
        return [agent.following for agent in agents]

    stream = RandomStream(seed, "network")
    order = sorted(
        range(len(agents)),
        key=lambda place: RandomStream(seed, "network", agents[place].agent_id).random(),
    )
    ordered = [agents[place] for place in order]
    make = _KINDS.get(kind)
    if make is None:
        pairs = _own(kind, ordered, parameters, stream)
    else:
        follows = round(len(agents) * parameters.mean_follows)
        mutual = round(follows * parameters.reciprocity / 2)
        _require_room(len(agents), follows - mutual)
        pairs = _returned(make(ordered, follows - mutual, parameters, stream), mutual, stream)

    followed: list[dict[int, None]] = [{} for _ in agents]
    for one, other in pairs:
        if one != other:
            followed[one][other] = None

    ids = [agent.agent_id for agent in ordered]
    result: list[tuple[str, ...]] = [()] * len(agents)
    for place, others in zip(order, followed, strict=True):
        result[place] = tuple(sorted(ids[other] for other in others))
    return result


def _require_room(size: int, links: int) -> None:
    most = size * (size - 1) // 2
    if links > most:
        raise FieldValueError(
            f"mean_follows must be smaller: {size} agents have {most} pairs, and the network needs "
            f"{links}"
        )


def _returned(pairs: Sequence[Pair], mutual: int, stream: RandomStream) -> list[Pair]:
    """Make some of the followed agents follow back."""
    back = stream.sample(pairs, min(mutual, len(pairs)))
    return [*pairs, *((other, one) for one, other in back)]


def _directed(pairs: Sequence[Pair], stream: RandomStream) -> list[Pair]:
    return [pair if stream.chance(0.5) else pair[::-1] for pair in pairs]


def _blocks(
    agents: Sequence[SocialAgent], links: int, parameters: Parameters, stream: RandomStream
) -> list[Pair]:
    """Return a stochastic block model (Holland, Laskey and Leinhardt 1983).

    A share of the pairs is within one block. Pairs that do not fit in a block connect any agents.
    """
    number, name = parameters.blocks, parameters.block_by
    blocks = [
        str(place % number) if number else _block_of(agent, name)
        for place, agent in enumerate(agents)
    ]
    members: dict[str, list[int]] = {}
    for place, block in enumerate(blocks):
        members.setdefault(block, []).append(place)

    size, everybody = len(agents), range(len(agents))
    inside = round(links * parameters.within_block) if len(members) > 1 else links
    room = {block: len(own) * (len(own) - 1) // 2 for block, own in members.items()}
    chosen: dict[Pair, None] = {}
    failed = 0
    while len(chosen) < links:
        one, is_inside = stream.index(size), len(chosen) < inside
        block = blocks[one]
        is_full = failed > _MOST_FAILED or (is_inside and not room[block])
        others = members[block] if is_inside and not is_full else everybody
        other = others[stream.index(len(others))]
        is_of_one = blocks[other] == block
        fits = is_full or is_of_one == is_inside
        if one == other or not fits or (one, other) in chosen or (other, one) in chosen:
            failed += 1
            continue

        failed = 0
        room[block] -= is_of_one
        chosen[one, other] = None

    return [*chosen]


def _block_of(agent: SocialAgent, name: str) -> str:
    """Return the block of an agent: an attribute, or else its first interest."""
    if not name:
        return next((topic.casefold() for topic in agent.interests), "")
    if name not in agent.attributes:
        raise FieldValueError(f"block_by: agent {agent.agent_id!r} has no attribute {name!r}")
    return str(agent.attributes[name])


Making = Callable[[Sequence[SocialAgent], int, Parameters, RandomStream], Sequence[Pair]]

_KINDS: Mapping[str, Making] = {
    "scale_free": lambda agents, links, now, stream: scale_free_pairs(
        len(agents), links, now.follower_exponent, stream
    ),
    "small_world": lambda agents, links, now, stream: _directed(
        small_world_pairs(len(agents), links, now.rewired, stream), stream
    ),
    "random": lambda agents, links, _now, stream: _directed(
        random_pairs(len(agents), links, stream), stream
    ),
    "blocks": _blocks,
}


def _own(
    address: str, agents: Sequence[SocialAgent], parameters: Parameters, stream: RandomStream
) -> list[Pair]:
    """Return the network of the user's own function; directions are drawn if it has none."""
    graph: Any = function_at(address, "follow_network")(agents, stream)
    numbers = {agent.agent_id: number for number, agent in enumerate(agents)}
    pairs = pairs_in(graph, numbers, len(agents))
    is_directed = getattr(graph, "is_directed", None)
    if is_directed is None or is_directed():
        return pairs

    # with M mutual and S single pairs, a share of 2M / (2M + S) of the follows is returned
    share = parameters.reciprocity
    mutual = round(len(pairs) * share / (2 - share))
    return _returned(_directed(pairs, stream), mutual, stream)
