"""Follow networks, which replace the population's own follows."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prism._lazy import import_extra
from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._parameters import LIBRARY, Parameters
from prism.worlds._addresses import function_at, module_at
from prism.worlds._networks import (
    Pair,
    pairs_in,
    random_pairs,
    scale_free_pairs,
    small_world_pairs,
)

GIVEN = "given"

_MOST_FAILED = 1000
"""Failed draws in a row after which blocks are ignored, because no pair is left in them."""


class _Making:
    """The ingredients of a network.

    Args:
        agents: The agents.
        parameters: The properties of the network.
        stream: Random numbers for the network only.

    Attributes:
        size: Number of agents.
        links: Number of pairs in which at least one agent follows the other.
        mutual: Number of pairs that follow each other.
    """

    def __init__(
        self, agents: Sequence[SocialAgent], parameters: Parameters, stream: RandomStream
    ) -> None:
        self.agents = agents
        self.parameters = parameters
        self.stream = stream
        self.size = len(agents)
        follows = round(self.size * parameters.mean_follows)
        self.mutual = round(follows * parameters.reciprocity / 2)
        self.links = follows - self.mutual


def follow_network(agents: Sequence[SocialAgent], parameters: Parameters, seed: int) -> None:
    """Make agents follow each other by the parameters; by default, their follows do not change.

    The network depends on the seed and the ids of the agents, not on their order, so the place in a
    list does not make an agent popular.

    Args:
        agents: The population; their ``following`` is replaced.
        parameters: Kind and numbers of the network.
        seed: Seed of the run.

    Raises:
        FieldValueError: If there is no such network, or there are too few agents for it.
        MissingExtraError: If it needs networkx, which is not installed.
    """
    if parameters.follow_network == GIVEN:
        return

    ordered = sorted(
        agents, key=lambda agent: RandomStream(seed, "network", agent.agent_id).random()
    )
    making = _Making(ordered, parameters, RandomStream(seed, "network"))
    follows = _follows(making)
    followed: list[dict[int, None]] = [{} for _ in ordered]
    for one, other in follows:
        if one != other:
            followed[one][other] = None

    for agent, others in zip(ordered, followed, strict=True):
        agent.following = tuple(sorted(ordered[other].agent_id for other in others))


def _follows(making: _Making) -> Iterable[Pair]:
    """Return who follows whom, as pairs of indices."""
    kind = making.parameters.follow_network
    make = _KINDS.get(kind)
    if make is None:
        return _from_elsewhere(kind, making)

    most = making.size * (making.size - 1) // 2
    if making.links > most:
        raise FieldValueError(
            f"mean_follows must be smaller: {making.size} agents have {most} pairs, and the "
            f"network needs {making.links}"
        )

    return _answered(make(making), making.mutual, making.stream)


def _answered(pairs: Sequence[Pair], mutual: int, stream: RandomStream) -> list[Pair]:
    """Make some of the followed agents follow back."""
    back = stream.sample(pairs, min(mutual, len(pairs)))
    return [*pairs, *((other, one) for one, other in back)]


# Networks of our own


def _scale_free(making: _Making) -> list[Pair]:
    """Return a network whose numbers of followers follow a power law."""
    exponent = making.parameters.follower_exponent
    return scale_free_pairs(making.size, making.links, exponent, making.stream)


def _small_world(making: _Making) -> list[Pair]:
    """Return a ring with some follows rewired, in random directions."""
    stream, rewired = making.stream, making.parameters.rewired
    pairs = small_world_pairs(making.size, making.links, rewired, stream)
    return [pair if stream.chance(0.5) else pair[::-1] for pair in pairs]


def _random(making: _Making) -> list[Pair]:
    """Return random pairs, in random directions."""
    stream = making.stream
    pairs = random_pairs(making.size, making.links, stream)
    return [pair if stream.chance(0.5) else pair[::-1] for pair in pairs]


def _blocks(making: _Making) -> list[Pair]:
    """Return a stochastic block model (Holland, Laskey and Leinhardt 1983).

    On average, agents of small and large blocks have the same number of follows.
    """
    number, name = making.parameters.blocks, making.parameters.block_by
    blocks = [
        str(place % number) if number else _block_of(agent, name)
        for place, agent in enumerate(making.agents)
    ]
    has_several = len(set(blocks)) > 1

    return _random_pairs(making, blocks, making.parameters.within_block if has_several else 1.0)


def _random_pairs(making: _Making, blocks: Sequence[str], within: float) -> list[Pair]:
    """Return distinct random pairs, a share of which is within one block.

    Pairs that do not fit in a block connect any agents.
    """
    size, stream = making.size, making.stream
    inside = round(making.links * within)
    everybody, members = range(size), _members_of(blocks)
    room = {block: len(own) * (len(own) - 1) // 2 for block, own in members.items()}
    taken: set[int] = set()
    pairs: list[Pair] = []
    failed = 0
    while len(pairs) < making.links:
        one, is_inside = stream.index(size), len(pairs) < inside
        block = blocks[one]
        is_full = failed > _MOST_FAILED or (is_inside and not room[block])
        others = members[block] if is_inside and not is_full else everybody
        other = others[stream.index(len(others))]

        # looking up a pair as one number is faster than as a tuple
        pair = min(one, other) * size + max(one, other)
        is_of_one = blocks[other] == block
        if one == other or pair in taken or not (is_full or is_of_one == is_inside):
            failed += 1
            continue

        failed = 0
        room[block] -= is_of_one
        taken.add(pair)
        pairs.append((one, other))

    return pairs


def _members_of(blocks: Sequence[str]) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for place, block in enumerate(blocks):
        members.setdefault(block, []).append(place)

    return members


def _block_of(agent: SocialAgent, name: str) -> str:
    """Return the block of an agent: an attribute, or else its first interest."""
    if not name:
        return next((topic.casefold() for topic in agent.interests), "")
    if name not in agent.attributes:
        raise FieldValueError(
            f"block_by: agent {agent.agent_id!r} has no attribute {name!r}: load the population "
            f"with keep=[{name!r}]"
        )

    return str(agent.attributes[name])


_KINDS: Mapping[str, Callable[[_Making], list[Pair]]] = {
    "scale_free": _scale_free,
    "small_world": _small_world,
    "blocks": _blocks,
    "random": _random,
}


# Networks of networkx, and of the user's own


def _from_elsewhere(kind: str, making: _Making) -> list[Pair]:
    if kind.startswith(f"{LIBRARY}:"):
        graph = _generated(kind.removeprefix(f"{LIBRARY}:"), making)
    else:
        graph = function_at(kind, "follow_network")(making.agents, making.stream)

    return _pairs_of(graph, making)


def _pairs_of(graph: Any, making: _Making) -> list[Pair]:
    """Return who follows whom in a graph; directions are drawn if it has none."""
    pairs = pairs_in(graph, _places_in(graph, making), making.size)
    is_directed = getattr(graph, "is_directed", None)
    if is_directed is None or is_directed():
        return pairs

    # with M mutual and S single pairs, a share of 2M / (2M + S) of the follows is returned
    reciprocity = making.parameters.reciprocity
    mutual = round(len(pairs) * reciprocity / (2 - reciprocity))
    stream = making.stream
    pairs = [pair if stream.chance(0.5) else pair[::-1] for pair in pairs]

    return _answered(pairs, mutual, stream)


def _places_in(graph: Any, making: _Making) -> dict[Any, int]:
    """Return the agents' indices by their names in a graph: ids, or else the order of the nodes."""
    places: dict[Any, int] = {agent.agent_id: n for n, agent in enumerate(making.agents)}
    nodes = list(getattr(graph, "nodes", ()))
    if all(node in places for node in nodes):
        return places
    if len(nodes) != making.size:
        raise FieldValueError(
            f"follow_network: the graph has {len(nodes)} nodes for {making.size} agents"
        )

    return {node: n for n, node in enumerate(nodes)}


def _generated(call: str, making: _Making) -> Any:
    """Return the graph that a function of networkx makes, such as ``watts_strogatz_graph(k=6)``."""
    networkx = import_extra(LIBRARY, "social", extra="science")
    name, values, named = _read_call(call)
    function = getattr(networkx, name, None)
    if not callable(function) or name.startswith("_"):
        raise FieldValueError(f"follow_network: networkx has no function {name!r}")

    known = inspect.signature(function).parameters
    if not values and next(iter(known), None) in ("n", "N") and not {"n", "N"} & set(named):
        values = [making.size]
    if "seed" in known:
        named.setdefault("seed", making.stream.index(2**32))
    try:
        return function(*values, **named)
    except (TypeError, ValueError, networkx.NetworkXException) as error:
        raise FieldValueError(f"follow_network: {call!r} failed: {error}") from error


def _read_call(call: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name and the arguments, plain values, of a call."""
    text = call if "(" in call else f"{call}()"
    try:
        node = ast.parse(text, mode="eval").body
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            raise ValueError
        named = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
        return node.func.id, [ast.literal_eval(each) for each in node.args], named
    except (SyntaxError, ValueError):
        raise FieldValueError(
            "follow_network must be written as in networkx:watts_strogatz_graph(k=6, p=0.1), "
            f"got {call!r}"
        ) from None


def code_in(addresses: Iterable[str]) -> dict[str, Path]:
    """Return the file of the function at each address."""
    files = {
        address: getattr(module_at(address.rpartition(":")[0]), "__file__", None)
        for address in addresses
    }

    return {address: Path(file) for address, file in files.items() if file is not None}
